"""Grade programs: run tests in a sandbox, and compare the results with the expected outputs outside the sandbox.

Expected outputs never enter the sandbox of a program; a checker gets them in another run. A program that exceeds a
limit fails the test. A failure of the sandbox itself raises SandboxError instead of returning a grade.

If the tests call a function, the program need not import the standard modules that published harnesses import for it,
such as typing and collections; envs/questions/code_env.py lists them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal, get_args

from gem._internal.counts import check_count
from gem._internal.json_codec import dumps
from gem.errors import BadValue, GraderError, SandboxError
from gem.graders.base import Grade
from gem.graders.code.checker import Checker
from gem.graders.code.compare import TOLERANCE, is_value, same_output, same_value, value_bytes
from gem.graders.code.tests import ProgramTest, Suite
from gem.sandbox import Case, Limits, Result, Sandbox, Status
from gem.seeding import stream

Reward = Literal["all", "fraction"]

PASSED, WRONG, NOT_RUN = "passed", "wrong", "not_run"  # statuses of a test, in addition to those in gem.sandbox.Status
WALL_FACTOR = 6  # seconds that a test may take per CPU second that it may use
CHECKED_VALUE_BYTES = 1 << 20  # a return value that a checker reads may be longer than the expected one
NO_ANSWER = "no such answer"
MAX_TIMEOUTS = 3  # number of timeouts after which the remaining tests are skipped; 100 timeouts would take minutes


@dataclass(frozen=True, kw_only=True)
class CodeGrader:
    """Grades programs by running tests.

    A test passes if the program exits with code 0 and its output or return value is correct (see compare), or the
    checker of the task accepts it (see checker).
    ``Grade.details["tests"]`` lists the status of each test in the order of the suite: "passed", "wrong" (the output is
    incorrect), "not_run", "error", "timeout", "memory", "output_limit" or "killed". ``details["checks"]`` are the same
    as checks.

    Args:
        reward: "all" gives 1 if every test passes, else 0; "fraction" gives the fraction of tests passed.
        early_exit: whether to skip the remaining tests after the first failure. None means True if reward is "all",
            else False. The remaining tests are always skipped after three timeouts. Skipped tests count as failed.
        max_tests: maximum number of tests to run. Of a larger suite, the tests with the longest inputs are run.
        limits: limits of each test. The time limit is limits.cpu_s, or limits.wall_s if that is None, in CPU seconds of
            all processes together, so that a verdict does not depend on what else the machine does. Elapsed time is
            limited to WALL_FACTOR times as much plus a second, or to limits.wall_s if that is more. output_bytes is
            increased if an expected output is longer. The size of a return value is limited by that of the expected
            value, but to no less than 64 KiB.
        tolerance: absolute or relative tolerance for numbers; see compare.

    Raises:
        BadValue: if reward is unknown or max_tests < 1.
    """

    reward: Reward = "all"
    early_exit: bool | None = None
    max_tests: int = 100
    limits: Limits = field(default_factory=Limits)
    tolerance: float = TOLERANCE

    def __post_init__(self) -> None:
        if self.reward not in get_args(Reward):
            raise BadValue(f"reward must be 'all' or 'fraction', got {self.reward!r}")
        check_count("max_tests", self.max_tests)

    def grade(self, program: str, suite: Suite, sandbox: Sandbox, *, seed: int = 0) -> Grade:
        """Run the tests on a program, in a random order that depends on the seed, and return its grade.

        Raises:
            SandboxError: if the sandbox fails.
            GraderError: if the checker of the task fails.
        """
        tests = suite.longest(self.max_tests).tests
        order = list(range(len(tests)))
        stream(seed, "order of tests").shuffle(order)
        limits = self._limits_for(tests)
        progress = _Progress(self, [partial(self.status, tests[index], suite, sandbox, limits) for index in order])
        results = sandbox.run_tests(
            program.encode("utf-8", "surrogatepass"),  # a lone surrogate is a syntax error of the program
            [_case(tests[index], suite) for index in order],
            function=suite.function,
            limits=limits,
            stop=progress,
        )
        found = progress.statuses(results)
        return self._verdict([status for _, status in sorted(zip(order, found, strict=True))])

    def status(self, test: ProgramTest, suite: Suite, sandbox: Sandbox, limits: Limits, result: Result) -> str:
        """Return the status of a test: "passed", "wrong", or the status of a run that failed.

        Args:
            suite: the suite of the test; its checker runs in the sandbox.
            limits: limits of each test.
        """
        if result.status is not Status.OK:
            return str(result.status)
        if suite.checker is not None:
            return self._checked(test, suite.checker, sandbox, limits, result)
        tolerance = max(self.tolerance, test.tolerance)
        if test.case.arguments is not None:
            correct = any(same_value(result.value, value, tolerance) for value in test.accepted)
        else:
            correct = any(same_output(result.stdout, text, tolerance) for text in test.accepted)
        return PASSED if correct else WRONG

    def _checked(self, test: ProgramTest, checker: Checker, sandbox: Sandbox, limits: Limits, result: Result) -> str:
        if test.case.arguments is None:
            if result.truncated:  # a checker could take a part of an output for the whole
                return str(Status.OUTPUT_LIMIT)
            output: str | None = result.stdout
        else:
            output = result.value if is_value(result.value) else None
        return PASSED if output is not None and test.accepted_by(checker, output, sandbox, limits) else WRONG

    def checker_error(self, suite: Suite, sandbox: Sandbox) -> str | None:
        """Return why the checker of a suite cannot grade programs, or None.

        A checker must accept each expected output that is not empty, and reject an empty output (the value None) and
        a few words for at least one test.
        """
        assert suite.checker is not None
        limits = self._limits_for(suite.tests)
        empty, words = ("", NO_ANSWER) if suite.function is None else ("null", dumps(NO_ANSWER))
        wrong = [empty, words]  # outputs that the checker has not rejected so far
        for number, test in enumerate(suite.tests):
            example = test.example()
            try:
                if example.strip() not in ("", empty) and not test.accepted_by(suite.checker, example, sandbox, limits):
                    return f"the checker rejects the expected output of test {number}"
                wrong = [
                    output
                    for output in wrong
                    if output != example.strip() and test.accepted_by(suite.checker, output, sandbox, limits)
                ]
            except GraderError as e:
                return f"test {number}: {e}"
        return f"the checker accepts the output {wrong[0]!r} of every test" if wrong else None

    def stops_early(self) -> bool:
        return self.reward == "all" if self.early_exit is None else self.early_exit

    def _limits_for(self, tests: tuple[ProgramTest, ...]) -> Limits:
        longest = max(len(str(accepted)) for test in tests for accepted in test.accepted)
        cpu_s = self.limits.cpu_s or self.limits.wall_s
        wall_s = max(WALL_FACTOR * cpu_s + 1, self.limits.wall_s)
        output_bytes = max(self.limits.output_bytes, 4 * longest + 1024)
        return replace(self.limits, cpu_s=cpu_s, wall_s=wall_s, output_bytes=output_bytes)

    def _verdict(self, statuses: list[str]) -> Grade:
        passed, total = statuses.count(PASSED), len(statuses)
        correct = passed == total
        reward = passed / total if self.reward == "fraction" else float(correct)
        details = {"tests": statuses, "checks": _checks(statuses)}
        return Grade(reward=reward, correct=correct, reason=_summary(statuses), details=details)


def _case(test: ProgramTest, suite: Suite) -> Case:
    """Return the input of a test. Of a call, it limits the size of the return value."""
    if test.case.arguments is None:
        return test.case
    least = 0 if suite.checker is None else CHECKED_VALUE_BYTES
    return replace(test.case, value_bytes=max(least, *map(value_bytes, test.accepted)))


def _checks(statuses: list[str]) -> list[dict[str, object]]:
    """Return the tests as checks, which tell nothing of inputs and outputs."""
    return [
        {"name": f"test {number}", "passed": status == PASSED, "detail": status.replace("_", " ")}
        for number, status in enumerate(statuses, 1)
    ]


def _summary(statuses: list[str]) -> str:
    kinds = [PASSED, *sorted(set(statuses) - {PASSED, NOT_RUN}), NOT_RUN]
    counts = [f"{statuses.count(kind)} {kind.replace('_', ' ')}" for kind in kinds if kind in statuses]
    return f"{len(statuses)} test{'' if len(statuses) == 1 else 's'}: {', '.join(counts)}."


class _Progress:
    """Callback that stops a run after the same test regardless of the order in which results arrive.

    A result is evaluated only after the results of all previous tests have arrived.

    Args:
        judges: functions that return the status of each test for its result, in the order in which the tests are run.
    """

    def __init__(self, grader: CodeGrader, judges: list[Callable[[Result], str]]) -> None:
        self.grader, self.judges = grader, judges
        self.received: dict[int, Result] = {}  # not yet evaluated
        self.found: list[str] = []  # statuses of the evaluated tests
        self.stopped = False

    def __call__(self, index: int, result: Result) -> bool:
        self.received[index] = result
        while not self.stopped and (number := len(self.found)) in self.received:
            status = self.judges[number](self.received.pop(number))
            self.found.append(status)
            timeouts = self.found.count(Status.TIMEOUT)
            self.stopped = timeouts >= MAX_TIMEOUTS or (status != PASSED and self.grader.stops_early())
        return self.stopped

    def statuses(self, results: list[Result | None]) -> list[str]:
        """Return the status of each test. Tests after the test that stopped the run are "not_run"."""
        for index, result in enumerate(results):
            if result is not None and index >= len(self.found) and index not in self.received:
                self(index, result)
        missing = len(self.judges) - len(self.found)
        if not self.stopped and missing:
            received = len(self.found) + len(self.received)
            raise SandboxError(f"the sandbox returned results for only {received} of {len(self.judges)} tests")
        return self.found + [NOT_RUN] * missing
