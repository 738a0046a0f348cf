"""Report the number of steps and the total reward of an episode in info."""

from __future__ import annotations

from typing import Any

from gem.core import Info, ResultWrapper, Step


class EpisodeTrackingWrapper(ResultWrapper):
    """Adds ``step_counter`` and ``cumulative_rewards`` to info.

    The info of a reset also has ``prev_ep_step_counter`` and ``prev_ep_cumulative_rewards`` of the episode before, 0 if
    there was none.
    """

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        self.step_counter, self.cumulative_rewards = 0, 0.0

    def own_state(self) -> list[float]:
        return [self.step_counter, self.cumulative_rewards]

    def set_own_state(self, state: list[float]) -> None:
        self.step_counter, self.cumulative_rewards = int(state[0]), state[1]

    def _after_reset(self, observation: Any, info: Info) -> tuple[Any, Info]:
        info = {
            **info,
            "prev_ep_step_counter": self.step_counter,
            "prev_ep_cumulative_rewards": self.cumulative_rewards,
        }
        self.step_counter, self.cumulative_rewards = 0, 0.0
        return observation, self._with_counts(info)

    def _after_step(self, action: Any, step: Step) -> Step:
        self.step_counter += 1
        self.cumulative_rewards += step.reward
        return step._replace(info=self._with_counts(step.info))

    def _with_counts(self, info: Info) -> Info:
        return {**info, "step_counter": self.step_counter, "cumulative_rewards": self.cumulative_rewards}
