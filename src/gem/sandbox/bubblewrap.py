"""Programs in bubblewrap (``bwrap``): Linux namespaces, set up by a small program that most distributions package.

For commands and interpreters beyond this Python, and for who trusts bwrap's set-up more than ours. Each run starts an
interpreter anew, so it costs what starting Python costs.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import signal
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache

from gem.errors import SandboxError
from gem.sandbox.base import Limits, Report
from gem.sandbox.running import Ending, Running, as_shells_do
from gem.sandbox.scripted import INTERPRETER_FLAGS, ScriptedSandbox, environment
from gem.sandbox.zygote import seccomp, syscalls

CONTAINED = ("--unshare-user", "--unshare-all", "--die-with-parent", "--new-session", "--clearenv", "--cap-drop", "ALL")
NOBODY = "65534"
WORK = "/tmp/work"  # inside, where programs start
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc/ld.so.cache", "/etc/alternatives")
NETWORK = ("/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf", "/etc/ssl")
SHARED_MEMORY = 8  # /dev/shm gets one part in so many of the disk limit, /tmp the rest
DEATH_S = 10.0  # for the kernel to end a namespace


class BubblewrapSandbox(ScriptedSandbox):
    """Runs programs in bubblewrap, as nobody, with nothing of the host's files but /usr and this Python.

    Raises SandboxError where ``bwrap`` (0.7 or newer) is not installed, or may not make namespaces.
    """

    def __init__(self, *, limits: Limits | None = None) -> None:
        super().__init__(limits=limits)
        found = shutil.which("bwrap")
        if found is None:
            raise SandboxError("bwrap is not installed; install the package 'bubblewrap', or use another sandbox")
        self.bwrap = found
        self.run("")  # raises where it does not work

    def report(self) -> Report:
        counted = None if os.geteuid() == 0 else ", RLIMIT_NPROC counts in a user namespace of its own"
        notes = [
            "Memory and CPU are limited for each process apart: a program of many processes can use more.",
            "CPU seconds and peak memory are not known.",
            "An exit code from 129 to 192 is taken for a signal, as shells do.",
        ]
        if counted is None:
            notes.append("Started by root, bwrap cannot limit the number of processes; the run's end ends them all.")
        return Report(
            "bubblewrap",
            "",
            {
                "network": "a network namespace with nothing in it",
                "files": "a root of its own: /usr and this Python read-only, /tmp private",
                "processes": f"a pid namespace, which ends with the run{counted or ''}",
                "memory": "RLIMIT_AS, for each process apart",
                "disk": "tmpfs of limited size, everything else read-only",
                "cpu": "RLIMIT_CPU, for each process apart",
                "wall": "the host's clock",
                "output": "counted while it is read",
                "kernel": f"no capabilities, no new privileges, /proc read-only{', seccomp' if _filter(False) else ''}",
            },
            notes,
        )

    def _start(self, limits: Limits, *, lasting: bool) -> Running:
        command = [self.bwrap, *CONTAINED, *_arguments(limits)]
        # bwrap dies with the thread that started it, so that is one which lasts.
        return _spawner(os.getpid()).submit(_Contained, command, _filter(limits.network)).result()

    def _rlimits(self, limits: Limits) -> dict[str, tuple[int, int]]:
        cpu_s = max(1, round(limits.cpu_seconds))
        return {
            "RLIMIT_AS": (limits.memory_bytes, limits.memory_bytes),
            "RLIMIT_CPU": (cpu_s, cpu_s + 1),
            "RLIMIT_FSIZE": (limits.disk_bytes, limits.disk_bytes),
            "RLIMIT_NPROC": (limits.processes, limits.processes),
            "RLIMIT_CORE": (0, 0),
        }


class _Contained(Running):
    """bwrap, and the first process of the namespace that it made."""

    def __init__(self, command: Sequence[str], system_calls: bytes) -> None:
        heard, told = os.pipe()
        given = [told]
        if system_calls:
            given.append(_holding(system_calls))
            command = [*command, "--seccomp", str(given[1])]
        # Open until the end: bwrap would die of a pipe that nobody reads.
        self.status = os.fdopen(heard, encoding="utf-8")
        self.init: int | None = None  # a descriptor of that process
        try:
            inside = ["--json-status-fd", str(told), "--", sys.executable, *INTERPRETER_FLAGS]
            # In the environment of bwrap itself, which programs can read, there is nothing either.
            super().__init__([*command, *inside], pass_fds=given, environment={})
        except BaseException:
            self.status.close()
            raise
        finally:
            for fd in given:
                os.close(fd)
        if said := self.status.readline():  # or it failed, which it will say
            with contextlib.suppress(OSError):
                self.init = os.pidfd_open(json.loads(said)["child-pid"])

    def kill(self) -> None:
        if self.init is not None and self.owner == os.getpid():
            with contextlib.suppress(OSError):
                signal.pidfd_send_signal(self.init, signal.SIGKILL)
        super().kill()

    def finish(self) -> Ending:
        """The namespace is gone when this returns. Raises SandboxError where it is not."""
        ending = super().finish()
        if self.init is not None:
            poll = select.poll()
            poll.register(self.init, select.POLLIN)
            if not poll.poll(DEATH_S * 1000):
                raise SandboxError(f"a killed namespace was not gone after {DEATH_S:g} s")
        return as_shells_do(ending)

    def close(self) -> None:
        try:
            super().close()
        finally:
            self.status.close()
            if self.init is not None:
                os.close(self.init)
                self.init = None


def _arguments(limits: Limits) -> Iterator[str]:
    yield from ("--uid", NOBODY, "--gid", NOBODY, "--hostname", "sandbox")
    shared = limits.disk_bytes // SHARED_MEMORY
    yield from ("--size", str(limits.disk_bytes - shared), "--tmpfs", "/tmp", "--dir", WORK, "--dir", "/var")
    yield from ("--symlink", "/tmp", "/var/tmp")
    for path in (*SYSTEM, *(NETWORK if limits.network else ())):
        yield from _shown(path)
    for prefix in sorted({os.path.realpath(sys.base_prefix), sys.base_prefix, sys.prefix}):
        yield from ("--ro-bind", prefix, prefix)
    # What root owns in /proc/sys root may write, without any capability; and root is who nobody is, outside.
    yield from ("--proc", "/proc", "--remount-ro", "/proc")
    yield from ("--dev", "/dev", "--size", str(max(shared, 4096)), "--tmpfs", "/dev/shm", "--remount-ro", "/dev")
    yield from ("--remount-ro", "/", "--chdir", WORK)
    if limits.network:
        yield "--share-net"
    for name, value in environment(WORK, sys.prefix).items():
        yield from ("--setenv", name, value)


def _shown(path: str) -> Sequence[str]:
    """Arguments that show a path of the host's, or the symbolic link that it is."""
    if os.path.islink(path):
        return ("--symlink", os.readlink(path), path)
    return ("--ro-bind-try", path, path)


def _holding(data: bytes) -> int:
    """A descriptor from which these bytes can be read; they have to fit into a pipe."""
    reader, writer = os.pipe()
    with os.fdopen(writer, "wb") as pipe:
        pipe.write(data)
    return reader


@cache
def _filter(network: bool) -> bytes:
    """The system calls that a program may make; empty on a machine whose calls are not known."""
    return seccomp.Filter(network=network, own_pids=True).assembled if syscalls.SUPPORTED else b""


@cache
def _spawner(pid: int) -> ThreadPoolExecutor:
    """One thread of this process, which starts every bwrap."""
    return ThreadPoolExecutor(1, thread_name_prefix="gem-bubblewrap")
