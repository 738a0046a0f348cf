"""Run many tests of one program: schedule them on a driver and collect their results.

If the driver dies, for example because it exceeded the memory limit, any running test may be the cause. The running
tests are then quarantined: each of them is run again, alone in a sandbox.
"""

from __future__ import annotations

import os
import resource
from collections import deque
from collections.abc import Callable, Sequence

from gem.errors import BadValue, SandboxError
from gem.sandbox.base import Case, Limits, Result
from gem.sandbox.zygote.batch_connection import CompileFailed, DriverConnection, DriverLost, Job
from gem.sandbox.zygote.batch_protocol import MAX_STARTS
from gem.sandbox.zygote.host import Launcher

MAX_PARALLEL = 4
PREFETCH = 16  # maximum number of tests forked in advance; the number grows by one per result
# PREFETCH is lowered to the descriptor limit divided by this number, because other threads also need descriptors.
DESCRIPTORS_EACH = 128


def run_tests(
    launch: Launcher,
    program: bytes,
    cases: Sequence[Case],
    *,
    level: str,
    function: str | None = None,
    limits: Limits,
    stop: Callable[[int, Result], bool] | None = None,
    parallel: int | None = None,
) -> list[Result | None]:
    """Implement Sandbox.run_tests.

    Args:
        launch: starts drivers.
        level: isolation level of the drivers.
        parallel: processors to use. None means one per CPU, at most four.

    Raises:
        SandboxError: if the sandbox fails.
        BadValue: if a function is to be called and a case has no arguments.
    """
    if function is not None and (bare := [i for i, case in enumerate(cases) if case.arguments is None]):
        raise BadValue(f"cases {bare} have no arguments for {function}")
    if parallel is None:
        parallel = min(MAX_PARALLEL, len(os.sched_getaffinity(0)))
    job, batch = Job(program, function, limits, level), _Batch(cases, stop)
    while batch.waiting and not batch.stopped:
        with DriverConnection(launch, job, parallel) as connection:
            batch.run_together(connection)
    while batch.quarantined and not batch.stopped:
        with DriverConnection(launch, job, 1) as connection:
            batch.run_quarantined(connection)
    return batch.results


class _Batch:
    """The waiting tests, the quarantined tests and the results of one program."""

    def __init__(self, cases: Sequence[Case], stop: Callable[[int, Result], bool] | None) -> None:
        self.cases, self.stop, self.stopped = cases, stop, False
        self.waiting, self.quarantined = deque(range(len(cases))), deque[int]()
        self.results: list[Result | None] = [None] * len(cases)

    def run_together(self, connection: DriverConnection) -> None:
        """Run the waiting tests until all have run, stop() returns True, or the driver is lost."""
        try:
            self._run(connection, self.waiting)
        except CompileFailed as broken:
            self.waiting.extendleft(sorted(connection.running, reverse=True))
            while self.waiting and not self.stopped:
                self._keep(self.waiting.popleft(), broken.result)
        except DriverLost as lost:
            if lost.result is None:
                (self.waiting if lost.cleanup_failed else self.quarantined).extend(connection.running)
            else:
                for index in connection.running:  # exactly one test, because lost.result is set
                    self._keep(index, lost.result)

    def run_quarantined(self, connection: DriverConnection) -> None:
        """Run one quarantined test alone. If the driver dies again, the cause is this test."""
        index = self.quarantined.popleft()
        try:
            self._run(connection, deque([index]))
        except CompileFailed as broken:
            self._keep(index, broken.result)
        except DriverLost as lost:
            if lost.result is None:
                raise SandboxError(str(lost)) from lost
            self._keep(index, lost.result)

    def _run(self, connection: DriverConnection, queue: deque[int]) -> None:
        most = min(PREFETCH, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // DESCRIPTORS_EACH)
        # Small at first: if stop() ends the batch early, tests forked in advance are wasted.
        ahead = connection.parallel
        self._refill(connection, queue, ahead)  # before the program is compiled
        connection.await_compiled()
        while not self.stopped and connection.running:
            self._keep(*connection.next_result())
            ahead = min(ahead + 1, most)
            if len(connection.running) <= connection.parallel + ahead // 4 and not self.stopped:
                self._refill(connection, queue, ahead)

    def _refill(self, connection: DriverConnection, queue: deque[int], ahead: int) -> None:
        """Send tests to the driver in one message, so that the driver forks them together."""
        count = min(len(queue), connection.parallel + ahead - len(connection.running), MAX_STARTS)
        if count > 0:
            numbers = [queue.popleft() for _ in range(count)]
            connection.start({number: self.cases[number] for number in numbers})

    def _keep(self, index: int, result: Result) -> None:
        self.results[index] = result
        self.stopped = self.stop is not None and self.stop(index, result)
