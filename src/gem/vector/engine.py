"""The interface between a vector environment and what executes its slots, and the queue and wait that engines share."""

from __future__ import annotations

import math
import os
import select
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any

from gem.core import Step
from gem.vector.slots import SlotCall, SlotMetadata, SlotOutcome

POLL_INTERVAL = 1.0  # seconds between checks of what does not signal by itself


class Engine(ABC):
    """Starts calls and returns their outcomes as they finish. Used by one thread at a time.

    Attributes:
        metadata: of each slot.
    """

    metadata: dict[int, SlotMetadata]
    is_inline = False  # calls run in the caller's thread, and step_all() is available

    @abstractmethod
    def submit(self, calls: Sequence[SlotCall]) -> None:
        """Start calls without waiting for them. A slot has at most one call in progress."""

    @abstractmethod
    def collect(self) -> list[SlotOutcome]:
        """Return the outcomes since the last call, in order of completion, without waiting.

        Raises:
            InfraError: the engine itself cannot continue.
        """

    def step_all(self, actions: Sequence[Any]) -> list[Step] | None:
        """Step every slot at once, without queueing calls. Only for inline engines with nothing in progress.

        Returns:
            One step per slot; or None if a slot raised, and then collect() returns the outcomes of all slots.
        """
        raise NotImplementedError

    @abstractmethod
    def wait(self, timeout: float | None) -> None:
        """Block until collect() may return something new, or until timeout seconds have passed (None: no limit)."""

    def filenos(self) -> list[int]:
        """Return file descriptors, one of which becomes readable when collect() may return something new."""
        return []

    def poll_timeout(self) -> float:
        """Return the seconds after which collect() must be called to enforce time limits, even if nothing happens."""
        return POLL_INTERVAL

    @abstractmethod
    def close(self) -> None:
        """Close every environment and everything that runs them, within seconds. Safe to call twice."""


class OutcomeQueue:
    """Outcomes put by any thread, taken by one. Its file descriptor is readable while it is not empty."""

    def __init__(self) -> None:
        self._reader, self._writer = os.pipe()
        self._lock = threading.Lock()
        self._outcomes: list[SlotOutcome] = []
        self._closed = False

    def put(self, outcome: SlotOutcome) -> None:
        """Add an outcome. After close() it is dropped."""
        with self._lock:
            if not self._closed:
                self._outcomes.append(outcome)
                if len(self._outcomes) == 1:
                    os.write(self._writer, b"!")

    def take(self) -> list[SlotOutcome]:
        """Remove and return all outcomes, in the order of put(), without waiting."""
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


def wait_readable(filenos: Iterable[int], timeout: float | None) -> None:
    """Block until one of the file descriptors is readable, or until timeout seconds have passed (None: no limit)."""
    poll = select.poll()
    for fileno in filenos:
        poll.register(fileno, select.POLLIN)
    poll.poll(None if timeout is None else math.ceil(1000 * timeout))
