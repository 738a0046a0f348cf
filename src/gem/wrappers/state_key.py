"""Report which states are equal, for estimators that compare what was done in equal states."""

from __future__ import annotations

from typing import Any

from gem.core import Info, ResultWrapper, Step


class StateKeyWrapper(ResultWrapper):
    """Adds the environment's state_key() as ``state_key`` to info, unless it is None."""

    def _after_reset(self, observation: Any, info: Info) -> tuple[Any, Info]:
        return observation, self._with_key(info)

    def _after_step(self, action: Any, step: Step) -> Step:
        return step._replace(info=self._with_key(step.info))

    def _with_key(self, info: Info) -> Info:
        key = self.env.state_key()
        return info if key is None else {**info, "state_key": key}
