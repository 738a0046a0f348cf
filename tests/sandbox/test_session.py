"""Sessions: output of cells, errors, interrupts, and the loss of the interpreter."""

import contextlib
import gc
import json
import os
import socket
import sys
import threading
import time
from pathlib import Path

import pytest
from waiting import idle, processes_of, until

from gem.errors import BadValue, SandboxError
from gem.sandbox import Limits, Status, make_sandbox
from gem.sandbox.forkserver.entry import cells
from gem.sandbox.forkserver.host import session as zygote_session
from gem.sandbox.forkserver.limits import cgroup

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the levels are those of Linux")
LIMITS = Limits(wall_s=20, memory_bytes=512 << 20)
HANG_S = 60  # a bound against hanging, not a measurement
LEVELS = pytest.mark.parametrize("level", ["ns", "lsm", "basic"], indirect=True)


@pytest.fixture(autouse=True)
def patience(monkeypatch):
    """Let interpreters react to an interrupt and exit when they can."""
    monkeypatch.setattr(zygote_session, "INTERRUPT_S", HANG_S)
    monkeypatch.setattr(zygote_session, "HANGUP_S", HANG_S)


@pytest.fixture
def session(sandbox):
    with sandbox.session() as session:
        yield session


def shown(result):
    """Output of a successful cell."""
    assert (result.status, result.exit_code, result.stderr, result.state_lost) == (Status.OK, 0, "", False)
    return result.stdout


@LEVELS
def test_variables_are_kept(session):
    assert shown(session.run("x = 20\ndef double(y): return 2 * y")) == ""
    assert shown(session.run("print(double(x) + 2)")) == "42\n"


LAST_VALUES = {
    "1 + 1": "2\n",
    "'a\\n'": "'a\\n'\n",
    "None": "",
    "x = 3": "",
    "x = 3; x": "3\n",
    "if True:\n    5\n": "",
    "print('p')\n[1]\n\n# a comment": "p\n[1]\n",
    "": "",
    "# nothing": "",
    "for i in range(2): print(i)": "0\n1\n",
    "'é' + chr(0x1F600)": "'é😀'\n",
    "'\\ud800'": "'\\ud800'\n",
}


def test_the_value_of_a_last_expression_is_printed(session):
    assert {cell: shown(session.run(cell)) for cell in LAST_VALUES} == LAST_VALUES


def test_a_traceback_shows_only_frames_of_cells(session):
    session.run("import json\ndef f(x):\n    return 1 / x")
    result = session.run("y = 0\nf(y)")
    assert (result.status, result.exit_code, result.state_lost) == (Status.ERROR, 1, False)
    lines = [line for line in result.stderr.splitlines() if set(line) - set(" ^~")]
    assert lines == [
        "Traceback (most recent call last):",
        '  File "cell 2", line 2, in <module>',
        "    f(y)",
        '  File "cell 1", line 3, in f',
        "    return 1 / x",
        "ZeroDivisionError: division by zero",
    ]
    assert shown(session.run("y")) == "0\n"


def test_a_cell_that_does_not_parse_is_an_error(session):
    result = session.run("x = 1\ndef f(:")
    assert result.status is Status.ERROR and 'File "cell 1", line 2' in result.stderr and "SyntaxError" in result.stderr
    for cell in ("x = 1\0", "x = '\ud800'", "(" * 10_000):
        assert session.run(cell).status is Status.ERROR
    assert session.run("x").status is Status.ERROR


@pytest.mark.parametrize(
    ("cell", "exit_code", "stderr"),
    [("exit()", 0, ""), ("import sys; sys.exit(3)", 3, ""), ("import sys; sys.exit('bye')", 1, "bye\n")],
)
def test_system_exit_ends_the_cell_and_keeps_the_variables(session, cell, exit_code, stderr):
    session.run("x = 1")
    result = session.run(cell)
    assert (result.ok, result.exit_code, result.stderr, result.state_lost) == (not exit_code, exit_code, stderr, False)
    assert shown(session.run("x, input")).startswith("(1, ")


def test_stdin_is_empty(session):
    assert "EOFError" in session.run("input()").stderr
    assert shown(session.run("import sys; sys.stdin.read()")) == "''\n"


def test_a_cell_that_times_out_is_interrupted_and_keeps_the_variables(session, limit_after_output):
    session.run("import time; x = 5")
    result = session.run("print('started', end=''); time.sleep(600)")
    assert (result.status, result.stdout, result.state_lost) == (Status.TIMEOUT, "started", False)
    assert "KeyboardInterrupt" in result.stderr and "time.sleep(600)" in result.stderr
    assert shown(session.run("x")) == "5\n"


@pytest.mark.parametrize(
    "cell",
    ["while True: pass", "import re; re.match('(a+)+$', 'a' * 50 + 'b')", "import os; os.system('sleep 600')"],
)
def test_loops_regular_expressions_and_commands_are_interrupted(session, cell):
    session.run("x = 5")
    result = session.run(cell, wall_s=0.5)
    assert (result.status, result.state_lost) == (Status.TIMEOUT, False)
    assert shown(session.run("x")) == "5\n"


@pytest.mark.parametrize(
    "cell",
    [
        "import signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nprint('deaf', flush=True)\ntime.sleep(600)",
        "import signal, time\nsignal.pthread_sigmask(signal.SIG_BLOCK, {2})\nprint('deaf', flush=True)\nwhile True:\n"
        "    try: signal.pthread_sigmask(signal.SIG_UNBLOCK, {2}); time.sleep(600)\n    except BaseException: pass",
    ],
)
def test_a_cell_that_ignores_interrupts_loses_the_variables(session, cell, limit_after_output, monkeypatch):
    monkeypatch.setattr(zygote_session, "INTERRUPT_S", 0.1)
    session.run("x = 5")
    result = session.run(cell)
    assert (result.status, result.stdout, result.state_lost) == (Status.TIMEOUT, "deaf\n", True)
    assert result.stderr == ""
    after = session.run("x")
    assert "NameError" in after.stderr and not after.state_lost and '"cell 3"' in after.stderr
    assert shown(session.run("y = 1; y")) == "1\n"


def test_only_an_interrupt_interrupts_a_cell_and_no_message_that_arrives_while_it_runs():
    host, interpreter = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        null = os.open(os.devnull, os.O_RDWR)
        for fd in range(3):
            os.dup2(null, fd)
        host.close()
        cells.run({}, (0, 1, 2, interpreter.detach()))
    interpreter.close()
    host.settimeout(HANG_S)
    with host, host.makefile("rb") as answers:
        sleep = json.dumps({"name": "cell", "code": "import time; time.sleep(0.2)"}).encode()
        host.sendall((len(sleep).to_bytes(4, "big") + sleep) * 2)
        time.sleep(0.1)
        host.sendall((len(sleep).to_bytes(4, "big") + sleep) * 2)
        assert [json.loads(answers.readline())["exit_code"] for _ in range(5)] == [0] * 5
    os.waitpid(pid, 0)


def test_an_interrupt_that_arrives_before_its_cell_has_started_interrupts_it():
    host, interpreter = socket.socketpair()
    host.sendall(bytes(4))
    channel = cells.CellInterpreter.__new__(cells.CellInterpreter)
    channel.channel = interpreter
    with host, interpreter, pytest.raises(KeyboardInterrupt):
        channel._enable_interrupts()


def test_a_thousand_quick_cells_are_not_interrupted(session):
    for number in range(1000):
        assert shown(session.run("1")) == "1\n", number


def test_a_signal_handler_lasts_for_one_cell(session):
    session.run("import signal, time; signal.signal(signal.SIGINT, signal.SIG_IGN)")
    result = session.run("time.sleep(600)", wall_s=0.5)
    assert (result.status, result.state_lost) == (Status.TIMEOUT, False)


@pytest.mark.parametrize(
    ("cell", "status", "message"),
    [
        ("print('last words')\nimport os; os._exit(3)", Status.ERROR, "[the interpreter exited with code 3]"),
        ("print('last words')\nimport os; os._exit(0)", Status.ERROR, "[the interpreter exited with code 0]"),
        ("print('last words')\nimport ctypes; ctypes.string_at(0)", Status.KILLED, "[killed by signal 11]"),
        # Process 1 of a namespace is killed by another signal than SIGABRT.
        ("print('last words')\nimport os; os.abort()", Status.KILLED, "[killed by signal "),
        ("print('last words')\nimport os; os.closerange(3, 1024)", Status.ERROR, "[the interpreter exited"),
    ],
)
def test_the_end_of_the_interpreter_is_reported_and_the_next_cell_starts_a_new_one(session, cell, status, message):
    session.run("x = 5")
    result = session.run(cell)
    assert (result.status, result.state_lost) == (status, True) and result.stopped(Limits()).startswith(message)
    assert result.stdout == "last words\n" and "interpreter" not in result.stderr
    assert shown(session.run("'x' in globals()")) == "False\n"


def test_memory_is_limited(session):
    result = session.run("x = bytearray(3 << 30)")
    assert result.status in (Status.MEMORY, Status.ERROR) and not result.ok
    assert shown(session.run("1")) == "1\n"


def test_closed_and_replaced_streams_are_restored_for_the_next_cell(session):
    session.run("import os, sys")
    for cell in (
        "os.close(0); os.close(1); os.close(2)",
        "sys.stdout.close(); sys.stderr.close(); sys.stdin.close()",
        "import io; sys.stdout = sys.stderr = io.StringIO(); print('nowhere')",
        "sys.stdout = sys.stderr = sys.stdin = None",
        "del sys.stdout, sys.stderr",
        "sys.stdout = 5",
        "os.dup2(os.open('/dev/null', os.O_WRONLY), 1)",
    ):
        assert not session.run(cell).state_lost
        assert shown(session.run("print('out'); 7")) == "out\n7\n"
        assert session.run("print('err', file=sys.stderr)").stderr == "err\n"


def test_output_of_threads_belongs_to_the_running_cell(session):
    session.run(
        "import threading, time\ngo, end = threading.Event(), threading.Event()\n"
        "def work():\n    go.wait()\n    print('from the thread')\n    end.set()\n"
        "threading.Thread(target=work, daemon=True).start()"
    )
    assert shown(session.run("go.set(); end.wait(); print('from the cell')")) == "from the thread\nfrom the cell\n"


def test_running_threads_and_children_do_not_block_the_next_cell(session):
    session.run("import threading, time, os\nthreading.Thread(target=time.sleep, args=(600,)).start()")
    session.run("if os.fork() == 0: time.sleep(600)")
    session.run("import subprocess; child = subprocess.Popen(['sleep', '600'])")
    assert shown(session.run("2")) == "2\n"
    assert shown(session.run("child.kill() if 0 else child.poll()")) == ""


def test_a_forked_child_does_not_answer_later_cells(session):
    result = session.run("import os\npid = os.fork()\nif pid: os.waitpid(pid, 0)\nprint('parent' if pid else 'child')")
    assert sorted(result.stdout.split()) == ["child", "parent"] and result.ok
    assert shown(session.run("print('once')")) == "once\n"


def test_output_of_commands_belongs_to_the_cell(session):
    result = session.run("import os\nos.system('echo out; echo err >&2; echo named > /dev/stdout')")
    assert (result.stdout, result.stderr) == ("out\nnamed\n0\n", "err\n")


def test_endless_output_is_killed_and_truncated(sandbox):
    with sandbox.session(limits=Limits(wall_s=20, output_bytes=1000)) as session:
        result = session.run("x = 1\nwhile True: print('spam')")
        assert (result.status, result.truncated, result.state_lost) == (Status.OUTPUT_LIMIT, True, False)
        assert result.stdout.startswith("spam\nspam\n") and "bytes cut" in result.stdout and len(result.stdout) < 2000
        assert shown(session.run("x")) == "1\n"


def test_garbage_on_the_channel_is_not_an_answer(session, monkeypatch):
    monkeypatch.setattr(zygote_session, "HANGUP_S", 0.1)
    cell = """
import os, time
for fd in range(3, 256):
    try: os.write(fd, b'{"exit_code": "0"}' * 500 + b"\\n")
    except OSError: pass
time.sleep(600)
"""
    result = session.run(cell)
    assert result.state_lost and not result.ok
    assert shown(session.run("1")) == "1\n"


@pytest.mark.parametrize("level", ["ns", "lsm"], indirect=True)
def test_a_nested_answer_that_a_cell_forges_is_not_an_answer(session, monkeypatch):
    monkeypatch.setattr(zygote_session, "HANGUP_S", 0.1)
    cell = """
import os, time
said = b'{"exit_code": 0, "cpu_s": 0, "out_of_memory": false, "x": ' + b"[" * 3900 + b"\\n"
for fd in range(3, 256):
    try: os.write(fd, said)
    except OSError: pass
time.sleep(600)
"""
    result = session.run(cell)
    assert result.state_lost and not result.ok
    assert shown(session.run("1")) == "1\n"


def test_sessions_are_independent(sandbox):
    with sandbox.session() as one, sandbox.session() as two:
        one.run("x = 1; open('file', 'w').close()")
        assert shown(two.run("import os; 'x' in globals(), os.path.exists('file')")) == "(False, False)\n"
        assert shown(one.run("import os; os.path.exists('file')")) == "True\n"


def test_a_module_in_the_working_directory_can_be_imported(session):
    session.run("with open('helper.py', 'w') as file: file.write('answer = 42')")
    assert shown(session.run("import helper; helper.answer")) == "42\n"


def test_sessions_have_different_random_numbers(sandbox):
    cell = "import random, numpy; print(random.random(), numpy.random.rand())"
    drawn = []
    for _ in range(3):
        with sandbox.session() as session:
            drawn += shown(session.run(cell)).split()
    assert len(set(drawn)) == len(drawn)


def test_code_of_any_length_runs(session):
    assert shown(session.run(f"x = {'7' * 10!r}\nlen({'a' * 2_000_000!r})")) == "2000000\n"


def test_many_live_sessions_need_no_threads(sandbox):
    before = threading.active_count()
    with contextlib.ExitStack() as stack:
        sessions = [stack.enter_context(sandbox.session()) for _ in range(40)]
        for number, session in enumerate(sessions):
            session.run(f"x = {number}")
        assert threading.active_count() <= before + 2
        assert [shown(session.run("x")) for session in sessions] == [f"{number}\n" for number in range(40)]


def test_a_garbage_collected_session_releases_its_descriptors(sandbox, quick_gc):
    sandbox.session().run("x = 1")
    gc.collect()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        sandbox.session().run("x = 1")
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) <= before


def test_a_closed_session_raises(session):
    session.run("x = 1")
    session.close()
    session.close()
    with pytest.raises(SandboxError, match="closed"):
        session.run("x")


def test_close_ends_a_cell_running_in_another_thread(sandbox):
    session = sandbox.session()
    session.run("import os, time")
    before, results = {*processes_of(sandbox)}, []  # of other tests too, whose processes may end later
    cell = "os.fork(); time.sleep(600)"
    waiting = threading.Thread(target=lambda: results.append(session.run(cell, wall_s=600)))
    waiting.start()
    until(lambda: {*processes_of(sandbox)} - before)
    session.close()
    waiting.join(HANG_S)
    assert [result.state_lost for result in results] == [True]


def test_a_forked_process_cannot_use_a_session_of_its_parent(session):
    session.run("x = 1")
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            session.run("x = 2")
        except SandboxError as e:
            os.write(write, str(e).encode())
        session.close()
        os._exit(0)
    os.waitpid(pid, 0)
    os.close(write)
    with open(read, "rb") as file:
        assert b"cannot be used in a forked process" in file.read()
    assert shown(session.run("x")) == "1\n"


@pytest.mark.parametrize("wall_s", [0, -1, float("inf"), float("nan")])
def test_the_time_limit_of_a_cell_must_be_a_finite_number_above_zero(session, wall_s):
    with pytest.raises(BadValue, match=r"wall_s .*above 0"):
        session.run("1", wall_s=wall_s)


LEAVES_SPINNERS = (
    "import os, signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\npids = []\nfor _ in range({count}):\n"
    "    pid = os.fork()\n    if pid == 0:\n        while True: pass\n    pids.append(pid)\n"
    "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
)
LEAVES_A_THREAD = (
    "import threading\ncount = 0\ndef spin():\n    global count\n    while True: count += 1\n"
    "threading.Thread(target=spin, daemon=True).start()\n"
)


def test_what_a_cell_leaves_behind_does_not_compute_between_cells(sandbox, session):
    assert shown(session.run(LEAVES_SPINNERS.format(count=2) + LEAVES_A_THREAD)) == ""
    until(lambda: idle(sandbox))
    assert shown(session.run("1")) == "1\n"
    until(lambda: idle(sandbox))


@pytest.mark.slow
@pytest.mark.parametrize("level", ["ns", "lsm", pytest.param("basic", marks=pytest.mark.exhaustive)], indirect=True)
def test_without_a_cgroup_nothing_computes_between_cells_either(level, monkeypatch):
    """A program that continues itself by a timer would compute, so a level that isolates refuses such timers."""
    monkeypatch.setenv(cgroup.SETTING, "0")
    timer = (
        "import ctypes, struct\nlibc, timer = ctypes.CDLL(None), ctypes.c_void_p()\n"
        "signal.signal(signal.SIGCONT, lambda *_: None)\n"
        "if libc.timer_create(1, struct.pack('Pii48x', 0, 18, 0), ctypes.byref(timer)) == 0:\n"
        "    libc.timer_settime(timer, 0, struct.pack('qqqq', 0, 10**8, 0, 10**8), None)\n"
    )
    with make_sandbox("zygote", level=level, limits=LIMITS) as sandbox:
        sandbox.run("")
        servers = processes_of(sandbox)
        session = sandbox.session()
        session.run(LEAVES_SPINNERS.format(count=2) + (timer if level != "basic" else "") + LEAVES_A_THREAD)

        def all_stopped():
            states = [Path(f"/proc/{pid}/stat").read_text().split()[2] for pid in processes_of(sandbox)]
            return states.count("T") == len(states) - len(servers) == 3

        until(all_stopped)
        for _ in range(10):
            time.sleep(0.03)  # longer than the timer takes
            assert all_stopped()
        result = session.run("while True: pass", wall_s=0.5)
        assert (result.status, result.state_lost) == (Status.TIMEOUT, False)
        assert shown(session.run("{os.waitpid(pid, 0)[1] for pid in pids}")) == "{9}\n"


def test_processes_and_threads_go_on_in_the_next_cell(session):
    session.run(LEAVES_A_THREAD + "import subprocess; child = subprocess.Popen(['sleep', '0.2'])")
    time.sleep(0.2)
    before = int(shown(session.run("count")))
    time.sleep(0.2)
    assert shown(session.run(f"import time\nwhile count <= {before}: time.sleep(0.01)\nchild.wait()")) == "0\n"


def test_a_cell_that_follows_at_once_is_not_stopped(session):
    """A quick cell is not announced to the server, which is about to stop the processes of the last one."""
    session.run("import time")
    for seconds in (0, 0.01, 0.02, 0.03, 0.04, 0.05, 0.06):
        session.run("1")
        time.sleep(seconds)
        assert shown(session.run("time.sleep(0.1)")) == ""  # a cell that is stopped times out
    assert shown(session.run(f"len({'a' * 300_000!r})")) == "300000\n"


def test_a_process_pool_made_in_one_cell_works_in_the_next(session):
    session.run("import multiprocessing, os\npool = multiprocessing.get_context('fork').Pool(2)")
    for _ in range(2):
        assert shown(session.run("pool.map(abs, [-1, -2, -3])")) == "[1, 2, 3]\n"
        time.sleep(0.2)
    assert shown(session.run("pool.terminate(); pool.join()")) == ""


def test_cells_can_start_interpreters_by_multiprocessing(session):
    session.run("import multiprocessing\ncontext = multiprocessing.get_context('spawn')")
    assert shown(session.run("pool = context.Pool(1); pool.map(abs, [-1, 2])")) == "[1, 2]\n"
    assert shown(session.run("pool.map(abs, [-3])")) == "[3]\n"


def test_processes_left_by_a_cell_that_timed_out_are_killed(sandbox, session, limit_after_output):
    session.run("x = 1")
    before = {*processes_of(sandbox)}
    result = session.run(LEAVES_SPINNERS.format(count=5) + "print('ready')\nwhile True: pass")
    assert (result.status, result.state_lost) == (Status.TIMEOUT, False)
    until(lambda: not {*processes_of(sandbox)} - before)
    assert shown(session.run("{os.waitpid(pid, 0)[1] for pid in pids}")) == "{9}\n"


def test_children_that_leave_the_interpreter_are_killed_after_a_time_out(sandbox, session, limit_after_output):
    session.run("x = 1")
    before = {*processes_of(sandbox)}
    orphans = (
        "import os\nfor _ in range(5):\n    if os.fork() == 0:\n        if os.fork(): os._exit(0)\n"
        "        while True: pass\n    os.wait()\n"
    )
    result = session.run(orphans + "print('ready')\nwhile True: pass")
    assert (result.status, result.state_lost) == (Status.TIMEOUT, False)
    until(lambda: not {*processes_of(sandbox)} - before)


@pytest.mark.slow
def test_the_cpu_time_of_a_cell_is_limited(sandbox):
    with sandbox.session(limits=Limits(wall_s=60, cpu_s=1)) as session:
        session.run("import os, time; x = 5")
        for _ in range(2):  # each cell has its own limit
            assert shown(session.run("end = time.process_time() + 0.6\nwhile time.process_time() < end: pass")) == ""
        result = session.run("for _ in range(2): os.fork()\nwhile True: pass")
        assert (result.status, result.state_lost) == (Status.TIMEOUT, False) and result.wall_s < 60
        assert shown(session.run("x")) == "5\n"


@pytest.mark.slow
def test_a_cell_may_use_the_cpu_for_its_own_wall_time_by_default(sandbox):
    with sandbox.session(limits=Limits(wall_s=0.5)) as session:
        busy = "import time\nend = time.process_time() + 1.2\nwhile time.process_time() < end: pass"
        assert shown(session.run(busy, wall_s=60)) == ""


@pytest.mark.slow
def test_idle_sessions_use_no_cpu(sandbox):
    with contextlib.ExitStack() as stack:
        for session in [stack.enter_context(sandbox.session()) for _ in range(20)]:
            session.run("x = 1")
        until(lambda: idle(sandbox, seconds=1))
