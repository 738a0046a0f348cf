"""What runs the slots of a vector: the seam between its bookkeeping and where its environments live."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Sequence

from gem.vector.slots import Call, Facts, Outcome, SlotGroup

GLANCE = 1.0  # seconds between looks at what sends no news


class Engine(ABC):
    """Starts calls and gives their outcomes back as they end. One thread at a time uses it.

    facts: of each of its slots, by number.
    """

    facts: dict[int, Facts]

    @abstractmethod
    def submit(self, calls: Sequence[Call]) -> None:
        """Start calls, at most one at a time per slot. Waits for no environment."""

    @abstractmethod
    def collect(self) -> list[Outcome]:
        """What ended since the last time, in the order in which it ended; waits for nothing.

        Raises InfraError where the engine itself can go on no longer.
        """

    @abstractmethod
    def wait(self, timeout: float | None) -> None:
        """Return when collect() may have something new, or after timeout seconds (None: never before)."""

    def filenos(self) -> list[int]:
        """File descriptors for whoever waits for several engines: one can be read when collect() may have news."""
        return []

    def patience(self) -> float:
        """Seconds that may pass without news before collect() is called all the same, to look after time limits."""
        return GLANCE

    @abstractmethod
    def close(self) -> None:
        """End every environment and everything that ran them, within seconds. Safe to call twice."""


class InlineEngine(Engine):
    """In this thread, one after another, in the order submitted: calls run when their outcomes are collected."""

    def __init__(self, group: SlotGroup) -> None:
        self.group = group
        self.facts = {slot: group.facts(slot) for slot in group.envs}
        self._calls: deque[Call] = deque()
        self._outcomes: list[Outcome] = []

    def submit(self, calls: Sequence[Call]) -> None:
        self._calls += calls

    def collect(self) -> list[Outcome]:
        while self._calls:
            call = self._calls.popleft()
            try:
                self._outcomes.append(self.group.perform(call))
            except BaseException as e:  # Ctrl-C in the middle of it
                self._outcomes.append(self.group.fail(call, f"interrupted by {type(e).__name__}"))
                raise
        outcomes, self._outcomes = self._outcomes, []
        return outcomes

    def wait(self, timeout: float | None) -> None:
        return

    def close(self) -> None:
        self.group.close()
