"""The clock that measures the time limits of tests."""

from __future__ import annotations

import time


class FairClock:
    """A clock that slows down while tests share processors, so that sharing does not cause timeouts.

    Args:
        processors: processors available for tests.

    ``running`` is the number of running tests, set by change_running().
    """

    def __init__(self, processors: int) -> None:
        self.processors, self.running = processors, 0
        self._time, self._counted_at = 0.0, time.monotonic()

    @property
    def rate(self) -> float:
        """Seconds of this clock per second of real time."""
        return min(1.0, self.processors / self.running) if self.running else 1.0

    def now(self) -> float:
        """Seconds since the clock was created."""
        real = time.monotonic()
        self._time += (real - self._counted_at) * self.rate
        self._counted_at = real
        return self._time

    def change_running(self, change: int) -> float:
        """Add ``change`` to the number of running tests. Returns the time of this clock."""
        now = self.now()
        self.running += change
        return now
