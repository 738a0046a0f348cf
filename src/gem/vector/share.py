"""Some slots and the worker that plays them: what waits, what is under way, and who is to blame when it dies.

What a worker is (a process, an actor) is its backend's.
"""

from __future__ import annotations

import pickle
from abc import ABC, abstractmethod
from collections.abc import Mapping
from itertools import pairwise

from gem._internal.framing import dumps
from gem.errors import BadValue, MissingDependency
from gem.vector.slots import Call, Factory, Facts, Outcome, Position, describe
from gem.vector.worker import Report


class WorkerDied(Exception):
    """Why: "killed by signal 9 (Killed)"."""


class CannotBuild(WorkerDied):
    """The worker lives and says why it cannot play. cause: what building raised there."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(f"cannot build its environments: {describe(cause)}")
        self.cause = cause


class InWorker(Exception):
    """The traceback of an error where it was raised."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}"


class Worker(ABC):
    """Plays the slots of one Task until it dies; then it is of no more use."""

    facts: dict[int, Facts] | None = None  # of its slots, once they are built
    stages = 1  # time limits that may pass without a sign of life from it while all is well

    @abstractmethod
    def send(self, batch: list[tuple[int, bytes]]) -> None:
        """Start (slot, packed call) pairs; it has none under way. Raises WorkerDied."""

    @abstractmethod
    def receive(self) -> list[Outcome] | None:
        """What ended since the last time, without waiting; None where there is no sign of life. Raises WorkerDied."""

    @abstractmethod
    def kill(self) -> None:
        """End it at once, whatever it does. Safe to call twice."""

    def learn(self, report: Report) -> None:
        """Take the facts. Raises CannotBuild where there are none."""
        if report.facts is None:
            raise CannotBuild(pickle.loads(report.error)) from InWorker(report.trace)
        self.facts = report.facts


class Share:
    """Some slots, and the worker that holds them at the time."""

    def __init__(self, factories: dict[int, Factory]) -> None:
        self.slots = list(factories)
        self.packed = _pack_factories(factories)
        self.worker: Worker | None = None  # None when all its slots are given up
        self.heard = 0.0  # when the worker was last heard or given something to do, by time.monotonic()
        self.waiting: list[Call] = []
        self.running: dict[int, Call] = {}
        self.positions: dict[int, Position] = {}  # where each slot's running episode is, as far as is known
        self.deaths = 0  # in a row without an outcome
        self.blame: dict[int, int] = {}  # slot → deaths in a row under its call alone
        # Slots that have made no sound step since a worker died. They run one at a time, so that the one that kills
        # its workers is found out and not its neighbours.
        self.suspects: set[int] = set()

    def __str__(self) -> str:
        return f"slot {self.slots[0]}" if len(self.slots) == 1 else f"slots {self.slots[0]} to {self.slots[-1]}"

    def next_batch(self) -> list[Call]:
        """Take what to run next out of what waits: a suspect that is first in the queue, else all that are none."""
        batch = self.waiting[:1]
        if batch and batch[0].slot not in self.suspects:
            batch = [call for call in self.waiting if call.slot not in self.suspects]
        chosen = {call.slot for call in batch}
        self.waiting = [call for call in self.waiting if call.slot not in chosen]
        return batch

    def lose_worker(self) -> list[Call]:
        """Take back the calls that a worker died with."""
        under_way = list(self.running.values())
        self.running.clear()
        self.suspects = set(self.slots)
        self.deaths += 1
        if len(under_way) == 1:
            slot = under_way[0].slot
            self.blame[slot] = self.blame.get(slot, 0) + 1
        return under_way

    def note(self, outcome: Outcome) -> None:
        """Learn from what a worker answered."""
        call = self.running.pop(outcome.slot)
        self.deaths = 0
        if outcome.position is not None:
            self.positions[outcome.slot] = outcome.position
        if self.suspects and call.what == "step" and outcome.error is None and not _is_lost(outcome):
            self.suspects.discard(outcome.slot)
            self.blame.pop(outcome.slot, None)


def deal(factories: Mapping[int, Factory], count: int) -> list[dict[int, Factory]]:
    """Contiguous shares for count workers, as equal as can be, none of them empty."""
    items = list(factories.items())
    count = min(count, len(items))
    bounds = [len(items) * i // count for i in range(count + 1)]
    return [dict(items[low:high]) for low, high in pairwise(bounds)]


def _pack_factories(factories: dict[int, Factory]) -> bytes:
    """All in one pickle, so that what they share is sent once. Raises BadValue that names the slot at fault."""
    try:
        return dumps(factories)
    except Exception as whole:
        for slot, factory in factories.items():
            try:
                dumps(factory)
            except MissingDependency:
                raise
            except Exception as e:
                raise BadValue(f"slot {slot}: {factory!r:.200} cannot be sent to a worker: {describe(e)}") from e
        raise whole


def _is_lost(outcome: Outcome) -> bool:
    """Whether a step's outcome is that of an episode whose machinery failed."""
    info = outcome.value.info or {}
    return "failure" in (info.get("final_info") or info)
