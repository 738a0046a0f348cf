"""Backend "async": each slot runs inline, on an event loop, on a thread or in a process, all in one vector."""

from __future__ import annotations

import asyncio
import gc
import math
import os
import signal
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from clock import hang, hangs
from fixture_envs import Counting, Echo, Faulty, Waiting, Walker
from leftovers import SOON, eventually, gem_threads
from worker_envs import Obedient

from gem._internal import event_loop
from gem.core import EndOnTruncation, Env, EnvWrapper, Info, Step, has_coroutines
from gem.errors import BadAction, BadValue, EnvFailed
from gem.vector import VectorEnv, thread
from gem.vector.slots import SlotCall
from gem.vector.sync import InlineEngine
from gem.vector.thread import ThreadPool, ThreadTask
from gem.wrappers import EpisodeTrackingWrapper, ObservationWrapper

async_env = partial(VectorEnv.of, backend="async")

LIMIT = 0.3  # seconds that a call may take
LONG = 1000.0  # the same, for calls that take their time from a real clock
pytestmark = pytest.mark.usefixtures("nothing_stays")


class AsyncFaulty(Faulty):
    """A Faulty with coroutines. Its "hang" waits until it is cancelled, and records the cancellation."""

    cancelled = 0

    async def areset(self, seed: int | None = None) -> tuple[str, Info]:
        await asyncio.sleep(0)
        answer = Walker.reset(self, seed)
        await self._await(0)
        return answer

    async def astep(self, action: str) -> Step:
        await self._await(self.state.turn + 1)
        return Walker.step(self, action)

    async def _await(self, turn: int) -> None:
        if self.faults.get((self._episode, turn)) != "hang":
            self._inject(turn)
            return
        hangs()
        try:
            await asyncio.sleep(SOON)
        except asyncio.CancelledError:
            type(self).cancelled += 1
            raise


def is_failed(step: Any, slot: int = 0) -> bool:
    return bool(math.isnan(step.rewards_B[slot]) and step.truncated_B[slot] and not step.terminated_B[slot])


# Execution modes


@pytest.mark.slow
def test_all_inline_slots_use_the_inline_engine():
    with async_env([Walker] * 4, runs=["inline"] * 4) as env:
        assert type(env.engine) is InlineEngine
        env.reset(seed=0)
        env.step(["a"] * 4)
        assert gem_threads() == []


def test_slots_run_on_threads_by_default():
    with async_env([Walker] * 4) as env:
        env.reset(seed=0)
        assert set(gem_threads()) == {"gem-slots"}


def test_with_a_time_limit_inline_slots_run_on_threads(clock):
    with async_env([lambda: Faulty({(0, 1): "hang"}), Walker], runs=["inline"] * 2, timeout=LIMIT) as env:
        env.reset(seed=0)
        with pytest.raises(EnvFailed, match=r"slot 0 failed: timed out after 0.3 s"):
            env.step(["a", "a"])
        assert env.recv().ids_B == [1]


def test_process_slots_run_in_worker_processes():
    with async_env([Echo] * 3, runs=["inline", "process", "thread"], num_workers=1) as env:
        env.reset(seed=0)
        pids = [info["pid"] for info in env.step(["a"] * 3).infos_B]
        assert [pid == os.getpid() for pid in pids] == [True, False, True]


@pytest.mark.parametrize("place", ["inline", "thread", None])
def test_environments_with_coroutines_are_awaited_unless_they_run_in_processes(place):
    with async_env([Waiting] * 50, runs=None if place is None else [place] * 50) as env:
        env.reset(seed=0)
        env.step(["a"] * 50)
        assert gem_threads() == ["gem-background"]


@pytest.mark.parametrize("runs", [["inline"], ["inline"] * 3, ["inline", "threads"], ["inline", None]])
def test_runs_needs_one_known_execution_mode_per_slot(runs):
    with pytest.raises(BadValue, match="runs"):
        async_env([Walker] * 2, runs=runs)


def test_inline_slots_do_not_wait_for_slots_in_processes_or_threads(tmp_path):
    pipes = [tmp_path / str(slot) for slot in range(4)]
    for pipe in pipes:
        os.mkfifo(pipe)
    runs = ["thread", "inline", "process", "thread"]
    with async_env([Obedient, Walker, Obedient, Waiting], runs=runs, num_workers=1) as env:
        env.reset(seed=0)
        env.send(pipes)
        assert sorted(env.recv(min_envs=2).ids_B) == [1, 3]
        for slot in (2, 0):
            pipes[slot].write_text("")
            assert env.recv().ids_B == [slot]


@pytest.mark.slow
def test_outcomes_of_one_engine_are_kept_when_another_engine_raises(clock, monkeypatch):
    monkeypatch.setattr(thread, "MAX_ABANDONED", 0)
    hung = threading.Event()

    class Stuck(Walker):
        def step(self, action):
            hang(hung)

    with async_env([Echo, Stuck], runs=["process", "thread"], timeout=LONG, num_workers=1) as env:
        env.reset(seed=0)
        with pytest.raises(Exception, match="threads are stuck"):
            env.step(["a", "a"])
        hung.set()
        eventually(lambda: env.engine._engines[0]._pool.stuck(started_by=math.inf) == 0)
        with pytest.raises(EnvFailed, match="slot 1 failed"):
            env.recv(min_envs=2)
        assert env.recv().ids_B == [0]


def test_a_build_failure_in_a_process_closes_local_environments():
    first = Counting()

    def fail() -> Any:
        raise OSError("no memory")

    with pytest.raises(Exception, match="no memory"):
        async_env([lambda: first, fail], runs=["thread", "process"])
    assert first.closed == 1


# Environments with coroutines


def test_coroutines_wait_concurrently_on_one_thread():
    arrived = []
    all_here = asyncio.Event()

    class Meeting(Waiting):
        async def astep(self, action):
            arrived.append(threading.get_ident())
            if len(arrived) == 500:
                all_here.set()
            await all_here.wait()
            return self.step(action)

    with async_env([Meeting] * 500) as env:
        env.reset(seed=0)
        assert env.step(["a"] * 500).rewards_B.shape == (500,)
        assert len(set(arrived)) == 1 and gem_threads() == ["gem-background"]


def test_coroutines_are_received_in_order_of_completion():
    may_end = [asyncio.Event() for _ in range(4)]
    may_end[0].set()

    class Ordered(Waiting):
        async def astep(self, place):
            await may_end[place].wait()
            may_end[place + 1].set()
            return self.step("a")

    with async_env([Ordered] * 3) as env:
        env.reset(seed=0)
        env.send([2, 0, 1])
        received = []
        while env.pending:
            received += env.recv().ids_B
        assert received == [1, 2, 0]


@pytest.mark.parametrize("autoreset", ["same_step", "next_step"])
@pytest.mark.parametrize("on_failure", ["restart", "raise"])
def test_coroutine_failures_match_sync(autoreset, on_failure):
    faults = [
        {(1, 1): "raise", (3, 2): "raise"},
        {(0, 0): "infra", (2, 1): "exit"},
        {(1, 0): "raise", (2, 0): "raise", (3, 0): "infra"},
        {(2, 0): "exit"},
    ]

    def play(cls: Any, vector: Any) -> list[Any]:
        seen: list[Any] = []
        with vector([lambda own=own: cls(own, longest=2) for own in faults], autoreset, on_failure=on_failure) as env:
            for slot in range(4):
                seen.append(tried(lambda slot=slot: env.reset(seed=[slot], ids=[slot])))
                for _ in range(15):
                    seen.append(tried(lambda slot=slot: env.step({slot: "a"})))
                    if isinstance(seen[-1], str):
                        seen.append(tried(lambda slot=slot: env.reset(ids=[slot])))
        return seen

    same_name = type("Faulty", (AsyncFaulty,), {})  # the random stream of an environment depends on its name
    assert play(same_name, async_env) == play(Faulty, VectorEnv.of)


def tried(use: Any) -> Any:
    try:
        return [repr(part) if isinstance(part, np.ndarray) else part for part in use()]
    except EnvFailed as e:
        return str(e)


def test_a_caller_error_in_a_coroutine_is_raised_to_the_caller():
    class Strict(Waiting):
        async def astep(self, action):
            raise BadAction("this action is refused")

    with async_env([Strict, Waiting]) as env:
        env.reset(seed=0)
        with pytest.raises(BadAction, match="refused"):
            env.step(["a", "a"])
        assert env.recv().ids_B == [1]


@pytest.mark.parametrize("answer", [None, ("text", 0.0, False), ["text", 0.0, True, False]])
def test_a_coroutine_that_returns_no_step_has_failed(answer):
    class Odd(Waiting):
        async def astep(self, action):
            return answer

    with async_env([Odd]) as env:
        env.reset(seed=0)
        with pytest.raises(EnvFailed, match="slot 0 failed"):
            env.step(["a"])


def test_a_coroutine_may_return_any_five_values():
    class Listing(Waiting):
        async def astep(self, action):
            return ["text", 1.0, True, False, {}]

    with async_env([Listing]) as env:
        env.reset(seed=0)
        assert env.step(["a"]).observations_B == ["episode 1 of seed 0"]


def test_a_coroutine_that_times_out_is_cancelled_and_uses_no_thread(clock, monkeypatch):
    monkeypatch.setattr(thread, "MAX_ABANDONED", 2)
    AsyncFaulty.cancelled = 0
    fns = [lambda: AsyncFaulty({(0, 1): "hang"})] * 5  # more than the number of threads that may be abandoned
    with async_env([*fns, Waiting], timeout=LIMIT, on_failure="restart") as env:
        env.reset(seed=0)
        step = env.step(["a"] * 6)
        assert [is_failed(step, slot) for slot in range(6)] == [True] * 5 + [False]
        assert step.observations_B[1] == "episode 1 of seed 1"
        assert step.infos_B[0]["final_info"]["failure"] == "timed out after 0.3 s"
        eventually(lambda: AsyncFaulty.cancelled == 5)
        assert not is_failed(env.step(["a"] * 6))


def test_a_thread_that_closes_a_cancelled_environment_is_stuck_only_after_the_time_limit():
    opened, closing = threading.Event(), threading.Event()

    class Slow:
        """A group whose environment takes long to close."""

        def close(self):
            closing.set()
            opened.wait(SOON)

    pool, task = ThreadPool(1), ThreadTask(SlotCall(0, "step", "a"), Slow())
    pool.begin(task)  # awaited on an event loop
    assert pool.abandon(started_by=math.inf) == [task]
    before = time.monotonic()
    pool.put([task])
    assert closing.wait(SOON)
    assert (pool.stuck(started_by=before), pool.stuck(started_by=time.monotonic())) == (0, 1)
    opened.set()
    eventually(lambda: pool.stuck(started_by=math.inf) == 0)
    pool.close([])


def test_a_hang_in_the_autoreset_of_a_coroutine_keeps_the_finished_episode(clock):
    with async_env([lambda: AsyncFaulty({(1, 0): "hang"}, longest=1)], timeout=LIMIT, on_failure="restart") as env:
        env.reset(seed=0)
        step = env.step(["a"])
        assert not is_failed(step) and step.infos_B[0]["final_obs"].startswith("episode 0 of seed 0, turn 1")
        assert step.infos_B[0]["failure"] == "timed out after 0.3 s"
        step = env.step(["a"])
        assert is_failed(step) and step.observations_B == ["episode 2 of seed 0"]


def test_with_raise_a_hanging_coroutine_breaks_its_slot_until_reset(clock):
    with async_env([lambda: AsyncFaulty({(0, 1): "hang"}), Waiting], timeout=LIMIT) as env:
        env.reset(seed=0)
        with pytest.raises(EnvFailed, match="slot 0 failed: timed out after"):
            env.step(["a", "a"])
        assert env.recv().ids_B == [1]
        assert env.reset(ids=[0])[0] == ["episode 1 of seed 0"]
        assert not is_failed(env.step({0: "a"}))


def test_a_coroutine_that_cancels_itself_has_failed():
    class Quitter(Waiting):
        async def astep(self, action):
            raise asyncio.CancelledError

    with async_env([Quitter], on_failure="restart") as env:
        env.reset(seed=0)
        step = env.step(["a"])
        assert is_failed(step) and "was cancelled" in step.infos_B[0]["final_info"]["failure"]


def test_a_coroutine_that_blocks_the_loop_is_an_error_and_no_deadlock(monkeypatch):
    monkeypatch.setattr(event_loop, "CANCEL_TIMEOUT", 0.1)
    opened = threading.Event()

    class Blocking(Waiting):
        async def astep(self, action):
            opened.wait(SOON)

    with async_env([Blocking, Waiting], timeout=0.1, on_failure="restart") as env:
        env.reset(seed=0)
        with pytest.raises(EnvFailed, match=r"slot 0 .* 5 times.*timed out"):
            for _ in range(99):
                env.step({0: "a"})
        opened.set()


def test_a_coroutine_that_ignores_cancellation_does_not_block_others(clock, monkeypatch):
    monkeypatch.setattr(event_loop, "CANCEL_TIMEOUT", 0.1)
    release = asyncio.Event()
    running = []

    class Deaf(Waiting):
        async def astep(self, action):
            running.append(asyncio.get_running_loop())
            hangs()
            while not release.is_set():
                try:
                    await release.wait()
                except asyncio.CancelledError:
                    continue
            return self.step(action)

    with async_env([Deaf, Waiting], timeout=LIMIT, on_failure="restart") as env:
        env.reset(seed=0)
        step = env.step(["a", "a"])
        assert [is_failed(step, slot) for slot in range(2)] == [True, False]
        running[0].call_soon_threadsafe(release.set)


def test_state_and_samples_come_from_the_awaited_environment():
    with async_env([Waiting] * 2) as env, VectorEnv.of([Waiting] * 2) as plain:
        env.reset(seed=3), plain.reset(seed=3)
        assert env.sample_random_action(1) == plain.sample_random_action(1)
        env.step(["a", "a"]), plain.step(["a", "a"])
        assert env.get_state() == plain.get_state()
        env.reset(seed=9)
        env.set_state(plain.get_state())
        assert env.step(["b", "b"]).observations_B == plain.step(["b", "b"]).observations_B


def test_a_reset_is_passed_its_arguments():
    class Polite(Echo):
        async def areset(self, seed=None, *, greeting="hello"):
            return greeting, {"seed": seed}

        async def astep(self, action):
            return self.step(action)

    with async_env([Polite] * 2) as env:
        assert env.reset(seed=4, env1_kwargs={"greeting": "hi"}) == (["hello", "hi"], [{"seed": 4}, {"seed": 5}])


# Which environments have coroutines


class Plain(EnvWrapper):
    def step(self, action: Any) -> Any:
        return self.env.step(action)


class Half(Waiting):
    def reset(self, seed: int | None = None) -> Any:
        return super().reset(seed)


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        (Walker(), False),
        (Waiting(), True),
        (EnvWrapper(Waiting()), True),
        (EpisodeTrackingWrapper(EndOnTruncation(ObservationWrapper(Waiting()))), True),
        (EpisodeTrackingWrapper(Walker()), False),
        (Plain(Waiting()), False),
        (EpisodeTrackingWrapper(Plain(Waiting())), False),
        (Half(), False),
    ],
)
def test_coroutines_are_used_if_they_match_step_and_reset(env, expected):
    assert has_coroutines(env) is expected


@pytest.mark.parametrize("wrap", [EndOnTruncation, EpisodeTrackingWrapper, ObservationWrapper])
def test_a_wrapper_has_the_same_effect_on_awaited_environments(wrap):
    def play(vector: Any) -> list[Any]:
        with vector([lambda: wrap(Waiting(longest=3))] * 3) as env:
            seen: list[Any] = [*env.reset(seed=0)]
            for _ in range(12):
                step = env.step(["a"] * 3)
                seen += [step.observations_B, step.infos_B, step.terminated_B.tolist(), step.truncated_B.tolist()]
        return seen

    assert play(async_env) == play(VectorEnv.of)


def test_a_wrapped_environment_is_awaited_on_the_loop():
    with async_env([lambda: EpisodeTrackingWrapper(Waiting())] * 3) as env:
        env.reset(seed=0)
        env.step(["a"] * 3)
        assert gem_threads() == ["gem-background"]


# Closing


@pytest.mark.parametrize("cls", [Waiting, Walker])
def test_closing_during_steps_closes_every_environment_once(cls):
    class Closing(cls):  # type: ignore[misc, valid-type]
        closings = 0

        def close(self):
            self.closings += 1

    envs = [Closing(**({"waits": SOON} if cls is Waiting else {"seconds": 0.05})) for _ in range(5)]
    env = async_env([lambda env=env: env for env in envs], num_workers=2)
    env.reset(seed=0)
    env.send(["a"] * 5)
    env.close()
    env.close()
    assert [env.closings for env in envs] == [1] * 5


def test_an_unreferenced_vector_is_closed():
    closed = []

    class Closing(Waiting):
        def close(self):
            closed.append(1)

    env = async_env([Closing] * 3)
    env.reset(seed=0)
    del env
    gc.collect()
    eventually(lambda: len(closed) == 3)


PROGRAM = """
import sys
sys.path.insert(0, {folder!r})
from fixture_envs import Echo, Waiting, Walker
from gem.vector import thread
from functools import partial
from gem.vector import VectorEnv
async_env = partial(VectorEnv.of, backend="async")

fns = [lambda: Waiting(waits=60), lambda: Walker(seconds=60), Echo]
env = async_env(fns, runs=["thread", "thread", "process"])
env.reset(seed=0)
env.send(["a"] * 3)
print(env.recv().step.infos_B[0]["pid"])
thread.CLOSE_TIMEOUT = 0.2
"""


@pytest.mark.slow
def test_program_exit_leaves_no_worker():
    program = PROGRAM.format(folder=str(Path(__file__).parent))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    eventually(lambda: not Path(f"/proc/{done.stdout.strip()}").exists())


def test_ctrl_c_while_receiving_loses_nothing(tmp_path):
    os.mkfifo(pipe := tmp_path / "pipe")
    with async_env([Waiting, Obedient, Walker], runs=["thread", "thread", "inline"]) as env:
        env.reset(seed=0)
        env.send([pipe] * 3)
        with pytest.raises(KeyboardInterrupt):
            threading.Timer(LIMIT, os.kill, (os.getpid(), signal.SIGINT)).start()
            env.recv(min_envs=3)
        pipe.write_text("")
        assert sorted(env.recv(min_envs=3).ids_B) == [0, 1, 2]


def test_an_environment_of_any_kind_may_be_awaited():
    class Bare:
        """Not a gem.Env."""

        env_id = None

        def reset(self, seed=None):
            return "plain", {}

        def step(self, action):
            return "plain", 0.0, False, False, {}

        async def areset(self, seed=None):
            return "awaited", {}

        async def astep(self, action):
            return "awaited", 1.0, True, False, {}

        def close(self):
            pass

    assert not isinstance(Bare(), Env)
    with async_env([Bare]) as env:
        assert env.reset()[0] == ["awaited"]
        assert env.step(["a"]).rewards_B.tolist() == [1.0]
