"""The host side of a test driver: send commands, receive reports, and read the output of the tests."""

from __future__ import annotations

import contextlib
import os
import socket
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gem.errors import SandboxError
from gem.sandbox.base import Case, Limits, Result, Status
from gem.sandbox.command_sandbox import as_bytes
from gem.sandbox.zygote import values
from gem.sandbox.zygote.batch_protocol import (
    CLEANUP_FAILED,
    COMPILE_FAILED,
    MESSAGE_BYTES,
    OVERSUBSCRIPTION,
    DriverCommand,
    RunReport,
)
from gem.sandbox.zygote.host import Launcher, RunExit, run_status
from gem.sandbox.zygote.output_reader import OutputReader
from gem.sandbox.zygote.protocol import in_memory

GRACE_S = 5.0  # time after a test's time limit within which the driver must report
HANGUP_S = 1.0  # time for a driver to exit after it closed its socket
DEATH_S = 10.0  # time for a killed driver to exit
DRIVER_CPU_S = 1e6  # CPU limit of the driver; each test has a separate limit
NO_VALUE = b"\n[the program ended without returning a value]\n"


@dataclass(frozen=True)
class Job:
    """The program, function and limits that all tests of a batch share.

    Args:
        program: Python source.
        function: function to call; None runs the program as a script.
        limits: limits of each test.
        level: isolation level.
    """

    program: bytes
    function: str | None
    limits: Limits
    level: str

    def options(self, parallel: int) -> dict[str, Any]:
        limits = {name: getattr(self.limits, name) for name in ("wall_s", "memory_bytes", "disk_bytes")}
        limits["cpu_s"] = self.limits.cpu_seconds
        return {"function": self.function, "level": self.level, "parallel": parallel, **limits}

    def driver_limits(self, parallel: int) -> Limits:
        crowd = {name: getattr(self.limits, name) * parallel * OVERSUBSCRIPTION for name in ("processes", "disk_bytes")}
        return replace(self.limits, cpu_s=DRIVER_CPU_S, memory_bytes=self.limits.memory_bytes * parallel, **crowd)


class CompileFailed(Exception):
    """The program could not be compiled. ``result`` is the result of every test."""

    def __init__(self, result: Result) -> None:
        super().__init__(result.stderr)
        self.result = result


class DriverLost(Exception):
    """The driver and all running tests died.

    Args:
        result: the result of the test that caused the failure; None if the cause is unknown.
        cleanup_failed: whether the driver exited because it could not clean up after an earlier test.
    """

    def __init__(self, message: str, result: Result | None, *, cleanup_failed: bool) -> None:
        super().__init__(f"the test driver died: {message}")
        self.result, self.cleanup_failed = result, cleanup_failed


@dataclass
class PendingTest:
    """A test in progress.

    Args:
        pipes: read ends for stdout, stderr and, for a function call, the value.
        start: time.monotonic() when the test was sent to the driver.
        flooded: whether the test is being killed for excessive output.
    """

    pipes: Sequence[int]
    start: float
    flooded: bool = False


class DriverConnection:
    """A running driver. Leaving the context manager kills the driver and all its tests."""

    def __init__(self, launch: Launcher, job: Job, parallel: int) -> None:
        self.job, self.parallel = job, parallel
        self.running: dict[int, PendingTest] = {}
        self.reports: deque[RunReport] = deque()  # received, but not yet returned by next_result()
        self.listener = OutputReader()
        with contextlib.ExitStack() as ours, contextlib.ExitStack() as theirs:
            self.channel, channel = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            ours.callback(self.channel.close)
            theirs.callback(channel.close)
            ours.callback(self.listener.close)
            self.driver_output, driver_output = self.listener.pipe(job.limits.output_bytes)
            theirs.callback(os.close, driver_output)
            null, source = (closed_by(theirs, in_memory(data)) for data in (b"", job.program))
            fds = [null, driver_output, driver_output, channel.fileno(), source]
            self.launch = launch("tests", job.options(parallel), fds, job.driver_limits(parallel), None)
            ours.callback(self.launch.close)
            self.resources = ours.pop_all()
        self.listener.watch(self.channel.fileno())
        self.listener.watch(self.launch.fileno())

    def __enter__(self) -> DriverConnection:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.launch.kill(Status.KILLED)
            self.launch.wait(DEATH_S)
        finally:
            self.resources.close()

    def await_compiled(self) -> None:
        """Wait until the program is compiled.

        Raises:
            CompileFailed: if the program does not compile within its limits.
            SandboxError: if the driver failed.
        """
        self.launch.wait_until_started()
        message = self._receive(time.monotonic() + self.job.limits.wall_s)
        if not message:
            ended = self._ended(Status.TIMEOUT if message is None else None)
            if ended.exit_code is not None:
                raise SandboxError(f"the test driver failed: {self._driver_errors() or ended}")
            raise CompileFailed(
                Result(status=run_status(ended, self.job.limits), signal=ended.signal, stderr=self._driver_errors())
            )
        if message == COMPILE_FAILED:
            self._ended(None)
            raise CompileFailed(Result(status=Status.ERROR, exit_code=1, stderr=self._driver_errors()))

    def start(self, cases: Mapping[int, Case]) -> None:
        """Start tests; the keys are the test numbers. If the driver has died, next_result() raises DriverLost."""
        fds = []
        try:
            for index, case in cases.items():
                inputs = [as_bytes(case.stdin)]
                sizes = [self.job.limits.output_bytes] * 2
                if self.job.function is not None:
                    inputs.append(as_bytes(case.arguments or ""))
                    sizes.append(values.VALUE_BYTES)
                readers, writers = zip(*map(self.listener.pipe, sizes), strict=True)
                fds += [in_memory(inputs[0]), *writers[:2], *map(in_memory, inputs[1:]), *writers[2:]]
                self.running[index] = PendingTest(readers, time.monotonic())
            self._send(DriverCommand(True, list(cases)), fds)
        finally:
            for fd in fds:
                os.close(fd)

    def next_result(self) -> tuple[int, Result]:
        """Wait for the next test to end and return its number and result.

        Raises:
            DriverLost: if the driver died or did not report in time.
            SandboxError: if a test could not be set up.
        """
        if not self.reports:
            timeout_s = OVERSUBSCRIPTION * self.job.limits.wall_s + GRACE_S  # at least one test must have ended by then
            message = self._receive(time.monotonic() + timeout_s)
            if not message:
                raise self._lost_driver(late=message is None)
            self.reports.extend(RunReport.all_of(message))
        report = self.reports.popleft()
        if report.setup_error:
            raise SandboxError(report.setup_error.decode("utf-8", "replace"))
        test = self.running.pop(report.number)
        result = self._result(report, test)
        self.listener.close(*test.pipes)
        return report.number, result

    def _result(self, report: RunReport, test: PendingTest) -> Result:
        why = Status.OUTPUT_LIMIT if test.flooded else Status.TIMEOUT if report.timed_out else None
        ended = RunExit(
            exit_code=report.code if report.code >= 0 else None,
            signal=-report.code if report.code < 0 else None,
            cpu_s=report.cpu_s,
            max_rss_bytes=report.max_rss_bytes,
            why=why,
        )
        return self._finished(test, ended, report.wall_s)

    def _finished(self, test: PendingTest, ended: RunExit, wall_s: float) -> Result:
        """Return the result of a test. A function call that returned no valid value has status ERROR."""
        self.listener.drain(*test.pipes)
        out, err, *returned = (self.listener.captures[fd] for fd in test.pipes)
        status, value = run_status(ended, self.job.limits, err.text()), None
        if returned and status is Status.OK:
            value = values.checked(bytes(returned[0].head + returned[0].end))
            if value is None:
                status = Status.ERROR
                err.add(NO_VALUE)
        return Result(
            status=status,
            exit_code=ended.exit_code,
            signal=ended.signal,
            stdout=out.text(),
            stderr=err.text(),
            truncated=out.truncated or err.truncated,
            wall_s=wall_s,
            cpu_s=ended.cpu_s,
            max_rss_bytes=ended.max_rss_bytes,
            value=value,
        )

    def _receive(self, deadline: float) -> bytes | None:
        """Return the driver's next message. Returns b"" if the driver died, and None if the deadline passed."""
        while time.monotonic() < deadline:
            ready = self.listener.wait(deadline)
            if self.channel.fileno() in ready or (ready and self.launch.over()):
                for _ in range(2):  # the first read fails if the driver died with unread commands
                    with contextlib.suppress(OSError):
                        return self.channel.recv(MESSAGE_BYTES, socket.MSG_DONTWAIT)
                return b""
            self._stop_floods()
        return None

    def _stop_floods(self) -> None:
        if not self.listener.floods:
            return
        for index, test in self.running.items():
            if not test.flooded and not self.listener.floods.isdisjoint(test.pipes):
                test.flooded = True
                self._send(DriverCommand(False, [index]))

    def _send(self, order: DriverCommand, fds: Sequence[int] = ()) -> None:
        with contextlib.suppress(OSError):
            socket.send_fds(self.channel, [order.packed()], fds)

    def _lost_driver(self, *, late: bool) -> DriverLost:
        ended = self._ended(Status.KILLED if late else None)
        result = None
        if len(self.running) == 1 and not late and ended.exit_code is None:
            (test,) = self.running.values()
            result = self._finished(test, ended, time.monotonic() - test.start)
        return DriverLost(self._driver_errors() or f"{ended}", result, cleanup_failed=ended.exit_code == CLEANUP_FAILED)

    def _ended(self, kill: Status | None) -> RunExit:
        """Wait for the driver to exit. Kill it at once if ``kill`` is given, otherwise after HANGUP_S."""
        ended = self.launch.wait(HANGUP_S) if kill is None else None
        if ended is None:
            self.launch.kill(kill or Status.KILLED)
            ended = self.launch.wait(DEATH_S)
        if ended is None:
            raise SandboxError(f"a killed test driver did not exit within {DEATH_S:g} s")
        return ended

    def _driver_errors(self) -> str:
        """Return the driver's stderr."""
        self.listener.drain(self.driver_output)
        return self.listener.captures[self.driver_output].text()


def closed_by(stack: contextlib.ExitStack, fd: int) -> int:
    stack.callback(os.close, fd)
    return fd
