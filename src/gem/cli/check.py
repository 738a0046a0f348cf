"""Check environments against the gem.Env contract.

Runs every check on every environment that matches. A failed check is shown with the shortest Python program that
reproduces it; a check that cannot be decided is "unchecked", with the reason. For one environment all checks are
listed, for several one line each, with the failed checks, or the reason if most could not be decided. Exits with 1 if a
check failed, otherwise with 0.

For an environment over a dataset, a sample of rows is also answered, once with the gold answer, which must score 1.0,
and once with a wrong answer, which must score 0.0. Rows that cannot be read, and rows whose gold answer can never be
right, are named by file and line, with the column and the reason, and the rows after them are still checked. The share
of distinct prompts is shown. --rows sets the number of rows; `--rows all` checks every row.

--thorough also measures, for about ten seconds per environment, whether memory, file descriptors, threads, processes
and the time of a step grow.

An environment with slow episodes is checked with fewer of them, to stay within --seconds, and reported as slow.

  gem check game:Wordle-v0
  gem check 'game:*'
  gem check game:Wordle-v0 --thorough
  gem check 'math:*' --rows 1000 --data ./copies
  gem check mypackage.envs:MyEnv        a class, which need not be registered, importable from the current folder
  gem check '*' --json > report.json    machine-readable output

`gem check judge` measures an LLM judge (gem.graders.judge.Judge) instead: how often it accepts wrong answers and
rejects right ones, on labelled pairs that come with gem, with 95% intervals. It exits with 1 if a pair got no verdict.

  gem check judge --model NAME --base-url http://127.0.0.1:8000/v1 --votes 3
"""

from __future__ import annotations

import contextlib
import math
import shutil
import statistics
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from gem._internal.counts import check_count
from gem._internal.text import EscapedStream, counted
from gem.cli.data import DataFlags
from gem.cli.flags import REQUIRED, flag
from gem.cli.list import matching
from gem.cli.output import print_json, progress
from gem.datasets import MissingData
from gem.errors import BadValue
from gem.registry import ENV_REGISTRY, make
from gem.testing import CheckReport, CheckResult, check_env, check_rows

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

DEFAULT_ROWS = 20  # takes one or two seconds for answers that are programs
RESETS_PER_EPISODE, RESETS_PER_SEED = 21, 45  # approximate number of resets that check_env() makes
TIMED_STEPS = 30  # of an episode that is timed
TIMED_EPISODES = 8  # number of episodes started to estimate the time per episode
ROWS_CHECK = "gold-answers"  # name of the result of check_rows()
MAX_PRINTED = 10_000  # characters that an environment prints while it is checked, and that are shown
_BUILDS = ("construction", "protocol")  # checks that show that it can be built; a bad row may fail the second
ROWS_BAR_DELAY_S = 2.0  # delay before the progress bar for rows is shown


@dataclass(frozen=True, kw_only=True)
class Config(DataFlags):
    env_fields = ("pattern",)
    pattern: str = flag(
        REQUIRED, help="environment id, prefix or shell pattern, or module:Class; or judge", positional=True
    )
    seeds: int = flag(10, help="seeds for checks of single episodes")
    episodes: int = flag(50, help="episodes for estimates of means and rates")
    seconds: float = flag(60.0, help="approximate time limit per environment; slow environments play fewer episodes")
    rows: int | Literal["all"] = flag(DEFAULT_ROWS, help="dataset rows to answer, or all", metavar="N")
    thorough: bool = flag(False, help="also check that memory, open files, threads, processes and time do not grow")
    json: bool = flag(False, help="print the reports as a JSON array")
    model: str | None = flag(None, help="for judge: the model at the endpoint")
    base_url: str | None = flag(None, help="for judge: URL of the endpoint, without /chat/completions")
    api_key_env: str | None = flag(None, help="for judge: environment variable with the API key")
    votes: int = flag(1, help="for judge: verdicts per answer, of which the majority counts")


def run(config: Config) -> int:
    if not config.seconds > 0:
        raise BadValue(f"--seconds must be above 0, got {config.seconds}")
    for name, number in (("seeds", config.seeds), ("episodes", config.episodes), ("rows", config.rows)):
        if number != "all":
            check_count(f"--{name}", int(number))
    if config.pattern == "judge":  # an LLM judge instead of environments
        return _check_judge(config)
    if config.model is not None or config.base_url is not None:
        raise BadValue(f"--model and --base-url are for `gem check judge`, got the pattern {config.pattern!r}")
    targets = find(config.pattern)
    reports: list[CheckReport] = []
    with _progress_bars(len(targets)) as bar:
        for target in targets:
            bar.begin(str(target))
            printed: Any = EscapedStream(sys.stderr, MAX_PRINTED)  # output of the environment is not in the report
            with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
                reports.append(_check(target, config, bar))
            if printed.left_out:
                left_out = counted(printed.left_out, "character")
                print(f"\n… {left_out} that {reports[-1].target} printed left out", file=sys.stderr)
            if not config.json:
                _show(reports[-1], alone=len(targets) == 1)
    if config.json:
        print_json([report.to_json() for report in reports])
    elif len(reports) > 1:
        failed = sum(not report.ok for report in reports)
        seconds = sum(report.seconds for report in reports)
        print(f"{len(reports)} environments, {failed} with failed checks, {seconds:.0f} s")
    return 0 if all(report.ok for report in reports) else 1


def _check_judge(config: Config) -> int:
    if not config.model or not config.base_url:
        raise BadValue("`gem check judge` requires --model and --base-url")
    from gem.graders.judge import Judge
    from gem.policies import Endpoint
    from gem.testing.check_judge import check_judge

    with (
        Endpoint(config.base_url, config.model, api_key_env=config.api_key_env) as endpoint,
        _progress_bars(1, "pairs") as bar,
    ):
        bar.begin("judge")
        report = check_judge(Judge(endpoint=endpoint, votes=config.votes), progress=bar.rows)
    if config.json:
        print_json(report.to_json())
    else:
        print(report.to_text())
    return 1 if report.failed else 0


def _check(target: Any, config: Config, bar: _Bars) -> CheckReport:
    start = time.perf_counter()
    if (missing := _missing_data(target)) is not None:
        result = CheckResult("data", "The dataset is available.", "unchecked", missing)
        return CheckReport(str(target), [result], range(0), 0, time.perf_counter() - start)
    seeds, episodes = _affordable(target, config)
    slow = episodes < config.episodes
    report = check_env(
        target,
        seeds=seeds,
        episodes=episodes,
        thorough=config.thorough,
        seconds=config.seconds if slow else None,
    )
    results = list(report.results)
    if slow:
        results.append(
            CheckResult("speed", "All episodes fit into the time limit.", "unchecked", _slow(seeds, episodes))
        )
    if isinstance(target, str) and any(r.name in _BUILDS and r.status == "passed" for r in results):
        rows = None if config.rows == "all" else int(config.rows)
        results.append(check_rows(target, rows=rows, progress=bar.rows))
    return replace(report, results=results, seconds=time.perf_counter() - start)


def _missing_data(target: Any) -> str | None:
    """Return the error message if the dataset of an environment is not available; otherwise None."""
    try:
        make(target).close()
    except MissingData as e:
        return str(e)
    except Exception:  # check_env() reports this exception
        return None
    return None


def _affordable(target: Any, config: Config) -> tuple[int, int]:
    """Return (seeds, episodes): the numbers in the config, reduced if check_env() would exceed config.seconds."""
    cost = _seconds_per_episode(target, config.seconds)
    fraction = min(
        1.0, config.seconds / (cost * (RESETS_PER_EPISODE * config.episodes + RESETS_PER_SEED * config.seeds))
    )
    return max(1, math.ceil(fraction * config.seeds)), max(1, math.ceil(fraction * config.episodes))


def _seconds_per_episode(target: Any, seconds: float) -> float:
    """Return the mean time of an episode, without the two slowest; nearly 0 if too few succeed.

    Episodes end after TIMED_STEPS steps. When a hundredth of the seconds is used up, they end after one step.
    """
    costs = []
    began = time.perf_counter()
    with contextlib.suppress(Exception), make(target) as env:
        for seed in range(TIMED_EPISODES):
            start, steps, over = time.perf_counter(), 0, False
            env.reset(seed=seed)
            while not over and steps < TIMED_STEPS and (not steps or time.perf_counter() - began < seconds / 100):
                step = env.step(env.sample_random_action())
                steps, over = steps + 1, bool(step[2] or step[3])
            costs.append(time.perf_counter() - start)
    return statistics.fmean(sorted(costs)[:-2]) if len(costs) > 2 else 1e-9  # the slowest may include worker startup


def _slow(seeds: int, episodes: int) -> str:
    return (
        f"slow: played only {counted(seeds, 'seed')} and {counted(episodes, 'episode')}; raise --seconds to play more"
    )


def find(pattern: str) -> list[str]:
    """Return the ids that match a pattern. Raises UnknownEnv."""
    return [pattern] if pattern in ENV_REGISTRY else [spec.id for spec in matching(pattern)]


def _show(report: CheckReport, alone: bool) -> None:
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    print(report.to_text(only_failed=not alone, width=width), flush=True)
    for result in report.results:
        if not alone and result.name == ROWS_CHECK and result.status == "passed":  # with the share of distinct rows
            print(f"{'':8}{result.detail}", flush=True)


@contextlib.contextmanager
def _progress_bars(count: int, items: str = "rows") -> Iterator[_Bars]:
    """Show a progress bar for environments, and one for the rows, or other items, of one that takes long."""
    with progress(redirect_stdout=sys.stdout.isatty()) as shown:  # lines on stdout are printed above the bars
        environments = shown.add_task("checking", total=count, completed=-1, visible=count > 1)
        yield _Bars(shown, environments, shown.add_task(items, visible=False))


@dataclass
class _Bars:
    shown: Progress
    environments: TaskID
    items: TaskID
    started: float = 0.0  # when the first item of the environment was done

    def begin(self, name: str) -> None:
        """Show that the check of the next environment starts."""
        self.started = 0.0
        self.shown.update(self.items, visible=False)
        self.shown.update(self.environments, description=name, advance=1)

    def rows(self, done: int, total: int) -> None:
        """Show the number of rows that are done."""
        self.started = self.started or time.perf_counter()
        if time.perf_counter() - self.started > ROWS_BAR_DELAY_S:
            self.shown.update(self.items, completed=done, total=total, visible=done < total)
