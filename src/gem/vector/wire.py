"""What crosses between a vector and its workers: pickles of single calls and outcomes, in frames of known length."""

from __future__ import annotations

import io
import pickle
import socket
import struct
from types import FunctionType
from typing import Any

from gem.core import Step
from gem.errors import CallerError, EnvFailed, GemError, MissingDependency, require
from gem.vector.slots import Call, Outcome, describe

_LENGTH = struct.Struct("!Q")
_CHUNK = 1 << 16


def dumps(value: Any) -> bytes:
    """A pickle that a fresh interpreter can load: what plain pickle cannot take goes through cloudpickle.

    So do functions and classes of ``__main__``, which another interpreter would look for in vain. Raises
    MissingDependency where that needs cloudpickle and it is not installed, else what pickling raised.
    """
    try:
        plain = pickle.dumps(value, protocol=5)
        if b"__main__" in plain:  # perhaps only in a text, so ask in earnest
            _Importable(io.BytesIO(), protocol=5).dump(value)
        return plain
    except Exception as e:  # whatever a __reduce__ raises
        try:
            cloudpickle = require("cloudpickle", extra="process")
        except MissingDependency as missing:
            raise MissingDependency(f"pickle cannot take {value!r:.200} ({e}): {missing}") from e
    cloudpickled: bytes = cloudpickle.dumps(value, protocol=5)
    return cloudpickled


class _Importable(pickle.Pickler):
    """Refuses functions and classes of ``__main__``."""

    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, (type, FunctionType)) and value.__module__ == "__main__":
            raise pickle.PicklingError(f"{value.__qualname__} is defined in __main__")
        return NotImplemented


def pack_call(call: Call) -> bytes:
    """Raises what dumps() raises, where the argument cannot be sent."""
    return dumps(tuple(call))


def unpack_call(packed: bytes) -> Call:
    return Call(*pickle.loads(packed))


def pack(outcome: Outcome) -> bytes:
    """Raises what dumps() raises, where the value cannot be sent."""
    _, value, error, position = outcome
    is_step = type(value) is Step
    # A plain tuple: pickle takes a named one four times as long.
    plain = tuple(value) if is_step else value
    return dumps((is_step, plain, error if error is None else portable(error), position))


def unpack(slot: int, packed: bytes) -> Outcome:
    """The outcome; EnvFailed in it where its value cannot be loaded here."""
    try:
        is_step, value, error, position = pickle.loads(packed)
        return Outcome(slot, Step(*value) if is_step else value, error, position)
    except Exception as e:  # whatever a class's own way of loading raises
        return Outcome(slot, None, EnvFailed(f"slot {slot}: its answer cannot be unpickled here: {describe(e)}"))


def portable(error: BaseException) -> Exception:
    """The error itself where it survives pickling, else one of gem's of the same kind with its message."""
    try:
        same = pickle.loads(dumps(error))
        if isinstance(same, Exception) and type(same) is type(error):
            return same
    except Exception:  # an __init__ that takes other arguments than the message, or an attribute like a lock
        pass
    kinds = (c for c in type(error).__mro__ if issubclass(c, GemError) and c.__module__ == "gem.errors")
    kind = next(kinds, EnvFailed)
    return kind(str(error) if issubclass(kind, CallerError) else describe(error))


class Channel:
    """Pickled messages over a stream socket.

    The end that is read with receive() blocks; the end that is read with drain() never waits for a message's rest.
    """

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self._buffer = bytearray()

    def fileno(self) -> int:
        return self.sock.fileno()

    def send(self, message: Any, timeout: float | None = None) -> None:
        """Send a message of plain data, bytes or what surely pickles. Raises OSError when the other end is gone.

        timeout: seconds for all of it, then TimeoutError.
        """
        data = pickle.dumps(message, protocol=5)
        self.sock.settimeout(timeout)
        self.sock.sendall(_LENGTH.pack(len(data)) + data)  # in one, or the other end would wake up twice

    def receive(self) -> Any:
        """The next message, waiting for it. Raises EOFError when the other end has closed."""
        while (message := self._next()) is None:
            self._fill(self.sock.recv(_CHUNK))
        return pickle.loads(message)

    def drain(self) -> list[Any]:
        """The messages that have arrived in full. Raises EOFError when there is none and the other end has closed."""
        self.sock.settimeout(0)
        messages = []
        try:
            while True:
                self._fill(self.sock.recv(_CHUNK))
        except BlockingIOError:
            pass
        except (EOFError, ConnectionError):
            if not self._has_whole():
                raise EOFError("the other end has closed") from None
        while (message := self._next()) is not None:
            messages.append(pickle.loads(message))
        return messages

    def close(self) -> None:
        self.sock.close()

    def _fill(self, data: bytes) -> None:
        if not data:
            raise EOFError("the other end has closed")
        self._buffer += data

    def _has_whole(self) -> bool:
        head = _LENGTH.size
        return len(self._buffer) >= head and len(self._buffer) >= head + _LENGTH.unpack_from(self._buffer)[0]

    def _next(self) -> bytes | None:
        if not self._has_whole():
            return None
        end = _LENGTH.size + _LENGTH.unpack_from(self._buffer)[0]
        message = bytes(memoryview(self._buffer)[_LENGTH.size : end])
        del self._buffer[:end]
        return message
