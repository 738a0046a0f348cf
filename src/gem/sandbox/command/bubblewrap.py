"""Sandbox that isolates programs with bubblewrap (``bwrap``), a command-line tool that sets up Linux namespaces.

Use this sandbox to run commands other than Python, or as an independently audited alternative to the zygote sandbox.
Each run starts a new interpreter, which takes tens of milliseconds.
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
from gem.sandbox.command.sandbox import INTERPRETER_FLAGS, CommandSandbox, environment
from gem.sandbox.forkserver import syscalls
from gem.sandbox.forkserver.isolation import seccomp
from gem.sandbox.process import CommandProcess, ProcessExit, exit_from_client
from gem.sandbox.results import Limits, Report

# --unshare-all: no process, network, IPC object or cgroup of the host (23_kill_all, 42_local_services,
# 183_change_the_cgroup). --die-with-parent: a run does not outlive the host. --new-session: it cannot type into the
# terminal of the host (44_type_into_the_terminal). --clearenv: no secrets in variables (28_environment).
ISOLATION = ("--unshare-user", "--unshare-all", "--die-with-parent", "--new-session", "--clearenv", "--cap-drop", "ALL")
NOBODY = "65534"
WORK = "/tmp/work"  # working directory inside the sandbox
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc/ld.so.cache", "/etc/alternatives")
NETWORK = ("/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf", "/etc/ssl")
SHARED_MEMORY = 8  # /dev/shm gets 1/8 of the disk limit, /tmp the rest
DEATH_S = 10.0  # seconds to wait for the kernel to end a namespace


class BubblewrapSandbox(CommandSandbox):
    """Runs programs in bubblewrap as user nobody. Programs can read only the host's system files and this Python.

    Raises:
        SandboxError: if ``bwrap`` (0.7 or newer) is not installed or is not permitted to create namespaces.
    """

    def __init__(self, *, limits: Limits | None = None) -> None:
        super().__init__(limits=limits)
        found = shutil.which("bwrap")
        if found is None:
            raise SandboxError("bwrap is not installed; install the package 'bubblewrap' or use another sandbox")
        self.bwrap = found
        self.run("")  # raises SandboxError if bwrap does not work on this machine

    def report(self) -> Report:
        process_limit = None if os.geteuid() == 0 else "RLIMIT_NPROC in a user namespace"
        notes = [
            "Memory and CPU are limited per process: a program with many processes can use more.",
            "CPU seconds and peak memory are not reported.",
            "Exit codes from 129 to 192 are reported as signals, as shells do.",
        ]
        if process_limit is None:
            notes.append("Run by root, bwrap cannot limit the number of processes; all are killed when the run ends.")
        return Report(
            "bubblewrap",
            "",
            {
                "network": "an empty network namespace",
                "files": "a separate root: /usr and this Python read-only, /tmp private",
                "processes": "a pid namespace that ends with the run",
                "kernel": f"no capabilities, no new privileges, /proc read-only{', seccomp' if _filter(False) else ''}",
                "process_limit": process_limit,
                "memory": "RLIMIT_AS per process",
                "disk": "tmpfs of limited size; everything else is read-only",
                "cpu": "RLIMIT_CPU per process",
                "wall": "the host's clock",
                "output": "counted as it is read",
            },
            notes,
        )

    def _start(self, limits: Limits, *, for_session: bool) -> CommandProcess:
        command = [self.bwrap, *ISOLATION, *_arguments(limits)]
        # --die-with-parent kills bwrap when the thread that started it ends, so a permanent thread starts it.
        return _starter(os.getpid()).submit(_BubblewrapProcess, command, _filter(limits.network)).result()

    def _rlimits(self, limits: Limits) -> dict[str, tuple[int, int]]:
        return {
            **super()._rlimits(limits),
            "RLIMIT_AS": (limits.memory_bytes, limits.memory_bytes),
            "RLIMIT_NPROC": (limits.processes, limits.processes),
        }


class _BubblewrapProcess(CommandProcess):
    """bwrap and the first process of its namespace."""

    def __init__(self, command: Sequence[str], seccomp_filter: bytes) -> None:
        reader, writer = os.pipe()
        passed = [writer]
        if seccomp_filter:
            passed.append(_pipe_with(seccomp_filter))
            command = [*command, "--seccomp", str(passed[1])]
        # Closed only at the end: otherwise bwrap would be killed by SIGPIPE when it writes its status.
        self.status = os.fdopen(reader, encoding="utf-8")
        self.init: int | None = None  # pidfd of the first process in the namespace
        try:
            inside = ["--json-status-fd", str(writer), "--", sys.executable, *INTERPRETER_FLAGS]
            # Programs can read the environment variables of the bwrap process, so bwrap gets none.
            super().__init__([*command, *inside], pass_fds=passed, environment={})
        except BaseException:
            self.status.close()
            raise
        finally:
            for fd in passed:
                os.close(fd)
        if line := self.status.readline():  # empty if bwrap failed, which is reported on stderr
            with contextlib.suppress(OSError):
                self.init = os.pidfd_open(json.loads(line)["child-pid"])

    def kill(self) -> None:
        if self.init is not None and self.owner == os.getpid():
            with contextlib.suppress(OSError):
                signal.pidfd_send_signal(self.init, signal.SIGKILL)
        super().kill()

    def finish(self) -> ProcessExit:
        """See CommandProcess.finish. All processes in the namespace have ended when this method returns.

        Raises:
            SandboxError: if the namespace still exists after DEATH_S seconds.
        """
        ended = super().finish()
        if self.init is not None:
            poll = select.poll()
            poll.register(self.init, select.POLLIN)
            if not poll.poll(DEATH_S * 1000):
                raise SandboxError(f"a killed namespace still exists after {DEATH_S:g} s")
        return exit_from_client(ended)

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
        yield from _bind(path)
    for prefix in sorted({os.path.realpath(sys.base_prefix), sys.base_prefix, sys.prefix}):
        yield from ("--ro-bind", prefix, prefix)
    # Root can write to /proc/sys without any capability, and user nobody in the sandbox can be root on the host.
    yield from ("--proc", "/proc", "--remount-ro", "/proc")
    yield from ("--dev", "/dev", "--size", str(max(shared, 4096)), "--tmpfs", "/dev/shm", "--remount-ro", "/dev")
    # The root is a tmpfs without a limit (07_disk_fill).
    yield from ("--remount-ro", "/", "--chdir", WORK)
    if limits.network:
        yield "--share-net"
    for name, value in environment(WORK, sys.prefix).items():
        yield from ("--setenv", name, value)


def _bind(path: str) -> Sequence[str]:
    """Return the bwrap arguments that show a host path read-only; a symbolic link is recreated as a link."""
    if os.path.islink(path):
        return ("--symlink", os.readlink(path), path)
    return ("--ro-bind-try", path, path)


def _pipe_with(data: bytes) -> int:
    """Return the read end of a pipe that contains ``data``, which must fit into the buffer of the pipe."""
    reader, writer = os.pipe()
    with os.fdopen(writer, "wb") as pipe:
        pipe.write(data)
    return reader


@cache
def _filter(network: bool) -> bytes:
    """Return the seccomp filter, or empty bytes on an architecture whose system call numbers are unknown."""
    return seccomp.Filter(network=network, own_pids=True).assembled if syscalls.SUPPORTED else b""


@cache
def _starter(pid: int) -> ThreadPoolExecutor:
    """Return an executor with one thread, which starts all bwrap processes of the process ``pid``."""
    return ThreadPoolExecutor(1, thread_name_prefix="gem-bubblewrap")
