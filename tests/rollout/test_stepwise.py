"""StepwiseEpisode and play_episode(): episodes whose replies come from outside equal those of play_seeds()."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace

import pytest

import gem
from gem.core import Env, Step, StopReason
from gem.errors import EpisodeOver, InfraError
from gem.policies import RandomPolicy, Reply, ScriptedPolicy
from gem.rollout import StepwiseEpisode, play_episode, play_seeds
from gem.trajectory import Trajectory
from gem.vector import make_vec

HARD = "game:GuessTheNumber-v0-hard"
SCRIPT = ScriptedPolicy([rf"\boxed{{{n}}}" for n in (25, 12, 37, 6, 44, 18, 31)])


def as_played(trajectory: Trajectory) -> Trajectory:
    return replace(trajectory, turns=[replace(turn, seconds={}) for turn in trajectory.turns])


def game(**options) -> StepwiseEpisode:
    return StepwiseEpisode(lambda: gem.make(HARD), **options)


async def scripted(request):
    return SCRIPT.act([request])[0]


@pytest.mark.parametrize("inline", [True, False])
def test_an_episode_equals_that_of_play_seeds(inline):
    expected = play_seeds(make_vec(HARD, autoreset="disabled"), SCRIPT, [5])
    played = asyncio.run(play_episode(game(inline=inline), scripted, 5, group_id=5))
    assert as_played(played) == as_played(expected[0])


def test_random_actions_come_from_the_environment():
    expected = play_seeds(make_vec(HARD, autoreset="disabled"), RandomPolicy(), [3])[0]
    episode = game()
    episode.reset(3)
    while not episode.over:
        episode.step(RandomPolicy().act([episode.request])[0])
    assert [turn.action for turn in episode.trajectory.turns] == [turn.action for turn in expected.turns]


def test_an_episode_can_be_reset_and_refuses_steps_when_over():
    episode = game()
    for call in (lambda: episode.step(Reply("x")), lambda: episode.request):
        with pytest.raises(EpisodeOver):
            call()
    for seed in (1, 1, 2):
        episode.reset(seed)
        episode.step(Reply("no guess"))
        assert episode.over and episode.trajectory.seed == seed and len(episode.trajectory.turns) == 1


def test_a_refusal_ends_the_episode_without_a_step():
    episode = game()
    episode.reset(1)
    episode.step(Reply("I cannot", finish="refusal"))
    assert episode.over and episode.trajectory.stop_reason == StopReason.REFUSED
    assert episode.trajectory.turns[0].reward == 0.0


def test_a_failed_reply_fails_the_episode():
    episode = game()
    episode.reset(1)
    episode.step(Reply("", failure="engine down"))
    assert (episode.trajectory.failure, episode.trajectory.turns) == ("engine down", [])


def test_an_exception_of_the_engine_is_raised_and_fails_the_episode():
    async def broken(request):
        raise ConnectionError("refused")

    episode = game()
    with pytest.raises(ConnectionError):
        asyncio.run(play_episode(episode, broken, 1))
    assert episode.over and "refused" in episode.trajectory.failure


class Faulty(Env):
    """Fails on reset for seed 1; raises in step for seed 2."""

    def reset(self, seed=None):
        super().reset(seed)
        self.seed = seed
        if seed == 1:
            raise InfraError("no server")
        return "start", {}

    def step(self, action):
        if self.seed == 2:
            raise RuntimeError("bug")
        return Step("end", 1.0, terminated=True)


def test_failures_of_the_environment_are_recorded_and_the_next_episode_is_unaffected():
    episode = StepwiseEpisode(Faulty)
    episode.reset(1)
    assert episode.over and "no server" in episode.trajectory.failure
    episode.reset(2)
    episode.step(Reply("a"))
    assert "bug" in episode.trajectory.failure and episode.trajectory.turns[0].reward is None
    episode.reset(3)
    episode.step(Reply("a"))
    assert episode.trajectory.failure is None and episode.trajectory.total_reward == 1.0


def test_episodes_of_different_length_do_not_wait_for_each_other():
    ended: list[int] = []

    async def one(number: int, replies: int, gate: asyncio.Event):
        async def reply(request):
            if request.key[2] == replies:
                return Reply("stop")  # not a guess, which ends the game
            await (gate.wait() if number == 0 else asyncio.sleep(0))
            return Reply(r"\boxed{50}")

        await play_episode(game(), reply, 0)
        ended.append(number)
        gate.set()

    async def both():
        gate = asyncio.Event()
        await asyncio.gather(one(0, 1, gate), one(1, 5, gate))

    asyncio.run(both())
    assert ended == [1, 0]


def test_a_slow_environment_does_not_block_the_event_loop():
    class Waits(Env):
        def __init__(self):
            self.released = threading.Event()

        def reset(self, seed=None):
            super().reset(seed)
            return "start", {}

        def step(self, action):
            assert self.released.wait(30)
            return Step("end", 1.0, terminated=True)

    async def both():
        episode = StepwiseEpisode(Waits, inline=False)

        async def reply(request):
            return Reply("go")

        playing = asyncio.create_task(play_episode(episode, reply, 0))
        await asyncio.sleep(0.05)
        episode.env.released.set()
        return await playing

    assert asyncio.run(both()).total_reward == 1.0
