"""The plain loop over slots: autoreset, partial steps, failures, state. The reference for every other backend."""

from __future__ import annotations

import json
import random
from typing import Any

import numpy as np
import pytest

import gem
from gem.core import Env, Step, StopReason
from gem.errors import BadAction, BadValue, EpisodeOver, InfraError
from gem.vector import Autoreset, SyncVectorEnv, make_vec
from gem.wrappers import EpisodeTrackingWrapper


class CountingEnv(Env):
    """Ends after `turns` steps; its observations name the episode and the turn."""

    def __init__(self, turns: int = 2, fails_at: tuple[int, ...] = (), fails_at_reset: tuple[int, ...] = ()) -> None:
        self.turns, self.fails_at, self.fails_at_reset = turns, fails_at, fails_at_reset
        self.resets = self.turn = 0
        self.closed = 0

    def reset(self, seed=None, *, greeting: str = "episode"):
        super().reset(seed)
        self.resets += 1
        if self.resets in self.fails_at_reset:
            raise InfraError(f"no server for episode {self.resets}")
        self.turn = 0
        return f"{greeting} {self.resets}", {"suffix": "begin"}

    def step(self, action):
        self.turn += 1
        if self.turn in self.fails_at:
            raise InfraError("the server died")
        over = self.turn == self.turns
        info = {"correct": True, "stop_reason": StopReason.SOLVED} if over else {}
        return Step(f"turn {self.turn} of {self.resets}", float(self.turn), terminated=over, info=info)

    def sample_random_action(self):
        return str(self.action_rng.randint(0, 99))

    def close(self):
        self.closed += 1


def vector(*turns: int, autoreset: str = "same_step", **kwargs: Any) -> SyncVectorEnv:
    return SyncVectorEnv([lambda n=n: CountingEnv(n, **kwargs) for n in turns], autoreset)


# Autoreset


def test_same_step_autoreset_keeps_the_last_observation_and_info():
    env = vector(1, 2)
    env.reset()
    step = env.step(["a", "a"])
    assert step.observations_B == ["episode 2", "turn 1 of 1"]
    assert step.rewards_B.tolist() == [1.0, 1.0]
    assert step.terminated_B.tolist() == [True, False]
    assert step.infos_B[0]["final_obs"] == "turn 1 of 1"
    assert step.infos_B[0]["final_info"] == {"correct": True, "stop_reason": StopReason.SOLVED}
    assert step.infos_B[0]["suffix"] == "begin"
    assert "final_obs" not in step.infos_B[1]


def test_next_step_autoreset_ignores_the_action_after_the_end():
    env = vector(1, 3, autoreset="next_step")
    env.reset()
    last = env.step(["a", "a"])
    assert last.observations_B[0] == "turn 1 of 1"
    assert last.infos_B[0]["correct"] is True
    after = env.step(["ignored", "a"])
    assert after.observations_B == ["episode 2", "turn 2 of 1"]
    assert after.rewards_B.tolist() == [0.0, 2.0]
    assert not after.terminated_B.any() and not after.truncated_B.any()


def test_without_autoreset_an_ended_slot_waits_to_be_reset():
    env = vector(1, 2, autoreset="disabled")
    env.reset()
    env.step(["a", "a"])
    with pytest.raises(EpisodeOver, match=r"slots \[0\] have ended.*reset\(ids=\[0\]\)"):
        env.step(["a", "a"])
    assert env.step({1: "a"}).observations_B == ["turn 2 of 1"]  # the refused step moved nobody
    assert env.reset(ids=[0])[0] == ["episode 2"]
    assert env.step({0: "a"}).observations_B == ["turn 1 of 2"]


@pytest.mark.parametrize("mode", [Autoreset.NEXT_STEP, "next_step"])
def test_an_autoreset_mode_may_be_a_word(mode):
    assert vector(1, autoreset=mode).autoreset is Autoreset.NEXT_STEP


@pytest.mark.parametrize("mode", ["same-step", "NEXT_STEP", None, 1])
def test_an_unknown_autoreset_mode_fails_at_construction(mode):
    with pytest.raises(BadValue, match=r"autoreset must be one of \['same_step', 'next_step', 'disabled'\], got"):
        vector(1, autoreset=mode)


# Steps


def test_a_dict_steps_the_slots_it_names_in_its_order():
    env = vector(3, 3, 3)
    env.reset()
    env.step({1: "a"})
    step = env.step({2: "a", 1: "a"})
    assert step.observations_B == ["turn 1 of 1", "turn 2 of 1"]
    assert step.rewards_B.tolist() == [1.0, 2.0]
    assert env.step(["a"] * 3).rewards_B.tolist() == [1.0, 3.0, 2.0]


def test_actions_may_be_a_numpy_array():
    env = vector(2, 2)
    env.reset()
    assert env.step(np.array(["a", "b"])).rewards_B.tolist() == [1.0, 1.0]
    assert env.step({np.int64(1): "a"}).rewards_B.tolist() == [2.0]


@pytest.mark.parametrize("actions", ["ab", b"ab", ["a"], ["a"] * 3, None, 7, {"a", "b"}])
def test_actions_are_a_list_with_one_per_slot_or_a_dict(actions):
    env = vector(2, 2)
    env.reset()
    with pytest.raises(BadAction):
        env.step(actions)
    assert [e.turn for e in env.envs] == [0, 0]


@pytest.mark.parametrize("slot", [2, -1, "0", True, 0.0, None])
def test_a_slot_that_there_is_not_is_refused(slot):
    env = vector(2, 2)
    env.reset()
    with pytest.raises(BadAction, match=r"no slot .*; there are 2, numbered from 0"):
        env.step({slot: "a"})
    with pytest.raises(BadAction, match=r"no slot .*; there are 2, numbered from 0"):
        env.reset(ids=[slot])


def test_a_slot_is_reset_once():
    with pytest.raises(BadAction, match="named twice"):
        vector(2, 2).reset(ids=[1, 1])


def test_rewards_and_ends_are_numpy_arrays_of_their_type():
    env = vector(2, 2)
    env.reset()
    step = env.step(["a", "a"])
    assert (step.rewards_B.dtype, step.terminated_B.dtype, step.truncated_B.dtype) == (np.float64, np.bool_, np.bool_)
    assert len(env) == env.num_envs == 2


# Failures of the machinery


def test_a_slot_that_fails_is_no_reward_and_does_not_stop_the_others():
    env = SyncVectorEnv([CountingEnv, lambda: CountingEnv(5, fails_at=(1,)), CountingEnv], "disabled")
    env.reset()
    step = env.step(["a"] * 3)
    assert np.isnan(step.rewards_B).tolist() == [False, True, False]
    assert (step.terminated_B[1], step.truncated_B[1]) == (False, True)
    assert step.infos_B[1]["stop_reason"] == StopReason.FAILED
    assert step.infos_B[1]["failure"] == "InfraError: the server died"
    assert step.observations_B[2] == "turn 1 of 1"


def test_a_failed_slot_starts_its_next_episode_like_any_other():
    env = vector(5, fails_at=(1,))
    env.reset()
    step = env.step(["a"])
    assert step.observations_B == ["episode 2"]
    assert step.infos_B[0]["final_info"]["failure"] == "InfraError: the server died"


def test_a_failure_within_autoreset_loses_neither_the_ended_episode_nor_the_others():
    env = SyncVectorEnv([lambda: CountingEnv(1, fails_at_reset=(2,)), lambda: CountingEnv(9)])
    env.reset()
    step = env.step(["a", "a"])
    assert step.rewards_B.tolist() == [1.0, 1.0]
    assert step.infos_B[0]["final_info"]["correct"] is True
    after = env.step(["a", "a"])  # the episode that could not start: it ends as failed, and the next one starts
    assert np.isnan(after.rewards_B[0]) and after.truncated_B[0]
    assert after.infos_B[0]["final_info"]["failure"] == "InfraError: no server for episode 2"
    assert after.observations_B == ["episode 3", "turn 2 of 1"]


def test_a_bug_in_an_environment_is_raised_and_not_taken_for_a_failure():
    class Buggy(CountingEnv):
        def step(self, action):
            raise ZeroDivisionError

    env = SyncVectorEnv([Buggy])
    env.reset()
    with pytest.raises(ZeroDivisionError):
        env.step(["a"])


# Reset and seeds


def test_a_slot_plays_what_the_environment_alone_would_play():
    vec = make_vec("game:GuessTheNumber-v0-random", num_envs=3, seed=5)
    vec.reset()
    alone = [gem.make("game:GuessTheNumber-v0-random") for _ in range(3)]
    for i, env in enumerate(alone):
        env.reset(seed=5 + i)
    assert [env.state for env in vec.envs] == [env.state for env in alone]


def test_seeds_are_one_for_all_slots_or_one_for_each():
    env = make_vec("game:GuessTheNumber-v0-random", num_envs=3)
    env.reset(seed=7)
    counted = [e.state for e in env.envs]
    env.reset(seed=[7, 8, 9])
    assert [e.state for e in env.envs] == counted
    env.reset(seed=np.array([7, 8, 9]))
    assert [e.state for e in env.envs] == counted
    env.reset(seed=[9, 7], ids=[2, 0])
    assert [e.state for e in env.envs] == counted
    env.reset(seed=7, ids=[1])
    assert env.envs[1].state == counted[1]


@pytest.mark.parametrize("seed", [[1], [1, 2, 3], -1, [1, -2], "12"])
def test_seeds_of_another_number_or_kind_are_refused(seed):
    with pytest.raises(BadValue):
        vector(2, 2).reset(seed=seed)


def test_a_reset_with_a_seed_decides_the_episodes_that_follow_by_autoreset():
    def secrets(make_seed: int | None) -> list[Any]:
        env = make_vec("game:GuessTheNumber-v0-hard", num_envs=1, seed=make_seed, max_turns=1)
        env.reset(seed=3)
        states = [env.envs[0].state]
        for _ in range(4):
            env.step([r"\boxed{99}"])
            states.append(env.envs[0].state)
        return states

    assert secrets(make_seed=0) == secrets(make_seed=1) == secrets(make_seed=None)


def test_a_slot_is_reset_with_arguments_of_its_own():
    env = vector(2, 2)
    observations, infos = env.reset(env1_kwargs={"greeting": "hello"})
    assert observations == ["episode 1", "hello 1"]
    assert infos == [{"suffix": "begin"}] * 2
    with pytest.raises(BadValue, match=r"\['env7_kwargs'\]"):
        env.reset(env7_kwargs={})
    with pytest.raises(BadValue, match=r"\['env1_kwargs'\]"):
        env.reset(ids=[0], env1_kwargs={})


def test_global_chance_and_other_vectors_change_no_episode():
    def play(noise: int) -> list[Any]:
        random.seed(noise)
        env = make_vec("game:GuessTheNumber-v0-random", num_envs=4, seed=1)
        other = make_vec("game:GuessTheNumber-v0-random", num_envs=noise, seed=2)
        seen = [env.reset()]
        for _ in range(20):
            other.reset(), random.random()
            seen.append(env.step([env.sample_random_action(i) for i in range(4)])[0])
        return seen

    assert play(1) == play(3)


def test_sampled_actions_come_from_the_slots_environment():
    env = make_vec("game:GuessTheNumber-v0", num_envs=2, seed=1)
    env.reset()
    alone = gem.make("game:GuessTheNumber-v0")
    alone.reset(seed=2)
    assert env.sample_random_action(1) == alone.sample_random_action()


# State


def test_a_restored_vector_plays_on_identically_through_autoresets():
    def build() -> SyncVectorEnv:
        return make_vec(
            "game:GuessTheNumber-v0-random", wrappers=[EpisodeTrackingWrapper], num_envs=3, seed=1, max_turns=2
        )

    def play(env: SyncVectorEnv, steps: int) -> list[Any]:
        return [env.step([env.sample_random_action(i) for i in range(3)])._asdict() for _ in range(steps)]

    env, other = build(), build()
    env.reset()
    play(env, 3)
    other.set_state(json.loads(json.dumps(env.get_state())))
    for mine, theirs in zip(play(env, 12), play(other, 12), strict=True):
        assert mine["observations_B"] == theirs["observations_B"]
        assert mine["infos_B"] == theirs["infos_B"]
        assert mine["rewards_B"].tolist() == theirs["rewards_B"].tolist()


def test_a_restored_vector_remembers_which_slots_have_ended():
    env = make_vec("game:GuessTheNumber-v0", num_envs=2, autoreset="disabled", max_turns=1)
    env.reset()
    env.step({0: r"\boxed{99}"})
    other = make_vec("game:GuessTheNumber-v0", num_envs=2, autoreset="disabled", max_turns=1)
    other.set_state(json.loads(json.dumps(env.get_state())))
    with pytest.raises(EpisodeOver, match=r"slots \[0\]"):
        other.step({0: "a"})
    assert other.step({1: r"\boxed{99}"}).truncated_B.tolist() == [True]


@pytest.mark.parametrize("state", [{}, None, {"envs": []}, {"envs": [{}, {}]}, {"envs": [{}], "done": [False]}])
def test_the_state_of_another_vector_is_refused(state):
    with pytest.raises(BadValue):
        make_vec("game:GuessTheNumber-v0", num_envs=2).set_state(state)


# Closing


def test_closing_closes_every_slot_once_and_ends_the_vector():
    with vector(2, 2) as env:
        env.reset()
    env.close()
    assert [e.closed for e in env.envs] == [1, 1]
    for use in (env.reset, lambda: env.step(["a", "a"])):
        with pytest.raises(EpisodeOver, match="closed"):
            use()


def test_a_vector_needs_a_slot():
    with pytest.raises(BadValue, match="at least one environment"):
        SyncVectorEnv([])


def test_the_ids_of_the_slots_are_known_where_they_were_made_by_id():
    assert vector(1).env_ids == [None]
    assert make_vec(["game:GuessTheNumber-v0", "game:GuessTheNumber-v0-easy"]).env_ids == [
        "game:GuessTheNumber-v0",
        "game:GuessTheNumber-v0-easy",
    ]


def test_whether_a_slot_shows_its_history_is_seen_through_other_wrappers():
    fns = gem.wrappers.get_wrapper_fns("concat, episode_tracking")
    assert make_vec("game:GuessTheNumber-v0", wrappers=fns).shows_history(0)
    assert not make_vec("game:GuessTheNumber-v0", wrappers=[EpisodeTrackingWrapper]).shows_history(0)
