"""Pickled, length-prefixed messages over sockets, and picklable forms of exceptions."""

from __future__ import annotations

import io
import pickle
import socket
import struct
import traceback
from collections.abc import Iterable
from types import FunctionType
from typing import Any

from gem.errors import CallerError, EnvFailed, GemError, InfraError, MissingDependency, require

_LENGTH = struct.Struct("!Q")
_CHUNK = 1 << 16


class Channel:
    """Pickled messages over a stream socket.

    receive() waits for a message; drain() never blocks.
    """

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self._buffer = bytearray()
        self._start = 0  # position of the first message in the buffer

    def fileno(self) -> int:
        return self.sock.fileno()

    def send(self, message: Any, timeout: float | None = None) -> None:
        """Pickle and send a message.

        Args:
            timeout: seconds for the whole message. None means no limit.

        Raises:
            TimeoutError: if the message was not sent within the timeout.
            OSError: if the other end is closed.
            Exception: the exception raised by pickle, if the message cannot be pickled.
        """
        data = pickle.dumps(message, protocol=5)
        self.sock.settimeout(timeout)
        self.sock.sendall(_LENGTH.pack(len(data)) + data)

    def send_bytes(self, messages: Iterable[bytes]) -> None:
        """Send pickled messages without a time limit. Raises OSError if the other end is closed."""
        self.sock.settimeout(None)
        self.sock.sendall(b"".join(part for message in messages for part in (_LENGTH.pack(len(message)), message)))

    def receive(self) -> Any:
        """Wait for the next message and return it. Raises EOFError if the other end is closed.

        Raises TimeoutError if no data arrives within the timeout that is set on ``sock``.
        """
        while (message := self._next()) is None:
            self._append(self.sock.recv(_CHUNK))
        return pickle.loads(message)

    def drain(self) -> list[bytes]:
        """Return the pickled messages that have arrived completely, without waiting; possibly an empty list.

        Raises EOFError if no message has arrived and the other end is closed.
        """
        closed = False
        self.sock.settimeout(0)
        try:
            while True:
                data = self.sock.recv(_CHUNK)
                self._append(data)
                if len(data) < _CHUNK:
                    break
        except BlockingIOError:
            pass
        except (EOFError, ConnectionError):
            closed = True
        messages = []
        while (message := self._next()) is not None:
            messages.append(message)
        if closed and not messages:
            raise EOFError("the other end is closed")
        return messages

    def close(self) -> None:
        self.sock.close()

    def _append(self, data: bytes) -> None:
        if not data:
            raise EOFError("the other end is closed")
        self._buffer += data

    def _next(self) -> bytes | None:
        """Remove and return the first message in the buffer. Returns None if no complete message is in the buffer."""
        begin = self._start + _LENGTH.size
        if begin <= len(self._buffer):
            end = begin + _LENGTH.unpack_from(self._buffer, self._start)[0]
            if end <= len(self._buffer):
                self._start = end
                return bytes(memoryview(self._buffer)[begin:end])
        if self._start:
            del self._buffer[: self._start]
            self._start = 0
        return None


def dumps(value: Any) -> bytes:
    """Pickle a value so that another interpreter can load it.

    If pickle fails, or the value contains functions or classes defined in ``__main__``, cloudpickle pickles the value.

    Raises:
        MissingDependency: if cloudpickle is needed and not installed.
        Exception: the exception raised by cloudpickle.
    """
    try:
        plain = pickle.dumps(value, protocol=5)
        if b"__main__" in plain:  # may also occur in a string, so check the objects
            _MainRefusingPickler(io.BytesIO(), protocol=5).dump(value)
        return plain
    except Exception as e:  # __reduce__ may raise anything
        try:
            cloudpickle = require("cloudpickle", extra="process")
        except MissingDependency as missing:
            raise MissingDependency(f"cannot pickle {value!r:.200} ({e}): {missing}") from e
    cloudpickled: bytes = cloudpickle.dumps(value, protocol=5)
    return cloudpickled


class _MainRefusingPickler(pickle.Pickler):
    """Raises PicklingError for functions and classes defined in ``__main__``."""

    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, (type, FunctionType)) and value.__module__ == "__main__":
            raise pickle.PicklingError(f"{value.__qualname__} is defined in __main__")
        return NotImplemented


def to_picklable(error: BaseException, default: type[GemError] = EnvFailed) -> Exception:
    """Return a copy of the error if the error can be pickled, else a gem exception that describes the error.

    Args:
        default: class of the gem exception for errors that have no base class in gem.errors.
    """
    try:
        copy = pickle.loads(dumps(error))
        if isinstance(copy, Exception) and type(copy) is type(error):
            return copy
    except Exception:  # for example, __init__ needs other arguments than the message, or an attribute is a lock
        pass
    candidates = (c for c in type(error).__mro__ if issubclass(c, GemError) and c.__module__ == "gem.errors")
    cls = next(candidates, default)
    return cls(str(error) if issubclass(cls, CallerError) else describe_error(error))


def describe_error(error: BaseException) -> str:
    """Return ``"Type: message (file:line)"``. An InfraError or an error without a traceback has no location."""
    text = f"{type(error).__name__}: {error}"
    frames = traceback.extract_tb(error.__traceback__)
    if isinstance(error, InfraError) or not frames:
        return text
    return f"{text} ({frames[-1].filename}:{frames[-1].lineno})"
