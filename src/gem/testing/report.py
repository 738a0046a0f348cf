"""What a check found, for people and for programs."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

Status = Literal["passed", "failed", "unchecked"]
_WORDS: dict[Status, str] = {"passed": "passed", "failed": "FAILED", "unchecked": "unchecked"}


@dataclass(frozen=True)
class Result:
    """One promise.

    Args:
        name: of the check.
        promise: what it holds an environment to, in one line.
        status: "unchecked" when it could not be told.
        detail: what was wrong, why it could not be checked, or what was measured; empty where there is nothing to say.
        reproduction: Python that shows a failure, the shortest that was found; empty unless it failed.
    """

    name: str
    promise: str
    status: Status
    detail: str = ""
    reproduction: str = ""


@dataclass(frozen=True)
class Report:
    """Every promise of one environment.

    Args:
        env: its id, or the call that builds it.
        results: one per check, in the order in which they ran.
        seeds: that were played for promises about single episodes.
        episodes: over which means and rates were taken.
        seconds: that the checks took.
    """

    env: str
    results: Sequence[Result]
    seeds: Sequence[int]
    episodes: int
    seconds: float

    @property
    def ok(self) -> bool:
        """Whether no promise was seen broken."""
        return not self.failed

    @property
    def failed(self) -> list[Result]:
        return self._having("failed")

    @property
    def unchecked(self) -> list[Result]:
        return self._having("unchecked")

    def __getitem__(self, name: str) -> Result:
        """The result of one check, by name. Raises KeyError where there is none."""
        for result in self.results:
            if result.name == name:
                return result
        raise KeyError(name)

    def to_json(self) -> dict[str, Any]:
        """Plain data, for json.dumps."""
        return {
            "env": self.env,
            "ok": self.ok,
            "seeds": list(self.seeds),
            "episodes": self.episodes,
            "seconds": round(self.seconds, 3),
            "results": [asdict(result) for result in self.results],
        }

    def summary(self) -> str:
        """One line: the verdict, the counts, and what was not checked."""
        counts = Counter(result.status for result in self.results)
        said = f"{counts['passed']} passed, {counts['failed']} FAILED, {counts['unchecked']} unchecked"
        names = ", ".join(result.name for result in self.unchecked)
        verdict = "ok    " if self.ok else "FAILED"
        return f"{verdict}  {self.env}  {said}{names and f' ({names})'}, {self.seconds:.1f} s"

    def to_text(self, *, only_failed: bool = False) -> str:
        """A table of all checks, or of those that failed, each with what there is to say of it."""
        results = self.failed if only_failed else list(self.results)
        width = max((len(result.name) for result in results), default=0)
        return "\n".join([self.summary(), *(_entry(result, width) for result in results)])

    def __str__(self) -> str:
        return self.to_text()

    def _having(self, status: Status) -> list[Result]:
        return [result for result in self.results if result.status == status]


def _entry(result: Result, width: int) -> str:
    lines = [f"  {_WORDS[result.status]:<9}  {result.name:<{width}}  {result.promise}"]
    indent = " " * 13
    if result.detail:
        lines += textwrap.wrap(result.detail, 116, initial_indent=indent, subsequent_indent=indent)
    if result.reproduction:
        lines.append(textwrap.indent(result.reproduction, indent + "    "))
    return "\n".join(lines)
