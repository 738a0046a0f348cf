"""Curriculum: choose what to train on by how often it is solved.

Items are the environments of a mixture, the rows of a data set, or a fixed pool of seeds. An item that is solved with
probability p is chosen in proportion to p(1 - p), its learnability: episodes that always or never succeed have nothing
to compare. Source: arXiv 2408.15099, which takes the items with the highest learnability; here, all items keep a
minimum share, so that an item that becomes learnable later is found.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

from gem.errors import BadValue
from gem.seeding import stream

DECAY = 0.9  # weight of the outcomes of an item at each further outcome, so that about ten count
MINIMUM = 0.2  # share that is divided equally among all items; the rest goes by learnability
_KEPT = 10_000  # choices that are remembered for groups that are still played


class Learnability:
    """Estimates the success of items from their recent outcomes, and from it their shares.

    Args:
        count: number of items, at least 1.

    >>> items = Learnability(2)
    >>> for _ in range(10):
    ...     items.add(0, True)
    >>> [round(share, 2) for share in items.shares()]  # the other was not tried
    [0.33, 0.67]
    """

    def __init__(self, count: int) -> None:
        if count < 1:
            raise BadValue(f"a curriculum needs at least one item, got {count}")
        self.tries, self.solved = [0.0] * count, [0.0] * count

    def add(self, item: int, solved: bool) -> None:
        """Count the outcome of an episode."""
        self.tries[item] = DECAY * self.tries[item] + 1.0
        self.solved[item] = DECAY * self.solved[item] + solved

    def success(self, item: int) -> float:
        """Return the smoothed rate of success; 0.5 for an item that was not tried yet."""
        return (self.solved[item] + 1.0) / (self.tries[item] + 2.0)

    def shares(self) -> list[float]:
        """Return the share of each item. They sum to 1."""
        rates = [self.success(item) for item in range(len(self.tries))]
        total = sum(p * (1.0 - p) for p in rates)
        return [MINIMUM / len(rates) + (1.0 - MINIMUM) * p * (1.0 - p) / total for p in rates]

    def get_state(self) -> dict[str, Any]:
        """Return the outcomes as plain data."""
        return {"tries": list(self.tries), "solved": list(self.solved)}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Restore a state that get_state() returned."""
        self.tries, self.solved = list(state["tries"]), list(state["solved"])


class ItemSampler:
    """Chooses the seeds of groups of episodes by the learnability of their items.

    Args:
        seeds: the seed of each item; all differ.
        name: identifies the random stream.
    """

    def __init__(self, seeds: Sequence[int], *name: int | str) -> None:
        self.seeds, self.name = seeds, name
        self.learnability = Learnability(len(seeds))
        self._item_of = {seed: item for item, seed in enumerate(seeds)}
        self._boundaries: list[float] | None = None
        self._chosen: dict[int, int] = {}  # groups and their items: the members of a group start at different times

    def seed_of(self, group: int) -> int:
        """Return the seed of a group, the same at each call."""
        if group not in self._chosen:
            if self._boundaries is None:
                self._boundaries = list(accumulate(self.learnability.shares()))
            point = stream(*self.name, group).random() * self._boundaries[-1]
            self._chosen[group] = min(bisect(self._boundaries, point), len(self.seeds) - 1)
            if len(self._chosen) > _KEPT:
                del self._chosen[next(iter(self._chosen))]
        return self.seeds[self._chosen[group]]

    def add(self, seed: int, solved: bool) -> None:
        """Count the outcome of an episode that started from a seed."""
        self.learnability.add(self._item_of[seed], solved)
        self._boundaries = None

    def get_state(self) -> dict[str, Any]:
        """Return the outcomes and the choices as plain data."""
        return {**self.learnability.get_state(), "chosen": list(self._chosen.items())}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Restore a state that get_state() returned."""
        self.learnability.set_state(state)
        self._chosen, self._boundaries = dict(map(tuple, state["chosen"])), None
