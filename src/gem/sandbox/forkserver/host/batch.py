"""Run the tests of one program: distribute them over test runners, and collect the results.

Each runner (see case_runner.py) is a sandbox with the limits of one test, in which tests run one after the other. One
thread waits for all runners at the same time. A runner that dies takes one test with it, whose result follows from how
the runner ended; another runner continues with the remaining tests.
"""

from __future__ import annotations

import contextlib
import errno
import math
import os
import signal
import socket
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gem.errors import BadValue, SandboxError
from gem.sandbox.admission import admission
from gem.sandbox.forkserver.entry import case_runner, values
from gem.sandbox.forkserver.entry.case_runner import CaseReport
from gem.sandbox.forkserver.host.execution import Launcher, NewRun, RunExit, run_status
from gem.sandbox.forkserver.protocol import in_memory
from gem.sandbox.inputs import Job, as_bytes
from gem.sandbox.output import OutputReader, descriptors
from gem.sandbox.results import Case, Result, Status

MAX_PARALLEL = 4  # runners of a program
AHEAD = 2  # tests sent to a runner, including the running one, so that it does not wait for the host
START_S = 120.0  # time for a fork server to start a runner, even on a busy machine
GRACE_S = 5.0  # time after a test's time limit within which the runner must report
DEATH_S = 30.0  # time for a killed runner to end
RUNNER_ERRORS_BYTES = 16_000
# A run is killed some time after it has exceeded a limit. If the runner has started another test in the meantime, it is
# not known which test exceeded the limit.
UNCERTAIN_S = 0.1
# A test that used this fraction of its wall-clock time as CPU time did not have to share a processor.
UNDISTURBED = 0.9
EXCEEDED = {
    case_runner.NO_LIMIT: None,
    case_runner.WALL: Status.TIMEOUT,
    case_runner.CPU: Status.TIMEOUT,
    case_runner.MEMORY: Status.MEMORY,
}
MAX_STALLS = 3
NO_VALUE = b"\n[the program ended without returning a value]\n"


@dataclass
class SentTest:
    """A test that was sent to a runner.

    Args:
        pipes: read ends for stdout, stderr and, for a function call, the value.
        value_bytes: maximum size of the value.
        why: reason for which the host killed the runner during this test; None if it did not.
    """

    index: int
    pipes: Sequence[int]
    value_bytes: int
    why: Status | None = None


class CompileFailed(Exception):
    """The program could not be compiled. ``result`` is the result of every test."""

    def __init__(self, result: Result) -> None:
        super().__init__(result.stderr)
        self.result = result


def run_tests(
    launch: Launcher,
    job: Job,
    cases: Sequence[Case],
    stop: Callable[[int, Result], bool] | None = None,
    *,
    level: str,
    parallel: int | None = None,
) -> list[Result | None]:
    """Implement Sandbox.run_tests.

    Args:
        launch: starts runners.
        job: the program, the function and the limits of each test.
        level: isolation level of the runners.
        parallel: maximum number of tests that run at the same time. None means one per CPU, at most four.

    Raises:
        SandboxError: if the sandbox fails.
        BadValue: if a function is to be called and a case has no arguments.
    """
    if job.function is not None and (bare := [i for i, case in enumerate(cases) if case.arguments is None]):
        raise BadValue(f"cases {bare} have no arguments for {job.function}")
    if parallel is None:
        parallel = min(MAX_PARALLEL, len(os.sched_getaffinity(0)))
    return _Batch(launch, job, level, cases, stop).run(parallel)


class _Batch:
    """The waiting tests and the results of one program.

    ``slow`` are the tests to run again because they exceeded the wall-clock limit but not the CPU limit, which may be
    due to other programs. The second result of such a test counts.
    """

    def __init__(
        self,
        launch: Launcher,
        job: Job,
        level: str,
        cases: Sequence[Case],
        stop: Callable[[int, Result], bool] | None,
    ) -> None:
        self.launch, self.job, self.level, self.cases, self.stop = launch, job, level, cases, stop
        self.waiting, self.slow = deque(range(len(cases))), deque[int]()
        self.results: list[Result | None] = [None] * len(cases)
        self.ran_again: set[int] = set()
        self.stalls = 0  # runners that were too late or killed before they could run a test
        self.stopped = False

    def run(self, parallel: int) -> list[Result | None]:
        """Run all tests until stop() returns True."""
        try:
            while not self.stopped and (self.waiting or self.slow):
                if self.slow:
                    with admission().reserved():
                        self._run(self.slow, 1)
                else:
                    with admission().slot():
                        self._run(self.waiting, parallel)
        except CompileFailed as failed:
            for index in (index for index, result in enumerate(self.results) if result is None):
                if not self.stopped:
                    self._keep(index, failed.result)
        return self.results

    def _run(self, queue: deque[int], parallel: int) -> None:
        """Run the tests of a queue. Stop early if stop() returns True or, except for slow tests, one is slow."""
        runners: list[Runner] = []
        extra = 0
        with contextlib.ExitStack() as cleanup:
            reader = cleanup.enter_context(contextlib.closing(OutputReader()))
            cleanup.callback(lambda: admission().release(extra))
            cleanup.callback(lambda: close_all(runners))
            while not self.stopped:
                if queue is self.slow or not self.slow:
                    if not runners:
                        runners.append(Runner(self.launch, self.job, self.level, reader))
                    elif len(runners) < min(parallel, len(queue)) and runners[0].compiled and admission().extra(1):
                        extra += 1
                        runners.append(Runner(self.launch, self.job, self.level, reader))
                    self._send(queue, runners, parallel)
                if not any(runner.sent for runner in runners):
                    return
                self._wait(queue, runners, reader)

    def _send(self, queue: deque[int], runners: list[Runner], parallel: int) -> None:
        """Send tests to the runners: one to each, and one ahead as long as enough tests are left for all runners."""
        for waiting in range(AHEAD):
            for runner in runners:
                if len(runner.sent) == waiting and queue and (waiting == 0 or len(queue) >= parallel):
                    index = queue.popleft()
                    runner.send(index, self.cases[index])

    def _wait(self, queue: deque[int], runners: list[Runner], reader: OutputReader) -> None:
        """Wait for output, reports or the end of a runner, and handle them."""
        ready = reader.wait(min(runner.deadline for runner in runners))
        for runner in list(runners):
            for found in runner.receive(ready):
                self._keep(*found)
            if runner.ended is not None:
                lost = runner.lost_test()
                if lost is None and not runner.compiled:
                    self.stalls += 1
                    if self.stalls > MAX_STALLS:
                        raise SandboxError(f"a test runner did not start {self.stalls} times; the machine is too busy")
                runners.remove(runner)
                queue.extendleft(reversed(runner.unreported()))
                runner.close()
                if lost is not None:
                    self._keep(*lost)

    def _keep(self, index: int, result: Result, slow: bool = False) -> None:
        if slow and index not in self.ran_again:
            self.ran_again.add(index)
            self.slow.append(index)
        elif not self.stopped:
            self.results[index] = result
            self.stopped = self.stop is not None and self.stop(index, result)


class Runner:
    """A test runner, seen from the host.

    Args:
        level: isolation level.
        reader: reads the output of the tests of all runners.

    ``sent`` are the tests that it has not reported, the running one first. ``ended`` is set when it has ended.
    """

    def __init__(self, launch: Launcher, job: Job, level: str, reader: OutputReader) -> None:
        self.job, self.reader = job, reader
        self.sent: deque[SentTest] = deque()
        self.started = self.compiled = self.killed = False
        self.ended: RunExit | None = None
        self.reports, self.reported_cpu_s = 0, 0.0
        options: dict[str, Any] = {"function": job.function, "level": level}
        options |= {"wall_s": job.limits.wall_s, "cpu_s": job.limits.cpu_seconds}
        with contextlib.ExitStack() as ours, contextlib.ExitStack() as theirs:
            fds = theirs.enter_context(descriptors())
            self.channel, channel = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            ours.callback(self.channel.close)
            theirs.callback(channel.close)
            self.errors = reader.pipe(RUNNER_ERRORS_BYTES, fds)
            ours.callback(reader.close, self.errors)
            fds += (in_memory(content) for content in (b"", as_bytes(job.program)))
            errors, null, source = fds
            self.launch = launch(NewRun("tests", options, [null, errors, errors, channel.fileno(), source], job.limits))
            ours.callback(self.launch.close)
            for fd in (self.channel.fileno(), self.launch.fileno()):
                reader.watch(fd)
                ours.callback(reader.forget, fd)
            self.resources = ours.pop_all()
        self._begin(START_S)

    def send(self, index: int, case: Case) -> None:
        """Send a test. If the runner has died, receive() finds out."""
        inputs, limits = [as_bytes(case.stdin)], [self.job.limits.output_bytes] * 2
        value_bytes = values.VALUE_BYTES if case.value_bytes is None else case.value_bytes
        if self.job.function is not None:
            inputs.append(as_bytes(case.arguments or ""))
            limits.append(value_bytes)
        with descriptors() as fds:
            fds += map(in_memory, inputs)
            pipes = tuple(self.reader.pipe(limit, fds) for limit in limits)
            files, writers = fds[: len(inputs)], fds[len(inputs) :]
            given = [files[0], *writers[:2], *files[1:], *writers[2:]]
            send_test(self.channel, case_runner.request(value_bytes, case.any_sequence), given)
        self.sent.append(SentTest(index, pipes, value_bytes))
        if self.compiled and len(self.sent) == 1:
            self._begin(self.job.limits.wall_s + GRACE_S)

    def receive(self, ready: Sequence[int]) -> list[tuple[int, Result, bool]]:
        """Read messages of the runner and of the fork server, and enforce the limits.

        Args:
            ready: descriptors that are readable.

        Returns:
            (index, result, whether the test is slow) of each test that has ended.

        Raises:
            CompileFailed: if the program does not compile.
            SandboxError: if the runner or a test could not be set up, or a killed runner does not end.
        """
        found = self._messages() if self.channel.fileno() in ready else []
        if self.launch.fileno() in ready:
            self.ended = self.launch.wait(0)
            if self.ended is not None:
                found += self._messages()
            elif not self.started:
                self.started = True
                self._begin(self.job.limits.wall_s)
        if self.ended is None:
            self._enforce_limits()
        return found

    def lost_test(self) -> tuple[int, Result, bool] | None:
        """Remove the test during which the runner died from ``sent``. Called if ``ended`` is set.

        Returns:
            (index, result, whether the test is slow); None if no test is known to be the cause.

        Raises:
            CompileFailed: if the program exceeded a limit while it was compiled.
            SandboxError: if the runner failed by itself.
        """
        ended = self.ended
        assert ended is not None
        if ended.exit_code not in (None, case_runner.CLEANUP_FAILED):
            raise SandboxError(f"a test runner failed: {self._errors() or ended}")
        if not self.compiled:
            status = run_status(ended, self.job.limits)
            late = status is Status.TIMEOUT and ended.cpu_s < self._undisturbed_cpu_s()
            if late or (status is Status.KILLED and ended.signal == signal.SIGKILL):
                return None  # compiling executes no code of the program, so it did not cause this
            raise CompileFailed(Result(status=status, signal=ended.signal, stderr=self._errors()))
        wall_s = time.monotonic() - self.began
        if not self.sent or ended.exit_code is not None:
            return None
        test = self.sent[0]
        if test.why is None and (self.killed or (self.reports and wall_s < UNCERTAIN_S)):
            return None
        ended = replace(ended, cpu_s=max(0.0, ended.cpu_s - self.reported_cpu_s))
        return self._finished(ended, wall_s, slow=test.why is Status.TIMEOUT)

    def _undisturbed_cpu_s(self) -> float:
        """CPU seconds from which on other programs were not the reason for exceeding the wall-clock limit."""
        return min(self.job.limits.cpu_seconds, UNDISTURBED * self.job.limits.wall_s)

    def unreported(self) -> list[int]:
        """Return the tests that were sent and have not been reported."""
        return [test.index for test in self.sent]

    def close(self) -> None:
        """Release the descriptors. The runner must have ended."""
        for test in self.sent:
            self.reader.close(*test.pipes)
        self.resources.close()

    def _begin(self, seconds: float) -> None:
        """Start a period in which the runner must do something: start, compile the program, or run a test."""
        self.began = time.monotonic()
        self.deadline = self.began + seconds

    def _messages(self) -> list[tuple[int, Result, bool]]:
        found = []
        for message in received(self.channel):
            kind = message[:1]
            if kind == case_runner.REPORT:
                found.append(self._reported(CaseReport.of(message)))
            elif kind == case_runner.COMPILED:
                self.compiled = True
                self._begin(self.job.limits.wall_s + GRACE_S)
            elif kind == case_runner.COMPILE_FAILED:
                raise CompileFailed(Result(status=Status.ERROR, exit_code=1, stderr=self._errors()))
            else:
                raise SandboxError(message[1:].decode("utf-8", "replace"))
        return found

    def _reported(self, report: CaseReport) -> tuple[int, Result, bool]:
        usage = {"cpu_s": report.cpu_s, "max_rss_bytes": report.max_rss_bytes}
        ended = RunExit.of(report.code, why=EXCEEDED[report.limit], **usage)
        self.reports += 1
        self.reported_cpu_s += report.cpu_s
        slow = report.limit == case_runner.WALL and report.cpu_s < self._undisturbed_cpu_s()
        finished = self._finished(ended, report.wall_s, slow=slow)
        if not self.killed:
            self._begin(self.job.limits.wall_s + GRACE_S if self.sent else math.inf)
        return finished

    def _finished(self, ended: RunExit, wall_s: float, *, slow: bool) -> tuple[int, Result, bool]:
        """Return the result of the oldest test. A function call that returned no valid value has status ERROR."""
        test = self.sent.popleft()
        self.reader.drain(*test.pipes)
        out, err, *returned = (self.reader.captures[fd] for fd in test.pipes)
        status, value = test.why or run_status(ended, self.job.limits, err.text()), None
        if returned and status is Status.OK:
            if not returned[0].truncated:
                value = values.checked(bytes(returned[0].head + returned[0].end), test.value_bytes)
            if value is None:
                status = Status.ERROR
                err.add(NO_VALUE)
        self.reader.close(*test.pipes)
        return test.index, ended.result(status, out, err, wall_s, value=value), slow

    def _enforce_limits(self) -> None:
        """Kill the runner if it is late or if its test writes too much."""
        if time.monotonic() >= self.deadline:
            if self.killed:
                raise SandboxError(f"a killed test runner did not end within {DEATH_S:g} s")
            if not self.started:
                raise SandboxError(f"the fork server of the sandbox did not start a run within {START_S:g} s")
            self._kill(Status.TIMEOUT)
        elif self.sent and not self.killed and self._writes_too_much(self.sent[0]):
            self._kill(Status.OUTPUT_LIMIT)

    def _kill(self, why: Status) -> None:
        """Kill the runner because of the running test. Its end is received later."""
        if self.sent:
            self.sent[0].why = why
        self.launch.kill(why)
        self.killed = True
        self.deadline = time.monotonic() + DEATH_S

    def _writes_too_much(self, test: SentTest) -> bool:
        if not self.reader.floods.isdisjoint(test.pipes):
            return True
        return any(self.reader.captures[fd].truncated for fd in test.pipes[2:])

    def _errors(self) -> str:
        """Return the stderr of the runner itself, with the traceback of a syntax error."""
        self.reader.drain(self.errors)
        return self.reader.captures[self.errors].text()


def send_test(channel: socket.socket, message: bytes, fds: Sequence[int]) -> None:
    """Send a message with descriptors, unless the runner has died. Raises SandboxError if it cannot be sent."""
    until = time.monotonic() + START_S
    while True:
        try:
            socket.send_fds(channel, [message], fds)
            return
        except (BrokenPipeError, ConnectionResetError):
            return
        except OSError as e:
            if e.errno != errno.ETOOMANYREFS or time.monotonic() > until:  # the runner will receive descriptors soon
                raise SandboxError(f"could not send a test to its runner: {e}") from e
            time.sleep(0.001)


def received(channel: socket.socket) -> list[bytes]:
    """Return the messages that can be received without waiting."""
    messages = []
    for _ in range(2):  # if the runner died with unread tests, the first attempt fails
        with contextlib.suppress(OSError):
            while message := channel.recv(case_runner.MESSAGE_BYTES, socket.MSG_DONTWAIT):
                messages.append(message)
    return messages


def close_all(runners: Sequence[Runner]) -> None:
    """Kill runners, wait until they have ended, and release their descriptors."""
    for runner in runners:
        runner.launch.kill(Status.KILLED)
    for runner in runners:
        try:
            runner.launch.wait(DEATH_S)
        finally:
            runner.close()
