"""Many tests of one program in one sandbox: the program is compiled once, and each test is a fork of this process.

The host sends a test's number and its streams. This driver forks the test, ends it at its time limit, kills whatever it
left behind, removes its files, and reports how it ended; that report is the kernel's word, not the program's. A test
enabled no descriptor of the driver's, and its fence keeps it from signalling or reading the driver and its siblings.

A page that a fork writes to is copied, and so is one that this process writes to after a fork. That is most of what a
test costs: what can be done before is, and all tests that are at hand are forked at once. They prepare themselves while
others run, and wait for a start_event.
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

DEATH_S = 5.0  # for killed processes to be gone
FLUSH_S = 0.02  # for a test that took too long to flush its streams
FAILED = 125  # exit code of a fork that could not become a test
QUICK_S = 0.02  # a test that takes less is a quick one
_ROOM_FOR_FDS = socket.CMSG_SPACE(MAX_STARTS * TEST_FDS * array("i").itemsize)


def run(options: Mapping[str, Any], fds: Sequence[int]) -> NoReturn:
    """Run tests until the host hangs up.

    options: ``function`` to call, or None; ``level`` of the sandbox; processors for tests in ``parallel``; ``wall_s``,
        ``cpu_s``, ``memory_bytes`` and ``disk_bytes`` of each.
    fds: standard streams, a SOCK_SEQPACKET socket to the host, the program's source.
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
    """One that was forked.

    Args:
        fds: its descriptors. They are kept until it is over, or each end of a pipe would wake the host.
        start, deadline: by the driver's clock, once it runs.
        timed_out: whether it met its deadline.
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
    """Starts tests as the host asks, and waits for all of them at once."""

    def __init__(self, options: Mapping[str, Any], channel: socket.socket) -> None:
        self.options, self.channel = options, channel
        linux.adopt_orphans()
        with contextlib.suppress(OSError):  # for speed alone: who is woken waits until another has done its part
            os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
        self.workspaces, self.clock = Workspaces(options["level"]), FairClock(options["parallel"])
        self.waiting: deque[tuple[int, Sequence[int]]] = deque()  # numbers and descriptors of tests to be forked
        self.ready: deque[RunningTest] = deque()  # those that were
        self.live: dict[int, RunningTest] = {}  # those that run, by pidfd; the oldest is first
        self.ended: list[RunningTest] = []  # those that did, whose places are to be cleared
        self.quick = 0  # tests in a row that took little time
        self.full = False  # those that were forked leave no room for another
        self.has_leftovers = False  # something lies where all tests may write
        self.reports: list[RunReport] = []  # to be sent
        self.setup_error = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)  # where a fork says that it could not become a test
        self.poll = select.poll()
        self.poll.register(channel, select.POLLIN)

    def serve(self, source: bytes) -> None:
        """Returns when the program does not compile, or the host has hung up."""
        code = program.compiled(source)
        self.channel.send(COMPILE_FAILED if code is None else COMPILED)
        if code is None:
            return
        function = self.options["function"]
        self.invoke = ScriptInvocation(code) if function is None else FunctionInvocation(code, function)
        self._set_limits()
        program.open_streams()
        gc.freeze()  # or a collection in a test would write to all of it
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
        """Those that this process can share with its tests, and the end of the descriptors."""
        lower(resource.RLIMIT_AS, self.options["memory_bytes"] + limits.image_bytes())
        lower(resource.RLIMIT_FSIZE, self.options["disk_bytes"])
        cpu_s = math.ceil(self.options["cpu_s"])
        self.test_limits = ProcessLimits((cpu_s, cpu_s + 1), resource.getrlimit(resource.RLIMIT_NOFILE)[0])

    def _wait(self) -> bool:
        """Wait for orders, the ends of tests, or a time limit; False when the host has hung up."""
        fair_s = min((test.deadline for test in self.live.values()), default=math.inf) - self.clock.now()
        timeout_ms = None if fair_s == math.inf else max(0.0, fair_s / self.clock.rate * 1000)
        for fd, _ in self.poll.poll(timeout_ms):
            if fd == self.channel.fileno() and not self._receive_command():
                return False
            if fd in self.live:  # not stopped by an order meanwhile
                self._finish(self.live[fd])
        return True

    def _end_late(self, test: RunningTest) -> None:
        """A test that took too long is told so, to flush its streams, and then ended."""
        if test.timed_out:
            self._finish(test)
            return
        test.timed_out = True
        test.deadline += FLUSH_S
        os.kill(test.pid, program.FLUSH)

    def _receive_command(self) -> bool:
        """Take a test to be started, or stop one; False when the host has hung up."""
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
        """Fork all tests that are at hand, as far as those that run leave room; who can run at once comes first."""
        while self.waiting and not self.full:
            vacant = self._capacity() - len(self.live) - len(self.ready)
            self._fork_some(min(vacant, len(self.waiting)) if vacant > 0 else len(self.waiting))
            self._start_ready()

    def _fork_some(self, count: int) -> None:
        """Fork so many tests, with little done in between, which would be copied."""
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
        """Let as many tests run as may."""
        while self.ready and len(self.live) < self._capacity() and not self.has_leftovers:
            test = self.ready.popleft()
            test.start = self.clock.share(+1)
            test.deadline = test.start + self.options["wall_s"]
            os.eventfd_write(test.workspace.start_event, 1)
            test.pidfd = os.pidfd_open(test.pid)
            self.live[test.pidfd] = test
            self.poll.register(test.pidfd, select.POLLIN)

    def _capacity(self) -> int:
        """How many tests may run: while all are quick, more than there are processors, which would idle between two."""
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
            os.write(self.setup_error[1], f"a test could not be set up: {e!r}".encode())
            os._exit(FAILED)
        try:
            exit_code = self.invoke()
        finally:
            os._exit(exit_code)

    def _finish(self, test: RunningTest) -> None:
        """End a test, if it has not ended, with everything that it started."""
        os.killpg(test.pid, signal.SIGKILL)
        _, status, usage = os.wait4(test.pid, 0)
        wall_s = self.clock.share(-1) - test.start
        self.quick = self.quick + 1 if wall_s < QUICK_S else 0
        del self.live[test.pidfd]
        self.poll.unregister(test.pidfd)
        os.close(test.pidfd)
        code, cpu_s = os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime
        setup_error = self._setup_error() if code == FAILED else b""
        peak = usage.ru_maxrss * 1024
        self.reports.append(RunReport(test.number, code, test.timed_out, wall_s, cpu_s, peak, setup_error))
        if code < 0 or code == FAILED:
            test.workspace.reset_start_event()  # it may not have been heard
        self._reap(test)
        self.ended.append(test)

    def _process_ended(self) -> None:
        """Let others run in workspace of tests that ended, report these, and clear their places."""
        self.has_leftovers = self.workspaces.has_leftovers()
        if self.has_leftovers and not self.live:  # while one runs what lies there may be in use
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
            return os.read(self.setup_error[0], MESSAGE_BYTES)
        except BlockingIOError:  # the exit code was the program's own
            return b""

    def _reap(self, test: RunningTest) -> None:
        """Wait until every process of a killed group is gone; those orphaned became children of this one."""
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
        """Kill what left the group of an ended test and became a child of this process."""
        ours = {test.pid for test in (*self.live.values(), *self.ready)}
        while leftover := set(procfs.children(os.getpid())) - ours:
            for pid in leftover:
                with contextlib.suppress(ProcessLookupError, ChildProcessError):
                    os.kill(pid, signal.SIGKILL)
                    os.waitpid(pid, 0)
            if time.monotonic() > deadline:
                raise CleanupError


def lower(limit: int, value: int) -> None:
    """Lower a limit of this process; where it is lower already, nothing happens."""
    hard = resource.getrlimit(limit)[1]
    value = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(limit, (value, value))


def read_all(fd: int) -> bytes:
    with open(fd, "rb") as file:
        return file.read()
