"""Many tests of one program, seen from the host: which runs next, and what became of each.

Where a whole driver dies, by a memory limit for instance, it may be the doing of any test that ran in it. Each of these
is run once more, in a sandbox where it is alone.
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
PREFETCH = 16  # tests at most that a driver has at hand beyond one for each processor, when as many have passed by
DESCRIPTORS_EACH = 128  # that this process may open for each test at hand, since many threads may run tests


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
    """See Sandbox.run_tests.

    level: of the sandboxes that launch() makes.
    parallel: processors for tests, of which quick ones share each; None is one per CPU, at most four.

    Raises SandboxError, and BadValue for a case without arguments where a function is to be called.
    """
    if function is not None and (bare := [i for i, case in enumerate(cases) if case.arguments is None]):
        raise BadValue(f"cases {bare} have no arguments to call {function} with")
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
    """The tests of one program: which wait, which are to run alone, and the results of the others."""

    def __init__(self, cases: Sequence[Case], stop: Callable[[int, Result], bool] | None) -> None:
        self.cases, self.stop, self.stopped = cases, stop, False
        self.waiting, self.quarantined = deque(range(len(cases))), deque[int]()
        self.results: list[Result | None] = [None] * len(cases)

    def run_together(self, connection: DriverConnection) -> None:
        """Run what waits, until nothing does, stop() says so, or the driver is lost."""
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
                for index in connection.running:  # the only one
                    self._keep(index, lost.result)

    def run_quarantined(self, connection: DriverConnection) -> None:
        """Run one suspect. What ends the driver now is this test's doing."""
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
        ahead = connection.parallel  # few at first: what is forked in vain is lost where the first failure ends it all
        self._refill(connection, queue, ahead)  # before the program is compiled
        connection.await_compiled()
        while not self.stopped and connection.running:
            self._keep(*connection.next_result())
            ahead = min(ahead + 1, most)
            if len(connection.running) <= connection.parallel + ahead // 4 and not self.stopped:
                self._refill(connection, queue, ahead)

    def _refill(self, connection: DriverConnection, queue: deque[int], ahead: int) -> None:
        """Have a driver given tests, several at once: one that gets them one by one forks them one by one."""
        count = min(len(queue), connection.parallel + ahead - len(connection.running), MAX_STARTS)
        if count > 0:
            numbers = [queue.popleft() for _ in range(count)]
            connection.start({number: self.cases[number] for number in numbers})

    def _keep(self, index: int, result: Result) -> None:
        self.results[index] = result
        self.stopped = self.stop is not None and self.stop(index, result)
