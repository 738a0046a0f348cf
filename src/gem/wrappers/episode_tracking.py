"""Report the number of steps and the total reward of an episode in info."""

from __future__ import annotations

from typing import Any

from gem.core import EnvWrapper, Info, Step


class EpisodeTrackingWrapper(EnvWrapper):
    """Adds ``step_counter`` and ``cumulative_rewards`` to info.

    The info of a reset also has ``prev_ep_step_counter`` and ``prev_ep_cumulative_rewards`` of the episode before, 0 if
    there was none.
    """

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        self.step_counter, self.cumulative_rewards = 0, 0.0

    def reset(self, seed: int | None = None, **kwargs: Any) -> tuple[Any, Info]:
        return self._begin(*self.env.reset(seed=seed, **kwargs))

    async def areset(self, seed: int | None = None, **kwargs: Any) -> tuple[Any, Info]:
        return self._begin(*await self.env.areset(seed=seed, **kwargs))

    def step(self, action: str) -> Step:
        return self._count(*self.env.step(action))

    async def astep(self, action: str) -> Step:
        return self._count(*await self.env.astep(action))

    def own_state(self) -> list[float]:
        return [self.step_counter, self.cumulative_rewards]

    def set_own_state(self, state: list[float]) -> None:
        self.step_counter, self.cumulative_rewards = int(state[0]), state[1]

    def _begin(self, observation: Any, info: Info) -> tuple[Any, Info]:
        info = {
            **info,
            "prev_ep_step_counter": self.step_counter,
            "prev_ep_cumulative_rewards": self.cumulative_rewards,
        }
        self.step_counter, self.cumulative_rewards = 0, 0.0
        return observation, self._with_counts(info)

    def _count(self, observation: Any, reward: float, terminated: bool, truncated: bool, info: Info) -> Step:
        self.step_counter += 1
        self.cumulative_rewards += reward
        return Step(observation, reward, terminated, truncated, self._with_counts(info))

    def _with_counts(self, info: Info) -> Info:
        return {**info, "step_counter": self.step_counter, "cumulative_rewards": self.cumulative_rewards}
