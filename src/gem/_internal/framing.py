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

    Use receive() on a blocking end, or drain() on an end that must never block.
    """

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self._buffer = bytearray()
        self._start = 0  # of the first message in the buffer

    def fileno(self) -> int:
        return self.sock.fileno()

    def send(self, message: Any, timeout: float | None = None) -> None:
        """Send a message that plain pickle accepts.

        Args:
            timeout: seconds for the whole message. None waits without a limit.

        Raises:
            TimeoutError: the message was not sent within the timeout.
            OSError: the other end is closed.
        """
        data = pickle.dumps(message, protocol=5)
        self.sock.settimeout(timeout)
        self.sock.sendall(_LENGTH.pack(len(data)) + data)

    def send_bytes(self, messages: Iterable[bytes]) -> None:
        """Send messages that are bytes already, in one write, without a time limit. Raises OSError as send() does."""
        self.sock.settimeout(None)
        self.sock.sendall(b"".join(part for message in messages for part in (_LENGTH.pack(len(message)), message)))

    def receive(self) -> Any:
        """Wait for the next message, within the socket's timeout. Raises EOFError when the other end is closed."""
        while (message := self._next()) is None:
            self._append(self.sock.recv(_CHUNK))
        return pickle.loads(message)

    def drain(self) -> list[bytes]:
        """Return the messages that have arrived completely, as bytes.

        Raises EOFError if there are none and the other end is closed.
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
        """Take the first message out of the buffer; None if it is incomplete."""
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

    Objects that pickle cannot handle, and functions and classes defined in ``__main__``, are pickled by value with
    cloudpickle.

    Raises:
        MissingDependency: cloudpickle is needed and not installed.
        Exception: whatever pickling raised.
    """
    try:
        plain = pickle.dumps(value, protocol=5)
        if b"__main__" in plain:  # possibly only inside a string
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
    """Refuses functions and classes of ``__main__``."""

    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, (type, FunctionType)) and value.__module__ == "__main__":
            raise pickle.PicklingError(f"{value.__qualname__} is defined in __main__")
        return NotImplemented


def to_picklable(error: BaseException, default: type[GemError] = EnvFailed) -> Exception:
    """Return the error itself if it survives pickling, else a gem exception with the same message.

    Args:
        default: the replacement's class for errors that have no base class in gem.errors.
    """
    try:
        copy = pickle.loads(dumps(error))
        if isinstance(copy, Exception) and type(copy) is type(error):
            return copy
    except Exception:  # an __init__ with other parameters than the message, or an attribute such as a lock
        pass
    candidates = (c for c in type(error).__mro__ if issubclass(c, GemError) and c.__module__ == "gem.errors")
    cls = next(candidates, default)
    return cls(str(error) if issubclass(cls, CallerError) else describe_error(error))


def describe_error(error: BaseException) -> str:
    """Return ``"Type: message (file:line)"`` in one line; without the location for an InfraError."""
    text = f"{type(error).__name__}: {error}"
    frames = traceback.extract_tb(error.__traceback__)
    if isinstance(error, InfraError) or not frames:
        return text
    return f"{text} ({frames[-1].filename}:{frames[-1].lineno})"
