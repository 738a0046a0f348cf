"""Statistics of the episodes played in a vector, by environment id."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gem.core import Info, StopReason


@dataclass
class EnvStats:
    """Statistics of one environment id.

    Args:
        slots: number of slots with this id.
        episodes: completed episodes, without failed ones.
        failed: episodes that ended because the machinery failed.
        turns: steps in the completed episodes.
        reward: sum of the rewards of the completed episodes.
        solved: completed episodes whose ``stop_reason`` is solved.
    """

    slots: int = 0
    episodes: int = 0
    failed: int = 0
    turns: int = 0
    reward: float = 0.0
    solved: int = 0


class SlotStats:
    """Turns and rewards of the running episodes, and the statistics of the completed ones.

    Args:
        env_ids: one per slot; None for a slot without a registered id.
    """

    def __init__(self, env_ids: Sequence[str | None]) -> None:
        self.by_id: dict[str | None, EnvStats] = {}
        for env_id in env_ids:
            self.by_id.setdefault(env_id, EnvStats()).slots += 1
        self._stats = [self.by_id[env_id] for env_id in env_ids]
        self._turns = np.zeros(len(env_ids), dtype=np.int64)
        self._rewards = np.zeros(len(env_ids), dtype=np.float64)

    def begin(self, slot: int) -> None:
        """Start counting a new episode."""
        self._turns[slot], self._rewards[slot] = 0, 0.0

    def step(self, slots: Sequence[int], rewards_B: npt.NDArray[np.float64]) -> None:
        """Count one step of each of some slots; a range means all slots."""
        index = slice(None) if isinstance(slots, range) else slots
        self._turns[index] += 1
        self._rewards[index] += rewards_B

    def end(self, slot: int, info: Info) -> None:
        """Count an episode that ended with this info of its last step."""
        if "failure" in info:
            return self.fail(slot)
        stats = self._stats[slot]
        stats.episodes += 1
        stats.turns += int(self._turns[slot])
        stats.reward += float(self._rewards[slot])
        stats.solved += info.get("stop_reason") == StopReason.SOLVED
        self.begin(slot)

    def fail(self, slot: int) -> None:
        """Count an episode that ended because the machinery failed."""
        self._stats[slot].failed += 1
        self.begin(slot)

    def get_state(self) -> dict[str, Any]:
        return {"turns": self._turns.tolist(), "rewards": self._rewards.tolist()}

    def set_state(self, state: Mapping[str, Any]) -> None:
        self._turns = np.array(state["turns"], dtype=np.int64)
        self._rewards = np.array(state["rewards"], dtype=np.float64)
