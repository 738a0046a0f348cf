"""Sessions that keep one interpreter at a time and replace it when it is lost. Backends supply the interpreter."""

from __future__ import annotations

import os
import struct
import threading
from collections.abc import Callable
from typing import Protocol

from gem.errors import BadValue, SandboxError
from gem.sandbox.base import Limits, Result, Session

LENGTH = struct.Struct(">I")  # precedes each message to the interpreter, as read by zygote/cells.py


class Interpreter(Protocol):
    """A running interpreter."""

    def run(self, name: str, code: str, wall_s: float) -> Result:
        """Run a cell. After a result with ``state_lost``, or an exception, the interpreter is closed and replaced."""

    def kill(self) -> None:
        """Kill the interpreter. May be called from any thread; a run() in progress returns a result."""

    def close(self) -> None:
        """Kill the interpreter and release its resources."""


class InterpreterSession(Session):
    """Keeps variables in an interpreter.

    Args:
        start: starts an interpreter.
        limits: wall_s applies to each cell.
        at_once: start the first interpreter in the constructor instead of at the first cell.
    """

    def __init__(self, start: Callable[[], Interpreter], limits: Limits, *, at_once: bool = False) -> None:
        self._start, self._limits = start, limits
        self._owner, self._lock, self._closed = os.getpid(), threading.Lock(), False
        self._cells = 0
        self._interpreter = start() if at_once else None

    def run(self, code: str, *, wall_s: float | None = None) -> Result:
        wall_s = self._limits.wall_s if wall_s is None else wall_s
        if not 0 < wall_s < float("inf"):
            raise BadValue(f"wall_s must be a finite number above 0, got {wall_s!r}")
        if self._owner != os.getpid():
            raise SandboxError("a session cannot be used in a forked process; create a new one there")
        with self._lock:
            if self._closed:
                raise SandboxError("this session is closed")
            if self._interpreter is None:
                self._interpreter = self._start()
            kept = False
            try:
                self._cells += 1
                result = self._interpreter.run(f"cell {self._cells}", code, wall_s)
                kept = not result.state_lost
                return result
            finally:
                if not kept:
                    self._end()

    def close(self) -> None:
        self._closed = True
        if self._owner != os.getpid():  # a thread of the parent may hold the lock
            return
        if (interpreter := self._interpreter) is not None:
            interpreter.kill()  # ends a cell that runs in another thread
        with self._lock:
            self._end()

    def _end(self) -> None:
        if self._interpreter is not None:
            self._interpreter.close()
            self._interpreter = None
