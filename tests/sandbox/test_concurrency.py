"""Concurrent use of one sandbox, and clean-up when it is closed or its process exits or is killed.

Each test starts a small host program, so that it can observe the exit of a whole process. Processes left behind become
children of the test process, where they are found.
"""

import contextlib
import ctypes
import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from waiting import until

pytestmark = [
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the levels are those of Linux"),
    pytest.mark.slow,
]
OTHERS = set()  # children of this process before the test
CHILD_SUBREAPER = 36  # prctl option: orphans become children of this process
HANG_S = 120  # a bound against hanging, not a measurement
START = """
import asyncio, json, os, sys, threading, time
from concurrent.futures import ThreadPoolExecutor
from gem.sandbox import Case, Limits, make_sandbox
from gem.sandbox.forkserver.limits import processes

def square(n):
    result = sandbox.run(f"print({n} ** 2)")
    return result.stdout.strip()

def wait_for_processes(count):
    end = time.monotonic() + 60  # a bound against hanging, not a measurement
    while len(list(processes.tree([server.pid for server in sandbox._pool.zygotes()]))) < count:
        assert time.monotonic() < end
        time.sleep(0.01)

sandbox = make_sandbox("zygote", level=sys.argv[1], limits=Limits(wall_s=60))
"""
CONTAINED = pytest.mark.parametrize("level", ["ns", "lsm"], indirect=True)


@pytest.fixture
def subreaper():
    """Make orphaned descendants children of this process during a test."""
    prctl = ctypes.CDLL(None).prctl
    prctl(CHILD_SUBREAPER, 1, 0, 0, 0)
    OTHERS.update(children())
    yield
    OTHERS.clear()
    prctl(CHILD_SUBREAPER, 0, 0, 0, 0)


@pytest.fixture
def host(level, subreaper, tmp_path):
    """Start a host program at a level, with its temporary files in tmp_path."""
    started = []

    def start(program):
        command = [sys.executable, "-c", START + textwrap.dedent(program), level]
        environment = {**os.environ, "TMPDIR": str(tmp_path)}
        started.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


def finish(process):
    """Wait for a program to exit with status 0. Returns its output."""
    out, _ = process.communicate(timeout=HANG_S)
    assert process.returncode == 0
    return out


def children():
    """Ids of the children of this process, except those started before the test."""
    lists = [(thread / "children").read_text().split() for thread in Path("/proc/self/task").iterdir()]
    return {int(pid) for pids in lists for pid in pids} - OTHERS


def nothing_is_left():
    """Reap orphans. Returns whether all have ended."""
    for pid in children():
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)
    return not children()


def test_threads_and_an_event_loop_and_a_forked_process_share_one_sandbox(host):
    process = host(
        """
        async def loop():
            results = await asyncio.gather(*(sandbox.arun(f"print({n} ** 3)") for n in range(20)))
            return [result.stdout.strip() for result in results]

        cubes = []
        looping = threading.Thread(target=lambda: cubes.extend(asyncio.run(loop())))
        with ThreadPoolExecutor(32) as pool:
            squares = [pool.submit(square, n) for n in range(96)]
            looping.start()
            time.sleep(0.05)
            read, write = os.pipe()
            child = os.fork()
            if child == 0:
                os.write(write, json.dumps([square(n) for n in range(1000, 1004)]).encode())
                os._exit(0)
            status = os.waitpid(child, 0)[1]
            squares = [future.result() for future in squares]
        looping.join()
        print(json.dumps([squares, cubes, json.loads(os.read(read, 10000)), status]))
        sandbox.close()
        """
    )
    squares, cubes, forked, status = json.loads(finish(process))
    assert squares == [str(n**2) for n in range(96)]
    assert cubes == [str(n**3) for n in range(20)]
    assert forked == [str(n**2) for n in range(1000, 1004)] and status == 0
    until(nothing_is_left)


def test_closing_the_sandbox_in_a_forked_process_does_not_affect_the_parent(host):
    process = host(
        """
        session = sandbox.session()
        session.run("x = 41")
        if os.fork() == 0:
            sandbox.close()
            sys.exit(0)
        os.wait()
        print(square(3), session.run("print(x + 1)").stdout.strip())
        session.close()
        sandbox.close()
        """
    )
    assert finish(process) == "9 42\n"


@CONTAINED
def test_close_leaves_no_process_descriptor_or_file(host, tmp_path):
    process = host(
        """
        sandbox.close()

        def everything():
            global sandbox
            sandbox = make_sandbox("zygote", level=sys.argv[1], limits=Limits(wall_s=60))
            assert square(2) == "4"
            results = sandbox.run_tests("print(input())", [Case(stdin="a"), Case(stdin="b")])
            assert [result.stdout for result in results] == ["a\\n", "b\\n"]
            with sandbox.session() as session:
                session.run("x = 1")
            sandbox.exec("true")
            sandbox.close()

        everything()
        before = sorted(os.listdir("/proc/self/fd"))
        everything()
        same = sorted(os.listdir("/proc/self/fd")) == before
        children = open(f"/proc/self/task/{os.getpid()}/children").read().split()
        print(same, children, threading.active_count(), os.listdir(os.environ["TMPDIR"]))
        """
    )
    assert finish(process) == "True [] 1 []\n"
    until(nothing_is_left)


def test_interpreter_exit_cleans_up_an_open_sandbox(host, tmp_path):
    process = host(
        """
        session = sandbox.session()
        print(session.run("import os; os.fork() or __import__('time').sleep(600)", wall_s=0.5).status, square(2))
        """
    )
    assert finish(process).split()[1] == "4"
    until(nothing_is_left)
    assert list(tmp_path.iterdir()) == []


@CONTAINED
def test_no_process_survives_a_killed_host(host):
    process = host(
        """
        session = sandbox.session()
        session.run("x = 1")
        program = "import os, time; os.fork(); os.fork(); time.sleep(600)"
        for _ in range(3):
            threading.Thread(target=sandbox.run, args=(program,), daemon=True).start()
        threading.Thread(target=sandbox.run_tests, args=(program, [Case(), Case()]), daemon=True).start()
        wait_for_processes(2 + 1 + 3 * 4 + 2 * 4)  # the server, the session, the runs and the tests
        print("ready", flush=True)
        time.sleep(600)
        """
    )
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGKILL)
    process.wait(HANG_S)
    until(nothing_is_left)


def test_close_ends_the_runs_of_other_threads(host):
    process = host(
        """
        from gem.errors import SandboxError

        def outcome():
            try:
                return str(sandbox.run("import time; time.sleep(600)").status)
            except SandboxError:
                return "SandboxError"

        with ThreadPoolExecutor(8) as pool:
            runs = [pool.submit(outcome) for _ in range(8)]
            wait_for_processes(2 + 8)
            sandbox.close()
            print(*sorted({run.result(timeout=30) for run in runs}))
        """
    )
    assert set(finish(process).split()) <= {"SandboxError", "killed"}
    until(nothing_is_left)
