"""What `gem eval WORD` does with the folders of evaluations: compare, rescore, export, import."""

from __future__ import annotations

import shlex
from contextlib import closing
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from gem._internal.folders import FolderLock, plain
from gem._internal.text import clip, counted, one_line, short_repr
from gem.cli.eval.display import plain_console, report_table
from gem.cli.output import print_json
from gem.errors import BadValue
from gem.evaluation import compare, rescore
from gem.evaluation.exchange.inspect_logs import export_inspect, read_inspect
from gem.evaluation.exchange.leaderboard import FILE as LEADERBOARD
from gem.evaluation.exchange.leaderboard import export_leaderboard
from gem.evaluation.exchange.verifiers_traces import TRACES, export_verifiers, read_verifiers
from gem.evaluation.records import TRAJECTORIES, check_free
from gem.evaluation.report import MAX_NOTE
from gem.evaluation.rescore import Change
from gem.trajectory import Trajectory, write_jsonl

MAX_CHANGES = 20  # changed samples that are printed


def print_comparison(paths: list[str], as_json: bool) -> None:
    """Print the table of several evaluations. Raises BadValue for folders that cannot be compared."""
    found = compare(paths)
    if as_json:
        print_json(found.to_json())
        return
    console = plain_console()
    table = Table()
    for number, column in enumerate(found.columns):
        table.add_column(Text(one_line(column)), justify="right" if number > 1 else "left", overflow="fold")
    for row in found.rows():
        table.add_row(*(Text(one_line(text), style="bold" if is_best else "") for text, is_best in row))
    console.print(table)
    for line in [*found.flips(), *(f"warning: {warning}" for warning in found.warnings)]:
        console.print(one_line(line), soft_wrap=True)


def print_rescored(
    paths: list[str], out: str | None, concurrency: int, timeout: float | None, trust: bool, as_json: bool
) -> None:
    """Grade an evaluation again, and print what changed. Raises BadValue for a folder that cannot be graded."""
    if len(paths) != 1:
        raise BadValue(f"rescore takes the folder of one evaluation, got {len(paths)}")
    path = paths[0].rstrip("/")
    out = out or f"{path}-rescored"
    check_free_copy(out)
    found = rescore(path, out=out, concurrency=concurrency, timeout=timeout, trust=trust)
    if as_json:
        data: dict[str, Any] = {"changes": [change._asdict() for change in found.changes], "failed": found.failed}
        print_json({**data, "before": found.before.to_json(), "after": found.after.to_json()})
        return
    console = plain_console()
    console.print(report_table(found.after))
    played = sum(env.done for env in found.after.envs)
    lines = [f"{counted(len(found.changes), 'sample')} of {played:,} changed."]
    lines += [_change_line(change) for change in found.changes[:MAX_CHANGES]]
    lines += [f"… and {len(found.changes) - MAX_CHANGES:,} more"] if len(found.changes) > MAX_CHANGES else []
    for before, after in zip(found.before.envs, found.after.envs, strict=True):
        lines.append(f"{after.name}: score {before.score} before, {after.score} now.")
    if found.failed:
        cause = next(iter(found.failed.values()))
        lines.append(f"{counted(len(found.failed), 'sample')} could not be graded again, and keep their score: {cause}")
    for line in [*lines, f"Records and report: {shlex.quote(out)}"]:
        console.print(clip(one_line(line), MAX_NOTE), soft_wrap=True)


def export(paths: list[str], format: str | None, out: str | None, leaderboard: bool) -> None:
    """Write an evaluation as another tool reads it, or rows for a leaderboard. Raises BadValue without a report."""
    if leaderboard:
        if not paths or format is not None:
            raise BadValue("export --leaderboard takes folders of evaluations, and no --format")
        if out is not None and Path(out).exists():
            raise BadValue(f"{out} exists; choose another file with --out")
        print(export_leaderboard(paths, out or str(plain(Path(paths[0], LEADERBOARD)))))
        return
    if len(paths) != 1 or format is None:
        raise BadValue("export takes the folder of one evaluation, and --format inspect or verifiers, or --leaderboard")
    path = paths[0].rstrip("/")
    out = out or str(plain(Path(path, format)))
    for file in (export_inspect if format == "inspect" else export_verifiers)(path, out):
        print(file)


def import_files(paths: list[str], out: str | None) -> None:
    """Read logs of other tools into one folder of trajectories. Raises BadValue for a file that is no such log."""
    if not paths or out is None:
        raise BadValue("import takes logs of inspect-ai (.json, .eval) or verifiers (traces.jsonl), and --out FOLDER")
    check_free_copy(out)
    found: list[Trajectory] = []
    for path in paths:
        file = Path(path) / TRACES if Path(path).is_dir() else Path(path)
        found += read_verifiers(str(file)) if file.suffix == ".jsonl" else read_inspect(str(file))
    if not found:
        raise BadValue(f"no sample in {', '.join(paths)}")
    Path(out).mkdir(parents=True)
    with closing(FolderLock(Path(out))):
        write_jsonl(Path(out) / TRAJECTORIES, found)
    failed = sum(trajectory.failure is not None for trajectory in found)
    shown = f"{counted(len(found), 'episode')} ({failed:,} failed)"
    print(f"{shown} in {shlex.quote(out)}; show them with: gem view {shlex.quote(out)}")


def check_free_copy(out: str) -> None:
    """Raise BadValue unless the folder is free."""
    if Path(out).exists():
        raise BadValue(f"{out} exists; choose another folder with --out")
    check_free(Path(out))


def _change_line(change: Change) -> str:
    (before, why), (after, why_now) = change.before, change.after
    ends = f" ({why} → {why_now})" if why != why_now else ""
    return f"  {change.env}, sample {change.sample}: {before:g} → {after:g}{ends}, {short_repr(change.action)}"
