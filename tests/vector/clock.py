"""Clocks on which only calls that hang time out, however slow the machine is."""

import threading
import time
from pathlib import Path
from typing import Any

from leftovers import SOON

_hanging: list[None] = []  # one item per call that hangs and has not timed out


def hangs() -> None:
    """Declare that the call of an environment that runs here hangs."""
    _hanging.append(None)


def hang(until: threading.Event) -> None:
    """Hang in the call of an environment until an event is set."""
    hangs()
    until.wait(SOON)


class Clock:
    """Replaces `time` in gem.vector.thread. Only when all running calls hang, their time limit passes."""

    def __init__(self) -> None:
        _hanging.clear()
        self.now = 0.0
        self.polls = 0  # how often the engine has looked for late calls
        self.test_ended = threading.Event()

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        """Hang until the test ends."""
        hang(self.test_ended)

    def poll_timeout(self, engine: Any) -> float:
        """Replaces ThreadEngine.poll_timeout."""
        self.polls += 1
        with engine._pool._lock:
            if 0 < len(engine._pool._running) == len(_hanging):
                self.now += 2 * engine._timeout
                _hanging.clear()
        return 0.01


class WorkerClock:
    """Replaces `time` in gem.vector.worker_engine. Time limits pass at once while the vector's first worker hangs.

    Args:
        notes: the file in which a hanging environment writes "hanging".
    """

    def __init__(self, vec: Any, notes: Path) -> None:
        self._shard, self._timeout, self._notes = vec.engine._shards[0], vec.engine._settings.timeout, notes
        self._first = self._shard.worker
        self._passed = 0.0

    def monotonic(self) -> float:
        if self._shard.worker is self._first and "hanging" in self._notes.read_text():
            self._passed += 2 * self._timeout
        return time.monotonic() + self._passed
