"""Programs, judged by tests: run in a sandbox, compared outside of it.

What is expected of a program never enters the sandbox. What a program does, breaking its limits included, decides its
tests; a sandbox that fails raises SandboxError, and there is no verdict then.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal, get_args

from gem.errors import BadValue, SandboxError
from gem.graders.base import Grade
from gem.graders.code_compare import TOLERANCE, same_output, same_value
from gem.graders.code_tests import ProgramTest, Suite
from gem.sandbox import Limits, Result, Sandbox, Status
from gem.seeding import stream

Reward = Literal["all", "fraction"]

PASSED, WRONG, NOT_RUN = "passed", "wrong", "not_run"  # statuses of a test, besides those of a run that went wrong
TIMEOUTS = 3  # after so many the rest is not run: a hundred more would take minutes and teach nothing


@dataclass(frozen=True, kw_only=True)
class CodeGrader:
    """How programs are judged.

    A test is passed by a run that ends with exit code 0 and whose output, or value, is the expected one (see
    code_compare). ``Grade.details["tests"]`` has one status for each test, in their order: "passed", "wrong",
    "not_run", or how the run ended: "error", "timeout", "memory", "output_limit", "killed".

    Args:
        reward: "all" pays 1 where every test is passed and nothing otherwise; "fraction" pays the share passed.
        early_exit: not to run the tests that come after the first one failed. None: where reward is "all". In any case
            nothing is run after three time-outs. Tests not run count as failed.
        max_tests: of a larger suite, those with the longest inputs.
        limits: of each test. The limit on output is raised to what a right answer needs.
        tolerance: between numbers, absolute or relative; see code_compare.

    Raises BadValue for a reward that is neither word, or max_tests < 1.
    """

    reward: Reward = "all"
    early_exit: bool | None = None
    max_tests: int = 100
    limits: Limits = field(default_factory=Limits)
    tolerance: float = TOLERANCE

    def __post_init__(self) -> None:
        if self.reward not in get_args(Reward):
            raise BadValue(f"reward must be 'all' or 'fraction', got {self.reward!r}")
        if self.max_tests < 1:
            raise BadValue(f"max_tests must be at least 1, got {self.max_tests}")

    def grade(self, program: str, suite: Suite, sandbox: Sandbox, *, seed: int = 0) -> Grade:
        """Run a program's tests, in an order drawn from the seed, and judge it. Raises SandboxError."""
        tests = suite.longest(self.max_tests).tests
        order = list(range(len(tests)))
        stream(seed, "order of tests").shuffle(order)
        progress = _Progress(self, [tests[index] for index in order])
        results = sandbox.run_tests(
            program.encode("utf-8", "surrogatepass"),  # half a surrogate pair is no Python, and the program's mistake
            [tests[index].case for index in order],
            function=suite.function,
            limits=self._limits_for(tests),
            stop=progress,
        )
        found = progress.statuses(results)
        return self._verdict([status for _, status in sorted(zip(order, found, strict=True))])

    def status(self, test: ProgramTest, result: Result) -> str:
        """How a test went."""
        if result.status is not Status.OK:
            return str(result.status)
        if test.case.arguments is not None:
            right = any(same_value(result.value, value, self.tolerance) for value in test.accepted)
        else:
            right = any(same_output(result.stdout, text, self.tolerance) for text in test.accepted)
        return PASSED if right else WRONG

    def stops_early(self) -> bool:
        return self.reward == "all" if self.early_exit is None else self.early_exit

    def _limits_for(self, tests: tuple[ProgramTest, ...]) -> Limits:
        longest = max(len(str(accepted)) for test in tests for accepted in test.accepted)
        return replace(self.limits, output_bytes=max(self.limits.output_bytes, 4 * longest + 1024))

    def _verdict(self, statuses: list[str]) -> Grade:
        passed, total = statuses.count(PASSED), len(statuses)
        correct = passed == total
        reward = passed / total if self.reward == "fraction" else float(correct)
        return Grade(reward=reward, correct=correct, reason=_told(statuses), details={"tests": statuses})


def _told(statuses: list[str]) -> str:
    kinds = [PASSED, *sorted(set(statuses) - {PASSED, NOT_RUN}), NOT_RUN]
    counts = [f"{statuses.count(kind)} {kind.replace('_', ' ')}" for kind in kinds if kind in statuses]
    return f"{len(statuses)} test{'' if len(statuses) == 1 else 's'}: {', '.join(counts)}."


class _Progress:
    """Says when the remaining tests need not be run: at the same test every time, in whatever order results come in.

    For that a result counts once all before it are there. tests: in the order in which they are run.
    """

    def __init__(self, grader: CodeGrader, tests: list[ProgramTest]) -> None:
        self.grader, self.tests = grader, tests
        self.found: dict[int, str] = {}
        self.reached = self.timeouts = 0
        self.over = False

    def __call__(self, index: int, result: Result) -> bool:
        self.found[index] = self.grader.status(self.tests[index], result)
        while self.reached in self.found and not self.over:
            status = self.found[self.reached]
            self.timeouts += status == Status.TIMEOUT
            self.over = self.timeouts >= TIMEOUTS or (status != PASSED and self.grader.stops_early())
            self.reached += 1
        return self.over

    def statuses(self, results: list[Result | None]) -> list[str]:
        """One for each test; what happened to run after the end counts as not run."""
        for index, result in enumerate(results):
            if result is not None and index not in self.found:
                self(index, result)
        if not self.over and self.reached < len(self.tests):
            raise SandboxError(
                f"the sandbox ran {len(self.found)} of {len(self.tests)} tests and says nothing of the rest"
            )
        return [self.found[index] if index < self.reached else NOT_RUN for index in range(len(self.tests))]
