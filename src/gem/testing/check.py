"""The Check type, run_checks() and the report: shared by checks of environments, tools, sandboxes and dataset rows."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass
from typing import Any, Generic, Literal, TypeVar

Status = Literal["passed", "failed", "unchecked"]
_STATUS_LABELS: dict[Status, str] = {"passed": "passed", "failed": "FAILED", "unchecked": "unchecked"}

Target = TypeVar("Target")


class CheckFailed(Exception):
    """The target violates a requirement.

    Attributes:
        detail: what was observed.
        script: lines of Python that reproduce the failure; empty when there are none.
        turns: steps taken in the episode that failed.
    """

    def __init__(self, detail: str, script: Sequence[str] = ()) -> None:
        super().__init__(detail)
        self.detail, self.script, self.turns = detail, list(script), 0


class Unchecked(Exception):
    """The check cannot be decided. The message gives the reason."""


@dataclass(frozen=True)
class Check(Generic[Target]):
    """One requirement, and the function that tests it.

    Args:
        name: kebab-case identifier.
        description: the requirement, in one sentence.
        function: raises CheckFailed when the target violates the requirement and Unchecked when that cannot be
            decided. Returns a note for the report, or None.
        needs: names of checks that have to pass before this one can run.
        essential: when this check is unchecked, the checks that need it do not run either.
    """

    name: str
    description: str
    function: Callable[[Target], str | None]
    needs: tuple[str, ...] = ()
    essential: bool = False


def check(
    name: str, description: str, *, needs: tuple[str, ...] = (), essential: bool = False
) -> Callable[[Callable[[Target], str | None]], Check[Target]]:
    """Decorator that turns a function into a Check. The parameters are those of Check."""
    return lambda function: Check(name, description, function, needs, essential)


def require(condition: bool, detail: str) -> None:
    """Raise CheckFailed with the detail unless the condition holds."""
    if not condition:
        raise CheckFailed(detail)


@dataclass(frozen=True)
class CheckResult:
    """The outcome of one check.

    Args:
        name, description: of the check.
        status: "unchecked" when the check could not be decided.
        detail: what was wrong, why the check could not be decided, or what was measured; may be empty.
        reproduction: a minimal Python program that reproduces a failure; empty when there is none.
    """

    name: str
    description: str
    status: Status
    detail: str = ""
    reproduction: str = ""


@dataclass(frozen=True)
class CheckReport:
    """The results of all checks of one target.

    Args:
        target: environment id, or the expression that builds the target.
        results: one per check, in the order in which the checks ran.
        seeds: seeds of the rollouts used by checks of single episodes.
        episodes: number of episodes used to estimate means and rates.
        seconds: total duration.
    """

    target: str
    results: Sequence[CheckResult]
    seeds: Sequence[int]
    episodes: int
    seconds: float

    @property
    def ok(self) -> bool:
        """Whether no check failed. Unchecked requirements do not count as failures."""
        return not self.failed

    @property
    def failed(self) -> list[CheckResult]:
        return [result for result in self.results if result.status == "failed"]

    @property
    def unchecked(self) -> list[CheckResult]:
        return [result for result in self.results if result.status == "unchecked"]

    def __getitem__(self, name: str) -> CheckResult:
        """The result of the check with this name. Raises KeyError."""
        for result in self.results:
            if result.name == name:
                return result
        raise KeyError(name)

    def to_json(self) -> dict[str, Any]:
        """The report as JSON-serializable data."""
        return {
            "target": self.target,
            "ok": self.ok,
            "seeds": list(self.seeds),
            "episodes": self.episodes,
            "seconds": round(self.seconds, 3),
            "results": [asdict(result) for result in self.results],
        }

    def summary(self) -> str:
        """One line: the verdict, the number of checks per status, and the names of the unchecked ones."""
        counts = Counter(result.status for result in self.results)
        numbers = f"{counts['passed']} passed, {counts['failed']} FAILED, {counts['unchecked']} unchecked"
        names = ", ".join(result.name for result in self.unchecked)
        verdict = "FAILED" if not self.ok else "unchecked" if len(self.unchecked) == len(self.results) else "ok    "
        return f"{verdict}  {self.target}  {numbers}{names and f' ({names})'}, {self.seconds:.1f} s"

    def to_text(self, *, only_failed: bool = False) -> str:
        """The summary and a table of the checks, with the detail and reproduction of each.

        Args:
            only_failed: omit the checks that did not fail.
        """
        results = self.failed if only_failed else list(self.results)
        width = max((len(result.name) for result in results), default=0)
        return "\n".join([self.summary(), *(_entry(result, width) for result in results)])

    def __str__(self) -> str:
        return self.to_text()


@contextmanager
def exceptions_fail(check: Check[Any]) -> Iterator[None]:
    """A ``case`` for run_checks() that reports any exception of the target as a failed check."""
    try:
        yield
    except (CheckFailed, Unchecked):
        raise
    except Exception as e:  # code under test may raise anything, and the other checks still run
        raise CheckFailed(f"raised {type(e).__name__}: {e}") from e


def run_checks(
    checks: Iterable[Check[Target]],
    target: Target,
    *,
    case: Callable[[Check[Any]], AbstractContextManager[None]] = exceptions_fail,
    started: Callable[[Check[Target]], None] = lambda check: None,
) -> list[CheckResult]:
    """Run checks in order and return one result per check.

    Args:
        checks: a check must come after those it needs.
        target: passed to every check.
        case: returns the context manager in which a check runs. It may raise CheckFailed or Unchecked.
        started: called before each check.
    """
    blocked: dict[str, str] = {}  # name of a check that did not pass → the check to fix first
    results = []
    for each in checks:
        started(each)
        causes = [blocked[name] for name in each.needs if name in blocked]
        if causes:
            result = CheckResult(each.name, each.description, "unchecked", f"needs {causes[0]!r} to pass first")
            blocked[each.name] = causes[0]
        else:
            result = _run(each, target, case)
            if result.status == "failed" or (result.status == "unchecked" and each.essential):
                blocked[each.name] = each.name
        results.append(result)
    return results


def _run(
    check: Check[Target], target: Target, case: Callable[[Check[Any]], AbstractContextManager[None]]
) -> CheckResult:
    try:
        with case(check):
            note = check.function(target)
    except Unchecked as e:
        return CheckResult(check.name, check.description, "unchecked", str(e))
    except CheckFailed as e:
        return CheckResult(check.name, check.description, "failed", e.detail, "\n".join(e.script))
    return CheckResult(check.name, check.description, "passed", note or "")


def _entry(result: CheckResult, width: int) -> str:
    lines = [f"  {_STATUS_LABELS[result.status]:<9}  {result.name:<{width}}  {result.description}"]
    indent = " " * 13
    if result.detail:
        lines += textwrap.wrap(result.detail, 116, initial_indent=indent, subsequent_indent=indent)
    if result.reproduction:
        lines.append(textwrap.indent(result.reproduction, indent + "    "))
    return "\n".join(lines)
