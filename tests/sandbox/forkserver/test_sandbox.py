"""The zygote sandbox: results, isolation, and the life cycle of its fork servers."""

import gc
import os
import signal
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest
from waiting import until

from gem.errors import SandboxError
from gem.sandbox import Case, Limits, Status, make_sandbox
from gem.sandbox.forkserver import protocol
from gem.sandbox.forkserver.host import launch as host
from gem.sandbox.forkserver.host import sandbox as sandbox_module
from gem.sandbox.forkserver.isolation import landlock
from gem.sandbox.forkserver.limits import monitor, processes, removal

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the levels are those of Linux")
CONTAINED = pytest.mark.parametrize("level", ["ns", "lsm"], indirect=True)
LIMITS = Limits(wall_s=60)


def servers(sandbox):
    return sandbox._pool.zygotes()


def inner_of(zygote):
    """Process id of the fork server, the child of its guardian."""
    return int(Path(f"/proc/{zygote.pid}/task/{zygote.pid}/children").read_text().split()[0])


# ---- results


def test_a_traceback_shows_the_program_and_nothing_else(sandbox):
    result = sandbox.run("def f():\n    return 1 / 0\nf()\n")
    shown = [line.strip() for line in result.stderr.splitlines() if line.startswith("  File")]
    assert shown == ['File "main.py", line 3, in <module>', 'File "main.py", line 2, in f']
    assert "return 1 / 0" in result.stderr
    assert (result.status, result.exit_code, result.signal) == (Status.ERROR, 1, None)


@pytest.mark.parametrize(
    ("source", "exit_code", "stderr"),
    [
        ("import sys; sys.exit(0)", 0, ""),
        ("import sys; sys.exit()", 0, ""),
        ("raise SystemExit(3)", 3, ""),
        ("raise SystemExit('no')", 1, "no\n"),
        ("import os; os._exit(7)", 7, ""),
    ],
)
def test_the_exit_code_is_reported(sandbox, source, exit_code, stderr):
    result = sandbox.run(source)
    assert (result.exit_code, result.stderr, result.ok) == (exit_code, stderr, exit_code == 0)


def test_threads_and_exit_handlers_are_waited_for(sandbox):
    result = sandbox.run(
        "import atexit, threading\n"
        "atexit.register(print, 'handler')\n"
        "threading.Thread(target=lambda: (threading.main_thread().join(), print('thread'))).start()\n"
        "print('main')"
    )
    assert (result.stdout, result.ok) == ("main\nthread\nhandler\n", True)


@pytest.mark.parametrize("source", [b"x = '\xff'", b"print(1)\0", "x = '\ud800'", "def f(:", b"\xef\xbb\xbfraise"])
def test_invalid_source_is_an_error_of_the_program(sandbox, source):
    result = sandbox.run(source)
    assert (result.status, result.exit_code) == (Status.ERROR, 1)
    assert "Error" in result.stderr
    assert "gem" not in result.stderr


def test_a_source_may_be_longer_than_a_command_line(sandbox):
    assert sandbox.run("x = 1  # " + "y" * 3_000_000 + "\nprint(x)").stdout == "1\n"


def test_a_program_reads_its_input_and_then_eof(sandbox):
    program = "import sys\ndata = sys.stdin.read()\nprint(len(data), repr(sys.stdin.read()))"
    assert sandbox.run(program, stdin="é" * 400_000).stdout == "400000 ''\n"
    assert sandbox.run(program).stdout == "0 ''\n"


def test_the_input_can_be_opened_by_name(sandbox):
    assert sandbox.run("print(open('/dev/stdin').read())", stdin="ab").stdout == "ab\n"


def test_a_memory_error_has_status_memory(sandbox):
    result = sandbox.run("x = bytearray(3 << 30)")
    assert (result.status, result.exit_code) == (Status.MEMORY, 1)
    assert sandbox.run("try:\n    x = bytearray(3 << 30)\nexcept MemoryError:\n    print('caught')").ok


def test_the_host_does_little_to_recognize_a_memory_error_in_a_long_stderr():
    # A search of the whole text took 175 s for 125 kB. The process is killed after 20 CPU seconds.
    program = """
import resource
resource.setrlimit(resource.RLIMIT_CPU, (20, 20))
from gem.sandbox import Limits
from gem.sandbox.forkserver.host.execution import RunExit, run_status
ended = RunExit(exit_code=1, signal=None)
for line in ("MemoryError.", "MemoryError: x ", "\\n", "MemoryError\\n"):
    print(run_status(ended, Limits(), line * 1_000_000 + "\\nx\\n"))
print(run_status(ended, Limits(), "Traceback\\nnumpy._core._exceptions._ArrayMemoryError: no room\\n"))
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (ended.returncode, ended.stdout.split()) == (0, ["error"] * 4 + ["memory"]), ended.stderr


def test_memory_that_processes_share_counts_once(sandbox):
    program = """
import os, signal, time
shared = bytearray(100 << 20)
shared[::4096] = b"x" * len(shared[::4096])
children = []
for _ in range(4):
    children.append(os.fork())
    if children[-1] == 0:
        time.sleep(0.7)
        os._exit(0)
print([os.waitpid(child, 0)[1] for child in children])
"""
    result = sandbox.run(program, limits=Limits(wall_s=60, memory_bytes=300 << 20))
    assert (result.status, result.stdout) == (Status.OK, "[0, 0, 0, 0]\n"), result.stderr


def test_measuring_a_process_tree_restores_the_state_of_its_processes():
    """Measuring stops the processes; those that were stopped before stay stopped, the others continue."""
    program = "import os, signal; print(flush=True); {}; print(input())"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    started = [
        subprocess.Popen([sys.executable, "-c", program.format(step)], **pipes)
        for step in ("os.kill(os.getpid(), signal.SIGSTOP)", "pass")
    ]
    try:
        for process in started:
            process.stdout.readline()
        pids = [process.pid for process in started]
        until(lambda: processes.process(pids[0]).stopped)
        assert processes.measured(pids) > 1 << 20
        assert processes.process(pids[0]).stopped
        # It answers only if it was continued; its state in /proc may not show a pending stop yet.
        assert started[1].communicate(b"on\n", timeout=60) == (b"on\n", None)
    finally:
        for process in started:
            with process:
                process.kill()


@pytest.mark.parametrize("used", [0.3, 0.9])
def test_a_run_is_checked_again_before_it_can_fill_its_memory(used):
    limit = 16 << 30
    request = protocol.RunRequest("program", cpu_s=1, memory_bytes=limit, processes=64, disk_bytes=1)
    pause = monitor.RunMonitor(request, 1, "")._until_memory_limit(0.0, int(used * limit), tasks=1)
    assert monitor.QUICK_S <= pause <= monitor.TICK_S
    assert pause * monitor.FILLED_PER_S <= (1 - used) * limit


@pytest.mark.slow
def test_an_incomplete_line_is_kept_after_a_timeout(sandbox):
    def is_kept():  # if the program has printed before the limit, and flushes within FLUSH_S
        result = sandbox.run("import time; print('partial', end=''); time.sleep(60)", limits=Limits(wall_s=0.5))
        assert result.status is Status.TIMEOUT
        return result.stdout == "partial"

    until(is_kept)


def test_lines_of_different_threads_do_not_mix(sandbox):
    program = """
import threading
def tell(name):
    for number in range(200):
        print(name, number)
threads = [threading.Thread(target=tell, args=(name,)) for name in "abc"]
for thread in threads: thread.start()
"""
    result = sandbox.run(program)
    assert sorted(result.stdout.splitlines()) == sorted(f"{name} {number}" for name in "abc" for number in range(200))


@pytest.mark.parametrize("stream", ["None", "5", "open(os.devnull)"])
def test_a_program_can_replace_its_streams(sandbox, stream):
    result = sandbox.run(f"import os, sys; print(1); sys.stdout = {stream}; sys.stderr = {stream}")
    assert (result.status, result.stdout) == (Status.OK, "1\n")


@pytest.mark.slow
def test_a_spinning_process_is_killed_even_if_it_ignores_signals(sandbox):
    program = "import signal\nsignal.signal(signal.SIGXCPU, signal.SIG_IGN)\nwhile True: pass"
    assert sandbox.run(program, limits=Limits(wall_s=60, cpu_s=1)).status is Status.TIMEOUT


def test_a_program_that_kills_itself_has_status_killed(sandbox):
    result = sandbox.run("import os; os.kill(os.getpid(), 9)")
    assert (result.status, result.signal, result.exit_code) == (Status.KILLED, signal.SIGKILL, None)


def test_a_command_can_be_killed_by_its_own_signals(sandbox):
    result = sandbox.exec("kill -TERM $$")
    assert (result.status, result.signal) == (Status.KILLED, signal.SIGTERM)
    assert sandbox.exec(["no-such-command"]).exit_code == 127


def test_files_are_written_and_can_be_imported(sandbox):
    files = {"helper.py": "answer = 42", "data/x.bin": b"\xff\0"}
    result = sandbox.run("import helper; print(helper.answer, open('data/x.bin', 'rb').read())", files=files)
    assert result.stdout == "42 b'\\xff\\x00'\n"


def test_runs_have_different_random_numbers(sandbox):
    pytest.importorskip("numpy")
    program = "import random, numpy\nprint(random.random(), numpy.random.rand())"
    first, second = (sandbox.run(program).stdout.split() for _ in range(2))
    assert first[0] != second[0]
    assert first[1] != second[1]


@pytest.mark.slow
def test_multiprocessing_can_start_interpreters(sandbox):
    program = (Path(__file__).parents[1] / "benign" / "b67_spawned_processes.py").read_text()
    result = sandbox.run(program)
    assert (result.stdout, result.stderr) == ("[1, 4, 9] 7 [4, 5] True\n", "")
    assert [found.stdout for found in sandbox.run_tests(program, [Case(), Case()])] == [result.stdout] * 2


def test_a_file_named_like_the_program_is_kept(sandbox):
    program = "import multiprocessing; print(open('main.py').read())"
    assert sandbox.run(program, files={"main.py": "own"}).stdout == "own\n"
    assert "import multiprocessing" in sandbox.run(program).stdout


@CONTAINED
def test_multiprocessing_works(sandbox):
    result = sandbox.run(
        "import multiprocessing\n"
        "def work(n, lock, total):\n"
        "    for _ in range(100):\n"
        "        with lock: total.value += n\n"
        "if __name__ == '__main__':\n"
        "    lock, total = multiprocessing.Lock(), multiprocessing.Value('i', 0, lock=False)\n"
        "    workers = [multiprocessing.Process(target=work, args=(n, lock, total)) for n in range(4)]\n"
        "    [w.start() for w in workers]; [w.join() for w in workers]\n"
        "    print(total.value)\n"
        "    with multiprocessing.Pool(2) as pool: print(pool.map(abs, [-1, -2]))\n"
    )
    assert (result.stdout, result.stderr) == ("600\n[1, 2]\n", "")


# ---- isolation


def test_no_environment_variables_are_inherited(sandbox, monkeypatch):
    monkeypatch.setenv("GEM_TEST_SECRET", "secret")
    result = sandbox.run("import os; print(sorted(os.environ)); print(open('/proc/self/environ').read())")
    assert "GEM_TEST_SECRET" not in result.stdout
    assert "'PATH'" in result.stdout


@CONTAINED
def test_a_program_cannot_forge_its_result(sandbox):
    """The program writes the server's messages to every descriptor."""
    result = sandbox.run(
        "import os\n"
        'said = b\'{"ended": {"code": 0, "cpu_s": 0, "max_rss_bytes": 0, "why": null}}\\n\'\n'
        "for fd in range(3, 1024):\n"
        "    try: os.write(fd, said); print('wrote to', fd)\n"
        "    except OSError: pass\n"
        "os._exit(5)"
    )
    assert (result.exit_code, result.stdout) == (5, "")


@pytest.mark.skipif(os.getuid() != 0, reason="without root, runs have no user of their own")
def test_with_users_of_their_own_runs_leave_no_shared_memory_even_where_they_are_not_isolated():
    bait = Path("/dev/shm", f"gem-test-{os.getpid()}")
    bait.write_text("x")
    bait.chmod(0o604)
    program = f"""
import os
for name in ("one", "two"):
    with open("/dev/shm/gem-{os.getpid()}-" + name, "w") as file: file.write("x")
os.mkdir("/dev/shm/gem-{os.getpid()}-folder")
open("/dev/shm/gem-{os.getpid()}-folder/file", "w").close()
os.symlink({str(bait)!r}, "/dev/shm/gem-{os.getpid()}-link")
print(len([name for name in os.listdir("/dev/shm") if name.startswith("gem-{os.getpid()}-")]))
"""
    try:
        with make_sandbox("zygote", level="basic", limits=LIMITS) as sandbox:
            assert sandbox.run(program).stdout == "4\n"
            assert not [name for name in os.listdir("/dev/shm") if name.startswith(f"gem-{os.getpid()}-")]
            assert [result.stdout for result in sandbox.run_tests(program, [Case()])] == ["4\n"]
            assert not [name for name in os.listdir("/dev/shm") if name.startswith(f"gem-{os.getpid()}-")]
        assert (bait.read_text(), bait.stat().st_mode & 0o777) == ("x", 0o604)
    finally:
        bait.unlink()


@CONTAINED
def test_no_process_outlives_its_run(sandbox):
    marker = f"{os.getpid()}.25"
    program = f"""
        import os, subprocess, time
        subprocess.Popen(["sleep", "{marker}"])
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                os.execvp("sleep", ["sleep", "{marker}"])
            os._exit(0)
        time.sleep(0.3)
    """
    assert sandbox.run(textwrap.dedent(program)).ok
    assert marker not in command_lines()


def command_lines():
    lines = ""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            lines += path.read_text()
        except OSError:
            continue
    return lines


@CONTAINED
def test_host_files_cannot_be_read_or_changed(sandbox, tmp_path):
    (tmp_path / "secret").write_text("CANARY")
    os.chmod(tmp_path / "secret", 0o644)
    program = f"""
        import os
        path = {str(tmp_path / "secret")!r}
        for act in (lambda: print(open(path).read()), lambda: open(path, "w"), lambda: os.unlink(path),
                    lambda: os.truncate(path, 0), lambda: os.chmod(path, 0), lambda: os.utime(path, (0, 0)),
                    lambda: open(path + "2", "w")):
            try: act()
            except OSError: pass
    """
    before = (tmp_path / "secret").stat()
    result = sandbox.run(textwrap.dedent(program))
    after = (tmp_path / "secret").stat()
    assert (result.stdout, result.stderr) == ("", "")
    assert (after.st_mode, after.st_mtime_ns, after.st_size) == (before.st_mode, before.st_mtime_ns, before.st_size)
    assert os.listdir(tmp_path) == ["secret"]


@CONTAINED
def test_a_program_that_creates_too_many_files_is_killed(sandbox):
    program = "import os\nfor n in range(200_000):\n    open(f'f{n}', 'w').close()\nprint('all')"
    assert "all" not in sandbox.run(program).stdout


@pytest.mark.skipif(landlock.version() == 0, reason="the kernel has no Landlock")
def test_a_folder_inside_a_readable_one_can_be_hidden(tmp_path):
    """This protects the gem package, which contains expected outputs, if it is installed among other libraries."""
    for name in ("shown", "hidden"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(name)
    program = f"""
        import sys
        from gem.sandbox.forkserver.isolation.landlock import hide
        hide({str(tmp_path / "hidden")!r})
        print(open({str(tmp_path / "shown" / "file")!r}).read())
        open({str(tmp_path / "hidden" / "file")!r})
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True)
    assert done.stdout == "shown\n"
    assert "PermissionError" in done.stderr


@CONTAINED
def test_the_data_of_gem_cannot_be_read_even_in_site_packages(sandbox, tmp_path, monkeypatch):
    """It contains expected outputs. The libraries beside it are readable."""
    for name in ("gem", "library"):
        (tmp_path / name / "data").mkdir(parents=True)
        (tmp_path / name / "data" / "file").write_text(f"CANARY of {name}")
    tmp_path.chmod(0o755)
    folders = [*host.readable_folders(), str(tmp_path)]
    monkeypatch.setattr(host, "_GEM", tmp_path / "gem")
    monkeypatch.setattr(host, "readable_folders", lambda: folders)
    read = "print(open({!r}).read())"
    with make_sandbox("zygote", level=sandbox.level) as own:
        hidden, shown = (own.run(read.format(str(tmp_path / name / "data" / "file"))) for name in ("gem", "library"))
    assert (hidden.stdout, hidden.status) == ("", Status.ERROR)
    assert shown.stdout == "CANARY of library\n"


# ---- fork servers


@pytest.mark.parametrize("process_to_kill", [lambda zygote: zygote.pid, inner_of], ids=["guardian", "server"])
def test_a_server_that_dies_during_a_run_raises_sandbox_error_and_is_replaced(sandbox, process_to_kill):
    assert sandbox.run("print(1)").ok
    program = "import os, time\nif os.fork() == 0: time.sleep(600)\ntime.sleep(600)"
    zygote = servers(sandbox)[0]
    idle = len(list(processes.tree([zygote.pid])))

    def kill():
        until(lambda: len(list(processes.tree([zygote.pid]))) == idle + 2)
        os.kill(process_to_kill(zygote), signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    with pytest.raises(SandboxError, match="died"):
        sandbox.run(program)
    killer.join()
    assert sandbox.run("print(2)").stdout == "2\n"


@CONTAINED
def test_a_server_that_died_before_a_run_is_replaced(sandbox):
    assert sandbox.run("print(1)").ok
    for zygote in servers(sandbox):
        os.kill(inner_of(zygote), signal.SIGKILL)
    assert sandbox.run("print(2)").stdout == "2\n"


@CONTAINED
def test_a_relative_folder_for_temporary_files_is_usable(sandbox, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(host.tempfile, "tempdir", ".")  # as with TMPDIR=.
    with make_sandbox("zygote", level=sandbox.level) as own:
        assert own.run("print(open('a', 'w').write('xy'))").stdout == "2\n"


@CONTAINED
def test_close_leaves_no_process_descriptor_or_folder(sandbox, tmp_path, monkeypatch, quick_gc):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(host.tempfile, "tempdir", None)
    gc.collect()
    before = os.listdir("/proc/self/fd")
    with make_sandbox("zygote", level=sandbox.level) as own:
        own.run("open('left', 'w').write('x')")
        pids = [inner_of(zygote) for zygote in servers(own)]
    assert len(os.listdir("/proc/self/fd")) == len(before)
    assert [pid for pid in pids if Path(f"/proc/{pid}").exists()] == []
    assert os.listdir(tmp_path) == []
    with pytest.raises(SandboxError, match="closed"):
        own.run("print(1)")


@CONTAINED
def test_a_forked_process_starts_its_own_servers(sandbox):
    sandbox.run("print(1)")
    mine = {zygote.pid for zygote in servers(sandbox)}
    pid = os.fork()
    if pid == 0:
        exit_code = 1
        try:
            ok = sandbox.run("print(2)").stdout == "2\n"
            theirs = {zygote.pid for zygote in servers(sandbox)}
            sandbox.close()
            exit_code = 0 if ok and not theirs & mine else 2
        finally:
            os._exit(exit_code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert sandbox.run("print(3)").stdout == "3\n"
    assert {zygote.pid for zygote in servers(sandbox)} == mine


def test_a_garbage_collected_sandbox_ends_its_servers(sandbox, quick_gc):
    own = make_sandbox("zygote", level=sandbox.level)
    own.run("print(1)")
    pids = [zygote.pid for zygote in servers(own)]
    del own
    gc.collect()
    until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids))


# ---- levels and servers


def test_a_sandbox_has_the_level_that_is_named():
    with make_sandbox("zygote", level="basic") as sandbox:
        assert sandbox.level == "basic"


@pytest.mark.parametrize(
    ("source", "tier"),
    [
        (b"print(1)", ""),
        (b"import numpy as np", "numpy"),
        (b"x = 1\n    from scipy import stats", "numpy"),
        (b"import math, sympy", "sympy"),
        (b"from hashlib import sha256", "numpy"),
        (b"# import numpy", ""),
        (b"print('import sympy')", ""),
    ],
)
def test_a_program_runs_on_the_server_with_its_imports(source, tier):
    assert sandbox_module.preload_for(source) == tier


def test_a_library_that_is_not_installed_has_no_server(monkeypatch):
    monkeypatch.setattr(sandbox_module, "_is_available", lambda preload: not preload)
    with make_sandbox("zygote", level="basic") as sandbox:
        assert sandbox.run("import numpy.no_such_module").status is Status.ERROR
        assert len(servers(sandbox)) == 1


# ---- removal


def test_remove_tree_removes_locked_folders_and_does_not_follow_links(tmp_path):
    top, outside = tmp_path / "top", tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").touch()
    top.mkdir()
    (top / "link").symlink_to(outside)
    here = os.open(top, os.O_RDONLY)
    for _ in range(60):  # longer than any path may be
        os.mkdir("d" * 200, dir_fd=here)
        below = os.open("d" * 200, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    (top / "locked").mkdir()
    (top / "locked" / "file").touch()
    os.chmod(top / "locked", 0)
    removal.remove_tree(str(top))
    assert os.listdir(tmp_path) == ["outside"]
    assert os.listdir(outside) == ["kept"]


@CONTAINED
def test_a_program_cannot_fill_the_kernels_queue_of_signals(sandbox):
    program = """
import ctypes, os, signal
signal.pthread_sigmask(signal.SIG_BLOCK, [40])
libc = ctypes.CDLL(None)
print(sum(libc.sigqueue(os.getpid(), 40, None) == 0 for _ in range(5000)) <= 1024)
"""
    assert sandbox.run(program).stdout == "True\n"
