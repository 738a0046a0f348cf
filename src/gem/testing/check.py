"""Check, run_checks() and CheckReport, which the checks of environments, tools, sandboxes and dataset rows share."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass
from typing import Any, Generic, Literal, TypeVar

from gem._internal.text import clip, visible

Status = Literal["passed", "failed", "unchecked"]
_STATUS_LABELS: dict[Status, str] = {"passed": "passed", "failed": "FAILED", "unchecked": "unchecked"}

MAX_ITEMS = 50  # maximum number of failed items shown per check
MAX_DETAIL, MAX_REPRODUCTION = 2_000, 10_000  # characters shown; to_json() and --json have all

Target = TypeVar("Target")


class CheckFailed(Exception):
    """The target violates a requirement.

    Attributes:
        detail: what was observed.
        script: lines of Python that reproduce the failure; empty if no script was recorded.
        turns: number of steps that the script takes; 0 without a script.
        items: one text per failed item, if several were checked.
    """

    def __init__(self, detail: str, script: Sequence[str] = (), items: Sequence[str] = ()) -> None:
        super().__init__(detail)
        self.detail, self.script, self.turns, self.items = detail, list(script), 0, tuple(items)


class Unchecked(Exception):
    """The check could neither pass nor fail. The message gives the reason."""


@dataclass(frozen=True)
class Check(Generic[Target]):
    """One requirement, and the function that tests it.

    Args:
        name: kebab-case identifier.
        description: the requirement, in one sentence.
        function: tests the target. Raises CheckFailed if the target violates the requirement, and Unchecked if this
            cannot be decided. Otherwise returns a note for the report, or None for no note.
        needs: names of other checks. If one of these checks fails, this check is not run.
        essential: whether the checks that need this check are also skipped if this check is unchecked.
    """

    name: str
    description: str
    function: Callable[[Target], str | None]
    needs: tuple[str, ...] = ()
    essential: bool = False


def check(
    name: str, description: str, *, needs: tuple[str, ...] = (), essential: bool = False
) -> Callable[[Callable[[Target], str | None]], Check[Target]]:
    """Return a decorator that turns a function into a Check. Takes the other arguments of Check."""
    return lambda function: Check(name, description, function, needs, essential)


def require(condition: bool, detail: str) -> None:
    """Raise CheckFailed with this detail if the condition is false."""
    if not condition:
        raise CheckFailed(detail)


@dataclass(frozen=True)
class CheckResult:
    """The outcome of one check.

    Args:
        name, description: the name and description of the check.
        status: "unchecked" if the check could neither pass nor fail.
        detail: the failure, the reason for "unchecked", or the note of a check that passed; may be empty.
        reproduction: a short Python program that reproduces the failure; empty if there is no such program.
        items: one text per failed item, such as a dataset row, if the check examined several.
    """

    name: str
    description: str
    status: Status
    detail: str = ""
    reproduction: str = ""
    items: tuple[str, ...] = ()


@dataclass(frozen=True)
class CheckReport:
    """The results of all checks of one target.

    Args:
        target: name of the target, such as an environment id or the expression that builds the target.
        results: one result per check.
        seeds: seeds of the recorded rollouts, which the checks of single episodes replay.
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
        """Whether no check failed. Unchecked results do not count as failures."""
        return not self.failed

    @property
    def failed(self) -> list[CheckResult]:
        return [result for result in self.results if result.status == "failed"]

    @property
    def unchecked(self) -> list[CheckResult]:
        return [result for result in self.results if result.status == "unchecked"]

    def __getitem__(self, name: str) -> CheckResult:
        """Return the result of the check with this name. Raises KeyError if no check has this name."""
        for result in self.results:
            if result.name == name:
                return result
        raise KeyError(name)

    def to_json(self) -> dict[str, Any]:
        """Return the report as JSON-serializable data."""
        return {
            "target": self.target,
            "ok": self.ok,
            "seeds": list(self.seeds),
            "episodes": self.episodes,
            "seconds": round(self.seconds, 3),
            "results": [asdict(result) for result in self.results],
        }

    def summary(self) -> str:
        """Return one line: verdict, target, number of checks per status, names of unchecked checks, and duration."""
        counts = Counter(result.status for result in self.results)
        numbers = f"{counts['passed']} passed, {counts['failed']} FAILED, {counts['unchecked']} unchecked"
        names = ", ".join(result.name for result in self.unchecked)
        verdict = "FAILED" if not self.ok else "unchecked" if self._mostly_unchecked() else "ok    "
        return f"{verdict}  {self.target}  {numbers}{names and f' ({names})'}, {self.seconds:.1f} s"

    def to_text(self, *, only_failed: bool = False, width: int | None = None) -> str:
        """Return the summary and a table of the checks, with the detail and the reproduction of each check.

        Args:
            only_failed: show only the checks that failed, or, if most are unchecked, the first of these.
            width: maximum line length in characters, except for reproductions; None wraps only details, at 116.
        """
        results = list(self.results)
        if only_failed:  # the first unchecked one has the reason; the others need it
            results = self.failed or (self.unchecked[:1] if self._mostly_unchecked() else [])
        longest = max((len(result.name) for result in results), default=0)
        summary = _wrapped(self.summary(), width, "  ")
        return visible("\n".join([*summary, *(_entry(result, longest, width) for result in results)]))

    def _mostly_unchecked(self) -> bool:
        return 2 * len(self.unchecked) > len(self.results)

    def __str__(self) -> str:
        return self.to_text()


@contextmanager
def exceptions_fail(check: Check[Any]) -> Iterator[None]:
    """Raise CheckFailed for any exception in the block, except CheckFailed and Unchecked, which pass unchanged."""
    try:
        yield
    except (CheckFailed, Unchecked):
        raise
    except Exception as e:  # the code under test may raise anything, and the other checks must still run
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
        checks: the checks to run. A check must come after the checks that it needs.
        target: passed to every check.
        case: returns the context manager in which a check runs. The context manager may raise CheckFailed or Unchecked.
        started: called with each check before the check runs.
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
        return CheckResult(check.name, check.description, "failed", e.detail, "\n".join(e.script), e.items)
    return CheckResult(check.name, check.description, "passed", note or "")


def _entry(result: CheckResult, longest: int, width: int | None) -> str:
    indent = " " * 13
    line = f"  {_STATUS_LABELS[result.status]:<9}  {result.name:<{longest}}  {result.description}"
    lines = _wrapped(line, width, indent)
    if result.detail:
        detail = clip(result.detail, MAX_DETAIL)
        lines += textwrap.wrap(detail, width or 116, initial_indent=indent, subsequent_indent=indent)
    lines += [f"{indent}{clip(item, MAX_DETAIL)}" for item in result.items[:MAX_ITEMS]]
    if len(result.items) > MAX_ITEMS:
        lines.append(f"{indent}… and {len(result.items) - MAX_ITEMS:,} more; to_json() and --json have all")
    if result.reproduction:
        lines.append(textwrap.indent(clip(result.reproduction, MAX_REPRODUCTION), indent + "    "))
    return "\n".join(lines)


def _wrapped(line: str, width: int | None, indent: str) -> list[str]:
    return [line] if width is None else textwrap.wrap(line, width, subsequent_indent=indent, break_on_hyphens=False)
