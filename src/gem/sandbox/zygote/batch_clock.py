"""The time that tests are given."""

from __future__ import annotations

import time


class FairClock:
    """Runs more slowly while tests share processors, so that none is late for the others' sake.

    Args:
        processors: that tests may use.

    running: tests that do, now; set by share().
    """

    def __init__(self, processors: int) -> None:
        self.processors, self.running = processors, 0
        self._time, self._counted_at = 0.0, time.monotonic()

    @property
    def rate(self) -> float:
        """Seconds of this clock in a second."""
        return min(1.0, self.processors / self.running) if self.running else 1.0

    def now(self) -> float:
        """Seconds since this clock was made."""
        real = time.monotonic()
        self._time += (real - self._counted_at) * self.rate
        self._counted_at = real
        return self._time

    def share(self, change: int) -> float:
        """So many tests more, or fewer, run from now on. Returns now()."""
        now = self.now()
        self.running += change
        return now
