"""The test runner: runs the tests of one program in one sandbox, one after the other.

The runner compiles the program once and forks a process for each test, so a test has the limits of an ordinary run.
When the test has ended, the runner kills the processes and removes the files that it left, and reports how it ended.
The host starts several runners to run several tests at the same time.

The runner has the same user as the tests, and a report must not be forged. Therefore the runner is not dumpable, so
that tests cannot read or write its memory and descriptors through /proc; tests inherit none of its descriptors; and
tests cannot signal it: at level "ns" the runner is process 1 of its namespace, at level "lsm" Landlock or seccomp
prevents it. At level "basic" nothing does.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import json
import math
import os
import resource
import select
import signal
import socket
import struct
import time
import types
from array import array
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, NoReturn

from gem.sandbox.forkserver import linux
from gem.sandbox.forkserver.entry import program, values
from gem.sandbox.forkserver.isolation import landlock
from gem.sandbox.forkserver.isolation.seccomp import GroupFilter
from gem.sandbox.forkserver.limits import processes
from gem.sandbox.forkserver.limits.cgroup import read_kills, read_usage
from gem.sandbox.forkserver.limits.removal import empty_folder

CHANNEL, SOURCE = 3, 4  # descriptors of the runner: a SOCK_SEQPACKET socket to the host, and the program
USAGE, EVENTS = 5, 6  # further descriptors of a runner with a cgroup; see cgroup.Cgroup
ARGUMENTS, VALUE = 3, 4  # descriptors of a test that calls a function
COMPILED, COMPILE_FAILED, SETUP_FAILED, REPORT = b"c", b"e", b"s", b"r"  # first byte of a message to the host
MESSAGE_BYTES = 4096
CLEANUP_FAILED = 75  # exit code of a runner that could not remove the processes or files of a test
FLUSH_S = 0.02  # time for a test that timed out to flush its streams
CPU_CHECK_S = 0.02  # shortest interval between checks of the CPU time of a test
MEMORY_CHECK_S = 0.25  # longest interval between checks whether the kernel has killed a process of a test for memory
SHARED = "/dev/shm"
set_handler: Any = getattr(signal.signal, "__wrapped__", signal.signal)  # in C, without conversions
_REQUEST = struct.Struct("=q?")
_REPORT = struct.Struct("=ciBddq")
_ROOM_FOR_FDS = socket.CMSG_SPACE(5 * array("i").itemsize)
NO_LIMIT, WALL, CPU, MEMORY = range(4)
Step = tuple[Callable[..., object], tuple[Any, ...]]


class CaseReport(NamedTuple):
    """How a test ended.

    Args:
        code: exit code, or the negative signal number.
        limit: the limit that the test exceeded: NO_LIMIT, WALL, CPU or MEMORY.
        max_rss_bytes: peak resident memory of the largest process.
    """

    code: int
    limit: int
    wall_s: float
    cpu_s: float
    max_rss_bytes: int

    @classmethod
    def of(cls, message: bytes) -> CaseReport:
        """Decode a message that starts with REPORT."""
        return cls(*_REPORT.unpack(message)[1:])


def request(value_bytes: int, any_sequence: bool = False) -> bytes:
    """Return the message that starts a test. The descriptors of the test are attached to it, numbered from 0."""
    return _REQUEST.pack(value_bytes, any_sequence)


def run(options: Mapping[str, Any], fds: Sequence[int]) -> NoReturn:
    """Run tests until the host closes its socket.

    Args:
        options: ``function``, the name of the function to call, or None to run a script; ``level``, the isolation
            level; ``wall_s`` and ``cpu_s``, limits of each test.
        fds: the standard streams, CHANNEL and SOURCE; with a cgroup, also USAGE and EVENTS.
    """
    exit_code = 1
    try:
        with open(SOURCE, "rb") as file:
            source = file.read()
        usage = GroupUsage(USAGE, EVENTS) if USAGE in fds else None
        CaseRunner(options, socket.socket(fileno=CHANNEL), usage).serve(source)
        exit_code = 0
    except CleanupError:
        exit_code = CLEANUP_FAILED
    except BaseException:
        program.show_exception()
    finally:
        os._exit(exit_code)


class CleanupError(Exception):
    """Files of a test could not be removed."""


class CaseRunner:
    """Runs tests when the host requests them.

    Args:
        usage: measures CPU time and finds processes killed for memory; None if the sandbox has no cgroup.
    """

    def __init__(self, options: Mapping[str, Any], channel: socket.socket, usage: GroupUsage | None) -> None:
        self.channel, self.level, self.function = channel, options["level"], options["function"]
        self.wall_s, self.cpu_s = options["wall_s"], options["cpu_s"]
        self.usage = usage
        self.call: FunctionCall | None = None
        self.home, self.cpus = os.getcwd(), len(os.sched_getaffinity(0))
        self.poll = select.poll()

    def serve(self, source: bytes) -> None:
        """Run tests until the host closes its socket. If the program does not compile, report that and return.

        Raises:
            CleanupError: if files of a test could not be removed.
            OSError: if a test could not be started.
        """
        code = program.compiled(source)
        self.channel.send(COMPILED if code is not None else COMPILE_FAILED)
        if code is None:
            return
        self._prepare(code)
        while True:
            data, ancillary, _, _ = self.channel.recvmsg(MESSAGE_BYTES, _ROOM_FOR_FDS)
            if not data:
                return
            fds = array("i", ancillary[0][2])
            self.channel.send(self._run(fds, *_REQUEST.unpack(data)))
            for fd in fds:  # not earlier, so that the host is not woken when the test closes a pipe
                os.close(fd)
            self._remove_files()

    def _prepare(self, code: types.CodeType) -> None:
        """Prepare this process so that little is left to do after the fork of each test."""
        if self.level == "ns" and os.getpid() != 1:
            raise OSError("a test runner must be process 1 of its namespace")  # otherwise, kill_test() kills too much
        linux.adopt_orphans()  # daemons of a test, to kill and count them (22_daemon_acts_later)
        linux.set_dumpable(False)  # 99_reach_the_runner
        for signum in (signal.SIGINT, program.FLUSH):
            set_handler(signum, int(signal.SIG_DFL))  # the kernel discards such signals to process 1 of a namespace
        if self.function is None:
            self.main: Callable[[], object] = functools.partial(program.run_in, program.new_module("__main__"), code)
        else:
            self.main = self.call = FunctionCall(code, self.function)
        self.steps, self.last_fd = test_steps(self.level, self.cpu_s), resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        program.open_streams()
        gc.freeze()  # so that a garbage collection in a test does not write to all pages

    def _run(self, fds: Sequence[int], value_bytes: int, any_sequence: bool) -> bytes:
        """Run one test and kill everything that it leaves. Returns the report."""
        start = time.monotonic()
        pid = linux.bare_fork()
        if pid == 0:
            self._become_test(fds, value_bytes, any_sequence)
        linux.checked(pid, "fork of a test")
        limit = self._wait(pid, start + self.wall_s)
        wall_s = time.monotonic() - start
        code, cpu_s, peak = self._kill(pid)
        if self.usage is not None:
            cpu_s = self.usage.cpu_s()
            limit = MEMORY if self.usage.killed_for_memory() else limit
            self.usage.restart()
        return _REPORT.pack(REPORT, code, limit, wall_s, cpu_s, peak)

    def _become_test(self, fds: Sequence[int], value_bytes: int, any_sequence: bool) -> NoReturn:
        exit_code = 1
        try:
            try:
                become_test(self.steps, fds, self.last_fd)
            except BaseException as e:
                self.channel.send(SETUP_FAILED + f"could not set up a test: {e!r}".encode()[: MESSAGE_BYTES - 1])
                raise
            if self.call is not None:
                self.call.value_bytes, self.call.any_sequence = value_bytes, any_sequence
            exit_code = program.execute(self.main)
        finally:
            os._exit(exit_code)

    def _wait(self, pid: int, deadline: float) -> int:
        """Wait until a test has ended. If it exceeds a limit, signal it to flush its streams, and return the limit."""
        pidfd = os.pidfd_open(pid)
        self.poll.register(pidfd, select.POLLIN)
        limit, cpu_s = NO_LIMIT, 0.0
        try:
            while True:
                left = min(deadline - time.monotonic(), max((self.cpu_s - cpu_s) / self.cpus, CPU_CHECK_S))
                left = left if self.usage is None else min(left, MEMORY_CHECK_S)
                if self.poll.poll(max(0.0, left * 1000)):
                    return limit
                cpu_s = process_cpu_s(pid) if self.usage is None else self.usage.cpu_s()
                limit = CPU if cpu_s >= self.cpu_s else WALL if time.monotonic() >= deadline else NO_LIMIT
                if self.usage is not None and self.usage.killed_for_memory():
                    limit = MEMORY
                if limit:
                    os.kill(pid, program.FLUSH)
                    self.poll.poll(FLUSH_S * 1000)
                    return limit
        finally:
            self.poll.unregister(pidfd)
            os.close(pidfd)

    def _kill(self, pid: int) -> tuple[int, float, int]:
        """Kill and reap a test and everything that it left. Returns its exit code, CPU seconds and peak memory."""
        kill_test(self.level, pid)  # before the id is free for another process
        _, status, usage = os.wait4(pid, 0)
        code, peak, cpu_s = os.waitstatus_to_exitcode(status), usage.ru_maxrss, usage.ru_utime + usage.ru_stime
        try:
            while True:
                if self.level == "basic":
                    kill_children()
                _, _, usage = os.wait4(-1, 0)
                peak, cpu_s = max(peak, usage.ru_maxrss), cpu_s + usage.ru_utime + usage.ru_stime
        except ChildProcessError:  # nothing is left
            pass
        return code, cpu_s, peak * 1024

    def _remove_files(self) -> None:
        """Empty the folders that a test can write to. Raises CleanupError if that fails."""
        try:
            for folder in (SHARED, self.home) if self.level == "ns" else (self.home,):
                owned = os.stat(folder).st_uid == os.getuid()
                if owned:
                    os.chmod(folder, 0o1777 if self.level == "ns" else 0o700)
                empty(folder)
                if owned:  # marks for the next test (297_traces_for_the_next_test)
                    _remove_marks(folder)
        except OSError as e:
            raise CleanupError from e


def _remove_marks(folder: str) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)  # level "lsm" refuses these calls for paths
    try:
        os.utime(fd, (0, 0))
        for name in os.listxattr(fd):
            if name.startswith(("user.", "system.posix_acl_")):
                os.removexattr(fd, name)
    finally:
        os.close(fd)


class GroupUsage:
    """Resources used by the cgroup of this runner since the last restart().

    Args:
        usage, events: descriptors of the files with the CPU usage and the memory events of the cgroup.
    """

    def __init__(self, usage: int, events: int) -> None:
        self.usage, self.events = usage, events
        self.restart()

    def restart(self) -> None:
        self.cpu_before, self.kills_before = read_usage(self.usage), read_kills(self.events)

    def cpu_s(self) -> float:
        return read_usage(self.usage) - self.cpu_before

    def killed_for_memory(self) -> bool:
        """Whether the kernel has killed a process because of the memory limit."""
        return read_kills(self.events) > self.kills_before


def become_test(steps: Sequence[Step], fds: Sequence[int], last_fd: int) -> None:
    """Take the steps with which a forked process becomes a test, and renumber its descriptors from 0.

    This executes little Python, and the server does so before the first fork (see warm_up), because the kernel copies
    each page that is written to.

    Args:
        steps: functions to call, with their arguments.
        fds: descriptors of the test.
        last_fd: all other descriptors below this number are closed.

    Raises:
        OSError: if a step fails.
    """
    for step, arguments in steps:
        step(*arguments)
    for number, fd in enumerate(fds):
        os.dup2(fd, number)
    os.closerange(len(fds), last_fd)  # the runner's socket, over which a test could report itself (20_forged_messages)


def test_steps(level: str, cpu_s: float) -> list[Step]:
    """Return the steps for become_test(): a test enters a session and gives up the right to signal its runner.

    At level "lsm", a test cannot leave its process group, by which its processes are killed.

    Args:
        cpu_s: CPU limit of the test.
    """
    most = math.ceil(cpu_s) + 1  # a fallback: the runner and the server are more precise
    steps: list[Step] = [
        (linux.set_dumpable, ()),
        (os.setsid, ()),  # later, because the monitor may look at every process outside the group of the runner
        (resource.setrlimit, (resource.RLIMIT_CPU, (most, most + 1))),  # 09_cpu_spin_ignore_xcpu, 296_cpu_of_a_test
        (set_handler, (signal.SIGINT, signal.default_int_handler)),
        (set_handler, (program.FLUSH, program.flush)),
    ]
    if level == "lsm":
        # Without either, a test could stop its runner, which has the same user (99_reach_the_runner).
        scoped = landlock.version() >= landlock.SCOPES_SINCE
        if scoped:
            steps.append((landlock.signal_scope(), ()))
        steps.append((GroupFilter(guard_signals=not scoped).install, ()))
    return steps


def warm_up(times: int) -> None:
    """Execute become_test() several times, with steps that have no effect."""
    for _ in range(times):
        become_test([(os.getpid, ())], (0, 1, 2), 3)


class FunctionCall:
    """Calls a function of a program with the JSON arguments from ARGUMENTS, and writes its value as JSON to VALUE.

    Args:
        code: the compiled program.
        function: ``name`` or ``Class.method``. A method is called on a new instance. If the program has no function
            ``name``, the method ``Solution.name`` is called.

    ``value_bytes`` is the maximum size of the value, ``any_sequence`` as in Case.
    """

    def __init__(self, code: types.CodeType, function: str) -> None:
        self.code, self.function, self.module = code, function, program.new_function_module()
        self.value_bytes, self.any_sequence = values.VALUE_BYTES, False

    def __call__(self) -> None:
        with open(ARGUMENTS, "rb") as file:
            arguments = json.load(file)
        program.run_in(self.module, self.code)
        value = program.find_function(self.module, self.function)(*arguments)
        text = values.encode_returned(value, self.function, self.value_bytes, self.any_sequence)
        rest = memoryview(text.encode())
        while rest:
            rest = rest[os.write(VALUE, rest) :]


def process_cpu_s(pid: int) -> float:
    """Return the CPU seconds of a process without its children; 0 if it does not exist."""
    try:
        return time.clock_gettime(~pid << 3 | 2)  # the CPU clock of another process; see clock_getcpuclockid(3)
    except OSError:
        return 0.0


def kill_test(level: str, pid: int) -> None:
    """Kill a test that has not been reaped, and the processes that it started."""
    if level == "ns":
        os.kill(-1, signal.SIGKILL)  # every process of the namespace except this one
    else:
        with contextlib.suppress(ProcessLookupError):  # it was killed before it entered its session
            os.killpg(pid, signal.SIGKILL)
        os.kill(pid, signal.SIGKILL)


def kill_children() -> None:
    """Kill all children of this process, including orphans that it adopted."""
    for pid in processes.children(os.getpid()):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def empty(folder: str) -> None:
    """Remove the contents of a folder. Raises OSError if something is left."""
    if os.listdir(folder):
        empty_folder(folder)
        if os.listdir(folder):
            raise OSError(f"{folder} is not empty")
