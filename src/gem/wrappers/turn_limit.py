"""A limit on the turns of an episode."""

from __future__ import annotations

from typing import Any

from gem._internal.counts import check_count
from gem.core import Info, ResultWrapper, Step, StopReason


class TurnLimit(ResultWrapper):
    """Truncates an episode after ``max_turns`` steps, with the stop reason "max_turns".

    Tool calls and invalid actions are steps. An episode that ends by itself in the last step is not truncated. The
    limit is not one of the task's rules, so ``info["outside_limit"]`` is True.

    Args:
        env: the environment. Its own limit applies as well.
        max_turns: at least 1.

    Raises:
        BadValue: max_turns is below 1.
    """

    def __init__(self, env: Any, max_turns: int) -> None:
        super().__init__(env)
        check_count("max_turns", max_turns)
        self.max_turns, self._taken = max_turns, 0

    def _after_reset(self, observation: Any, info: Info) -> tuple[Any, Info]:
        self._taken = 0
        return observation, info

    def _after_step(self, action: Any, step: Step) -> Step:
        self._taken += 1
        if self._taken < self.max_turns or step.terminated or step.truncated:
            return step
        info = {**step.info, "stop_reason": StopReason.MAX_TURNS, "outside_limit": True}
        return step._replace(truncated=True, info=info)

    def own_state(self) -> int:
        return self._taken

    def set_own_state(self, state: int) -> None:
        self._taken = state
