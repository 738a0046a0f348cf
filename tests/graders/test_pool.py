"""GraderPool: worker processes that can be killed."""

from __future__ import annotations

import asyncio
import os
import pickle
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from gem.errors import BadValue, GraderError
from gem.graders.pool import GraderPool

HERE = Path(__file__).parent
FIXTURES = "grading_fixtures"


@pytest.fixture
def pool(monkeypatch: pytest.MonkeyPatch) -> Iterator[GraderPool]:
    monkeypatch.syspath_prepend(HERE)
    with GraderPool(2, timeout=60.0, modules=[FIXTURES]) as pool:
        yield pool


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        stat = Path(f"/proc/{pid}/stat").read_text() if Path("/proc").exists() else ") running"
    except (ProcessLookupError, FileNotFoundError):  # also if it is reaped between the two lines
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def wait_until_dead(pids: set[int]) -> bool:
    for _ in range(500):
        if not any(alive(pid) for pid in pids):
            return True
        time.sleep(0.02)
    return False


def test_a_call_runs_in_another_process_and_returns_its_value(pool):
    assert pool.run(f"{FIXTURES}:double", 21) == 42
    assert pool.run(f"{FIXTURES}:pid") != os.getpid()


def test_an_exception_is_raised_in_the_caller_and_the_worker_stays(pool):
    before = pool.run(f"{FIXTURES}:pid")
    with pytest.raises(ValueError, match="cannot grade 'x'"):
        pool.run(f"{FIXTURES}:refuse", "x")
    assert pool.run(f"{FIXTURES}:pid") == before


def test_a_worker_that_retires_is_replaced_after_its_call(pool):
    before = pool.run(f"{FIXTURES}:pid")
    assert pool.run(f"{FIXTURES}:pid_of_a_retired_worker") == before
    assert pool.run(f"{FIXTURES}:pid") != before and wait_until_dead({before})


def test_a_call_that_times_out_raises_grader_error_and_its_worker_is_replaced(pool):
    pool.run(f"{FIXTURES}:double", 1)
    with pytest.raises(GraderError, match=r"timed out after 0.2 s"):
        pool.run(f"{FIXTURES}:hang", timeout=0.2)
    assert pool.run(f"{FIXTURES}:double", 4) == 8


def test_the_killed_worker_is_dead(pool):
    before = pool.run(f"{FIXTURES}:pid")
    with pytest.raises(GraderError):
        pool.run(f"{FIXTURES}:hang", timeout=0.2)
    assert wait_until_dead({before})


def test_other_workers_are_not_affected_by_one_that_hangs(pool):
    stuck = pool.submit(f"{FIXTURES}:hang")
    assert [pool.run(f"{FIXTURES}:double", i) for i in range(50)] == [2 * i for i in range(50)]
    assert not stuck.done()
    pool.close()
    with pytest.raises(GraderError):
        stuck.result()


def test_a_dead_worker_raises_grader_error_and_is_replaced(pool):
    with pytest.raises(GraderError, match="died"):
        pool.run(f"{FIXTURES}:die")
    assert pool.run(f"{FIXTURES}:double", 2) == 4


def test_a_call_that_exceeds_the_memory_limit_raises(pool):
    with pytest.raises((MemoryError, GraderError)):
        pool.run(f"{FIXTURES}:take_memory")
    assert pool.run(f"{FIXTURES}:double", 2) == 4


def test_a_killed_fork_server_is_replaced(pool):
    pool.run(f"{FIXTURES}:double", 1)
    server = pool._running._server._process._process
    server.kill()
    server.wait()
    answers = []
    for i in range(5):
        try:
            answers.append(pool.run(f"{FIXTURES}:double", i))
        except GraderError:
            answers.append(None)
    assert answers[2:] == [4, 6, 8]
    assert all(answer in (None, 2 * i) for i, answer in enumerate(answers))


def test_thirty_two_threads_share_the_workers(pool):
    with ThreadPoolExecutor(32) as threads:
        answers = list(threads.map(lambda i: pool.run(f"{FIXTURES}:double", i), range(400)))
    assert answers == [2 * i for i in range(400)]


def test_an_event_loop_can_wait_for_many_calls_at_once(pool):
    async def ask() -> list[int]:
        return await asyncio.gather(*(pool.arun(f"{FIXTURES}:double", i) for i in range(100)))

    assert asyncio.run(ask()) == [2 * i for i in range(100)]


def test_a_pickled_pool_starts_workers_of_its_own(pool):
    with pickle.loads(pickle.dumps(pool)) as copy:
        assert (copy.workers, copy.timeout, copy.modules) == (pool.workers, pool.timeout, pool.modules)
        assert copy.run(f"{FIXTURES}:pid") != pool.run(f"{FIXTURES}:pid")


def test_closing_leaves_no_process_and_no_thread(pool):
    before = set(threading.enumerate())
    pids = {pool.run(f"{FIXTURES}:pid"), pool._running._server._process.pid}
    pool.close()
    pool.close()
    assert wait_until_dead(pids)
    assert set(threading.enumerate()) <= before


def test_a_closed_pool_restarts_on_the_next_call(pool):
    pool.run(f"{FIXTURES}:double", 1)
    pool.close()
    assert pool.run(f"{FIXTURES}:double", 3) == 6


SCRIPT = """
import os, sys, threading
sys.path.insert(0, {here!r})
from gem.graders.pool import GraderPool
pool = GraderPool(1, timeout=60.0)
print(pool.run("grading_fixtures:pid"), flush=True)
if sys.argv[1] == "fork":
    child = os.fork()
    if child == 0:
        answer = pool.run("grading_fixtures:double", 4)
        pool.close()
        os._exit(answer)
    _, status = os.waitpid(child, 0)
    print(os.waitstatus_to_exitcode(status), pool.run("grading_fixtures:double", 5), flush=True)
if sys.argv[1] == "kill":
    pool.submit("builtins:exec", f"import os, time; os.kill({{os.getpid()}}, 9); time.sleep(3600)")
    threading.Event().wait()
"""


def run_script(how: str) -> list[str]:
    command = [sys.executable, "-c", SCRIPT.format(here=str(HERE)), how]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.split()


def test_a_forked_process_starts_its_own_workers():
    assert run_script("fork")[1:] == ["8", "10"]


def test_interpreter_exit_leaves_no_worker():
    assert wait_until_dead({int(run_script("exit")[0])})


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux signals a busy worker when its parent dies")
def test_a_parent_that_is_killed_leaves_no_worker():
    assert wait_until_dead({int(run_script("kill")[0])})


@pytest.mark.parametrize("arguments", [{"workers": 0}, {"workers": True}, {"timeout": 0}, {"timeout": -1.0}])
def test_bad_sizes_are_refused(arguments):
    with pytest.raises(BadValue, match=r"must be"):
        GraderPool(**arguments)
