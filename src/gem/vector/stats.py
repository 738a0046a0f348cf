"""What was played on a vector, by environment id."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gem.core import Info, StopReason


@dataclass
class EnvStats:
    """What was played of one environment id.

    Args:
        slots: how many play it.
        episodes: ended, the failed ones not counted.
        failed: episodes that the machinery ended.
        turns: steps of all episodes counted in episodes.
        reward: the sum of their rewards.
        solved: how many of them ended with ``stop_reason`` solved.
    """

    slots: int = 0
    episodes: int = 0
    failed: int = 0
    turns: int = 0
    reward: float = 0.0
    solved: int = 0


class Scores:
    """Turns and rewards of the episodes under way, one per slot, and the statistics of those that ended.

    env_ids: of each slot; see VectorEnv.
    """

    def __init__(self, env_ids: Sequence[str | None]) -> None:
        self.by_id: dict[str | None, EnvStats] = {}
        for env_id in env_ids:
            self.by_id.setdefault(env_id, EnvStats()).slots += 1
        self._stats = [self.by_id[env_id] for env_id in env_ids]
        self._turns, self._rewards = [0] * len(env_ids), [0.0] * len(env_ids)

    def begin(self, slot: int) -> None:
        self._turns[slot], self._rewards[slot] = 0, 0.0

    def step(self, slot: int, reward: float) -> None:
        self._turns[slot] += 1
        self._rewards[slot] += reward

    def end(self, slot: int, info: Info) -> None:
        """An episode ended, with this info of its last step."""
        if "failure" in info:
            return self.fail(slot)
        stats = self._stats[slot]
        stats.episodes += 1
        stats.turns += self._turns[slot]
        stats.reward += self._rewards[slot]
        stats.solved += info.get("stop_reason") == StopReason.SOLVED
        self.begin(slot)

    def fail(self, slot: int) -> None:
        """The machinery ended an episode."""
        self._stats[slot].failed += 1
        self.begin(slot)

    def get_state(self) -> dict[str, Any]:
        return {"turns": list(self._turns), "rewards": list(self._rewards)}

    def set_state(self, state: Mapping[str, Any]) -> None:
        self._turns, self._rewards = list(state["turns"]), list(state["rewards"])
