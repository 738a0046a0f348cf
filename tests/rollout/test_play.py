"""play_seeds(): every seed once, for any number of slots."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import gem
from gem.core import Env, Step
from gem.errors import BadValue, InfraError
from gem.policies import RandomPolicy, Reply, ScriptedPolicy
from gem.rollout import play_seeds
from gem.trajectory import Trajectory
from gem.vector import VectorEnv, make_vec

HARD = "game:GuessTheNumber-v0-hard"
SCRIPT = [rf"\boxed{{{n}}}" for n in (25, 12, 37, 6, 44, 18, 31)]


def games(slots: int, **kwargs: Any) -> VectorEnv:
    return make_vec(HARD, num_envs=slots, autoreset="disabled", **kwargs)


def as_played(trajectory: Trajectory) -> Trajectory:
    """Remove what may differ between runs: times and the slot."""
    return replace(trajectory, slot=0, turns=[replace(turn, seconds={}) for turn in trajectory.turns])


class KeyedPolicy(ScriptedPolicy):
    """Derives its guess from the key, as a model sampling from the stream of the key does."""

    def act(self, requests):
        return [Reply(rf"\boxed{{{sum(request.key) % 50 + 1}}}") for request in requests]


def test_every_seed_is_played_once_and_in_order():
    seeds = [7, 3, 3, 11, 0]
    played = play_seeds(games(2), ScriptedPolicy(SCRIPT), seeds)
    assert [t.seed for t in played] == seeds
    assert [t.episode for t in played] == [0, 1, 2, 3, 4]
    assert as_played(replace(played[1], episode=2)) == as_played(played[2])


def test_a_seed_gives_the_same_episode_as_make_and_reset():
    (played,) = play_seeds(games(1), ScriptedPolicy(SCRIPT), [5])
    env = gem.make(HARD)
    env.reset(seed=5)
    over, k = False, 0
    while not over:
        step = env.step(SCRIPT[min(k, len(SCRIPT) - 1)])
        assert played.turns[k].reward == step.reward
        over, k = step.terminated or step.truncated, k + 1
    assert len(played.turns) == k
    assert played.final_observation == step.observation
    assert played.stop_reason == step.info["stop_reason"]


@pytest.mark.parametrize("policy", [ScriptedPolicy(SCRIPT), RandomPolicy(), KeyedPolicy(["x"])], ids=["a", "b", "c"])
def test_results_do_not_depend_on_the_number_of_slots(policy):
    def play(slots: int) -> list[Trajectory]:
        return [as_played(t) for t in play_seeds(games(slots), policy, range(100, 112))]

    assert play(1) == play(3) == play(20)


def test_trajectories_name_their_row_and_group():
    with make_vec("qa:Facts", num_envs=2, autoreset="disabled") as vec_env:
        played = play_seeds(vec_env, ScriptedPolicy(["?"]), [3, 5, 3])
    assert [t.group_id for t in played] == [3, 5, 3]
    assert isinstance(played[0].row_id, int) and played[0].row_id == played[2].row_id


def test_no_seeds_give_no_episodes():
    assert play_seeds(games(3), ScriptedPolicy(SCRIPT), []) == []


def test_playing_again_on_the_same_slots_gives_the_same_episodes():
    env = games(3)
    first = [as_played(t) for t in play_seeds(env, RandomPolicy(), range(7))]
    assert [as_played(t) for t in play_seeds(env, RandomPolicy(), range(7))] == first


@pytest.mark.parametrize("mode", ["same_step", "next_step"])
def test_other_autoreset_modes_are_refused(mode):
    with pytest.raises(BadValue, match=f"autoreset='disabled', got '{mode}'"):
        play_seeds(make_vec(HARD, autoreset=mode), ScriptedPolicy(SCRIPT), [1])


class FragileEnv(Env):
    """Fails at reset for seed 1 and at the first step for seed 2."""

    def reset(self, seed=None):
        super().reset(seed)
        self.state = seed
        if seed == 1:
            raise InfraError("no server")
        return "go", {}

    def step(self, action):
        if self.state == 2:
            raise InfraError("the server died")
        return Step("done", 1.0, terminated=True)


@pytest.mark.parametrize("slots", [1, 2, 4])
def test_a_failed_episode_is_reported_and_the_others_are_played(slots):
    env = VectorEnv.of([FragileEnv] * slots, "disabled")
    played = play_seeds(env, ScriptedPolicy(["go"]), [0, 1, 2, 3])
    assert [t.failure for t in played] == [None, "InfraError: no server", "InfraError: the server died", None]
    assert [t.stop_reason for t in played] == [None, "failed", "failed", None]
    assert [t.total_reward for t in played if t.failure is None] == [1.0, 1.0]
