"""EpisodeTrackingWrapper: steps and rewards in info."""

from __future__ import annotations

from typing import ClassVar

from gem.core import Env, Step
from gem.vector import VectorEnv
from gem.wrappers import EpisodeTrackingWrapper


class PaysEnv(Env):
    """Returns the action as reward, and the same info dict every time."""

    shared: ClassVar[dict[str, object]] = {"theirs": 1}

    def reset(self, seed=None):
        super().reset(seed)
        self.state = 0
        return "go", self.shared

    def step(self, action):
        return Step("paid", float(action), terminated=action == "9", info=self.shared)


def test_steps_and_rewards_are_counted():
    env = EpisodeTrackingWrapper(PaysEnv())
    env.reset()
    assert env.step("0.5").info == {"theirs": 1, "step_counter": 1, "cumulative_rewards": 0.5}
    assert env.step("0.25").info == {"theirs": 1, "step_counter": 2, "cumulative_rewards": 0.75}


def test_a_reset_reports_the_counts_of_the_previous_episode():
    env = EpisodeTrackingWrapper(PaysEnv())
    env.reset()
    env.step("2"), env.step("3")
    assert env.reset()[1] == {
        "theirs": 1,
        "prev_ep_step_counter": 2,
        "prev_ep_cumulative_rewards": 5.0,
        "step_counter": 0,
        "cumulative_rewards": 0.0,
    }


def test_the_first_reset_reports_a_previous_episode_without_steps():
    info = EpisodeTrackingWrapper(PaysEnv()).reset()[1]
    assert (info["prev_ep_step_counter"], info["prev_ep_cumulative_rewards"]) == (0, 0.0)


def test_the_info_dict_of_the_environment_is_not_modified():
    env = EpisodeTrackingWrapper(PaysEnv())
    env.reset()
    first, second = env.step("1").info, env.step("1").info
    assert PaysEnv.shared == {"theirs": 1}
    assert first["step_counter"] == 1
    assert second["step_counter"] == 2


def test_the_final_info_of_a_vector_has_the_counts():
    env = VectorEnv.of([lambda: EpisodeTrackingWrapper(PaysEnv())])
    env.reset()
    env.step(["1"])
    info = env.step(["9"]).infos_B[0]
    assert info["final_info"]["cumulative_rewards"] == 10.0
    assert info["prev_ep_cumulative_rewards"] == 10.0
    assert info["cumulative_rewards"] == 0.0


def test_the_counts_are_saved_and_forked():
    env = EpisodeTrackingWrapper(PaysEnv())
    env.reset()
    env.step("2")
    fork = env.spawn(same_state=True)
    fork.step("5")
    assert env.step("3").info["cumulative_rewards"] == 5.0
    assert fork.step("1").info["cumulative_rewards"] == 8.0
