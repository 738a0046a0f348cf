"""The display of `gem eval`: a live table on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from contextlib import ExitStack

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from gem._internal.text import counted, one_line
from gem.cli import output
from gem.evaluation import EvalReport
from gem.evaluation.columns import BY_KEY
from gem.evaluation.metrics import expected_half_width, tasks_needed

PLAIN_WIDTH = 160  # characters of a table that is not shown on a terminal


class Display:
    """Shows a live table on a terminal, and otherwise a line for each tenth of the samples."""

    def __init__(self, console: Console, detect: float | None) -> None:
        self.console, self.detect = console, detect
        self.live = Live(console=console, auto_refresh=False, transient=True) if console.is_terminal else None
        self.shown = ExitStack()
        self.started, self.tenths = time.monotonic(), 0
        self.before: EvalReport | None = None  # what a resumed run had done
        self.has_failure = False  # whether the first one was shown

    def __enter__(self) -> Display:
        if self.live is not None:
            self.shown.enter_context(output.live(self.live))
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        self.shown.close()

    def update(self, report: EvalReport) -> None:
        if self.before is None:
            self.before, self.tenths = report, total(report, "done") * 10 // total(report, "planned")
            self._announce(report)
        if report.attempts_failed and not self.has_failure:
            self.has_failure = True
            cause = one_line(next(iter(report.attempts_failed)))
            self.console.print(f"a sample failed: {cause}", soft_wrap=True, markup=False)
        done, planned = total(report, "done"), total(report, "planned")
        line = self._line(report, self.before)
        if self.live is not None:
            self.live.update(Group(report_table(report), line), refresh=True)
        elif done * 10 // planned > self.tenths:
            self.tenths = done * 10 // planned
            self.console.print(line, soft_wrap=True)

    def _announce(self, report: EvalReport) -> None:
        """Print the size of the evaluation and how precise it will be."""
        rollouts, tasks = report.settings["rollouts"], total(report, "planned") // report.settings["rollouts"]
        distinct = total(report, "distinct")
        width = max(expected_half_width(env.distinct, env.planned // env.distinct) for env in report.envs)
        repeated = f" ({distinct:,} different)" if distinct < tasks else ""
        self.console.print(
            f"{counted(len(report.envs), 'environment')}, {counted(tasks, 'task')}{repeated}, "
            f"{counted(rollouts, 'rollout')} per task. "
            f"Expected 95 % interval of a success rate: ± {width:.3f} or less.",
            soft_wrap=True,
        )
        if self.detect is not None:
            self.console.print(
                f"To detect a difference of {self.detect:g} between two models with a power of 80 %: "
                f"{tasks_needed(self.detect, rollouts):,} tasks.",
                soft_wrap=True,
            )

    def _line(self, report: EvalReport, before: EvalReport) -> str:
        seconds = max(1e-3, time.monotonic() - self.started)
        done, planned = total(report, "done"), total(report, "planned")
        rate = (done - total(before, "done")) / seconds
        sampled = total(report, "tokens_out") - total(before, "tokens_out")
        tokens = f", {sampled / seconds:.0f} tokens/s" if sampled else ""
        left = f", {(planned - done) / rate:.0f} s left" if rate > 0 and done < planned else ""
        failed = total(report, "failed")
        spent = report.lost + sum(env.cost for env in report.envs if env.cost > 0)  # NaN if unknown
        cost = f", ${spent:,.4f}" if spent else ""
        return f"{done}/{planned} done, {failed} failed, {rate:.1f} samples/s{tokens}{cost}{left}"


def total(report: EvalReport, name: str) -> int:
    return sum(getattr(env, name) for env in report.envs)


def report_table(report: EvalReport) -> Table:
    """Return the scores as a table, without columns of zeros and unknown costs. In a narrow terminal cells wrap."""
    table = Table(title=Text(f"Evaluation of {one_line(report.model)}"), title_justify="left")
    rows = [env.cells() for env in report.envs]
    empty = dict.fromkeys(report.columns, ("0",)) | {BY_KEY["cost"].name: ("0", "")}
    shown = [i for i, name in enumerate(report.columns) if any(row[i] not in empty[name] for row in rows)]
    for i in shown:
        table.add_column(report.columns[i], justify="right" if i else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(one_line(row[i])) for i in shown))
    return table


def plain_console(stderr: bool = False) -> Console:
    """Return a console that does not wrap tables too early when it is no terminal."""
    console = output.console(stderr=stderr, highlight=False)
    if not console.is_terminal:
        console.width = PLAIN_WIDTH
    return console
