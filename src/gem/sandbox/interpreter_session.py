"""Session that runs its cells in one interpreter and starts a new one if the interpreter ends."""

from __future__ import annotations

import os
import struct
import threading
from collections.abc import Callable
from typing import Protocol

from gem.errors import SandboxError
from gem.sandbox.base import Session
from gem.sandbox.results import Limits, Result, call_seconds

LENGTH = struct.Struct(">I")  # length prefix of each message to the interpreter; forkserver/entry/cells.py reads it


class Interpreter(Protocol):
    """A running interpreter."""

    def run(self, name: str, code: str, wall_s: float) -> Result:
        """Run a cell. If this raises or ``state_lost`` is True in the result, the session closes the interpreter."""

    def kill(self) -> None:
        """Kill the interpreter. May be called from any thread. A run() in progress in another thread then returns."""

    def close(self) -> None:
        """Kill the interpreter and release its resources."""


class InterpreterSession(Session):
    """A Session that starts interpreters as needed.

    Args:
        start: starts an interpreter and returns it.
        limits: wall_s is the default time limit of a cell; the other limits are not used here.
        at_once: whether to start the first interpreter in the constructor. By default, the first cell starts it.
    """

    def __init__(self, start: Callable[[], Interpreter], limits: Limits, *, at_once: bool = False) -> None:
        self._start, self._limits = start, limits
        self._owner, self._lock, self._closed = os.getpid(), threading.Lock(), False
        self._cells = 0
        self._interpreter = start() if at_once else None

    def run(self, code: str, *, wall_s: float | None = None) -> Result:
        wall_s = call_seconds(self._limits, wall_s)
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
        if self._owner != os.getpid():  # forked: a thread of the parent process may hold the lock
            return
        if (interpreter := self._interpreter) is not None:
            interpreter.kill()  # ends a cell that is running in another thread
        with self._lock:
            self._end()

    def _end(self) -> None:
        if self._interpreter is not None:
            self._interpreter.close()
            self._interpreter = None
