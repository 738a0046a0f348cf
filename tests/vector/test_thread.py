"""Backend "thread": concurrency, abandoned calls and closing."""

from __future__ import annotations

import asyncio
import gc
import math
import os
import signal
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from clock import hang
from fixture_envs import Counting, Faulty, Walker
from leftovers import SOON, eventually, gem_threads

from gem.core import Step
from gem.errors import BadAction, BadValue, EnvFailed, InfraError
from gem.vector import VectorEnv, thread
from gem.vector.engine import wait_readable
from gem.vector.slots import MAX_FAILURES

thread_env = partial(VectorEnv.of, backend="thread")

LIMIT = 0.3  # seconds that a call may take
pytestmark = pytest.mark.usefixtures("nothing_stays")


class Gate(Walker):
    """A Walker that waits at chosen (episode, turn) until the gate is opened; turn 0 is the reset."""

    def __init__(self, *closed: tuple[int, int], longest: int = 50) -> None:
        super().__init__(longest)
        self.closed_at, self.closings = set(closed), 0
        self.reached, self.opened = threading.Event(), threading.Event()

    def reset(self, seed: int | None = None) -> Any:
        answer = super().reset(seed)
        self._wait(0)
        return answer

    def step(self, action: str) -> Step:
        self._wait(self.state.turn + 1)
        return super().step(action)

    def close(self) -> None:
        self.closings += 1

    def _wait(self, turn: int) -> None:
        if (self._episode, turn) in self.closed_at:
            self.reached.set()
            hang(self.opened)


class Gates:
    """A factory of Gate that keeps what it built."""

    def __init__(self, *closed: tuple[int, int], longest: int = 50) -> None:
        self.closed, self.longest, self.built = closed, longest, list[Gate]()

    def __call__(self) -> Gate:
        self.built.append(Gate(*self.closed, longest=self.longest))
        return self.built[-1]

    def open(self) -> None:
        for gate in self.built:
            gate.opened.set()


def is_failed(step: Any, slot: int = 0) -> bool:
    return bool(math.isnan(step.rewards_B[slot]) and step.truncated_B[slot] and not step.terminated_B[slot])


# Concurrency


def test_finished_slots_are_received_while_one_still_waits():
    slow = Gates((0, 1))
    with thread_env([slow, *[Walker] * 15]) as env:
        env.reset(seed=0)
        env.send(["a"] * 16)
        received = env.recv(min_envs=15)
        assert sorted(received.ids_B) == list(range(1, 16))
        env.send(["a"] * 15, ids=received.ids_B)
        assert len(env.recv(min_envs=15).ids_B) == 15
        assert env.pending == [0]
        slow.open()
        assert env.recv().ids_B == [0]


def test_steps_are_received_in_order_of_completion():
    gates = [Gates((0, 1)) for _ in range(4)]
    with thread_env(gates) as env:
        env.reset(seed=0)
        env.send(["a"] * 4)
        for slot in (2, 0, 3, 1):
            gates[slot].open()
            assert env.recv().ids_B == [slot]


def test_resets_run_concurrently():
    together = threading.Barrier(16)

    class Meeting(Walker):
        def reset(self, seed=None):
            together.wait(SOON)
            return super().reset(seed)

    with thread_env([Meeting] * 16) as env:
        assert len(env.reset(seed=0)[0]) == 16


def test_recv_with_a_timeout_returns_what_has_arrived():
    slow = Gates((0, 1))
    with thread_env([slow, Walker]) as env:
        env.reset(seed=0)
        env.send(["a", "a"])
        wait_readable(env.engine.filenos(), SOON)
        assert env.recv(min_envs=2, timeout=LIMIT).ids_B == [1]
        assert env.recv(timeout=0.0).ids_B == []
        slow.open()


def test_threads_are_started_on_demand_and_reused():
    with thread_env([Walker] * 8) as env:
        assert len(gem_threads()) == 0
        env.reset(ids=[0])
        assert len(gem_threads()) == 1
        env.reset()
        for _ in range(20):
            env.step(["a"] * 8)
        assert len(gem_threads()) <= 8


def test_no_more_calls_run_at_once_than_there_are_workers():
    together = threading.Barrier(3)

    class Meeting(Walker):
        def step(self, action):
            together.wait(SOON)
            return super().step(action)

    with thread_env([Meeting] * 9, num_workers=3) as env:
        env.reset(seed=0)
        assert env.step(["a"] * 9).rewards_B.shape == (9,)
        assert len(gem_threads()) == 3


def test_more_slots_than_threads_are_all_stepped(monkeypatch):
    monkeypatch.setattr(thread, "MAX_THREADS", 4)
    with thread_env([Walker] * 200) as env:
        env.reset(seed=0)
        assert not np.isnan(env.step(["a"] * 200).rewards_B).any()
        assert len(gem_threads()) <= 4


# Time limits


def test_a_call_that_times_out_fails_only_its_slot(clock):
    slow = Gates((0, 1))
    with thread_env([slow, Walker], timeout=LIMIT) as env:
        env.reset(seed=0)
        with pytest.raises(EnvFailed, match=r"slot 0 failed: timed out after 0.3 s"):
            env.step(["a", "a"])
        assert env.recv().ids_B == [1]
        with pytest.raises(EnvFailed, match=r"slot 0 .*not reset since"):
            env.step({0: "a"})
        assert env.reset(ids=[0])[0] == ["episode 1 of seed 0"]
        assert not math.isnan(env.step({0: "a"}).rewards_B[0])
        slow.open()


@pytest.mark.parametrize("autoreset", ["same_step", "next_step", "disabled"])
def test_restart_fails_the_hung_episode_and_continues_with_the_next(clock, autoreset):
    slow = Gates((0, 1))
    with thread_env([slow, Walker], autoreset, timeout=LIMIT, on_failure="restart") as env:
        env.reset(seed=3)
        step = env.step(["a", "a"])
        info = step.infos_B[0]["final_info"] if autoreset == "same_step" else step.infos_B[0]
        assert is_failed(step) and not is_failed(step, 1)
        assert info["failure"] == "timed out after 0.3 s"
        if autoreset == "same_step":
            begun = step.observations_B[0]
        else:
            begun = env.reset(ids=[0])[0][0] if autoreset == "disabled" else env.step({0: "a"}).observations_B[0]
        assert begun == "episode 1 of seed 3"
        assert env.stats()[None].failed == 1
        slow.open()


def test_a_late_result_is_dropped_and_its_environment_closed(clock):
    slow = Gates((0, 1))
    with thread_env([slow], timeout=LIMIT, on_failure="restart") as env:
        env.reset(seed=0)
        env.step(["a"])
        assert [gate.closings for gate in slow.built] == [0, 0]
        slow.open()
        eventually(lambda: slow.built[0].closings == 1)
        assert env.step(["a"]).observations_B[0].startswith("episode 1 of seed 0, turn 1")
        assert len(slow.built) == 2
    assert [gate.closings for gate in slow.built] == [1, 1]


def test_a_late_failure_starts_no_episode(clock):
    class Late(Gate):
        def step(self, action):
            super().step(action)
            raise OSError("the connection was reset")

    built = []

    def build() -> Late:
        built.append(Late((0, 1)))
        return built[-1]

    with thread_env([build], timeout=LIMIT, on_failure="restart") as env:
        env.reset(seed=0)
        env.step(["a"])
        built[0].opened.set()
        eventually(lambda: built[0].closings == 1)
        assert len(built) == 2


def test_a_reset_that_hangs_fails_its_episode_at_the_first_step(clock):
    slow = Gates((0, 0), longest=1)
    with thread_env([slow, Walker], timeout=LIMIT, on_failure="restart") as env:
        observations, infos = env.reset(seed=7)
        assert observations == ["", "episode 0 of seed 8"]
        assert infos[0]["failure"] == "timed out after 0.3 s"
        step = env.step(["a", "a"])
        assert is_failed(step) and step.observations_B[0] == "episode 1 of seed 7"
        slow.open()


def test_after_a_hanging_reset_the_episodes_of_its_seed_follow(clock):
    opened = threading.Event()

    class Asleep(Walker):
        def reset(self, seed=None):
            if seed == 7:
                hang(opened)
            return super().reset(seed)

    with thread_env([Asleep], timeout=LIMIT, on_failure="restart") as env:
        env.reset(seed=0)
        env.reset(seed=7)
        assert env.step(["a"]).observations_B == ["episode 1 of seed 7"]
        opened.set()


def test_a_hanging_autoreset_keeps_the_finished_episode(clock):
    slow = Gates((1, 0), longest=1)
    with thread_env([slow], timeout=LIMIT, on_failure="restart") as env:
        env.reset(seed=0)
        step = env.step(["a"])
        assert not is_failed(step) and step.infos_B[0]["final_obs"].startswith("episode 0 of seed 0, turn 1")
        assert "failure" not in step.infos_B[0]["final_info"]
        assert step.infos_B[0]["failure"] == "timed out after 0.3 s"
        step = env.step(["a"])
        assert is_failed(step) and step.observations_B == ["episode 2 of seed 0"]
        assert (env.stats()[None].episodes, env.stats()[None].failed) == (1, 1)
        slow.open()


def test_a_second_hang_in_the_reset_fails_one_more_episode(clock):
    slow = Gates((0, 1), (1, 0))
    with thread_env([slow], timeout=LIMIT, on_failure="restart") as env:
        env.reset(seed=0)
        step = env.step(["a"])
        assert is_failed(step) and step.infos_B[0]["failure"] == "timed out after 0.3 s"
        step = env.step(["a"])
        assert is_failed(step) and step.observations_B == ["episode 2 of seed 0"]
        assert not is_failed(env.step(["a"]))
        assert env.stats()[None].failed == 2
        slow.open()


def test_an_environment_that_always_hangs_raises():
    slow = Gates(*[(episode, 1) for episode in range(99)])
    with thread_env([slow], timeout=0.05, on_failure="restart") as env:
        env.reset(seed=0)
        with pytest.raises(EnvFailed, match=f"slot 0 .* {MAX_FAILURES} times.*timed out"):
            for _ in range(99):
                env.step(["a"])
        slow.open()


def test_rebuilding_has_a_time_limit(clock):
    opened, built = threading.Event(), []

    def build() -> Gate:
        if built:
            hang(opened)
        built.append(Gate((0, 1)))
        return built[-1]

    with thread_env([build, Walker], timeout=LIMIT, on_failure="restart") as env:
        env.reset(seed=0)
        with pytest.raises(EnvFailed, match="slot 0 failed 5 times in a row"):
            env.step(["a", "a"])
        assert env.recv().ids_B == [1]
        opened.set()
        built[0].opened.set()


@pytest.mark.parametrize("what", ["sample", "state"])
def test_samples_and_states_have_a_time_limit(clock, what):
    opened = threading.Event()

    class Mute(Walker):
        def sample_random_action(self):
            hang(opened)

        def get_state(self):
            hang(opened)

    with thread_env([Mute], timeout=LIMIT, on_failure="restart") as env:
        env.reset(seed=0)
        with pytest.raises(EnvFailed, match="slot 0 failed: timed out after"):
            env.sample_random_action(0) if what == "sample" else env.get_state()
        with pytest.raises(EnvFailed, match="not reset since"):
            env.step(["a"])
        with pytest.raises(EnvFailed, match=r"hung .*not reset since"):
            env.get_state()
        assert env.reset()[0] == ["episode 1 of seed 0"]
        opened.set()


def test_a_hung_slot_can_be_restored_from_a_state(clock):
    slow = Gates((0, 1))
    with thread_env([slow], timeout=LIMIT) as env, VectorEnv.of([lambda: Walker(50)]) as other:
        env.reset(seed=0)
        with pytest.raises(EnvFailed):
            env.step(["a"])
        other.reset(seed=9)
        other.reset()
        env.set_state(other.get_state())
        assert env.step(["a"]).observations_B == other.step(["a"]).observations_B
        slow.open()


def test_the_time_limit_is_measured_from_the_start_of_the_call(clock):
    class Long(Walker):
        def step(self, action):
            clock.now += 0.9 * LIMIT
            seen = clock.polls
            eventually(lambda: clock.polls > seen + 1)
            return super().step(action)

    with thread_env([Long] * 3, num_workers=1, timeout=LIMIT) as env:
        env.reset(seed=0)
        assert not np.isnan(env.step(["a"] * 3).rewards_B).any()


def test_waiting_calls_get_a_thread_when_others_are_stuck(clock):
    slow = Gates((0, 1))
    with thread_env([slow, Walker, Walker], num_workers=1, timeout=LIMIT, on_failure="restart") as env:
        env.reset(seed=0)
        step = env.step(["a"] * 3)
        assert [is_failed(step, slot) for slot in range(3)] == [True, False, False]
        slow.open()


def test_too_many_abandoned_threads_raise_until_they_return(clock, monkeypatch):
    monkeypatch.setattr(thread, "MAX_ABANDONED", 2)
    slow = [Gates((0, 1)) for _ in range(3)]
    with thread_env([*slow, Walker], timeout=LIMIT, on_failure="restart") as env:
        env.reset(seed=0)
        with pytest.raises(InfraError, match=r"3 threads .*at most 2.*'process'"):
            env.step(["a"] * 4)
        for gates in slow:
            gates.open()
        eventually(lambda: all(gates.built[0].closings for gates in slow))
        eventually(lambda: len(gem_threads()) <= 4)
        received = env.recv(min_envs=4)
        assert sorted(received.ids_B) == [0, 1, 2, 3]
        assert np.isnan(received.step.rewards_B).sum() == 3
        assert not np.isnan(env.step(["a"] * 4).rewards_B).any()


@pytest.mark.parametrize("timeout", [0, -1, True, "1"])
def test_a_timeout_is_seconds_above_zero(timeout):
    with pytest.raises(BadValue, match="timeout must be seconds above 0"):
        thread_env([Walker], timeout=timeout)


# Failures


def test_no_exception_of_an_environment_ends_a_thread():
    class Rude(Walker):
        def step(self, action):
            raise asyncio.CancelledError("a BaseException")

    with thread_env([Rude, Walker], num_workers=1) as env:
        env.reset(seed=0)
        with pytest.raises(EnvFailed, match="slot 0: CancelledError: a BaseException"):
            env.step(["a", "a"])
        assert env.recv().ids_B == [1]
        assert env.reset(seed=0)[0] == ["episode 0 of seed 0", "episode 0 of seed 1"]


def test_a_caller_error_is_raised_to_the_caller():
    with thread_env([Counting, Counting]) as env:
        env.reset()
        with pytest.raises(BadAction, match="refused"):
            env.step(["refused", "a"])
        assert env.recv().ids_B == [1]


def test_a_build_failure_leaves_no_environment_open():
    first = Counting()

    def fail() -> Any:
        raise OSError("no memory")

    with pytest.raises(OSError, match="no memory"):
        thread_env([lambda: first, fail])
    assert first.closed == 1


# Closing


def test_closing_closes_every_environment_once():
    envs = [Counting() for _ in range(5)]
    with thread_env([lambda env=env: env for env in envs]) as env:
        env.reset()
    env.close()
    assert [env.closed for env in envs] == [1] * 5


def test_closing_waits_for_a_call_that_is_about_to_end():
    slow = Gates((0, 1))

    class Opener(Walker):
        def close(self):
            slow.open()

    env = thread_env([slow, Opener])
    env.reset(seed=0)
    env.send({0: "a"})
    slow.built[0].reached.wait(SOON)
    env.close()
    assert slow.built[0].closings == 1


def test_closing_does_not_wait_for_hanging_calls(caplog, monkeypatch):
    monkeypatch.setattr(thread, "CLOSE_TIMEOUT", 0.2)
    slow, last = Gates((0, 1)), Gates()
    env = thread_env([slow, last])
    env.reset(seed=0)
    env.send(["a", "a"])
    slow.built[0].reached.wait(SOON)
    env.close()
    assert "abandoned" in caplog.text
    eventually(lambda: last.built[0].closings == 1)
    assert slow.built[0].closings == 0
    slow.open()
    eventually(lambda: slow.built[0].closings == 1)


def test_an_environment_that_hangs_while_it_closes_does_not_keep_the_others_open(monkeypatch):
    monkeypatch.setattr(thread, "CLOSE_TIMEOUT", 0.2)
    opened, last = threading.Event(), Gates()

    class Clinging(Walker):
        def close(self):
            opened.wait(SOON)

    env = thread_env([Clinging, last])
    env.close()
    eventually(lambda: last.built[0].closings == 1)
    opened.set()


def test_an_unreferenced_vector_is_closed():
    gates = Gates()
    env = thread_env([gates] * 3)
    env.reset(seed=0)
    del env
    gc.collect()
    eventually(lambda: [gate.closings for gate in gates.built] == [1] * 3)


PROGRAM = """
import os, sys, threading
sys.path.insert(0, {folder!r})
from functools import partial
from fixture_envs import Faulty
from gem.vector import VectorEnv, thread

thread_env = partial(VectorEnv.of, backend="thread")
thread.CLOSE_TIMEOUT = 60.0
together = threading.Barrier(3)

class Loud(Faulty):
    def step(self, action):
        together.wait(60)
        return super().step(action)

    def close(self):
        os.write(1, b"closed\\n")

class Clock:  # time passes when the thread that hangs is the last one
    def monotonic():
        return thread.CLOSE_TIMEOUT * (threading.active_count() == 2)

env = thread_env([lambda: Loud({{(0, 1): "hang"}}, hang=600), Loud, Loud])
if "reset" in sys.argv:
    env.reset(seed=0)
if "hang" in sys.argv:
    env.send(["a"] * 3)
    env.recv(min_envs=2)
    thread.time = Clock
if "raise" in sys.argv:
    raise OSError("on purpose")
"""


@pytest.mark.slow
@pytest.mark.parametrize(("how", "closed"), [("reset", 3), ("reset hang raise", 2)])
def test_program_exit_closes_environments_and_is_not_blocked(how, closed):
    program = PROGRAM.format(folder=str(Path(__file__).parent))
    done = subprocess.run([sys.executable, "-c", program, *how.split()], capture_output=True, text=True, timeout=60)
    assert done.stdout.split() == ["closed"] * closed
    assert done.returncode == (1 if "raise" in how else 0)
    assert ("OSError: on purpose" in done.stderr) == ("raise" in how)


@pytest.mark.slow
def test_ctrl_c_while_receiving_loses_nothing():
    slow = Gates((0, 1))
    with thread_env([slow, Walker]) as env:
        env.reset(seed=0)
        env.send(["a", "a"])
        with pytest.raises(KeyboardInterrupt):
            threading.Timer(LIMIT, os.kill, (os.getpid(), signal.SIGINT)).start()
            env.recv(min_envs=2)
        slow.open()
        assert sorted(env.recv(min_envs=2).ids_B) == [0, 1]


def test_faults_in_many_slots_are_all_accounted_for(clock, tmp_path):
    log = tmp_path / "faults"

    def build() -> Faulty:
        return Faulty(rate=0.05, kinds=("raise", "infra", "hang"), log=log, longest=8)

    with thread_env([build] * 16, timeout=LIMIT, on_failure="restart") as env:
        env.reset(seed=0)
        for _ in range(20):
            env.step(["a"] * 16)
        failed = env.stats()[None].failed
    assert failed == len(log.read_text().splitlines()) > 3
