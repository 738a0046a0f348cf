"""A table of outcomes in Markdown: programs held by class and setting, every miss, and the delays of neighbours."""

from __future__ import annotations

import datetime
import json
import statistics
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from envelope import known, programs
from envelope.setting import Setting, matrix

PROJECT = Path(__file__).resolve().parents[3]
CODE = ("src/gem", "tests/sandbox")  # a change of these may change an outcome

INTRODUCTION = """# Hostile programs

<!-- Written by `make attack-all` -->

Every program of `tests/sandbox/attacks` (hostile) and `tests/sandbox/benign` (harmless) in every setting: the level of
the sandbox, the user (`root` of a container, or an unprivileged user), and whether the sandbox can make cgroups
(`cgroup`). Beside each program of the classes with an asterisk, which may take resources from others, an honest session
and an honest graded program run, and every answer has to be right. A cell is the number of programs that violated no
invariant, and the number of programs. The invariants are in `tests/sandbox/envelope/invariants.py`.
"""


@dataclass(frozen=True)
class Outcome:
    """Result of a program in a setting.

    Args:
        misses: the violated invariants.
        unavailable: why the setting is not available.
        host_cpu_s: CPU seconds of the host during the program, and its neighbours.
        slowdowns: "cell" and "grade" → slowest answer of the neighbours as a multiple of the answer alone.
    """

    name: str
    setting: Setting
    misses: list[str] = field(default_factory=list)
    unavailable: str = ""
    seconds: float = 0.0
    peaks: dict[str, int] = field(default_factory=dict)
    output: str = ""
    host_cpu_s: float = 0.0
    slowdowns: dict[str, float] | None = None


class Record:
    """The outcomes of complete settings, in a JSON file beside the table.

    Args:
        path: the table. It is written when a setting is added.
        commit: the commit of the code that runs; None asks git.
    """

    def __init__(self, path: Path, commit: str | None = None) -> None:
        self.path, self.file = path, path.with_suffix(".json")
        self.commit = current_commit() if commit is None else commit
        self.runs: dict[str, dict[str, Any]] = json.loads(self.file.read_text()) if self.file.exists() else {}

    def has(self, setting: Setting) -> bool:
        """Whether the setting is complete with the code of this commit, without a miss that is not known.

        Never true if there are uncommitted changes.
        """
        run = self.runs.get(str(setting), {"commit": "", "outcomes": {}})
        good = all(
            "unavailable" not in found and (not found.get("misses") or known.miss(name, setting))
            for name, found in run["outcomes"].items()
        )
        return good and run["commit"] == self.commit != ""

    def add(self, setting: Setting, outcomes: Sequence[Outcome]) -> None:
        """Add the outcomes of all programs in a setting, and write both files."""
        fields = ("misses", "unavailable", "slowdowns")
        kept = {o.name: {name: value for name in fields if (value := getattr(o, name))} for o in outcomes}
        today = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
        self.runs[str(setting)] = {"commit": self.commit, "date": today, "outcomes": kept}
        self.file.write_text(
            "{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in self.runs.items()) + "\n}\n"
        )
        self.path.write_text(markdown(self.runs))


def current_commit() -> str:
    """The last commit that changed the code; "" if the code has uncommitted changes."""
    changed, commit = (
        subprocess.run(["git", *command, "--", *CODE], cwd=PROJECT, capture_output=True, text=True, check=True).stdout
        for command in (("status", "--porcelain"), ("log", "-1", "--format=%h"))
    )
    return "" if changed else commit.strip()


def markdown(runs: Mapping[str, Mapping[str, Any]]) -> str:
    """The table of the outcomes in Record.runs, when they were found, the misses, and the slowdown of neighbours."""
    order = [setting for setting in map(str, matrix()) if setting in runs]
    order += [setting for setting in runs if setting not in order]
    starving = {path.stem: programs.load(path).starving for path in programs.paths()}
    outcomes = [
        Outcome(name, replace(Setting.parse(setting), neighbours=starving[name]), **found)
        for setting in order
        for name, found in runs[setting]["outcomes"].items()
        if name in starving  # others have been removed since then
    ]
    lines = [INTRODUCTION, row(["setting", "programs", "commit", "date"]), row(["---"] * 4)]
    for setting in order:
        run = runs[setting]
        lines.append(row([setting, str(len(run["outcomes"])), run["commit"] or "uncommitted", run["date"]]))
    lines += ["", *scores(outcomes)]
    lines += ["\n## Misses\n", *misses(outcomes)]
    lines += ["\n## Slowest answer of the neighbours, as a multiple of the answer alone\n", *slowdowns(outcomes)]
    return "\n".join(lines) + "\n"


def setting_of(outcome: Outcome) -> str:
    return str(replace(outcome.setting, neighbours=False))


def scores(outcomes: Sequence[Outcome]) -> list[str]:
    settings = list(dict.fromkeys(map(setting_of, outcomes)))
    classes = {path.stem: programs.load(path).kind for path in programs.paths()}
    lines = [row(["class", *settings]), row(["---"] * (len(settings) + 1))]
    for kind in [*sorted(set(classes.values())), "all"]:
        cells = []
        for setting in settings:
            of_kind = [o for o in outcomes if setting_of(o) == setting and kind in (classes[o.name], "all")]
            held = sum(not o.misses and not o.unavailable for o in of_kind)
            cells.append(f"{held}/{len(of_kind)}" if of_kind else "-")
        if set(cells) != {"-"}:
            lines.append(row([kind + "\\*" * (kind in programs.STARVING), *cells]))
    return lines


def misses(outcomes: Iterable[Outcome]) -> list[str]:
    """One line for each program and invariant, with the settings in which it was violated; known ones without."""
    seen: dict[tuple[str, str], list[str]] = {}
    expected: dict[str, set[str]] = {}
    for outcome in outcomes:
        if outcome.misses and known.miss(outcome.name, outcome.setting):
            expected.setdefault(outcome.setting.level, set()).add(outcome.name)
            continue
        for miss in [f"not available: {outcome.unavailable}"] if outcome.unavailable else outcome.misses:
            where = seen.setdefault((outcome.name, miss.split(":")[0]), [])
            where += [setting_of(outcome)] * (setting_of(outcome) not in where)
    lines = [
        f"Known and explained in `known_misses.json`, level {level}: {', '.join(sorted(names))}.\n"
        for level, names in expected.items()
    ]
    if not seen:
        return [*lines, "No others."]
    lines += [row(["program", "invariant", "settings"]), row(["---"] * 3)]
    return lines + [row([name, invariant, ", ".join(where)]) for (name, invariant), where in sorted(seen.items())]


def slowdowns(outcomes: Iterable[Outcome]) -> list[str]:
    found: dict[tuple[str, str], list[float]] = {}
    for outcome in outcomes:
        for what, factor in (outcome.slowdowns or {}).items():
            found.setdefault((setting_of(outcome), what), []).append(factor)
    lines = [row(["setting", "answer", "median", "min", "max"]), row(["---"] * 5)]
    for (setting, what), factors in found.items():
        spread = [f"{value:.1f}" for value in (statistics.median(factors), min(factors), max(factors))]
        lines.append(row([setting, what, *spread]))
    return lines


def row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
