"""Sessions: one interpreter at a time, replaced when it is lost. How one is started and spoken to is the backend's."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Protocol

from gem.errors import BadValue, SandboxError
from gem.sandbox.base import Limits, Result, Session


class Interpreter(Protocol):
    """A live one."""

    def run(self, name: str, code: str, wall_s: float) -> Result:
        """Run a cell. Where the result says ``state_lost``, or this raises, it is closed and not used again."""

    def kill(self) -> None:
        """End it now, from any thread; whoever waits for a cell of it gets a result."""

    def close(self) -> None:
        """End it, and give back what it held."""


class InterpreterSession(Session):
    """Keeps variables in an interpreter.

    Args:
        start: a new one.
        limits: wall_s is of each cell.
        at_once: start the first one now, not when the first cell comes.
    """

    def __init__(self, start: Callable[[], Interpreter], limits: Limits, *, at_once: bool = False) -> None:
        self._start, self._limits = start, limits
        self._owner, self._lock, self._closed = os.getpid(), threading.Lock(), False
        self._cells = 0
        self._live = start() if at_once else None

    def run(self, code: str, *, wall_s: float | None = None) -> Result:
        wall_s = self._limits.wall_s if wall_s is None else wall_s
        if not 0 < wall_s < float("inf"):
            raise BadValue(f"wall_s must be a finite number above 0, got {wall_s!r}")
        if self._owner != os.getpid():
            raise SandboxError("a session stays with the process that made it; make another one here")
        with self._lock:
            if self._closed:
                raise SandboxError("this session is closed")
            if self._live is None:
                self._live = self._start()
            kept = False
            try:
                self._cells += 1
                result = self._live.run(f"cell {self._cells}", code, wall_s)
                kept = not result.state_lost
                return result
            finally:
                if not kept:
                    self._end()

    def close(self) -> None:
        self._closed = True
        if self._owner != os.getpid():  # and who held the lock is not here
            return
        if (live := self._live) is not None:
            live.kill()  # a cell that runs in another thread ends by this
        with self._lock:
            self._end()

    def _end(self) -> None:
        if self._live is not None:
            self._live.close()
            self._live = None
