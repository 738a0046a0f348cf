"""Checks that a program cannot slow down or block the host and other programs.

The programs that these checks run affect only files, processes and kernel objects that the check made for them, so the
checks are safe where the sandbox does not work.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from gem.sandbox import Case, Limits, Result, Sandbox, Status
from gem.testing.check import Check, CheckFailed, Unchecked, check, require
from gem.testing.sandbox.programs import expect, mechanism, require_guarantee

HOST_CPU_S = 1.0  # maximum CPU seconds of the host for one hostile result
_IPC_PRIVATE, _IPC_REMOVE, _FOR_ALL = 0, 0, 0o666

_LOCK_FILE = """
import fcntl, signal, time
signal.signal(signal.SIGIO, signal.SIG_IGN)
try:
    file = open({path!r}, "rb")
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
except OSError:
    pass
print("started", flush=True)
time.sleep(1)
"""
_USE_SHARED_MEMORY = """
import ctypes
libc = ctypes.CDLL(None)
libc.shmat.restype = ctypes.c_void_p
address = libc.shmat({segment}, None, 0)
if address != ctypes.c_void_p(-1).value:
    ctypes.memmove(address, b"changed", 7)
libc.shmctl({segment}, 0, None)
"""
_CHANGE_PRIORITY = """
import os
for kind, who in ((os.PRIO_PROCESS, {pid}), (os.PRIO_PGRP, {pid})):
    try:
        os.setpriority(kind, who, 19)
    except OSError:
        pass
"""
_TAKE_SLOTS = """
import ctypes, os, time
number = {{"x86_64": 206, "aarch64": 0}}[os.uname().machine]
context = ctypes.c_ulong(0)
ctypes.CDLL(None).syscall(ctypes.c_long(number), ctypes.c_long({slots}), ctypes.byref(context))
print("started", flush=True)
time.sleep(1)
"""


@check("host-cpu", "Hostile output and large return values take the host little CPU time.")
def host_cpu(sandbox: Sandbox) -> None:
    before = time.process_time()
    errors = "import sys\nsys.stderr.write('MemoryError.' * 4000 + '\\nx\\n')\nsys.exit(1)"
    expect(sandbox.run(errors), Status.ERROR)
    value = "def f(): return [0] * 2_000_000"
    sandbox.run_tests(value, [Case(arguments="[]", value_bytes=100)], function="f", limits=Limits(wall_s=5))
    spent = time.process_time() - before
    require(spent < HOST_CPU_S, f"two results took {spent:.1f} CPU seconds of the host")


@check("locks", "A program cannot lock library files against other programs.")
def locks(sandbox: Sandbox) -> None:
    require_guarantee(sandbox, "kernel")
    path = Path(os.__file__).with_name("this.py")  # no other program uses it
    if not path.exists():
        raise Unchecked("the standard library of this interpreter is not in a folder")
    for _ in _while_running(sandbox, _LOCK_FILE.format(path=str(path))):
        try:
            fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        except BlockingIOError:
            raise CheckFailed("a lease of the program blocks the host from opening a library file") from None
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CheckFailed("the program holds a lock of a library file") from None
        finally:
            os.close(fd)


@check("shared-memory", "A program can neither read, change nor remove shared memory of other programs.")
def shared_memory(sandbox: Sandbox) -> None:
    require_guarantee(sandbox, "kernel")
    libc = ctypes.CDLL(None)
    libc.shmat.restype = ctypes.c_void_p
    segment = libc.shmget(_IPC_PRIVATE, 4096, _FOR_ALL)
    if segment < 0:
        raise Unchecked("this system has no System V shared memory")
    try:
        address = libc.shmat(segment, None, 0)
        ctypes.memmove(address, b"private", 7)
        sandbox.run(_USE_SHARED_MEMORY.format(segment=segment))
        require(ctypes.string_at(address, 7) == b"private", "the program changed the shared memory of another program")
        again = libc.shmat(segment, None, 0)
        require(again != ctypes.c_void_p(-1).value, "the program removed the shared memory of another program")
        libc.shmdt(ctypes.c_void_p(again))
        libc.shmdt(ctypes.c_void_p(address))
    finally:
        libc.shmctl(segment, _IPC_REMOVE, None)


@check("priorities", "A program cannot change the priority of other processes.")
def priorities(sandbox: Sandbox) -> None:
    require_guarantee(sandbox, "processes")
    command = [sys.executable, "-I", "-S", "-c", "input()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True) as bystander:
        try:
            before = os.getpriority(os.PRIO_PROCESS, bystander.pid)
            sandbox.run(_CHANGE_PRIORITY.format(pid=bystander.pid))
            after = os.getpriority(os.PRIO_PROCESS, bystander.pid)
            require(after == before, f"the program changed the nice value of another process from {before} to {after}")
        finally:
            bystander.kill()


@check("kernel-slots", "A program cannot take the machine's slots for asynchronous input and output.")
def kernel_slots(sandbox: Sandbox) -> None:
    require_guarantee(sandbox, "kernel")
    path = Path("/proc/sys/fs/aio-nr")
    if not path.exists() or "engine" in mechanism(sandbox, "kernel"):
        raise Unchecked("this system has no such slots, or the seccomp profile of an engine decides")
    before, slots, most = int(path.read_text()), 2000, 0
    for _ in _while_running(sandbox, _TAKE_SLOTS.format(slots=slots)):
        most = max(most, int(path.read_text()) - before)
    require(most < slots, f"the program took {most} slots")


def _while_running(sandbox: Sandbox, code: str) -> Iterator[None]:
    """Run a program on a thread, and yield every 50 ms until it has ended."""
    results: list[Result] = []
    thread = threading.Thread(target=lambda: results.append(sandbox.run(code)))
    thread.start()
    while thread.is_alive():
        yield
        time.sleep(0.05)
    require(bool(results) and "started" in results[0].stdout, f"the program did not run: {results}")


CHECKS: tuple[Check[Sandbox], ...] = (host_cpu, locks, shared_memory, priorities, kernel_slots)
