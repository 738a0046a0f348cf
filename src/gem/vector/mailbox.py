"""What other threads leave for the one that waits."""

from __future__ import annotations

import os
import selectors
import threading
from collections.abc import Iterable

from gem.vector.slots import Outcome


class Mailbox:
    """Outcomes from any thread, in the order in which they came. While there are some, its fileno() can be read."""

    def __init__(self) -> None:
        self._reader, self._writer = os.pipe()
        self._lock = threading.Lock()
        self._outcomes: list[Outcome] = []
        self._closed = False

    def put(self, outcome: Outcome) -> None:
        """Leave an outcome; once closed, it is dropped."""
        with self._lock:
            if not self._closed:
                self._outcomes.append(outcome)
                if len(self._outcomes) == 1:
                    os.write(self._writer, b"!")

    def take(self) -> list[Outcome]:
        """All there are; waits for none."""
        if not self._outcomes:
            return []
        with self._lock:
            os.read(self._reader, 1)
            outcomes, self._outcomes = self._outcomes, []
        return outcomes

    def fileno(self) -> int:
        return self._reader

    def close(self) -> None:
        with self._lock:
            if not self._closed:
                self._closed, self._outcomes = True, []
                os.close(self._reader)
                os.close(self._writer)


def await_readable(filenos: Iterable[int], timeout: float | None) -> None:
    """Return when one of the file descriptors can be read, or after timeout seconds (None: never before)."""
    with selectors.DefaultSelector() as selector:
        for fileno in filenos:
            selector.register(fileno, selectors.EVENT_READ)
        selector.select(timeout)
