"""Rows of datasets: round trips, seeds of groups, mixtures; and the pool that plays them."""

from __future__ import annotations

import asyncio
from collections import Counter
from concurrent.futures import Future

import pytest

import gem
from gem.core import Env, Step
from gem.errors import BadValue, InfraError
from gem.integrations.shared.tasks import ATTEMPTS, EnvTask, EpisodePool, make_tasks, play_tasks
from gem.policies import RandomPolicy, Reply, ScriptedPolicy

GAME, MATH = "game:GuessTheNumber-v0-easy", "math:Arithmetic"


async def random_reply(request):
    return RandomPolicy().act([request])[0]


def test_a_task_survives_a_dataset_and_a_column_of_text():
    task = EnvTask(env_id=GAME, seed=3, wrappers="concat", env_kwargs={"max_turns": 2})
    assert EnvTask.from_row(task.to_row()) == task
    assert EnvTask.from_row(task.to_json()) == task
    assert EnvTask.from_row({**task.to_row(), "prompt": "x", "wrappers": None}) == EnvTask(
        env_id=GAME, seed=3, env_kwargs={"max_turns": 2}
    )
    assert task.build().unwrapped.max_turns == 2


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"env_id": GAME}, "env_id and seed, seed missing"),
        ({"env_id": "game:GuesTheNumber-v0-easy", "seed": 1}, "did you mean"),
        ({"env_id": GAME, "seed": -1}, "-1"),
        ("{", "a JSON object"),
        ("[1]", "a JSON object"),
    ],
)
def test_a_wrong_row_names_what_is_wrong(row, message):
    with pytest.raises(BadValue, match=message):
        EnvTask.from_row(row)


def test_tasks_have_different_seeds_and_are_reproducible():
    tasks = make_tasks(GAME, 100, seed=1, max_turns=3)
    assert len({task.seed for task in tasks}) == 100 and max(task.seed for task in tasks) < 2**31
    assert tasks == make_tasks(GAME, 100, seed=1, max_turns=3) != make_tasks(GAME, 100, seed=2, max_turns=3)
    assert tasks[0].env_kwargs == {"max_turns": 3}


def test_a_mixture_has_the_given_shares_in_shuffled_order():
    ids = [task.env_id for task in make_tasks({GAME: 3, MATH: 1}, 40)]
    assert Counter(ids) == {GAME: 30, MATH: 10}
    assert MATH in ids[:20] and MATH in ids[20:]
    for wrong in ({}, {GAME: 0}, {GAME: -1, MATH: 2}):
        with pytest.raises(BadValue):
            make_tasks(wrong, 4)
    with pytest.raises(BadValue):
        make_tasks(GAME, 0)


def test_the_members_of_a_group_start_from_the_same_state():
    pool, (task, other) = EpisodePool(), make_tasks(GAME, 2, seed=5)

    async def play():
        return await asyncio.gather(*(pool.play(t, random_reply, episode=i) for i, t in enumerate([task, task, other])))

    a, b, c = asyncio.run(play())
    assert (a.seed, a.group_id) == (b.seed, b.group_id) != (c.seed, c.group_id)
    assert [turn.observation for turn in a.turns] == [turn.observation for turn in b.turns]


def test_environments_are_reused_by_the_tasks_that_fit_them():
    pool = EpisodePool()
    small = EnvTask(env_id=GAME, seed=1, env_kwargs={"max_turns": 1})

    async def play(task):
        return await pool.play(task, random_reply)

    for _ in range(3):
        for task in (small, EnvTask(env_id=GAME, seed=1)):
            asyncio.run(play(task))
    assert sorted(len(episodes) for episodes in pool._free.values()) == [1, 1]
    assert len(asyncio.run(play(small)).turns) == 1
    pool.close()
    assert not any(pool._free.values())


class Fails(Env):
    """Fails in the first episodes."""

    episodes = 0

    def __init__(self, failures: int = 0) -> None:
        self.failures = failures

    def reset(self, seed=None):
        super().reset(seed)
        type(self).episodes += 1
        return "start", {}

    def step(self, action):
        if type(self).episodes <= self.failures:
            raise InfraError("no server")
        return Step("end", 1.0, terminated=True)


@pytest.fixture
def fails():
    gem.register("test:Fails", entry_point=Fails)
    Fails.episodes = 0
    yield
    del gem.ENV_REGISTRY["test:Fails"]


@pytest.mark.parametrize("failures", [ATTEMPTS - 1, ATTEMPTS])
def test_an_episode_that_failed_is_played_again_and_never_scored(failures, fails):
    pool = EpisodePool()

    async def reply(request):
        return Reply("go")

    def play():
        return asyncio.run(pool.play(EnvTask(env_id="test:Fails", seed=0, env_kwargs={"failures": failures}), reply))

    if failures < ATTEMPTS:
        assert play().total_reward == 1.0 and pool.failed == failures
    else:
        with pytest.raises(InfraError, match="failed 3 times: InfraError: no server"):
            play()


def test_a_batch_of_tasks_is_played_in_order_whatever_their_environments():
    game, other = make_tasks(GAME, 3, seed=5), make_tasks("game:Wordle-v0", 2, seed=6)
    tasks = [game[0], other[0], game[1], other[1], game[2]]
    played, failed = play_tasks(tasks, RandomPolicy(), max_slots=2)
    assert [(t.env_id, t.seed) for t in played] == [(task.env_id, task.seed) for task in tasks] and failed == 0


def test_a_batch_plays_failed_episodes_again_and_counts_them(fails):
    task = EnvTask(env_id="test:Fails", seed=0, env_kwargs={"failures": 1})
    (played,), failed = play_tasks([task], ScriptedPolicy(["go"]))
    assert played.total_reward == 1.0 and failed == 1


class FirstReplyIsLate(RandomPolicy):
    """A policy of single requests. The first one has its reply when another episode has come to its second turn."""

    late = None

    def act(self, requests):
        raise AssertionError("a batch waits for its slowest reply")

    def submit(self, request):
        future = Future()
        self.late, first = self.late or future, self.late is None
        if not first:
            future.set_result(Reply(r"\boxed{1}"))
        if len(request.turns) == 1 and not self.late.done():
            self.late.set_result(Reply(r"\boxed{2}"))
        return future


def test_an_episode_does_not_wait_for_the_replies_of_others():
    played, failed = play_tasks(make_tasks(GAME, 4), FirstReplyIsLate())
    assert not failed and [episode.turns[0].action for episode in played].count(r"\boxed{2}") == 1
