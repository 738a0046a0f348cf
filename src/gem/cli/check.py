"""Check that environments keep their promises.

Every promise of every environment that matches is tried, and every broken one is shown with the shortest program that
breaks it; what could not be tried is "unchecked", with the reason. One environment gets the whole table; of several,
a line each and what failed. Exit code 1 when a promise is broken, 0 when none was seen broken.

Of an environment over a data set, some rows are answered too: with the gold answer, which has to score 1.0, and with a
wrong one, which has to score 0.0. --rows says how many, --data where copies of data sets are, and --skip-bad-rows to
leave out rows that are no task; they are told of at the end.

An environment whose episodes take long is checked with fewer of them, so as to stay within --seconds, and called slow.

  gem check game:Wordle-v0
  gem check 'game:*'
  gem check 'math:*' --rows 1000 --data ./copies
  gem check mypackage.envs:MyEnv        a class, registered or not, found from the current folder
  gem check '*' --json > report.json    for programs
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import statistics
import sys
import time
from dataclasses import dataclass, replace
from typing import Any, Literal

from gem.cli.data import DataFlags
from gem.cli.flags import REQUIRED, flag
from gem.datasets import MissingData
from gem.errors import BadValue, UnknownEnv, did_you_mean
from gem.registry import ENV_REGISTRY, list_envs, make, resolve
from gem.testing import CheckReport, CheckResult, check_env, check_rows

ROWS = 20  # a second or two, where programs are run
PLAYED_PER_EPISODE, PLAYED_PER_SEED = 15, 40  # resets that check_env makes for each, roughly
TRIED = 8  # episodes begun to see how long they take
PATIENCE_S = 2.0  # seconds before a bar shows how far the rows of one environment are


@dataclass(frozen=True, kw_only=True)
class Config(DataFlags):
    pattern: str = flag(REQUIRED, help="an id, how ids start, a shell pattern, or module:Class", positional=True)
    seeds: int = flag(10, help="seeds played for promises about single episodes")
    episodes: int = flag(50, help="episodes over which means and rates are taken")
    seconds: float = flag(60.0, help="for one environment, about; a slow one is played less for that")
    rows: int | Literal["all"] = flag(ROWS, help="rows of a data set that are answered; fewer where there are fewer")
    json: bool = flag(False, help="print a JSON array of reports")


def run(config: Config) -> int:
    if not config.seconds > 0:
        raise BadValue(f"--seconds takes a number above 0, got {config.seconds}")
    for name, number in (("seeds", config.seeds), ("episodes", config.episodes), ("rows", config.rows)):
        if number != "all" and int(number) < 1:
            raise BadValue(f"--{name} takes an integer of at least 1, got {number}")
    subjects = find(config.pattern)
    reports: list[CheckReport] = []
    with _Bar(len(subjects)) as bar:
        for subject in subjects:
            bar.begin(str(subject))
            with contextlib.redirect_stdout(sys.stderr):  # what an environment prints is no part of the report
                reports.append(_checked(subject, config, bar))
            if not config.json:
                _show(reports[-1], alone=len(subjects) == 1)
    if config.json:
        print(json.dumps([report.to_json() for report in reports], indent=1))
    elif len(reports) > 1:
        broken = sum(not report.ok for report in reports)
        seconds = sum(report.seconds for report in reports)
        print(f"{len(reports)} environments, {broken} with failed checks, {seconds:.0f} s")
    return 0 if all(report.ok for report in reports) else 1


def _checked(subject: Any, config: Config, bar: _Bar) -> CheckReport:
    start = time.perf_counter()
    if (missing := _missing_data(subject)) is not None:
        result = CheckResult("data", "Its data set is here.", "unchecked", missing)
        return CheckReport(str(subject), [result], range(0), 0, time.perf_counter() - start)
    seeds, episodes = _affordable(subject, config)
    report = check_env(subject, seeds=seeds, episodes=episodes)
    results = list(report.results)
    if episodes < config.episodes:
        results.append(CheckResult("speed", "Episodes are quick.", "unchecked", _slow(seeds, episodes)))
    if isinstance(subject, str) and any(r.name == "protocol" and r.status == "passed" for r in results):
        rows = None if config.rows == "all" else int(config.rows)
        results.append(check_rows(subject, rows=rows, progress=bar.rows))
    return replace(report, results=results, seconds=time.perf_counter() - start)


def _missing_data(subject: Any) -> str | None:
    """Which data set is needed to build it and not here; None where nothing is amiss, or something else."""
    try:
        make(subject).close()
    except MissingData as e:
        return str(e)
    except Exception:  # which is for the check to find
        return None
    return None


def _affordable(subject: Any, config: Config) -> tuple[int, int]:
    """How many seeds and episodes can be played in config.seconds; as many as it says where they are quick."""
    cost = _seconds_per_episode(subject)
    share = min(1.0, config.seconds / (cost * (PLAYED_PER_EPISODE * config.episodes + PLAYED_PER_SEED * config.seeds)))
    return max(1, math.ceil(share * config.seeds)), max(1, math.ceil(share * config.episodes))


def _seconds_per_episode(subject: Any) -> float:
    """The mean of a few first steps, but for the longest two; next to nothing where none can be made."""
    costs = []
    with contextlib.suppress(Exception), make(subject) as env:
        for seed in range(TRIED):
            start = time.perf_counter()
            env.reset(seed=seed)
            env.step(env.sample_random_action())
            costs.append(time.perf_counter() - start)
    return statistics.fmean(sorted(costs)[:-2]) if len(costs) > 2 else 1e-9  # without the starts of workers


def _slow(seeds: int, episodes: int) -> str:
    return f"slow: {_counted(seeds, 'seed')} and {_counted(episodes, 'episode')} were played; --seconds allows more"


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


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


def _show(report: CheckReport, alone: bool) -> None:
    print(report.to_text(only_failed=not alone), flush=True)


class _Bar:
    """How far the check is, on stderr where that is a terminal: the environments, and the rows of one that takes long.

    count: environments.
    """

    def __init__(self, count: int) -> None:
        self._count, self._started = count, 0.0
        self._progress: Any = None

    def __enter__(self) -> _Bar:
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

            columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
            shared = sys.stdout.isatty()  # where both are one screen, lines go above the bar
            console = Console(stderr=True)
            self._progress = Progress(*columns, console=console, transient=True, redirect_stdout=shared)
            self._whole = self._progress.add_task("checking", total=self._count, completed=-1, visible=self._count > 1)
            self._rows = self._progress.add_task("rows", visible=False)
            self._progress.start()
        return self

    def __exit__(self, *exception: object) -> None:
        if self._progress is not None:
            self._progress.stop()

    def begin(self, name: str) -> None:
        """The next environment."""
        self._started = 0.0
        if self._progress is not None:
            self._progress.update(self._rows, visible=False)
            self._progress.update(self._whole, description=name, advance=1)

    def rows(self, done: int, total: int) -> None:
        """So many rows of this environment."""
        self._started = self._started or time.perf_counter()
        if self._progress is not None and time.perf_counter() - self._started > PATIENCE_S:
            self._progress.update(self._rows, completed=done, total=total, visible=done < total)
