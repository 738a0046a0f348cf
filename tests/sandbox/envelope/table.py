"""A table of outcomes in Markdown: programs held by class and setting, every miss, and the delays of neighbours."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from envelope import known, programs

if TYPE_CHECKING:
    from envelope.runner import Outcome

INTRODUCTION = """# Hostile programs

<!-- Written by `make attack-all` -->

Every program of `tests/sandbox/attacks` (hostile) and `tests/sandbox/benign` (harmless) in every setting: the level of
the sandbox, the user (`root` of a container, or an unprivileged user), and whether the sandbox can make cgroups
(`cgroup`). Beside each program of the classes with an asterisk, which may take resources from others, an honest session
and an honest graded program run, and every answer has to be right. A cell is the number of programs that violated no
invariant, and the number of programs. The invariants are in `tests/sandbox/envelope/invariants.py`.
"""


def markdown(outcomes: Sequence[Outcome], seconds: float) -> str:
    """The table of all outcomes, the misses, and the slowdown of neighbours."""
    lines = [INTRODUCTION, f"{len(outcomes)} trials in {seconds / 60:.0f} minutes.\n", *scores(outcomes)]
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
