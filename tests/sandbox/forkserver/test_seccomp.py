"""The system call filter: what it refuses, what it allows, and ordinary programs that it must not break."""

import errno
import fcntl
import json
import os
import re
import struct
import sys
from pathlib import Path

import pytest

from gem.errors import SandboxError
from gem.sandbox import Limits, make_sandbox
from gem.sandbox.forkserver import syscalls
from gem.sandbox.forkserver.isolation import seccomp

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux") or not syscalls.SUPPORTED,
    reason="filters exist for Linux on two architectures",
)
LIMITS = Limits(wall_s=60)
MACHINES = ("x86_64", "aarch64")
KILLED, ALLOWED, REFUSED, UNKNOWN, PRETENDED = "kill", "allow", errno.EPERM, errno.ENOSYS, 0
LIBRARY = json.__file__


@pytest.fixture(scope="module", params=["ns", "lsm"])
def sandbox(request):
    try:
        with make_sandbox("zygote", level=request.param, limits=LIMITS) as made:
            yield made
    except SandboxError as e:
        pytest.skip(f"level {request.param} is not available here: {e}")


# ---- the rules, evaluated here for both architectures


def decision(assembled, machine, number, *arguments):
    """Evaluate a filter: ALLOWED, KILLED or the number of the error."""
    known = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
    data = struct.pack("=IIQ6Q", number, known[machine], 0, *(a % (1 << 64) for a in (*arguments, *[0] * 6)[:6]))
    code, at, value = [struct.unpack_from("HBBI", assembled, 8 * n) for n in range(len(assembled) // 8)], 0, 0
    while True:
        kind, yes, no, k = code[at]
        at += 1
        if kind == 0x06:
            return {0x80000000: KILLED, 0x7FFF0000: ALLOWED}.get(k, k & 0xFFFF)
        if kind == 0x20:
            value = struct.unpack_from("I", data, k)[0]
        elif kind == 0x54:
            value &= k
        else:
            at += {0x05: k, 0x15: yes if value == k else no, 0x35: yes if value >= k else no}[kind]


class Rules:
    """The decisions of a filter by name of the system call."""

    def __init__(self, machine, pid=None, **options):
        made = seccomp.Filter(machine=machine, **options)
        self.code = made.assembled if pid is None else made.assembled_for(pid)
        self.machine, self.numbers = machine, syscalls.numbers(machine)

    def __call__(self, call, *arguments):
        number = self.numbers[call] if isinstance(call, str) else call
        return decision(self.code, self.machine, number, *arguments)


@pytest.mark.parametrize("machine", MACHINES)
def test_every_system_call_is_decided_by_name(machine):
    rules = Rules(machine, own_pids=True, fake_groups=False)
    expected = dict.fromkeys([*seccomp.ALLOWED, *seccomp.FAKED_ATTRIBUTES], ALLOWED)
    expected |= dict.fromkeys([*seccomp.REFUSED, *seccomp.NETWORK, "socket"], REFUSED)
    expected |= dict.fromkeys(seccomp.FAKED, PRETENDED)
    checked = set(seccomp._checked_arguments())
    wrong = {
        name: rules(name)
        for name in rules.numbers
        if name not in checked and rules(name) != expected.get(name, UNKNOWN)
    }
    assert wrong == {}
    unused = [n for n in range(1024) if n not in rules.numbers.values()]
    assert {rules(number) for number in [*unused, 1 << 20, 0x3FFFFFFF]} == {UNKNOWN}


@pytest.mark.parametrize("machine", MACHINES)
def test_terminals_of_machines_allow_settings_but_neither_typing_nor_drivers(machine):
    rules, ordinary = Rules(machine, terminals=True), Rules(machine)
    settings, refused = (0x5402, 0x540E, 0x5410, 0x5414, 0x80045430, 0x40045431), (0x5412, 0x541C, 0x541D, 0x5423)
    assert {rules("ioctl", 0, code) for code in (0x5401, *settings)} == {ALLOWED}
    assert {rules("ioctl", 0, code) for code in refused} | {ordinary("ioctl", 0, code) for code in settings} == {
        REFUSED
    }


def test_system_calls_of_other_architectures_are_not_executed():
    x86 = Rules("x86_64")
    assert x86(0x40000000 | x86.numbers["getpid"]) == UNKNOWN  # the x32 variant
    assert decision(x86.code, "aarch64", x86.numbers["getpid"]) == KILLED


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(
    ("call", "allowed", "refused"),
    [
        ("clone", [(17,), (0x3D0F00,), (0x4100 | 17,)], [(0x10000000 | 17,), (0x20000,), (0x8000 | 17,)]),
        (
            "fcntl",
            [(3, c) for c in (0, 1, 2, 3, 4, 5, 6, 7, 1030)],
            [(3, c) for c in (8, 10, 15, 37, 38, 1024, 1026, 1031)],
        ),
        ("ioctl", [(0, 0x5401), (0, 0x5413)], [(0, c) for c in (0x5412, 0x541C, 0x40086602, 0x8901, 0x8902)]),
        ("ioprio_set", [(1, 0, 0)], [(1, 7, 0), (2, 0, 0), (3, 0, 0)]),
        ("madvise", [(0, 0, 4), (0, 0, 14)], [(0, 0, 12), (0, 0, 20), (0, 0, 21), (0, 0, 100)]),
        ("personality", [(0,), (0xFFFFFFFF,)], [(0x40000,), (8,)]),
        ("prctl", [(15,), (38,)], [(35,), (47,), (0x59616D61,)]),
        ("prlimit64", [(0, 7)], [(1, 7), (4321, 7)]),
        ("sched_setaffinity", [(0,)], [(1,)]),
        ("sched_setattr", [(0,)], [(1,)]),
        ("sched_setparam", [(0,)], [(1,)]),
        ("sched_setscheduler", [(0,)], [(1,)]),
        ("setpriority", [(0, 0, 5)], [(0, 1, 5), (1, 0, 5), (2, 0, 19)]),
        ("socketpair", [(1, 1), (1, 5), (1, 0x80801)], [(1, 2), (1, 3), (1, 0x80802), (2, 1), (38, 5)]),
    ],
)
def test_arguments_are_checked(machine, call, allowed, refused):
    rules = Rules(machine)
    assert {arguments: rules(call, *arguments) for arguments in allowed} == dict.fromkeys(allowed, ALLOWED)
    assert {arguments: rules(call, *arguments) for arguments in refused} == dict.fromkeys(refused, REFUSED)


@pytest.mark.parametrize("machine", MACHINES)
def test_only_internet_sockets_are_allowed_with_a_network(machine):
    rules = Rules(machine, network=True)
    assert [rules("socket", domain, 1) for domain in (2, 10)] == [ALLOWED] * 2
    assert rules("connect") == ALLOWED
    unix, netlink, packet, alg, vsock = 1, 16, 17, 38, 40
    assert {rules("socket", domain, 2) for domain in (unix, netlink, packet, alg, vsock)} == {REFUSED}
    raw = 3
    assert rules("socket", 2, raw) == REFUSED


@pytest.mark.parametrize("machine", MACHINES)
def test_no_signal_goes_to_all_processes_of_the_user(machine):
    """Before Landlock 6, only the user id and this filter keep signals within the run."""
    minus_one = 0xFFFFFFFF
    own_user, guarded = Rules(machine), Rules(machine, pid=77, guard_signals=True)
    assert own_user("kill", minus_one, 9) == guarded("kill", minus_one, 9) == REFUSED
    assert own_user("kill", 78, 9) == ALLOWED  # such as a child
    assert guarded("kill", 78, 9) == guarded("kill", 1, 9) == guarded("tgkill", 78, 78, 9) == REFUSED
    assert guarded("pidfd_send_signal") == REFUSED
    for pid in (77, -77):
        assert guarded("kill", pid % (1 << 32), 9) == ALLOWED


@pytest.mark.parametrize("machine", MACHINES)
def test_without_process_groups_of_its_own_a_program_does_not_signal_its_group(machine):
    assert Rules(machine)("kill", 0, 15) == Rules(machine, pid=77, guard_signals=True)("kill", 0, 15) == REFUSED
    assert Rules(machine, own_pids=True, fake_groups=False)("kill", 0, 15) == ALLOWED


def test_process_1_can_kill_itself():
    rules = Rules("x86_64", own_pids=True)
    assert (rules("kill", 1, 9), rules("kill", 1, 15), rules("kill", 2, 9)) == (KILLED, ALLOWED, ALLOWED)


@pytest.mark.parametrize("machine", MACHINES)
def test_an_old_landlock_is_completed(machine):
    rules = Rules(machine, guard_truncation=True, fake_attributes=True)
    truncate, write = os.O_TRUNC, os.O_WRONLY
    assert rules("openat", 0, 0, truncate) == rules("truncate") == REFUSED
    assert rules("openat", 0, 0, truncate | write) == rules("openat", 0, 0, 0) == ALLOWED
    assert rules("openat2") == UNKNOWN
    assert {rules(name) for name in seccomp.FAKED_ATTRIBUTES if name in rules.numbers} == {PRETENDED}


@pytest.mark.parametrize("machine", MACHINES)
def test_a_program_with_a_user_of_its_own_changes_times_and_attributes_only_by_descriptor(machine):
    rules = Rules(machine, fake_by_path=True)
    assert {rules(name) for name in seccomp.FAKED_BY_PATH if name in rules.numbers} == {PRETENDED}
    assert {rules(name) for name in ("fsetxattr", "fremovexattr", "fchmod", "fchmodat", "fchown")} == {ALLOWED}
    assert rules("utimensat", 3, 0) == ALLOWED
    # A path may be anywhere in memory, also where the lower or the upper half of its address is zero.
    assert {rules("utimensat", 3, path) for path in (1, 1 << 32, 0x7FFF00000000, 0x12345678)} == {PRETENDED}
    both = Rules(machine, fake_by_path=True, fake_attributes=True)
    assert both("utimensat", 3, 0) == both("fsetxattr") == both("fchmod") == PRETENDED


def test_the_numbers_are_those_of_the_kernel():
    header = Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h")
    if not header.exists():
        pytest.skip("the kernel's headers are not installed")
    theirs = {name: int(n) for name, n in re.findall(r"#define __NR_(\w+) (\d+)", header.read_text())}
    ours = syscalls.numbers("x86_64")
    assert {name: number for name, number in theirs.items() if ours.get(name, number) != number} == {}
    assert {name for name in theirs if name not in ours and theirs[name] < 470} == set()
    assert (ours["futex_waitv"], ours["mseal"], syscalls.numbers("aarch64")["openat"]) == (449, 462, 56)


# ---- the rules, tried by programs

CALL = """
import ctypes, json, os
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
def call(name, *arguments):
    '''Make a system call by name or number and return the number of the error.'''
    ctypes.set_errno(0)
    longs = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    libc.syscall(ctypes.c_long(NUMBERS.get(name, name)), *longs, *[ctypes.c_long(0)] * (6 - len(longs)))
    return ctypes.get_errno()
"""


def found_by(sandbox, program):
    result = sandbox.run(f"NUMBERS = {syscalls.NUMBERS}\n{CALL}\n{program}")
    assert result.stderr == ""
    return json.loads(result.stdout)


def test_refused_and_unknown_system_calls_fail(sandbox):
    refused = [name for name in [*seccomp.REFUSED, "socket", *seccomp.NETWORK] if name in syscalls.NUMBERS]
    unknown = ["clone3", "memfd_create", "memfd_secret", "seccomp", "statmount", "listmount", 600, 1 << 20]
    expected = dict.fromkeys(refused, errno.EPERM) | {str(name): errno.ENOSYS for name in unknown}
    assert found_by(sandbox, f"print(json.dumps({{n: call(n) for n in {refused + unknown}}}))") == expected


def test_a_program_can_change_only_itself(sandbox):
    program = """
import fcntl
fd, (reader, writer) = os.open(json.__file__, os.O_RDONLY), os.pipe()
other, size = os.getppid() or 2, ctypes.create_string_buffer(64)
page = ctypes.addressof(ctypes.create_string_buffer(1 << 16)) + 4095 & ~4095
allowed = {
    "priority": call("setpriority", 0, 0, 19),
    "io priority": call("ioprio_set", 1, 0, 2 << 13 | 7),
    "limits": call("prlimit64", 0, 7, None, size),
    "flags": call("fcntl", fd, 3),
    "bytes": call("ioctl", reader, 0x541B, size),
    "name": call("prctl", 16, size),
    "advice": call("madvise", page, 4096, 0),
    "personality": call("personality", 0xFFFFFFFF),
    "pair": call("socketpair", 1, 1, 0, size),
    "flock": call("flock", fd, 6),
}
refused = {
    "user": call("setpriority", 2, 0, 19),
    "group": call("setpriority", 1, 0, 19),
    "other": call("setpriority", 0, other, 19),
    "io of the user": call("ioprio_set", 3, 0, 2 << 13 | 7),
    "limits of others": call("prlimit64", other, 7, None, size),
    "affinity of others": call("sched_setaffinity", other, 8, size),
    "lease": call("fcntl", fd, 1024, 0),
    "notify": call("fcntl", fd, 1026, 1),
    "signal": call("fcntl", reader, 8, os.getpid()),
    "number of the signal": call("fcntl", reader, 10, 18),
    "owner": call("fcntl", fd, 15, size),
    "pipe size": call("fcntl", reader, 1031, 1 << 20),
    "tracer": call("prctl", 0x59616D61, -1),
    "page out": call("madvise", page, 4096, 21),
    "merge": call("madvise", page, 4096, 12),
    "input": call("ioctl", 0, 0x5412, size),
    "file flags": call("ioctl", fd, 0x40086602, size),
    "owner of a socket": call("ioctl", reader, 0x8901, size),
    "layout": call("personality", 0x40000),
    "datagrams": call("socketpair", 1, 2, 0, size),
    "raw": call("socketpair", 1, 3, 0, size),
    "namespace": call("clone", 0x10000000 | 17),
    "sibling": call("clone", 0x8000 | 17),
}
print(json.dumps([allowed, refused]))
"""
    allowed, refused = found_by(sandbox, program)
    assert allowed == dict.fromkeys(allowed, 0)
    assert refused == dict.fromkeys(refused, errno.EPERM)


def test_all_processes_cannot_be_signaled_without_a_pid_namespace(sandbox):
    assert found_by(sandbox, "print(call('kill', -1, 0))") in ([errno.EPERM] if sandbox.level == "lsm" else [0, 3])


def test_a_program_cannot_keep_others_from_library_files(sandbox):
    """A session holds the locks and leases of its cells while the host and another program use the file."""
    cell = f"""
import ctypes, fcntl, os
fd, libc = os.open({LIBRARY!r}, os.O_RDONLY), ctypes.CDLL(None)
for take in (lambda: fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB), lambda: libc.flock(fd, fcntl.LOCK_EX),
             lambda: fcntl.flock(fd, fcntl.LOCK_SH), lambda: fcntl.fcntl(fd, 37, fcntl.F_RDLCK),
             lambda: fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK),
             lambda: fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_RDLCK)):
    try: print(take())
    except OSError as e: print(e.errno)
"""
    with sandbox.session() as session:
        assert session.run(cell).stdout.split() == ["1", "0", "1", "1", "1", "1"]  # EPERM, and once no effect
        with open(LIBRARY) as library:
            fcntl.flock(library, fcntl.LOCK_EX | fcntl.LOCK_NB)
        assert sandbox.run(cell).stdout.startswith("1\n0\n")
        os.close(os.open(LIBRARY, os.O_RDWR | os.O_NONBLOCK))  # fails with EWOULDBLOCK if there is a lease


CHANGES = """
import os, sys
for path in sys.argv[1:] or PATHS:
    fd = None
    for change in (
        lambda: os.utime(path, (5, 5)), lambda: os.utime(path),
        lambda: os.utime(path, ns=(7, 7), follow_symlinks=False),
        lambda: call("utimensat", -100, path.encode(), None, 0),
        lambda: os.utime(os.path.basename(path), dir_fd=os.open(os.path.dirname(path), os.O_PATH)),
        lambda: os.utime(os.open(path, os.O_PATH)), lambda: os.utime(f"/proc/self/fd/{os.open(path, os.O_PATH)}"),
        lambda: call("utimensat", os.open(path, os.O_PATH), b"", None, 0x1000),
        lambda: os.utime(os.open(path, os.O_RDWR)), lambda: os.setxattr(path, "user.mine", b"1"),
        lambda: os.setxattr(path, "user.mine", b"1", follow_symlinks=False), lambda: os.removexattr(path, "user.kept"),
        lambda: os.setxattr(os.open(path, os.O_RDONLY), "user.mine", b"1"),
        lambda: os.setxattr(os.open(path, os.O_PATH), "user.mine", b"1"),
        lambda: os.setxattr(f"/proc/self/fd/{os.open(path, os.O_PATH)}", "user.mine", b"1"),
        lambda: os.chmod(path, 0o700), lambda: os.chown(path, os.getuid(), -1),
        lambda: call("utime", path.encode(), None), lambda: call("utimes", path.encode(), None),
        lambda: call("futimesat", -100, path.encode(), None),
    ):
        try: change()
        except (OSError, ValueError, TypeError): pass
print("true")
"""


def state_of(path):
    status = os.lstat(path)
    attributes = {name: os.getxattr(path, name) for name in os.listxattr(path)}
    return status.st_mode, status.st_uid, status.st_mtime_ns, status.st_ctime_ns, attributes


def test_times_and_attributes_of_the_hosts_files_stay_although_anyone_may_write_to_them(sandbox, tmp_path):
    for folder in (tmp_path, *tmp_path.parents[:-2]):
        folder.chmod(0o755)
    (tmp_path / "file").write_text("x")
    (tmp_path / "folder").mkdir()
    paths = [tmp_path / "file", tmp_path / "folder"]
    for path, mode in zip(paths, (0o666, 0o777), strict=True):
        path.chmod(mode)
        os.setxattr(path, "user.kept", b"1")
        os.utime(path, (1000, 1000))
    before = [state_of(path) for path in paths]
    found_by(sandbox, f"PATHS = {[*map(str, paths)]}\n{CHANGES}")
    assert [state_of(path) for path in paths] == before


@pytest.mark.parametrize("sandbox", ["ns"], indirect=True)
def test_the_times_of_devices_stay_and_data_can_be_written_to_them(sandbox):
    before = state_of("/dev/null"), state_of("/dev/urandom")
    paths = ["/dev/null", "/dev/urandom", "/dev/full"]
    writes = "print(os.write(os.open('/dev/null', os.O_RDWR), b'abc'), file=sys.stderr)"
    result = sandbox.run(f"NUMBERS = {syscalls.NUMBERS}\n{CALL}\nPATHS = {paths}\n{CHANGES}\n{writes}")
    assert (result.stdout, result.stderr) == ("true\n", "3\n")
    assert (state_of("/dev/null"), state_of("/dev/urandom")) == before


# ---- ordinary programs

PROGRAMS = {
    "sqlite3": (
        """
import sqlite3
with sqlite3.connect("x.db") as db:
    print(db.execute("pragma journal_mode=wal").fetchone()[0])
    db.execute("create table t (x)")
    db.executemany("insert into t values (?)", [(n,) for n in range(10)])
print(sqlite3.connect("x.db").execute("select sum(x) from t").fetchone()[0])
""",
        "wal\n45\n",
    ),
    "locks": (
        """
import fcntl, os
with open("count", "w") as file: file.write("0")
children = []
for lock in (fcntl.lockf, fcntl.flock) * 2:
    if (pid := os.fork()) == 0:
        for _ in range(100):
            with open("count", "r+") as file:
                lock(file, fcntl.LOCK_EX)
                n = int(file.read())
                file.seek(0)
                file.write(str(n + 1))
        os._exit(0)
    children.append(pid)
for pid in children: os.waitpid(pid, 0)
print(open("count").read())
""",
        "400\n",
    ),
    "flock": (
        """
import fcntl, os, threading
first, second, reader = open("lock", "w"), open("lock", "w"), open("lock")
fcntl.flock(first, fcntl.LOCK_EX)
for fd, kind in ((second, fcntl.LOCK_EX), (reader, fcntl.LOCK_SH), (first, fcntl.LOCK_EX)):
    try: print(fcntl.flock(fd, kind | fcntl.LOCK_NB))
    except BlockingIOError as e: print(e.errno)
threading.Timer(0.05, fcntl.flock, (first, fcntl.LOCK_UN)).start()
fcntl.flock(reader, fcntl.LOCK_EX)
if (pid := os.fork()) == 0:
    reader.close()
    with open("lock") as other: fcntl.flock(other, fcntl.LOCK_SH)
    os._exit(7)
reader.close()
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
""",
        "11\n11\nNone\n7\n",
    ),
    "tempfile and shutil": (
        """
import os, shutil, tempfile
with tempfile.TemporaryDirectory() as folder:
    with tempfile.NamedTemporaryFile(dir=folder) as file:
        file.write(b"text"); file.flush()
        shutil.copy2(file.name, folder + "/copy")
    os.chmod(folder + "/copy", 0o600); os.utime(folder + "/copy"); os.link(folder + "/copy", folder + "/link")
    print(sorted(os.listdir(folder)), open(folder + "/link").read())
os.sync()
""",
        "['copy', 'link'] text\n",
    ),
    "times": (
        """
import os, pathlib, shutil, subprocess, tarfile, zipfile
def times(*paths): return {round(os.stat(path).st_mtime) for path in paths}
open("a", "w").close(); os.mkdir("d"); os.symlink("nowhere", "d/link"); open("d/b", "w").close(); then = 1_000_000_000
os.utime("a", (then, then)); os.utime("d/b", ns=(then * 10**9, then * 10**9)); os.utime("d/link", follow_symlinks=False)
shutil.copy2("a", "c"); shutil.copytree("d", "e", symlinks=True)
with tarfile.open("t", "w") as tar: tar.add("d")
with tarfile.open("t") as tar: tar.extractall("out")
with zipfile.ZipFile("z", "w") as archive: archive.write("a")
with zipfile.ZipFile("z") as archive: archive.extractall("zip")
with open("f", "w") as file: os.utime(file.fileno(), (then, then))
os.utime("f", (then, then), dir_fd=os.open(".", os.O_RDONLY)); pathlib.Path("g").touch(); pathlib.Path("g").touch()
subprocess.run("touch -d @1000000000 h; cp -p h i", shell=True, check=True)
try: os.utime("none")
except FileNotFoundError: pass
print(len(times("a", "c", "d/b", "e/b", "out/d/b", "f", "h", "i")), os.readlink("e/link"), os.path.exists("zip/a"))
""",
        "1 nowhere True\n",
    ),
    "subprocess": (
        """
import subprocess, sys
def output(command, **more): return subprocess.run(command, capture_output=True, text=True, **more).stdout
print(output(["sort"], input="b\\na\\n"), output("echo x > b; cp b c; cat c | tr x y", shell=True), end="")
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
try: child.wait(0.01)
except subprocess.TimeoutExpired: child.kill()
print(child.wait())
""",
        "a\nb\n y\n-9\n",
    ),
    "multiprocessing": (
        """
import multiprocessing
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
if __name__ == "__main__":
    fork = multiprocessing.get_context("fork")
    with fork.Pool(2) as pool: print(pool.map(abs, [-1, 2]))
    with ProcessPoolExecutor(2, mp_context=fork) as pool: print(list(pool.map(abs, [-3, 4])))
    with ThreadPoolExecutor(2) as pool: print(list(pool.map(abs, [-5, 6])))
""",
        "[1, 2]\n[3, 4]\n[5, 6]\n",
    ),
    "asyncio": (
        """
import asyncio, sys
async def main():
    a, b = await asyncio.gather(asyncio.sleep(0.01, 1), asyncio.to_thread(lambda: 2))
    child = await asyncio.create_subprocess_exec("echo", "3", stdout=asyncio.subprocess.PIPE)
    print(a, b, (await child.communicate())[0])
asyncio.run(main())
""",
        "1 2 b'3\\n'\n",
    ),
    "signals and timers": (
        """
import os, resource, signal, threading, time
signal.signal(signal.SIGALRM, lambda *_: print("alarm"))
signal.setitimer(signal.ITIMER_REAL, 0.01)
signal.pause()
signal.signal(signal.SIGUSR1, lambda *_: print("usr1"))
signal.raise_signal(signal.SIGUSR1); os.kill(os.getpid(), signal.SIGUSR1)
print(len(os.sched_getaffinity(0)) > 0, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss > 0, os.nice(1) >= 1)
os.sched_setaffinity(0, os.sched_getaffinity(0)); resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
event = threading.Event(); threading.Timer(0.01, event.set).start(); print(event.wait(10))
""",
        "alarm\nusr1\nusr1\nTrue True True\nTrue\n",
    ),
    "descriptors": (
        """
import ctypes, mmap, os, select, selectors, socket
a, b = socket.socketpair(); a.setblocking(False); b.sendall(b"x")
with selectors.DefaultSelector() as s: s.register(a, selectors.EVENT_READ); print(len(s.select(1)))
poll = select.poll(); poll.register(a); print(select.select([a], [], [], 1)[0] == [a], a.recv(1))
fd = os.eventfd(1); print(os.eventfd_read(fd), os.isatty(fd), os.get_inheritable(fd)); os.set_inheritable(fd, True)
if hasattr(os, "timerfd_create"): os.close(os.timerfd_create(1))
with open("m", "wb+") as file:
    file.truncate(4096)
    with mmap.mmap(file.fileno(), 4096) as memory:
        memory[:2] = b"ok"; memory.flush(); memory.madvise(mmap.MADV_DONTNEED)
print(open("m", "rb").read(2), len(os.getrandom(3)), ctypes.CDLL(None).abs(-1))
""",
        "1\nTrue b'x'\n1 False False\nb'ok' 3 1\n",
    ),
    "numpy": (
        "import numpy as np\nprint(np.linalg.inv(np.eye(200) * 2).sum(), np.random.default_rng(1).integers(1, 2))",
        "100.0 1\n",
    ),
    "pandas": ("import pandas as pd\nprint(pd.DataFrame({'a': [1, 1, 2]}).groupby('a').size().tolist())", "[2, 1]\n"),
    "scipy": ("from scipy import optimize\nprint(round(optimize.brentq(lambda x: x - 1, 0, 3), 6))", "1.0\n"),
    "sympy": ("import sympy\nprint(sympy.factor(sympy.Symbol('x') ** 2 - 1))", "(x - 1)*(x + 1)\n"),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_ordinary_programs_work(sandbox, name):
    if name in ("numpy", "pandas", "scipy", "sympy"):
        pytest.importorskip(name)
    program, expected = PROGRAMS[name]
    result = sandbox.run(program)
    assert (result.stdout, result.stderr) == (expected, "")
