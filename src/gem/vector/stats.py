"""Statistics of the episodes of a vector environment, by environment id."""

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
        episodes: number of completed episodes, not counting failed episodes.
        failed: number of episodes that ended because of an error that the agent did not cause.
        turns: number of steps in the completed episodes.
        reward: sum of the rewards of the completed episodes.
        solved: number of completed episodes with ``stop_reason`` StopReason.SOLVED.
    """

    slots: int = 0
    episodes: int = 0
    failed: int = 0
    turns: int = 0
    reward: float = 0.0
    solved: int = 0


class SlotStats:
    """Counts turns and rewards of the running episodes and keeps the statistics of the completed episodes.

    Args:
        env_ids: registered id of each slot's environment. None for an environment that was not made by id.
    """

    def __init__(self, env_ids: Sequence[str | None]) -> None:
        self.by_id: dict[str | None, EnvStats] = {}
        for env_id in env_ids:
            self.by_id.setdefault(env_id, EnvStats()).slots += 1
        self._stats = [self.by_id[env_id] for env_id in env_ids]
        self._turns = np.zeros(len(env_ids), dtype=np.int64)
        self._rewards = np.zeros(len(env_ids), dtype=np.float64)

    def begin(self, slot: int) -> None:
        """Set the turns and rewards of a slot to zero for a new episode."""
        self._turns[slot], self._rewards[slot] = 0, 0.0

    def step(self, slots: Sequence[int], rewards_B: npt.NDArray[np.float64]) -> None:
        """Count one step of each of these slots. A range must contain all slots."""
        index = slice(None) if isinstance(slots, range) else slots
        self._turns[index] += 1
        self._rewards[index] += rewards_B

    def end(self, slot: int, info: Info) -> None:
        """Count an episode that ended.

        Args:
            info: the info of the last step. If ``failure`` is in it, the episode counts as failed.
        """
        if "failure" in info:
            return self.fail(slot)
        stats = self._stats[slot]
        stats.episodes += 1
        stats.turns += int(self._turns[slot])
        stats.reward += float(self._rewards[slot])
        stats.solved += info.get("stop_reason") == StopReason.SOLVED
        self.begin(slot)

    def fail(self, slot: int) -> None:
        """Count a failed episode."""
        self._stats[slot].failed += 1
        self.begin(slot)

    def get_state(self) -> dict[str, Any]:
        return {"turns": self._turns.tolist(), "rewards": self._rewards.tolist()}

    def set_state(self, state: Mapping[str, Any]) -> None:
        self._turns = np.array(state["turns"], dtype=np.int64)
        self._rewards = np.array(state["rewards"], dtype=np.float64)
