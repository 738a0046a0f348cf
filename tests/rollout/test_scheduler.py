"""RolloutScheduler: slow slots block no others, and no episode is lost."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from gem.core import Env, Step, StopReason
from gem.errors import BadValue, EndpointError, EnvFailed
from gem.policies import RandomPolicy, Reply, Request
from gem.rollout import Collector, collect, play_seeds
from gem.rollout.scheduler import RolloutScheduler
from gem.trajectory import Trajectory
from gem.vector import Received, VecStep, VectorEnv

thread_env = partial(VectorEnv.of, backend="thread")


class CountEnv(Env):
    """Ends after two steps; observations contain seed, episode and turn. Waits for the gate, if any."""

    def __init__(self, gate: threading.Event | None = None, slow_reset: bool = False) -> None:
        self.gate, self.slow_reset = gate, slow_reset

    def reset(self, seed: int | None = None) -> tuple[str, dict[str, Any]]:
        super().reset(seed)
        if self.slow_reset and self.gate is not None:
            self.gate.wait()
        self.state = 0
        return self.look(), {}

    def step(self, action: str) -> Step:
        if self.gate is not None and not self.slow_reset:
            self.gate.wait()
        self.state += 1
        done = self.state == 2
        return Step(self.look(), 1.0, terminated=done, info={"stop_reason": StopReason.SOLVED} if done else {})

    def look(self) -> str:
        return f"{self._seed}.{self._episode}.{self.state}"

    def sample_random_action(self) -> str:
        return str(self.action_rng.random())


class BrokenEnv(CountEnv):
    def step(self, action: str) -> Step:
        raise ZeroDivisionError("no")


class CountingPolicy(RandomPolicy):
    """Records the slots of each batch."""

    def __init__(self) -> None:
        super().__init__()
        self.batches: list[list[int]] = []

    def act(self, requests: Any) -> list[Reply]:
        self.batches.append([request.key[0] for request in requests])
        return super().act(requests)


class FalteringPolicy(RandomPolicy):
    """Raises the given exceptions, one per batch, and acts normally afterwards."""

    def __init__(self, *exceptions: BaseException) -> None:
        super().__init__()
        self.exceptions = list(exceptions)

    def act(self, requests: Any) -> list[Reply]:
        if self.exceptions:
            raise self.exceptions.pop(0)
        return super().act(requests)


class PartlyFailingPolicy(RandomPolicy):
    """Fails the requests of slot 1."""

    def act(self, requests: Any) -> list[Reply]:
        replies = super().act(requests)
        return [
            Reply("", failure="EndpointError: down") if request.key[0] == 1 else reply
            for request, reply in zip(requests, replies, strict=True)
        ]


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    gate = threading.Event()
    yield gate
    gate.set()  # release waiting threads after the test


def seeded(make: Any, seed: int) -> Any:
    def build() -> Env:
        env: Env = make()
        env._first_seed = seed
        return env

    return build


def test_a_slow_slot_does_not_block_the_others(gate):
    with thread_env([lambda: CountEnv(gate), *[CountEnv] * 3]) as vec_env:
        collector = Collector(vec_env, batch_wait=0.01)
        batch = collector.collect(RandomPolicy(), episodes=9)
        assert {trajectory.slot for trajectory in batch} == {1, 2, 3}
        gate.set()
        later = collector.collect(RandomPolicy(), episodes=40)
        first = next(trajectory for trajectory in later if trajectory.slot == 0)
        assert first.episode == 0 and len(first.turns) == 2 and first.total_reward == 2.0


def test_every_episode_of_every_slot_is_returned_once(gate):
    gate.set()
    with thread_env([lambda: CountEnv(gate)] * 4) as vec_env:
        batch = collect(vec_env, RandomPolicy(), episodes=40)
        for slot in range(4):
            episodes = sorted(trajectory.episode for trajectory in batch if trajectory.slot == slot)
            assert episodes == list(range(len(episodes)))


def test_ready_slots_form_one_batch_in_slot_order():
    policy = CountingPolicy()
    with thread_env([CountEnv] * 4) as vec_env:
        Collector(vec_env, batch_wait=60.0).collect(policy, episodes=8)
    assert policy.batches == [[0, 1, 2, 3]] * 4


class ReversedVectorEnv(VectorEnv):
    """Returns the slots of every recv() in descending order."""

    def recv(self, **kwargs: Any) -> Received:
        ids, step = super().recv(**kwargs)
        return Received(ids[::-1], VecStep(*(values[::-1] for values in step)))


def test_batches_are_in_slot_order_for_any_order_of_return():
    policy = CountingPolicy()
    with ReversedVectorEnv.of([CountEnv] * 4) as vec_env:
        batch = collect(vec_env, policy, episodes=8)
    assert policy.batches == [[0, 1, 2, 3]] * 4
    assert [(t.episode, t.slot) for t in batch] == [(episode, slot) for episode in range(2) for slot in range(4)]


def test_a_late_slot_joins_the_next_batch_in_slot_order(gate):
    policy = CountingPolicy()
    with thread_env([lambda: CountEnv(gate, slow_reset=True), CountEnv, CountEnv]) as vec_env:
        scheduler = RolloutScheduler(vec_env, batch_wait=0.2)
        scheduler.begin([Trajectory(None, slot=slot) for slot in range(3)])
        scheduler.step(policy)  # receives slots 1 and 2
        assert [episode.slot for episode in scheduler.ready] == [1, 2]
        gate.set()
        while len(scheduler.ready) < 3:
            scheduler._receive(0.2)
        assert [episode.slot for episode in scheduler.ready] == [0, 1, 2]
        scheduler.step(policy)
    assert policy.batches == [[0, 1, 2]]


def test_threads_and_sync_collect_the_same_episodes():
    def played(vec_env: Any) -> dict[Any, Any]:
        with vec_env:
            batch = collect(vec_env, RandomPolicy(), episodes=24)
        return {
            (t.slot, t.episode): [(turn.observation, turn.action, turn.reward) for turn in t.turns]
            for t in batch
            if t.episode < 3  # later ones depend on which slot was faster
        }

    builders = [seeded(CountEnv, slot) for slot in range(6)]
    assert played(thread_env(builders)) == played(VectorEnv.of(builders))


def test_turns_record_the_seconds_of_policy_and_environment():
    with VectorEnv.of([CountEnv]) as vec_env:
        (trajectory,) = collect(vec_env, RandomPolicy(), episodes=1)
    assert all(turn.seconds["env"] >= 0 and turn.seconds["policy"] >= 0 for turn in trajectory.turns)


def test_a_turn_records_the_policy_version_that_acted(gate):
    policy = RandomPolicy()
    with thread_env([lambda: CountEnv(gate), CountEnv]) as vec_env:
        collector = Collector(vec_env, batch_wait=0.01)
        collector.collect(policy, episodes=3)
        policy.version = 1
        gate.set()
        batch = collector.collect(policy, episodes=20)
    first = next(trajectory for trajectory in batch if trajectory.slot == 0)
    assert first.turns[0].policy_version == 0 and first.turns[1].policy_version == 1


def test_saving_waits_for_in_flight_slots(gate):
    with thread_env([lambda: CountEnv(gate), CountEnv]) as vec_env:
        collector = Collector(vec_env, batch_wait=0.01)
        collector.collect(RandomPolicy(), episodes=2)
        gate.set()
        state = collector.get_state()
        assert sorted(slot["trajectory"]["slot"] for slot in state["slots"]) == [0, 1]
        ours = {(t.slot, t.episode): t.turns[0].observation for t in collector.collect(RandomPolicy(), episodes=6)}
    with VectorEnv.of([CountEnv] * 2) as copy:
        restored = Collector(copy)
        restored.set_state(state)
        theirs = {(t.slot, t.episode): t.turns[0].observation for t in restored.collect(RandomPolicy(), episodes=6)}
    assert {key: ours[key] for key in ours.keys() & theirs.keys()} == {
        key: theirs[key] for key in ours.keys() & theirs.keys()
    }
    assert (0, 0) in ours and (0, 0) in theirs


def test_a_crash_is_raised_and_collecting_can_be_retried():
    with VectorEnv.of([BrokenEnv, CountEnv]) as vec_env:
        collector = Collector(vec_env)
        with pytest.raises(EnvFailed, match="slot 0"):
            collector.collect(RandomPolicy(), episodes=1)
        with pytest.raises(EnvFailed, match="slot 0"):
            collector.collect(RandomPolicy(), episodes=1)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), EndpointError("down"), ZeroDivisionError()])
def test_in_flight_episodes_continue_after_the_policy_raises(error):
    def played(policy: Any) -> list[Any]:
        with VectorEnv.of([seeded(CountEnv, slot) for slot in range(3)]) as vec_env:
            collector = Collector(vec_env)
            batch = collector.collect(RandomPolicy(), transitions=1)
            if isinstance(policy, FalteringPolicy):
                with pytest.raises(type(error)):
                    collector.collect(policy, episodes=6)
            batch += collector.collect(policy, episodes=6)
            return [t.to_json()["turns"][i]["observation"] for t in batch for i in range(2)]

    assert played(FalteringPolicy(error)) == played(RandomPolicy())


def test_a_request_without_a_reply_fails_only_its_episode():
    with VectorEnv.of([CountEnv] * 3) as vec_env:
        batch = collect(vec_env, PartlyFailingPolicy(), episodes=12)
    failed = [t for t in batch if t.failure]
    assert {t.slot for t in failed} == {1} and len({t.episode for t in failed}) == len(failed) > 1
    assert all((t.failure, t.stop_reason, t.truncated) == ("EndpointError: down", "failed", True) for t in failed)
    assert all(t.total_reward == 2.0 for t in batch if t.slot != 1)


def test_seeds_without_replies_are_reported_as_failed():
    with VectorEnv.of([CountEnv] * 2, autoreset="disabled") as vec_env:
        silent = PartlyFailingPolicy()
        silent.act = lambda requests: [Reply("", failure="no answer") for _ in requests]  # type: ignore[method-assign]
        played = play_seeds(vec_env, silent, range(5))
    assert [(t.seed, t.failure) for t in played] == [(seed, "no answer") for seed in range(5)]


def test_a_restarted_environment_fails_only_its_own_episodes():
    with VectorEnv.of([BrokenEnv, CountEnv], on_failure="restart") as vec_env:
        batch = collect(vec_env, RandomPolicy(), episodes=4)
    assert {t.slot for t in batch if t.failure} == {0}
    assert all(t.total_reward == 2.0 for t in batch if t.slot == 1)


def test_each_seed_is_played_once_with_a_slow_slot(gate):
    class Opening(CountingPolicy):
        """Opens the gate when other slots have played most of the seeds."""

        def act(self, requests: Any) -> list[Reply]:
            if sum(map(len, self.batches)) > 40:
                gate.set()
            return super().act(requests)

    with thread_env([lambda: CountEnv(gate, slow_reset=True), *[CountEnv] * 3], "disabled") as vec_env:
        played = play_seeds(vec_env, Opening(), range(30), batch_wait=0.01)
    assert [t.seed for t in played] == list(range(30))
    assert [t.turns[0].observation for t in played] == [f"{seed}.0.0" for seed in range(30)]
    assert sum(t.slot == 0 for t in played) >= 1


@pytest.mark.parametrize("batch_wait", [-1.0, float("nan")])
def test_a_negative_batch_wait_is_refused(batch_wait):
    with VectorEnv.of([CountEnv]) as vec_env, pytest.raises(BadValue, match="batch_wait"):
        Collector(vec_env, batch_wait=batch_wait)


def test_request_keys_are_slot_episode_and_turn():
    keys: list[tuple[int, int, int]] = []

    class Spy(RandomPolicy):
        def act(self, requests: Any) -> list[Reply]:
            keys.extend(request.key for request in requests if isinstance(request, Request))
            return super().act(requests)

    with VectorEnv.of([CountEnv] * 2) as vec_env:
        collect(vec_env, Spy(), episodes=4)
    assert keys == [(0, 0, 0), (1, 0, 0), (0, 0, 1), (1, 0, 1), (0, 1, 0), (1, 1, 0), (0, 1, 1), (1, 1, 1)]
