"""Report which states are equal, for estimators that compare what was done in equal states."""

from __future__ import annotations

from typing import Any

from gem.core import EnvWrapper, Info, Step


class StateKeyWrapper(EnvWrapper):
    """Adds the environment's state_key() as ``state_key`` to info, unless it is None."""

    def reset(self, seed: int | None = None, **kwargs: Any) -> tuple[Any, Info]:
        return self._begin(*self.env.reset(seed=seed, **kwargs))

    async def areset(self, seed: int | None = None, **kwargs: Any) -> tuple[Any, Info]:
        return self._begin(*await self.env.areset(seed=seed, **kwargs))

    def step(self, action: Any) -> Step:
        return self._end(*self.env.step(action))

    async def astep(self, action: Any) -> Step:
        return self._end(*await self.env.astep(action))

    def _begin(self, observation: Any, info: Info) -> tuple[Any, Info]:
        return observation, self._with_key(info)

    def _end(self, observation: Any, reward: float, terminated: bool, truncated: bool, info: Info) -> Step:
        return Step(observation, reward, terminated, truncated, self._with_key(info))

    def _with_key(self, info: Info) -> Info:
        key = self.env.state_key()
        return info if key is None else {**info, "state_key": key}
