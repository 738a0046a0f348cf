"""StateKeyWrapper: keys of states reach the turns of an episode."""

from __future__ import annotations

import asyncio

import pytest

from gem.core import Env, EnvWrapper, Step
from gem.policies import ScriptedPolicy
from gem.registry import make
from gem.rollout import Collector
from gem.trajectory import Trajectory
from gem.vector import VectorEnv
from gem.wrappers import StateKeyWrapper


class Corridor(Env):
    """Three steps to the right; the observation also counts the turns, and the first state has no key."""

    def reset(self, seed: int | None = None):
        super().reset(seed)
        self.state = [0, 0]
        return "turn 0", {"given": 1}

    def step(self, action: str) -> Step:
        self.state = [self.state[0] + (action == "right"), self.state[1] + 1]
        return Step(f"turn {self.state[1]}", terminated=self.state[0] == 2)

    def state_key(self):
        return {"at": self.state[0]} if self.state[1] else None


def test_an_environment_without_its_own_key_leaves_info_as_it_is():
    env = StateKeyWrapper(make("game:GuessTheNumber-v0-easy"))
    assert env.state_key() is None
    _, info = env.reset(seed=0)
    assert "state_key" not in info and "state_key" not in env.step("5").info


def test_the_key_of_a_board_game_is_its_board():
    env = StateKeyWrapper(EnvWrapper(make("game:Sokoban-v0-easy")))
    _, info = env.reset(seed=0)
    before = env.step("unreadable")
    assert before.info["state_key"] == info["state_key"] == env.unwrapped.board()
    assert before.observation.startswith("Turn 1")


def test_turns_record_the_key_of_the_state_before_them_also_after_a_restart():
    policy = ScriptedPolicy(["wait", "right"])
    collector = Collector(VectorEnv.of([lambda: StateKeyWrapper(Corridor())]))
    (episode,) = collector.collect(policy, episodes=1)
    assert [turn.state_key for turn in episode.turns] == [None, {"at": 0}, {"at": 1}, {"at": 1}][: len(episode.turns)]
    again = Trajectory.from_json(episode.to_json())
    assert [turn.state_key for turn in again.turns] == [turn.state_key for turn in episode.turns]


def test_the_coroutines_report_the_key_as_well():
    class Async(Corridor):
        async def areset(self, seed: int | None = None):
            return self.reset(seed)

        async def astep(self, action: str) -> Step:
            return self.step(action)

    async def play():
        env = StateKeyWrapper(Async())
        first = await env.areset(seed=0)
        return first, await env.astep("right")

    first, step = asyncio.run(play())
    assert first == ("turn 0", {"given": 1})
    assert step.info == {"state_key": {"at": 1}}


def test_gigpo_compares_turns_with_equal_keys():
    pytest.importorskip("torch")
    from gem.rl.estimate.batch import episode_rewards

    collector = Collector(VectorEnv.of([lambda: StateKeyWrapper(Corridor())]))
    (episode,) = collector.collect(ScriptedPolicy(["wait", "right", "wait", "right"]), episodes=1)
    keys = episode_rewards([], [episode])[0].states_K
    assert [k == keys[2] for k in keys] == [False, False, True, True]
