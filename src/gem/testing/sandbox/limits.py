"""Checks that a program cannot exceed its limits: memory, processes, disk and CPU time.

The programs that these checks run stop by themselves soon after they exceed a limit, so the checks are safe where the
sandbox does not work.
"""

from __future__ import annotations

import contextlib
import os
import time
import uuid
from pathlib import Path

from gem.sandbox import Case, Limits, Result, Sandbox, Status
from gem.testing.check import Check, Unchecked, check, require
from gem.testing.sandbox.programs import GRACE_S, expect, mechanism, require_guarantee

AMPLE_S = 60.0  # wall-clock limit where another limit is checked; a busy machine may need most of it
MIB = 1 << 20
_SMALL_MEMORY, _SMALL_DISK = 192 * MIB, 16 * MIB

_START_PROCESSES = """
import os, threading, time
count = 0
try:
    while count < 200:
        if os.fork() == 0:
            time.sleep(20)
            os._exit(0)
        count += 1
except OSError:
    pass
try:
    for _ in range(200):
        threading.Thread(target=time.sleep, args=(20,), daemon=True).start()
        count += 1
except RuntimeError:
    pass
time.sleep(0.5)
print(count, flush=True)
os._exit(0)
"""
# Children hold memory in one of several ways; prints HELD if together they can hold more than its limit for a second.
_HOLD_MEMORY = """
import ctypes, mmap, os, select, socket, threading, time
SIZE, CHILDREN = 100 << 20, 8

def touched():
    return b"x" * SIZE

def shared():
    area = mmap.mmap(-1, SIZE)
    area.write(touched())
    area.madvise(mmap.MADV_DONTNEED)  # the process does not map the pages any more, but they still exist
    return area

def sockets():
    pairs = [socket.socketpair() for _ in range(100)]
    for end in (end for pair in pairs for end in pair):
        end.setblocking(False)
        try:
            while True:
                end.send(bytes(65536))
        except OSError:
            pass
    return pairs

def ready():
    held.append(hold())
    os.write(writer, b".")
    time.sleep(10)

def without_main_thread():
    threading.Thread(target=ready).start()
    ctypes.CDLL(None).syscall(ctypes.c_long({{"x86_64": 60, "aarch64": 93}}[os.uname().machine]), 0)

hold, held = {hold}, []
reader, writer = os.pipe()
for _ in range(CHILDREN):
    if os.fork() == 0:
        {wait}()
os.close(writer)
count = 0
while count < CHILDREN and select.select([reader], [], [], 5)[0] and os.read(reader, 1):
    count += 1
time.sleep(1)
print("HELD" if count == CHILDREN else count, flush=True)
os._exit(0)
"""
# Files in places in which they are hard to count. Prints how many MiB exist at the same time.
_HIDE_FILES = """
import array, ctypes, os, socket, time
total, kept = 0, []

def fill(number, *, keep=False):
    global total
    file = open(f"file{{number}}", "wb", 0)
    total += file.write(bytes(2 << 20))
    if keep:
        os.unlink(file.name)
        kept.append(file)
    return file

def deep():
    for number in range(16):
        for _ in range(30):
            os.mkdir("d" * 200)
            os.chdir("d" * 200)
        fill(number).close()

def locked():
    os.mkdir("locked", 0o300)
    os.chdir("locked")
    for number in range(16):
        fill(number).close()

def in_flight():
    pair = socket.socketpair()
    kept.extend(pair)
    for number in range(16):
        with fill(number) as file:
            os.unlink(file.name)
            pair[0].sendmsg([b"."], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [file.fileno()]))])

def not_dumpable():
    ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)
    for number in range(16):
        fill(number, keep=True)

try:
    {way}()
except OSError:
    pass
time.sleep(0.5)
print(total >> 20, flush=True)
"""
# The kernel forgets the CPU time of children that are reaped automatically.
_SPIN_IN_CHILDREN = """
import os, signal, time
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
while True:
    if os.fork() == 0:
        start = time.process_time()
        while time.process_time() - start < 0.03: pass
        os._exit(0)
    try:
        os.wait()
    except ChildProcessError:
        pass
"""
_SPIN_FOREVER = "import subprocess\nsubprocess.Popen(['/bin/sh', '-c', 'while :; do :; done; : {mark}'])\n"


@check("memory", "A program cannot allocate more memory than its limit.")
def memory(sandbox: Sandbox) -> None:
    require_guarantee(sandbox, "memory")
    code = "data = b'x' * (1 << 30)\nprint('TOOK IT')"
    result = sandbox.run(code, limits=Limits(memory_bytes=256 * MIB, wall_s=AMPLE_S))
    refused = result.status is Status.MEMORY or (result.status is Status.ERROR and "MemoryError" in result.stderr)
    require(refused and "TOOK IT" not in result.stdout, f"allocated 1 GiB with a limit of 256 MiB: {result}")


@check("memory-of-children", "The processes of a program together cannot hold more memory than its limit.")
def memory_of_children(sandbox: Sandbox) -> None:
    require_guarantee(sandbox, "memory")
    if mechanism(sandbox, "memory").endswith("per process"):
        raise Unchecked("the sandbox limits the memory of each process separately")
    _require_little_memory(sandbox, hold="touched", wait="ready")
    _require_little_memory(sandbox, hold="touched", wait="without_main_thread")


@check("kernel-memory", "Shared memory and the buffers of sockets count for the memory limit.")
def kernel_memory(sandbox: Sandbox) -> None:
    _require_completely(sandbox, "memory")
    _require_little_memory(sandbox, hold="shared", wait="ready")
    _require_little_memory(sandbox, hold="sockets", wait="ready")


def _require_little_memory(sandbox: Sandbox, *, hold: str, wait: str) -> None:
    """Require that children cannot hold more memory than the limit. See _HOLD_MEMORY for the arguments."""
    limits = Limits(memory_bytes=_SMALL_MEMORY, disk_bytes=_SMALL_DISK, wall_s=AMPLE_S)
    result = sandbox.run(_HOLD_MEMORY.format(hold=hold, wait=wait), limits=limits)
    require("HELD" not in result.stdout, f"child processes held more memory than the limit ({hold}, {wait})")


@check("processes", "A program and each of its tests cannot start more processes and threads than their limit.")
def processes(sandbox: Sandbox) -> None:
    require_guarantee(sandbox, "process_limit")
    limits = Limits(processes=16, wall_s=AMPLE_S)
    tests = sandbox.run_tests(_START_PROCESSES, [Case(), Case()], limits=limits)
    for result in [sandbox.run(_START_PROCESSES, limits=limits), *tests]:
        require(
            result is not None and (result.status is not Status.OK or int(result.stdout) <= 32),
            f"the program started {result and result.stdout.strip()} processes and threads with a limit of 16",
        )


@check("disk", "A program cannot write more to disk than its limit.")
def disk(sandbox: Sandbox) -> None:
    require_guarantee(sandbox, "disk")
    code = (
        "total = 0\n"
        "for name in ('one', '/tmp/two', '/dev/shm/three'):\n"
        "    try:\n"
        "        for number in range(40):\n"
        "            with open(f'{name}{number}', 'wb', 0) as file:\n"
        "                total += file.write(bytes(1 << 20))\n"
        "    except OSError: pass\n"
        "import time; time.sleep(0.5)\n"
        "print(total >> 20)\n"
    )
    _require_little_disk(sandbox.run(code, limits=Limits(disk_bytes=_SMALL_DISK, wall_s=AMPLE_S)))


@check("hidden-files", "Files in deep or locked folders, and files without a name, count for the disk limit.")
def hidden_files(sandbox: Sandbox) -> None:
    _require_completely(sandbox, "disk")
    for way in ("deep", "locked", "in_flight", "not_dumpable"):
        _require_little_disk(
            sandbox.run(_HIDE_FILES.format(way=way), limits=Limits(disk_bytes=_SMALL_DISK, wall_s=AMPLE_S)), way
        )


def _require_little_disk(result: Result, way: str = "ordinary files") -> None:
    require(
        result.status is not Status.OK or int(result.stdout) <= 20,
        f"the program wrote {result.stdout.strip()} MiB with a limit of 16 MiB ({way})",
    )


@check("cpu", "A program that exceeds its CPU time is killed even if it ignores signals.")
def cpu(sandbox: Sandbox) -> None:
    require_guarantee(sandbox, "cpu")
    code = "import signal\nsignal.signal(signal.SIGXCPU, signal.SIG_IGN)\nwhile True: pass"
    _require_cpu_limit(sandbox, code)


def _require_cpu_limit(sandbox: Sandbox, code: str) -> None:
    result = expect(sandbox.run(code, limits=Limits(wall_s=AMPLE_S, cpu_s=1)), Status.TIMEOUT)
    require(result.wall_s < AMPLE_S - 1, "the wall-clock limit ended the program, not the CPU limit")


@check("cpu-of-children", "The CPU time of child processes counts, also of those that the program does not wait for.")
def cpu_of_children(sandbox: Sandbox) -> None:
    _require_completely(sandbox, "cpu")
    _require_cpu_limit(sandbox, _SPIN_IN_CHILDREN)


@check("cells-end", "Processes that a cell started are killed if it times out, and stopped when it ends normally.")
def cells_end(sandbox: Sandbox) -> None:
    require_guarantee(sandbox, "cpu")
    if not os.path.isdir("/proc/self") or mechanism(sandbox, "cpu").endswith("per process"):
        raise Unchecked("this system has no /proc, or the sandbox limits the CPU time of each process separately")
    mark = f"gem-check-{uuid.uuid4().hex}"
    with sandbox.session() as session:
        expect(session.run(_SPIN_FOREVER.format(mark=mark) + "None"), Status.OK)
        time.sleep(0.3)
        before = _ticks_of(mark)
        time.sleep(0.5)
        spent = (_ticks_of(mark) - before) / os.sysconf("SC_CLK_TCK")
        require(spent < 0.1, f"a process that a cell left used {spent:.2f} CPU seconds in half a second between cells")
        session.run(_SPIN_FOREVER.format(mark=mark) + "while True: pass", wall_s=0.5)
        left = await_end(mark)
        require(not left, f"processes still running after the cell timed out: {left}")


def processes_with(mark: str) -> list[int]:
    """Return the ids of the host's processes whose command line contains the mark."""
    found = []
    for folder in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if folder.name.isdigit() and mark in Path(folder, "cmdline").read_text(errors="replace"):
                found.append(int(folder.name))
    return found


def await_end(mark: str) -> list[int]:
    """Wait up to GRACE_S until no process has the mark. Returns and kills those that remain."""
    deadline = time.monotonic() + GRACE_S
    while (left := processes_with(mark)) and time.monotonic() < deadline:
        time.sleep(0.02)
    for pid in left:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, 9)
    return left


def _ticks_of(mark: str) -> int:
    """Return the clock ticks that the processes with the mark have used."""
    total = 0
    for pid in processes_with(mark):
        with contextlib.suppress(OSError):
            total += sum(map(int, Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]))
    return total


def _require_completely(sandbox: Sandbox, guarantee: str) -> None:
    """Raise Unchecked if the sandbox enforces this limit only for each process, or only in part."""
    require_guarantee(sandbox, guarantee)
    how = mechanism(sandbox, guarantee)
    if how.endswith("per process") or "not enforced" in how:
        raise Unchecked(f"the sandbox enforces this limit only in part: {how}")


CHECKS: tuple[Check[Sandbox], ...] = (
    memory,
    memory_of_children,
    kernel_memory,
    processes,
    disk,
    hidden_files,
    cpu,
    cpu_of_children,
    cells_end,
)
