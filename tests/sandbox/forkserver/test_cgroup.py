"""Cgroups of runs: where they can be made, what they limit, and their removal.

The kernel's groups are used where this process can make some; version 2 is tested on a folder tree.
"""

import contextlib
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from waiting import until

from gem.errors import SandboxError
from gem.sandbox import make_sandbox
from gem.sandbox.forkserver.limits import cgroup

HYBRID = """\
31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
33 31 0:30 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
40 31 0:37 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,name=systemd
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
"""
needs_groups = pytest.mark.skipif(not cgroup.available(), reason="this process cannot make cgroups")


def names(server):
    """Names of the groups of a fork server. It holds their folders open; they are locked."""
    links = set()
    for fd in os.listdir(f"/proc/{server}/fd"):
        with contextlib.suppress(FileNotFoundError):
            links.add(os.path.basename(os.readlink(f"/proc/{server}/fd/{fd}")))
    return set(filter(cgroup._OUR_NAME.fullmatch, links))


def existing(names):
    """Folders of the groups with these names."""
    found = cgroup.find(Path("/proc/self/cgroup").read_text(), Path("/proc/self/mountinfo").read_text())
    folders = set(found.parents.values())
    return [f"{folder}/{name}" for folder in folders for name in os.listdir(folder) if name.partition(".")[0] in names]


@pytest.fixture
def group():
    groups = cgroup.open_groups()
    taken = groups.take(memory_bytes=256 << 20, tasks=10)
    yield taken
    taken.wait_until_empty()
    groups.remove()


@contextlib.contextmanager
def started(group, program):
    """A process in the group."""
    process = subprocess.Popen([sys.executable, "-c", f"input(); {program}"], stdin=subprocess.PIPE)
    group.add(process.pid)
    process.stdin.write(b"\n")
    process.stdin.flush()
    yield process
    process.kill()
    process.wait()
    process.stdin.close()


def test_version_1_is_found_below_the_groups_of_this_process():
    found = cgroup.find("4:memory:/a/b\n2:cpu,cpuacct:/c\n1:name=systemd:/\n0::/\n", HYBRID)
    assert found.table is cgroup.V1
    assert found.parents == {
        "memory": "/sys/fs/cgroup/memory/a/b",
        "cpu": "/sys/fs/cgroup/cpu,cpuacct/c",
        "cpuacct": "/sys/fs/cgroup/cpu,cpuacct/c",
    }


def test_a_container_sees_only_its_part_of_the_tree():
    mounts = "35 31 0:32 /docker/1 /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
    assert cgroup.find("4:memory:/docker/1/x\n", mounts).parents == {"memory": "/sys/fs/cgroup/memory/x"}
    assert cgroup.find("4:memory:/docker/2\n", mounts).parents == {}


@pytest.mark.parametrize("where", ["own", "beside"])
def test_version_2_is_found_in_the_own_group_or_beside_it(tmp_path, where):
    own = tmp_path / "user" / "scope"
    own.mkdir(parents=True)
    for folder in (own, own.parent, tmp_path):
        (folder / "cgroup.subtree_control").write_text("")
    expected = own if where == "own" else own.parent
    if where == "beside":
        (own / "cgroup.subtree_control").unlink()
        (own / "cgroup.subtree_control").mkdir()  # writing fails, as it does for a group that contains processes
        (own.parent / "cgroup.subtree_control").write_text("cpu memory pids")
    found = cgroup.find("0::/user/scope\n", f"41 31 0:38 / {tmp_path} rw - cgroup2 cgroup2 rw\n")
    assert found.table is cgroup.V2
    assert set(found.parents.values()) == {str(expected)}


def test_nothing_is_found_where_no_part_of_version_2_is_delegated(tmp_path):
    (tmp_path / "scope").mkdir()
    found = cgroup.find("0::/scope\n", f"41 31 0:38 / {tmp_path} rw - cgroup2 cgroup2 rw\n")
    assert found.parents == {}
    assert not cgroup.Groups(found).holds


class TestVersion2OnAFolderTree:
    @pytest.fixture
    def group(self, tmp_path, monkeypatch):
        """A group in a folder that looks like a delegated group of version 2."""
        make = os.mkdir

        def mkdir(name, mode=0o777, *, dir_fd=None):
            make(name, mode, dir_fd=dir_fd)
            files = {name: "" for _, name in cgroup.V2.values()}
            files |= {"cgroup.procs": "", "memory.events": "oom 0\noom_kill 0\n", "memory.current": "0\n"}
            files |= {"cpu.stat": "usage_usec 1500000\nuser_usec 1\n"}
            for file, content in files.items():
                (tmp_path / name / file).write_text(content)

        monkeypatch.setattr(os, "mkdir", mkdir)
        groups = cgroup.Groups(cgroup.Found(cgroup.V2, dict.fromkeys(["", "memory", "pids", "cpu"], str(tmp_path))))
        assert groups.holds == {"memory", "tasks", "weight", "cpu", "freeze"}
        group = groups.take(memory_bytes=1 << 20, tasks=7)
        group.path = tmp_path / group.name
        return group

    def test_limits_are_written(self, group):
        names = ("memory.max", "memory.swap.max", "pids.max")
        assert [(group.path / name).read_text() for name in names] == ["1048576", "0", "7"]

    def test_usage_is_read(self, group):
        assert group.cpu_s() == 1.5
        assert not group.killed_for_memory()
        (group.path / "memory.events").write_text("oom 2\noom_kill 1\n")
        assert group.killed_for_memory()

    def test_the_kernel_kills_and_freezes(self, group):
        group.freeze()
        assert (group.path / "cgroup.freeze").read_text() == "1"
        group.kill()
        assert (group.path / "cgroup.kill").read_text() == "1"
        assert (group.path / "cgroup.freeze").read_text() == "0"


@needs_groups
def test_a_group_counts_the_cpu_of_children_that_nobody_waits_for(group):
    program = """
import os, signal, time
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
for _ in range(5):
    if os.fork() == 0:
        while time.process_time() < 0.1: pass
        os._exit(0)
"""
    with started(group, f"exec({program!r})") as process:
        process.wait()
        until(lambda: not group.pids())
    assert group.cpu_s() > 0.4


@needs_groups
def test_a_group_reports_that_the_kernel_killed_a_process_for_its_memory(group):
    with started(group, "x = b'x' * (512 << 20)") as process:
        assert process.wait() == -signal.SIGKILL
    assert group.killed_for_memory()


@needs_groups
def test_frozen_processes_do_not_run_and_can_be_killed(group):
    with started(group, "\nwhile True: pass") as process:
        until(lambda: group.cpu_s() > 0.1)
        group.freeze()

        def idle():
            used = group.cpu_s()
            time.sleep(0.1)
            return group.cpu_s() == used

        until(idle)
        assert group.pids() == [process.pid]
        assert group.wait_until_empty()
        assert process.wait() == -signal.SIGKILL


@needs_groups
def test_an_emptied_group_is_reused_and_counts_from_zero():
    groups = cgroup.open_groups()
    try:
        group = groups.take(memory_bytes=256 << 20, tasks=10)
        with started(group, "sum(range(10**6)); x = b'x' * (512 << 20)") as process:
            process.wait()
        assert group.wait_until_empty()
        groups.give_back(group)
        again = groups.take(memory_bytes=128 << 20, tasks=10)
        assert again.cpu_s() < 0.01
        assert not again.killed_for_memory()
    finally:
        groups.remove()


@needs_groups
def test_a_process_in_the_group_reads_its_usage_and_cannot_reset_it(group):
    fds = group.open_usage(), group.open_events()
    try:
        with started(group, "sum(range(10**6)); x = b'x' * (512 << 20)") as process:
            process.wait()
        assert cgroup.read_usage(fds[0]) > 0
        assert cgroup.read_kills(fds[1]) == 1
        for fd in fds:
            with pytest.raises(OSError):
                os.write(fd, b"0")
    finally:
        for fd in fds:
            os.close(fd)


@needs_groups
def test_groups_are_removed_when_the_sandbox_is_closed():
    with make_sandbox("zygote", level="ns") as sandbox:
        assert sandbox.run("print(1)").ok
        made = set.union(*(names(server.pid) for server in sandbox._pool.zygotes()))
        assert existing(made)
    until(lambda: not existing(made))


@needs_groups
@pytest.mark.slow
def test_groups_are_removed_after_the_host_was_killed():
    program = """
import threading, time
from gem.sandbox import make_sandbox
from gem.sandbox.forkserver.limits import processes
sandbox = make_sandbox("zygote", level="ns")
sandbox.run("pass")
servers = [server.pid for server in sandbox._pool.zygotes()]
idle = len(list(processes.tree(servers)))
threading.Thread(target=sandbox.run, args=("import os, time; os.fork(); time.sleep(60)",), daemon=True).start()
while len(list(processes.tree(servers))) < idle + 2: time.sleep(0.01)
print(*servers, flush=True)
time.sleep(60)
"""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as host:
        try:
            made = set.union(*map(names, host.stdout.readline().split()))
            assert existing(made)
        finally:
            host.kill()
    until(lambda: not existing(made))


@needs_groups
def test_groups_of_a_server_that_was_killed_are_removed_by_the_next():
    program = """
from gem.sandbox.forkserver.limits import cgroup
groups = cgroup.open_groups()
groups.take(memory_bytes=1 << 20, tasks=1)
print(groups.name)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    cgroup.open_groups().remove()
    assert not existing({done.stdout.strip()})


@needs_groups
@pytest.mark.slow
def test_frozen_processes_of_a_server_that_was_killed_are_killed_by_the_next():
    program = """
import subprocess
from gem.sandbox.forkserver.limits import cgroup
groups = cgroup.open_groups()
group = groups.take(memory_bytes=64 << 20, tasks=9)
process = subprocess.Popen(["sleep", "1000"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
group.add(process.pid)
group.freeze()
process.kill()  # has no effect with version 1
print(groups.name, process.pid)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    name, pid = done.stdout.split()
    until(lambda: cgroup.open_groups().remove() or not existing({name}))
    until(lambda: not Path(f"/proc/{pid}").exists())


@needs_groups
def test_cgroups_can_be_turned_off(monkeypatch):
    monkeypatch.setenv(cgroup.SETTING, "0")
    assert cgroup.available() == frozenset()
    with make_sandbox("zygote", level="lsm") as sandbox:
        assert sandbox.run("print(1)").ok
        assert not any(names(server.pid) for server in sandbox._pool.zygotes())


@needs_groups
def test_a_shortage_of_descriptors_is_not_taken_for_a_machine_without_cgroups():
    used, holds = len(os.listdir("/proc/self/fd")), cgroup.available()
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    for free in range(12):
        resource.setrlimit(resource.RLIMIT_NOFILE, (used + free, before[1]))
        try:
            found = cgroup.available()
        except SandboxError:
            continue
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, before)
        assert found == holds
    assert len(os.listdir("/proc/self/fd")) == used
