"""Check that environments keep their promises.

Every promise of every environment that matches is tried, and every broken one is shown with the shortest program that
breaks it; what could not be tried is "unchecked", with the reason. One environment gets the whole table; of several,
a line each and what failed. Exit code 1 when a promise is broken, 0 when none was seen broken.

  gem check game:Wordle-v0
  gem check 'game:*'
  gem check mypackage.envs:MyEnv        a class, registered or not, found from the current folder
  gem check '*' --json > report.json    for programs
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from gem.cli.flags import REQUIRED, flag
from gem.errors import BadValue, UnknownEnv, did_you_mean
from gem.registry import ENV_REGISTRY, list_envs, resolve
from gem.testing import Report, check_env


@dataclass(frozen=True, kw_only=True)
class Config:
    pattern: str = flag(REQUIRED, help="an id, how ids start, a shell pattern, or module:Class", positional=True)
    seeds: int = flag(10, help="seeds played for promises about single episodes")
    episodes: int = flag(50, help="episodes over which means and rates are taken")
    json: bool = flag(False, help="print a JSON array of reports")


def run(config: Config) -> int:
    for name, number in (("seeds", config.seeds), ("episodes", config.episodes)):
        if number < 1:
            raise BadValue(f"--{name} takes an integer of at least 1, got {number}")
    subjects = find(config.pattern)
    reports: list[Report] = []
    for subject in _with_progress(subjects):
        with contextlib.redirect_stdout(sys.stderr):  # what an environment prints is no part of the report
            reports.append(check_env(subject, seeds=config.seeds, episodes=config.episodes))
        if not config.json:
            _show(reports[-1], alone=len(subjects) == 1)
    if config.json:
        print(json.dumps([report.to_json() for report in reports], indent=1))
    elif len(reports) > 1:
        broken = sum(not report.ok for report in reports)
        print(f"{len(reports)} environments, {broken} with broken promises")
    return 0 if all(report.ok for report in reports) else 1


def find(pattern: str) -> list[Any]:
    """The ids that match, or the class that "module:Class" names. Raises UnknownEnv when there is none."""
    if pattern in ENV_REGISTRY:
        return [pattern]
    if ids := [spec.id for spec in list_envs(pattern)]:
        return ids
    if re.fullmatch(r"[\w.]+:\w+", pattern):
        sys.path.insert(0, os.getcwd())  # a console script, unlike python -m, does not look there
        try:
            return [resolve(pattern)]
        except BadValue as e:
            raise UnknownEnv(f"no env matches {pattern!r}{did_you_mean(pattern, ENV_REGISTRY)}, and {e}") from e
    raise UnknownEnv(f"no env matches {pattern!r}{did_you_mean(pattern, ENV_REGISTRY)}  (`gem list` shows all)")


def _show(report: Report, alone: bool) -> None:
    print(report.to_text(only_failed=not alone), flush=True)


def _with_progress(subjects: Sequence[Any]) -> Iterable[Any]:
    """The subjects one by one, with a progress bar on stderr where that is a terminal and there are several."""
    return _tracked(subjects) if len(subjects) > 1 and sys.stderr.isatty() else subjects


def _tracked(subjects: Sequence[Any]) -> Iterator[Any]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console, shared = Console(stderr=True), sys.stdout.isatty()  # where both are one screen, lines go above the bar
    with Progress(*columns, console=console, transient=True, redirect_stdout=shared) as progress:
        task = progress.add_task("checking", total=len(subjects))
        for subject in subjects:
            progress.update(task, description=str(subject))
            yield subject
            progress.advance(task)
