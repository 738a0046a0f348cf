"""The test driver: runs many tests of one program in one sandbox. It compiles the program once and forks each test.

The host sends test numbers and the descriptors of each test's streams. The driver forks each test, kills it at its time
limit, removes its processes and files, and reports the exit status that the kernel returned. A test inherits no
descriptor of the driver, and its confinement prevents it from signaling or reading the driver and other tests.

Most of the cost of a test is copying the pages that the test or the driver writes to after the fork. Therefore as much
work as possible is done before the fork, and all available tests are forked together. A forked test sets itself up
while other tests run, and then waits for its start event.
"""

from __future__ import annotations

import contextlib
import gc
import math
import os
import resource
import select
import signal
import socket
import time
from array import array
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from gem.sandbox.zygote import limits, linux, procfs, program
from gem.sandbox.zygote.batch_clock import FairClock
from gem.sandbox.zygote.batch_protocol import (
    CHANNEL,
    CLEANUP_FAILED,
    COMPILE_FAILED,
    COMPILED,
    MAX_STARTS,
    MESSAGE_BYTES,
    OVERSUBSCRIPTION,
    SOURCE,
    TEST_FDS,
    DriverCommand,
    RunReport,
)
from gem.sandbox.zygote.invocation import FunctionInvocation, ScriptInvocation
from gem.sandbox.zygote.workspaces import CleanupError, ProcessLimits, Workspace, Workspaces

DEATH_S = 5.0  # time for killed processes to exit
FLUSH_S = 0.02  # time for a test that timed out to flush its streams
FAILED = 125  # exit code of a fork that could not start its test
QUICK_S = 0.02  # a test that takes less time than this counts as quick
_ROOM_FOR_FDS = socket.CMSG_SPACE(MAX_STARTS * TEST_FDS * array("i").itemsize)


def run(options: Mapping[str, Any], fds: Sequence[int]) -> NoReturn:
    """Run tests until the host closes its socket.

    Args:
        options: ``function``, the name of the function to call, or None to run a script; ``level``, the isolation
            level; ``parallel``, the number of processors; ``wall_s``, ``cpu_s``, ``memory_bytes`` and ``disk_bytes``,
            the limits of each test.
        fds: the standard streams, a SOCK_SEQPACKET socket to the host, and a file with the program's source.
    """
    exit_code = 1
    try:
        driver = Driver(options, socket.socket(fileno=fds[CHANNEL]))
        driver.serve(read_all(fds[SOURCE]))
        exit_code = 0
    except CleanupError:
        exit_code = CLEANUP_FAILED
    except BaseException:
        program.show_exception()
    finally:
        os._exit(exit_code)


@dataclass
class RunningTest:
    """A forked test.

    Args:
        fds: descriptors of the test. They stay open until the test has ended, so that the host is not woken when the
            test closes a pipe.
        start, deadline: seconds of the driver's clock; infinite until the test is started.
        timed_out: whether the test reached its deadline.
    """

    number: int
    pid: int
    workspace: Workspace
    fds: Sequence[int]
    pidfd: int = -1
    start: float = math.inf
    deadline: float = math.inf
    timed_out: bool = False


class Driver:
    """Starts tests when the host requests them and waits for all of them at the same time."""

    def __init__(self, options: Mapping[str, Any], channel: socket.socket) -> None:
        self.options, self.channel = options, channel
        linux.adopt_orphans()
        with contextlib.suppress(OSError):  # only for speed: fewer preemptions when processes wake each other
            os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
        self.workspaces, self.clock = Workspaces(options["level"]), FairClock(options["parallel"])
        self.waiting: deque[tuple[int, Sequence[int]]] = deque()  # (number, descriptors) of tests to fork
        self.ready: deque[RunningTest] = deque()  # forked and waiting to start
        self.live: dict[int, RunningTest] = {}  # running tests by pidfd, oldest first
        self.ended: list[RunningTest] = []  # ended tests whose workspaces have to be cleared
        self.quick = 0  # number of quick tests in a row
        self.full = False  # whether a fork failed because of the memory or process limit
        self.has_leftovers = False  # whether the shared folders contain files created by tests
        self.reports: list[RunReport] = []  # reports to send to the host
        self.setup_errors = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)  # pipe on which forked tests report setup errors
        self.poll = select.poll()
        self.poll.register(channel, select.POLLIN)

    def serve(self, source: bytes) -> None:
        """Run tests until the host closes its socket. If the program does not compile, report that and return."""
        code = program.compiled(source)
        self.channel.send(COMPILE_FAILED if code is None else COMPILED)
        if code is None:
            return
        function = self.options["function"]
        self.invoke = ScriptInvocation(code) if function is None else FunctionInvocation(code, function)
        self._set_limits()
        program.open_streams()
        gc.freeze()  # so that a garbage collection in a test does not write to all pages
        try:
            while self._wait():
                now = self.clock.now()
                for test in [test for test in self.live.values() if test.deadline <= now]:
                    self._end_late(test)
                if self.ended:
                    self._process_ended()
                if self.waiting and not self.full and not self.ready:
                    self._fork_all()
        finally:
            self._send_reports()

    def _set_limits(self) -> None:
        """Set the limits that tests inherit from this process, and compute those that each test sets for itself."""
        lower(resource.RLIMIT_AS, self.options["memory_bytes"] + limits.image_bytes())
        lower(resource.RLIMIT_FSIZE, self.options["disk_bytes"])
        cpu_s = math.ceil(self.options["cpu_s"])
        self.test_limits = ProcessLimits((cpu_s, cpu_s + 1), resource.getrlimit(resource.RLIMIT_NOFILE)[0])

    def _wait(self) -> bool:
        """Wait for a command, the end of a test, or a deadline. Returns False if the host closed its socket."""
        fair_s = min((test.deadline for test in self.live.values()), default=math.inf) - self.clock.now()
        timeout_ms = None if fair_s == math.inf else max(0.0, fair_s / self.clock.rate * 1000)
        for fd, _ in self.poll.poll(timeout_ms):
            if fd == self.channel.fileno() and not self._receive_command():
                return False
            if fd in self.live:  # a command may have stopped the test
                self._finish(self.live[fd])
        return True

    def _end_late(self, test: RunningTest) -> None:
        """Signal a test that timed out to flush its streams. The second call for the same test kills it."""
        if test.timed_out:
            self._finish(test)
            return
        test.timed_out = True
        test.deadline += FLUSH_S
        os.kill(test.pid, program.FLUSH)

    def _receive_command(self) -> bool:
        """Receive a command to start or stop tests. Returns False if the host closed its socket."""
        data, ancillary, _, _ = self.channel.recvmsg(MESSAGE_BYTES, _ROOM_FOR_FDS)
        if not data:
            return False
        order = DriverCommand.of(data)
        if order.start:
            fds = array("i", ancillary[0][2])
            each = len(fds) // len(order.numbers)
            self.waiting.extend((number, fds[n * each : (n + 1) * each]) for n, number in enumerate(order.numbers))
        else:
            for test in [test for test in self.live.values() if test.number in order.numbers]:
                self._finish(test)
        return True

    def _fork_all(self) -> None:
        """Fork the waiting tests until all are forked or a fork fails. Tests that can start now are forked first."""
        while self.waiting and not self.full:
            vacant = self._capacity() - len(self.live) - len(self.ready)
            self._fork_some(min(vacant, len(self.waiting)) if vacant > 0 else len(self.waiting))
            self._start_ready()

    def _fork_some(self, count: int) -> None:
        """Fork ``count`` tests. Do little between the forks, because each page written to is then copied."""
        self.workspaces.ensure_free(count)
        pids: list[int] = []
        for (_, fds), workspace in zip(self.waiting, self.workspaces.free[:count], strict=False):
            pid = linux.bare_fork()
            if pid == 0:
                self._become_test(workspace, fds)
            if pid < 0:
                self.full = True
                break
            pids.append(pid)
        if self.full and not (pids or self.ready or self.live):
            linux.checked(-1, "no room for a single test")
        for pid in pids:
            os.setpgid(pid, pid)
            number, fds = self.waiting.popleft()
            self.ready.append(RunningTest(number, pid, self.workspaces.free.pop(0), fds))

    def _start_ready(self) -> None:
        """Start forked tests until the capacity is reached. Start no test while the shared folders contain files."""
        while self.ready and len(self.live) < self._capacity() and not self.has_leftovers:
            test = self.ready.popleft()
            test.start = self.clock.change_running(+1)
            test.deadline = test.start + self.options["wall_s"]
            os.eventfd_write(test.workspace.start_event, 1)
            test.pidfd = os.pidfd_open(test.pid)
            self.live[test.pidfd] = test
            self.poll.register(test.pidfd, select.POLLIN)

    def _capacity(self) -> int:
        """Return how many tests may run at the same time: more than one per processor as long as tests are quick."""
        processors = self.clock.processors
        if not self.quick or len(self.live) < processors:
            return processors
        oldest = next(iter(self.live.values()))
        return OVERSUBSCRIPTION * processors if self.clock.now() - oldest.start < QUICK_S else processors

    def _become_test(self, workspace: Workspace, fds: Sequence[int]) -> NoReturn:
        exit_code = 1
        try:
            workspace.enter(self.test_limits, fds)
        except BaseException as e:
            os.write(self.setup_errors[1], f"could not set up a test: {e!r}".encode())
            os._exit(FAILED)
        try:
            exit_code = self.invoke()
        finally:
            os._exit(exit_code)

    def _finish(self, test: RunningTest) -> None:
        """Kill a test and its process group, and queue a report."""
        os.killpg(test.pid, signal.SIGKILL)
        _, status, usage = os.wait4(test.pid, 0)
        wall_s = self.clock.change_running(-1) - test.start
        self.quick = self.quick + 1 if wall_s < QUICK_S else 0
        del self.live[test.pidfd]
        self.poll.unregister(test.pidfd)
        os.close(test.pidfd)
        code, cpu_s = os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime
        setup_error = self._setup_error() if code == FAILED else b""
        peak = usage.ru_maxrss * 1024
        self.reports.append(RunReport(test.number, code, test.timed_out, wall_s, cpu_s, peak, setup_error))
        if code < 0 or code == FAILED:
            test.workspace.reset_start_event()  # the test may have died before reading the event
        self._reap(test)
        self.ended.append(test)

    def _process_ended(self) -> None:
        """Start new tests in place of ended tests, send the reports, and clear the workspaces of the ended tests."""
        self.has_leftovers = self.workspaces.has_leftovers()
        if self.has_leftovers and not self.live:  # a running test may be using the files
            self.workspaces.remove_leftovers()
            self.has_leftovers = False
        self.full = False
        self._start_ready()
        self._send_reports()
        for test in self.ended:
            for fd in test.fds:
                os.close(fd)
            test.workspace.clear()
            self.workspaces.free.append(test.workspace)
        self.ended.clear()

    def _send_reports(self) -> None:
        if self.reports:
            self.channel.send(b"".join([report.packed() for report in self.reports]))
            self.reports.clear()

    def _setup_error(self) -> bytes:
        try:
            return os.read(self.setup_errors[0], MESSAGE_BYTES)
        except BlockingIOError:  # the program itself exited with this code
            return b""

    def _reap(self, test: RunningTest) -> None:
        """Reap every process in the group of a killed test. Orphaned processes are children of this process.

        Raises:
            CleanupError: if processes remain after DEATH_S.
        """
        deadline = time.monotonic() + DEATH_S
        try:
            while os.waitpid(-test.pid, os.WNOHANG)[0] or time.monotonic() < deadline:
                time.sleep(0.0005)
        except ChildProcessError:
            if not self.workspaces.confinements.enabled:
                self._kill_strays(deadline)
        else:
            raise CleanupError

    def _kill_strays(self, deadline: float) -> None:
        """Kill child processes that left their test's process group. Raises CleanupError after the deadline."""
        ours = {test.pid for test in (*self.live.values(), *self.ready)}
        while leftover := set(procfs.children(os.getpid())) - ours:
            for pid in leftover:
                with contextlib.suppress(ProcessLookupError, ChildProcessError):
                    os.kill(pid, signal.SIGKILL)
                    os.waitpid(pid, 0)
            if time.monotonic() > deadline:
                raise CleanupError


def lower(limit: int, value: int) -> None:
    """Set the soft and hard limit of a resource to ``value``, or to the current hard limit if that is lower."""
    hard = resource.getrlimit(limit)[1]
    value = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(limit, (value, value))


def read_all(fd: int) -> bytes:
    with open(fd, "rb") as file:
        return file.read()
