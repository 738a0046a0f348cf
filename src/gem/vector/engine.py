"""The Engine interface, which runs the slots of a vector environment, and helpers that several engines use."""

from __future__ import annotations

import math
import os
import select
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, Generic, TypeVar

from gem.core import Step
from gem.vector.slots import SlotCall, SlotMetadata, SlotOutcome

_POLL_WITHOUT_FILES = 0.02  # seconds; waiting for an engine and a file descriptor at once
POLL_INTERVAL = 1.0  # seconds between checks for events that make no file descriptor readable


class Engine(ABC):
    """Starts calls on slots and returns the outcomes of finished calls. Must be used by one thread at a time.

    Attributes:
        metadata: slot → constant properties of its environment.
        is_inline: whether calls run in the thread of the caller. If so, step_all() is available.
    """

    metadata: dict[int, SlotMetadata]
    is_inline = False

    @abstractmethod
    def submit(self, calls: Sequence[SlotCall]) -> None:
        """Start calls without waiting for them. A slot has at most one call in progress."""

    @abstractmethod
    def collect(self) -> list[SlotOutcome]:
        """Return the outcomes of all calls that have finished since the previous collect. Does not wait.

        Raises:
            InfraError: the engine cannot continue.
        """

    def step_all(self, actions: Sequence[Any]) -> list[Step] | None:
        """Step all slots in one pass and return their steps. Only for inline engines.

        This is faster than submit() and collect().

        Returns:
            One step per slot. None if a slot raised or calls were waiting; collect() then returns the outcomes of all
            slots.
        """
        raise NotImplementedError

    @abstractmethod
    def wait(self, timeout: float | None) -> None:
        """Block until collect() may return an outcome, or until timeout seconds have passed (None: no limit)."""

    def wait_for(self, fileno: int) -> None:
        """Block until collect() may return an outcome, or until a file descriptor is readable.

        May return earlier. An engine without file descriptors is polled.
        """
        if filenos := self.filenos():
            wait_readable([fileno, *filenos], self.poll_timeout())
        else:
            self.wait(_POLL_WITHOUT_FILES)

    def envs(self) -> dict[int, Any]:
        """Return slot → environment, for the slots whose environments are in this process."""
        return {}

    def filenos(self) -> list[int]:
        """Return file descriptors. At least one becomes readable when collect() may return an outcome."""
        return []

    def poll_timeout(self) -> float:
        """Return the number of seconds after which collect() must be called again, so that time limits are enforced."""
        return POLL_INTERVAL

    @abstractmethod
    def close(self) -> None:
        """Close all environments and stop all threads and workers. Takes a few seconds at most. May be called twice."""


Item = TypeVar("Item")


class OutcomeQueue(Generic[Item]):
    """A queue with many producer threads and one consumer thread.

    Its file descriptor is readable while the queue is not empty.
    """

    def __init__(self) -> None:
        self._reader, self._writer = os.pipe()
        self._lock = threading.Lock()
        self._outcomes: list[Item] = []
        self._closed = False

    def put(self, outcome: Item) -> None:
        """Add an outcome. Does nothing after close()."""
        with self._lock:
            if not self._closed:
                self._outcomes.append(outcome)
                if len(self._outcomes) == 1:
                    os.write(self._writer, b"!")

    def take(self) -> list[Item]:
        """Remove and return all outcomes in the order in which they were added. Does not wait."""
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
