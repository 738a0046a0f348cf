"""Requests to an AsyncPolicy: each slot goes on when its own reply arrives."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future
from functools import partial
from typing import Any

import pytest

import gem
from gem.core import Env, Step
from gem.errors import BadValue
from gem.policies import RandomPolicy, Reply, Request, ScriptedPolicy
from gem.rollout import Collector, play_seeds
from gem.trajectory import Trajectory
from gem.vector import VectorEnv

thread_env = partial(VectorEnv.of, backend="thread")
async_env = partial(VectorEnv.of, backend="async")


class CountEnv(Env):
    """Ends after two steps."""

    def reset(self, seed: int | None = None) -> tuple[str, dict[str, Any]]:
        super().reset(seed)
        self.state = 0
        return f"{seed}.0", {}

    def step(self, action: str) -> Step:
        self.state += 1
        return Step(f"{action}.{self.state}", 1.0, terminated=self.state == 2)


class PendingPolicy(RandomPolicy):
    """Replies to a request when answer() is called for it, or at once if ``held`` does not hold its slot."""

    def __init__(self, held: tuple[int, ...] = ()) -> None:
        self.held, self.requests = set(held), list[tuple[Request, "Future[Reply]"]]()

    def submit(self, request: Request) -> Future[Reply]:
        future: Future[Reply] = Future()
        self.requests.append((request, future))
        if request.key[0] not in self.held:
            future.set_result(Reply(f"move {request.key[2]}"))
        return future

    def act(self, requests: Any) -> list[Reply]:
        raise AssertionError("the requests of an AsyncPolicy are not batched")

    def open(self) -> list[tuple[Request, Future[Reply]]]:
        return [(request, future) for request, future in self.requests if not future.done()]


def collect_until(collector: Collector, policy: Any, slots: set[int]) -> list[Trajectory]:
    """Collect until each of these slots has finished an episode, which a busy machine may delay."""
    batch: list[Trajectory] = []
    for _ in range(100_000):
        if slots <= {episode.slot for episode in batch}:
            return batch
        batch += collector.collect(policy, episodes=1)
    raise AssertionError(f"some of the slots {slots} finished no episode")


def collect_until_held(collector: Collector, policy: PendingPolicy) -> list[Trajectory]:
    """Collect until each held slot has sent its request, which a busy machine may delay."""
    batch: list[Trajectory] = []
    for _ in range(100_000):
        if {request.key[0] for request, _ in policy.open()} == policy.held:
            return batch
        batch += collector.collect(policy, episodes=1)
    raise AssertionError(f"some of the slots {policy.held} sent no request")


@pytest.fixture(params=[VectorEnv.of, thread_env, async_env])
def vec_env(request: pytest.FixtureRequest) -> Iterator[Any]:
    with request.param([CountEnv] * 4) as vec_env:
        yield vec_env


def test_a_slow_reply_does_not_block_the_other_slots(vec_env):
    policy = PendingPolicy(held=(0,))
    collector = Collector(vec_env)
    batch = collect_until(collector, policy, {1, 2, 3})
    batch += collect_until_held(collector, policy)
    assert {episode.slot for episode in batch} == {1, 2, 3}
    ((_, late),) = policy.open()
    policy.held.clear()
    late.set_result(Reply("late"))
    batch = collect_until(collector, policy, {0})
    assert [turn.action for turn in next(e for e in batch if e.slot == 0).turns] == ["late", "move 1"]


def test_each_slot_has_one_request_in_flight():
    policy = PendingPolicy(held=(0, 1, 2, 3))

    def answer() -> None:
        while not stop.wait(0.001):
            pending = policy.open()
            most[0] = max(most[0], len(pending))
            if most[0] < 4:  # wait until all slots have sent their first request
                continue
            for request, future in pending[::-1]:  # the newest first
                future.set_result(Reply(str(request.key[2])))

    stop, most = threading.Event(), [0]
    answering = threading.Thread(target=answer)
    answering.start()
    with VectorEnv.of([CountEnv] * 4, "disabled") as vec_env:
        played = play_seeds(vec_env, policy, range(20))
    stop.set()
    answering.join()
    assert [episode.seed for episode in played] == list(range(20))
    assert [episode.turns[0].observation for episode in played] == [f"{seed}.0" for seed in range(20)]
    assert most == [4]


def test_an_exception_of_a_request_is_raised_and_the_others_are_withdrawn_and_sent_again(vec_env):
    policy = PendingPolicy(held=(1, 2))
    collector = Collector(vec_env)
    collect_until_held(collector, policy)
    first, second = policy.open()
    first[1].set_exception(BadValue("no key"))
    with pytest.raises(BadValue, match="no key"):
        collector.collect(policy, episodes=10)
    assert second[1].cancelled() and not policy.open()
    policy.held.clear()
    batch = collect_until(collector, policy, {1, 2})
    for slot in (1, 2):
        episode = next(episode for episode in batch if episode.slot == slot)
        assert episode.episode == 0 and [turn.action for turn in episode.turns] == ["move 0", "move 1"]


@pytest.mark.parametrize("error", [KeyboardInterrupt(), ZeroDivisionError()])
@pytest.mark.parametrize("at", range(4))
def test_no_episode_is_lost_when_sending_a_request_raises(at, error, vec_env):
    class Faltering(PendingPolicy):
        def submit(self, request: Request) -> Future[Reply]:
            if request.key == (at, 0, 1) and faults:
                raise faults.pop()
            return super().submit(request)

    faults: list[BaseException] = [error]
    collector = Collector(vec_env)
    with pytest.raises(type(error)):
        collector.collect(Faltering(), episodes=100)
    batch = collect_until(collector, Faltering(), {0, 1, 2, 3})
    for slot in range(4):
        episodes = [episode for episode in batch if episode.slot == slot]
        assert [episode.episode for episode in episodes] == list(range(len(episodes))) and episodes
        assert all([turn.action for turn in episode.turns] == ["move 0", "move 1"] for episode in episodes)


@pytest.mark.parametrize("at", range(4))
def test_no_episode_is_lost_when_sending_an_action_is_interrupted(at, monkeypatch):
    with thread_env([CountEnv] * 4) as vec_env:
        collector, sent = Collector(vec_env), vec_env.send
        calls = []

        def send(*args: Any) -> Any:
            calls.append(args)
            if len(calls) == at + 1:
                raise KeyboardInterrupt
            return sent(*args)

        monkeypatch.setattr(vec_env, "send", send)
        with pytest.raises(KeyboardInterrupt):
            collector.collect(PendingPolicy(), episodes=100)
        batch = collect_until(collector, PendingPolicy(), {0, 1, 2, 3})
    assert {(episode.slot, 0) for episode in batch} <= {(episode.slot, episode.episode) for episode in batch}


def test_another_policy_takes_over_the_slots_that_wait_for_a_reply(vec_env):
    policy = PendingPolicy(held=(0,))
    collector = Collector(vec_env)
    collect_until_held(collector, policy)
    ((_, late),) = policy.open()
    batch = collect_until(collector, ScriptedPolicy(["go"]), {0})
    assert late.cancelled()
    first = next(episode for episode in batch if episode.slot == 0)
    assert [turn.action for turn in first.turns] == ["go", "go"]


def test_a_state_can_be_saved_while_requests_are_in_flight():
    policy = PendingPolicy(held=(0,))
    with VectorEnv.of([CountEnv] * 2) as vec_env, VectorEnv.of([CountEnv] * 2) as other:
        collector, restored = Collector(vec_env), Collector(other)
        collector.collect(policy, episodes=3)
        restored.set_state(collector.get_state())
        policy.held.clear()
        for each in (collector, restored):
            batch = each.collect(policy, episodes=4)
            assert sorted((e.slot, e.episode) for e in batch if e.slot == 0)[0] == (0, 0)


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["sync", "process"])
def test_episodes_do_not_depend_on_the_order_of_replies(backend):
    def play(policy: Any) -> list[list[Any]]:
        with gem.make_vec("game:GuessTheNumber-v0-hard", num_envs=3, autoreset="disabled", backend=backend) as vec:
            played = play_seeds(vec, policy, range(9))
        return [[(turn.observation, turn.action, turn.reward) for turn in episode.turns] for episode in played]

    class Answering(ScriptedPolicy):
        def submit(self, request: Request) -> Future[Reply]:
            future: Future[Reply] = Future()
            delay = 0.001 * (sum(request.key) * 7 % 5)
            threading.Timer(delay, lambda: future.set_result(self.act([request])[0])).start()
            return future

    script = [rf"\boxed{{{n}}}" for n in (25, 12, 37, 6, 44)]
    assert play(Answering(script)) == play(ScriptedPolicy(script))


def test_requests_without_replies_and_without_turns_end_a_collection_by_transitions():
    class Silent(RandomPolicy):
        def submit(self, request: Request) -> Future[Reply]:
            future: Future[Reply] = Future()
            future.set_result(Reply("", failure="EndpointError: down"))
            return future

    with VectorEnv.of([CountEnv] * 2) as vec_env:
        batch = Collector(vec_env).collect(Silent(), transitions=5)
    assert [episode.failure for episode in batch] == ["EndpointError: down"] * 5
