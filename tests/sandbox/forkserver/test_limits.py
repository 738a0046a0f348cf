"""Limits hold for a whole run: programs that try each way past them, at levels ns and lsm, with and without cgroups.

Where a limit is not held without a cgroup, the report must say so.
"""

import contextlib
import math
import os
import random
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from waiting import until

from gem.sandbox import Case, Limits, Status, make_sandbox
from gem.sandbox.forkserver.isolation import lockdown
from gem.sandbox.forkserver.limits import cgroup, limits, monitor, processes
from gem.sandbox.forkserver.protocol import RunRequest

MIB = 1 << 20
LIMITS = Limits(wall_s=40, memory_bytes=256 * MIB, disk_bytes=8 * MIB, processes=16)
HAS_GROUPS = bool(cgroup.available())
MEMORY = {
    "children": """
for _ in range(5):
    if os.fork() == 0:
        x = b"x" * (100 << 20)
        time.sleep(60)
""",
    "main_thread_ended": """
def hold():
    x = b"x" * (100 << 20)
    time.sleep(60)

for _ in range(5):
    if os.fork() == 0:
        threading.Thread(target=hold).start()
        time.sleep(0.2)
        ctypes.CDLL(None).syscall({"x86_64": 60, "aarch64": 93}[os.uname().machine], 0)
""",
    "unmapped_shared": """
for _ in range(4):
    if os.fork() == 0:
        held = mmap.mmap(-1, 150 << 20)
        for start in range(0, len(held), 1 << 20):
            held[start : start + (1 << 20)] = b"x" * (1 << 20)
            held.madvise(mmap.MADV_DONTNEED)
        time.sleep(60)
""",
    "socket_buffers": """
for _ in range(8):
    if os.fork() == 0:
        held = [socket.socketpair() for _ in range(100)]
        for one in (one for pair in held for one in pair):
            one.setblocking(False)
            one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 22)
            try:
                while True:
                    one.send(b"x" * 65536)
            except BlockingIOError:
                pass
        time.sleep(60)
""",
}
DISK = {
    "long_paths": """
os.mkdir("a")
os.chdir("a")
for _ in range(30):
    name = "d" * 200
    os.mkdir(name)
    os.chdir(name)
for number in range(8):
    write(open(f"{number}", "wb"))
""",
    "unreadable_folder": """
os.mkdir("a", 0o300)
for number in range(8):
    write(open(f"a/{number}", "wb"))
""",
    "deleted": """
held = []
for number in range(8):
    held.append(open("x", "wb"))
    os.unlink("x")
    write(held[-1])
""",
    "deleted_by_a_process_that_cannot_be_traced": """
ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)
held = []
for number in range(8):
    held.append(open("x", "wb"))
    os.unlink("x")
    write(held[-1])
""",
    "in_flight": """
held = []
for number in range(8):
    ours, theirs = socket.socketpair()
    with open("x", "wb") as file:
        os.unlink("x")
        write(file)
        socket.send_fds(ours, [b"x"], [file.fileno()])
    held += ours, theirs
""",
    "mapped": """
held = []
for number in range(8):
    with open("x", "w+b") as file:
        os.unlink("x")
        write(file)
        libc = ctypes.CDLL(None)
        libc.mmap.restype = ctypes.c_void_p
        assert libc.mmap(None, 4096, 1, 1, file.fileno(), 0)
""",
}
IMPORTS = "import ctypes, mmap, os, signal, socket, sys, threading, time\n"
WRITE = "def write(file):\n    file.write(b'x' * (4 << 20))\n    file.flush()\n"
REST = "\ntime.sleep(60)\n"


@pytest.fixture(scope="module", params=["ns-cgroup", "ns", "lsm-cgroup", "lsm"])
def place(request):
    """A sandbox, its level, and whether its runs have cgroups."""
    level, _, groups = request.param.partition("-")
    if groups and not HAS_GROUPS:
        pytest.skip("this process cannot make cgroups")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(cgroup.SETTING, "1" if groups else "0")
        with make_sandbox("zygote", level=level, limits=LIMITS) as sandbox:
            yield sandbox, level, bool(groups)


def peak_bytes(sandbox):
    """The most memory that a run of the sandbox has used, from the kernel. Groups keep it until they are removed."""
    found = cgroup.find(Path("/proc/self/cgroup").read_text(), Path("/proc/self/mountinfo").read_text())
    folder = Path(found.parents["memory"])
    name = "memory.max_usage_in_bytes" if found.table is cgroup.V1 else "memory.peak"
    ours = set()
    for server in sandbox._pool.zygotes():
        for fd in os.listdir(f"/proc/{server.pid}/fd"):
            with contextlib.suppress(FileNotFoundError):
                ours.add(os.path.basename(os.readlink(f"/proc/{server.pid}/fd/{fd}")))
    return max(int((path / name).read_text()) for path in folder.glob("gem-*.*") if path.name.partition(".")[0] in ours)


@pytest.mark.parametrize("way", MEMORY)
def test_memory_is_that_of_the_whole_run(place, way):
    sandbox, _level, groups = place
    if not groups and way in ("unmapped_shared", "socket_buffers"):
        pytest.skip("needs a cgroup; see the test of the report")
    result = sandbox.run(IMPORTS + MEMORY[way] + REST)
    assert result.status is Status.MEMORY, result
    if groups:
        assert peak_bytes(sandbox) <= LIMITS.memory_bytes + LIMITS.disk_bytes + MIB


@pytest.mark.parametrize("way", DISK)
def test_disk_is_that_of_the_whole_run(place, way):
    sandbox, level, _ = place
    result = sandbox.run(IMPORTS + WRITE + DISK[way] + REST)
    if level == "ns":  # the tmpfs is full
        assert (result.status, "No space left" in result.stderr) == (Status.ERROR, True), result
    else:
        assert result.status is Status.KILLED, result


def test_a_chain_of_folders_with_a_very_long_path_counts_as_over_the_limit(tmp_path):
    limit = 1 << 30
    (tmp_path / "folder" / "below").mkdir(parents=True)
    assert monitor.files(str(tmp_path), limit) <= limit
    tmp_path.joinpath(*"d" * 600).mkdir(parents=True)
    assert monitor.files(str(tmp_path), limit) > limit


def test_deleted_files_that_processes_share_count_once(place):
    program = """
file = open("x", "wb")
os.unlink("x")
write(file)
for _ in range(6):
    if os.fork() == 0:
        time.sleep(0.4)
        os._exit(0)
for _ in range(6):
    os.wait()
"""
    assert place[0].run(IMPORTS + WRITE + program).ok


def test_a_descriptor_can_be_passed_between_processes(place):
    program = """
ours, theirs = socket.socketpair()
if os.fork() == 0:
    for _ in range(200):
        _, fds, _, _ = socket.recv_fds(theirs, 9, 1)
        os.close(fds[0])
    os._exit(0)
for _ in range(200):
    socket.send_fds(ours, [b"x"], [0])
    time.sleep(0.002)
print(os.wait()[1])
"""
    assert place[0].run(IMPORTS + program).stdout == "0\n"


@pytest.mark.slow
def test_cpu_time_is_that_of_the_whole_run(place):
    """Of children that nobody waits for: at first they become zombies, later they vanish."""
    program = """
for number in range(200):
    if number == 2:
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    if os.fork() == 0:
        while time.process_time() < 0.2: pass
        os._exit(0)
    time.sleep(0.2)
"""
    result = place[0].run(IMPORTS + program, limits=Limits(wall_s=40, cpu_s=0.7))
    assert result.status is Status.TIMEOUT and result.wall_s < 40
    assert result.cpu_s >= 0.7


def test_the_number_of_processes_is_that_of_the_whole_run(place):
    program = """
started = 0
try:
    while started < 100:
        if os.fork() == 0:
            time.sleep(60)
        started += 1
except BlockingIOError:
    pass
print(started)
"""
    result = place[0].run(IMPORTS + program)
    # Without a cgroup and root, runs share RLIMIT_NPROC, and the monitor kills a run with too many processes.
    assert result.status is Status.KILLED or int(result.stdout) < LIMITS.processes


def test_each_test_of_a_program_has_the_limits_of_a_run(place):
    sandbox = place[0]
    ways = [MEMORY["children"] + REST, "print(1)", "signal.alarm(0)\nwhile True: pass", "print(2)"]
    program = IMPORTS + WRITE + "exec(sys.stdin.read())"
    limits = Limits(wall_s=30, cpu_s=0.5, memory_bytes=256 * MIB, disk_bytes=8 * MIB, processes=16)
    results = sandbox.run_tests(program, [Case(stdin=way) for way in ways], limits=limits)
    expected = [Status.MEMORY, Status.OK, Status.TIMEOUT, Status.OK]
    assert [result.status for result in results] == expected, results
    assert results[2].cpu_s >= 0.5 and results[2].wall_s < 30


@pytest.mark.exhaustive
def test_a_run_with_many_processes_does_not_slow_down_others(place):
    """At equal weights, a run gets at least a third of a processor beside two others; by process it would be less."""
    sandbox, _level, groups = place
    if not groups:
        pytest.skip("needs a cgroup; test_a_run_with_many_busy_processes_gets_a_low_priority is about the others")
    spin = "import os, time\nfor _ in range(5): os.fork()\nwhile True: pass"
    count = "import time\nwhile time.process_time() < 0.5: pass"
    limits = Limits(wall_s=30, cpu_s=100, processes=64)
    with ThreadPoolExecutor() as pool:
        hogs = [pool.submit(sandbox.run, spin, limits=Limits(wall_s=8, cpu_s=100, processes=64)) for _ in range(2)]
        time.sleep(1)
        start = time.monotonic()
        assert sandbox.run(count, limits=limits).ok
        took = time.monotonic() - start
        assert [hog.result().status for hog in hogs] == [Status.TIMEOUT] * 2
    assert took < 6


def test_a_run_with_many_busy_processes_gets_a_low_priority():
    before, pids = os.getpriority(os.PRIO_PROCESS, 0), []
    try:
        for _ in range(4):
            pids.append(os.fork())
            if pids[-1] == 0:
                while True:
                    pass

        def lowered():
            processes.lower_priority([found for found in map(processes.process, pids) if found])
            return os.getpriority(os.PRIO_PROCESS, pids[0]) >= 2

        until(lowered)
        assert os.getpriority(os.PRIO_PROCESS, 0) == before
    finally:
        for pid in pids:
            os.kill(pid, 9)
            os.waitpid(pid, 0)


@pytest.fixture
def waking():
    """A process, in a cgroup if one can be made, and another one that wake each other all the time."""
    first, second = os.pipe(), os.pipe()
    pids = []
    groups = cgroup.open_groups()
    group = groups.take(memory_bytes=256 * MIB, tasks=10) if groups else None
    for source, sink in (first[0], second[1]), (second[0], first[1]):
        pids.append(os.fork())
        if pids[-1] == 0:
            try:
                while True:
                    os.write(sink, os.read(source, 1))
            finally:
                os._exit(1)
        if group:
            group.add(pids[-1])
    os.write(first[1], b"x")
    yield pids, group
    for pid in pids:
        os.kill(pid, 9)
        os.waitpid(pid, 0)
    for fd in first + second:
        os.close(fd)
    if groups:
        groups.remove()


@pytest.mark.parametrize("grouped", [True, False], ids=["cgroup", "nocgroup"])
def test_a_run_whose_processes_wake_each_other_all_the_time_loses_its_weight(waking, grouped, monkeypatch):
    pids, group = waking
    if (grouped and not group) or (not grouped and len(os.sched_getaffinity(0)) == 1):
        pytest.skip("needs a cgroup, or else two processors")
    request = RunRequest("program", memory_bytes=1 << 40, disk_bytes=MIB, processes=16, cpu_s=1000)
    watch = monitor.RunMonitor(request, pids[0], "", group if grouped else None, roots=pids)

    def slowed():
        assert watch.check(1) is None
        return group.light if grouped else all(len(os.sched_getaffinity(pid)) == 1 for pid in pids)

    monkeypatch.setattr(monitor, "MOST_SWITCHES_PER_S", math.inf)
    assert not slowed()
    monkeypatch.setattr(monitor, "MOST_SWITCHES_PER_S", 50)  # few, because the machine may be busy
    until(slowed)
    if grouped:
        watch.allow(cpu_s=10)  # the next cell of a session
        assert not group.light


def test_the_report_says_what_is_not_held_without_a_cgroup(monkeypatch):
    monkeypatch.setenv(cgroup.SETTING, "0")
    held = limits.enforced_by("lsm")
    assert "not enforced: shared memory" in held["memory"]
    assert "not enforced: children" in held["cpu"]
    for level in ("ns", "lsm"):
        with make_sandbox("zygote", level=level) as sandbox:
            assert sandbox.report().guarantees["memory"] == limits.enforced_by(level)["memory"]
    monkeypatch.delenv(cgroup.SETTING)
    if HAS_GROUPS:
        assert limits.enforced_by("lsm")["memory"].startswith("cgroup")


class TestUserIds:
    def test_servers_have_different_ids(self):
        first, second = lockdown.reserve_users(), lockdown.reserve_users()
        if first is None or second is None:
            pytest.skip("this process has no ids besides its own")
        with first.lock, second.lock:
            assert not set(first.ids) & set(second.ids)

    def test_servers_that_do_not_see_each_other_rarely_have_the_same_ids(self, monkeypatch):
        monkeypatch.setattr(lockdown, "_RANDOM", random.Random(0))
        taken = []
        for _ in range(20):
            users = lockdown.reserve_users()
            if users is None:
                pytest.skip("this process has no ids besides its own")
            with users.lock:  # freed at once, as if the next server were in another container
                taken.append(users.take())
        assert len(set(taken)) > 10  # of 20, and there may be only 50 blocks of ids

    def test_an_id_is_used_by_one_run_at_a_time(self):
        with socket.socket(socket.AF_UNIX) as lock:
            users = lockdown.Users(range(5, 7), lock)
        assert {users.take(), users.take()} == {5, 6}
        with pytest.raises(OSError):
            users.take()
        users.give_back(5)
        assert users.take() == 5

    @pytest.mark.parametrize("level", ["ns", "lsm"])
    def test_runs_have_different_ids(self, level):
        if os.getuid():
            pytest.skip("needs root")
        program = "import sys, time; print(1, flush=True); time.sleep(600)"
        with ThreadPoolExecutor() as pool, make_sandbox("zygote", level=level) as sandbox:  # closing ends the programs
            sandbox.run("pass")  # starts the server
            server = sandbox._pool.zygotes()[0].pid
            for _ in range(3):
                pool.submit(sandbox.run, program, limits=Limits(wall_s=600))

            def have_three():
                with contextlib.suppress(FileNotFoundError):
                    return len({os.stat(f"/proc/{p.pid}").st_uid for p in processes.tree([server])} - {0}) == 3

            until(have_three)


def test_descriptors_that_the_host_sends_to_a_test_runner_are_not_hidden_files(tmp_path):
    ours, theirs = socket.socketpair()
    with ours, theirs, open(tmp_path / "file", "w") as file:
        socket.send_fds(ours, [b"x"], [file.fileno()])
        for own_socket, in_flight in ((None, True), (os.fstat(theirs.fileno()).st_ino, False)):
            hidden = monitor.HiddenFiles(str(tmp_path), own_socket)
            hidden.add(processes.process(os.getpid()))
            assert hidden.in_flight is in_flight
