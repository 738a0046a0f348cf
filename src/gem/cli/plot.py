"""Draw the learning curves of training runs, or list the runs with their scores.

Runs that differ only in their seed are one curve: their interquartile mean, in a band that is its 95 % interval from a
bootstrap over seeds (rliable). The legend names what differs between the runs. A dashed line is the optimum, if it is
known. A run in progress is drawn up to its last update.

  gem plot runs/demo                                writes runs/demo/curve.png
  gem plot runs/rloo-* runs/turn-* -o compare.png   two configurations with several seeds each
  gem plot runs --metrics reward entropy -o a.png   all runs in a folder, other metrics
  gem plot --list                                   the runs in runs/, with their scores
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gem._internal.folders import plain
from gem._internal.text import counted
from gem.cli.flags import flag
from gem.cli.output import output_file, print_json, table
from gem.errors import BadValue
from gem.rl.run.folder import RunFolder
from gem.rl.run.plots import CURVES, RecordedRun, draw_curves, find_runs

_FORMATS = (".png", ".svg", ".pdf")
_COLUMNS = ("run", "env", "seed", "updates", "start", "sampled", "evaluated", "best", "warnings")


@dataclass(frozen=True, kw_only=True)
class Config:
    paths: tuple[Path, ...] = flag((), help="run folders, or folders of runs; default: runs", positional=True)
    out: Path | None = flag(
        None, help=f"file to write ({', '.join(_FORMATS)}); default: curve.png in the folder of a single run", short="o"
    )
    metrics: tuple[str, ...] = flag(
        CURVES,
        help="numbers in metrics.jsonl to draw, e.g. entropy or time/seconds; docs/reference/metrics.md explains them",
    )
    list: bool = flag(False, help="list the runs with the success rates of start, last batch and evaluations")
    json: bool = flag(False, help="with --list: print a JSON array")


def run(config: Config) -> int:
    paths = [found for path in config.paths or [Path("runs")] for found in find_runs(path)]
    runs = [RecordedRun.read(path) for path in dict.fromkeys(paths)]
    if config.list:
        records = [record(each) for each in runs]
        if config.json:
            print_json(records)
        else:
            print("\n".join(table([_COLUMNS, *([_cell(r[name]) for name in _COLUMNS] for r in records)])))
        return 0
    if config.json:
        raise BadValue("--json needs --list")
    out = _target(config.out, paths)
    draw_curves(out, runs, config.metrics, title=runs[0].title if len(runs) == 1 else "")
    print(f"{out}: {counted(len(runs), 'run')}")
    return 0


def record(run: RecordedRun) -> dict[str, Any]:
    """Return a run as data for JSON. Scores are success rates; None if there are none yet."""
    rows, evaluated = run.rows, [scores["success"] for _, scores in run.evaluations()]
    known = [score for score in evaluated if score is not None]
    return {
        "run": str(run.path),
        "env": run.title,
        "seed": run.config.get("seed"),
        "updates": f"{rows[-1]['update'] if rows else 0}/{run.config.get('steps')}",
        "start": rows[0]["success"] if rows else None,
        "sampled": rows[-1]["success"] if rows else None,
        "evaluated": evaluated[-1] if evaluated else None,
        "best": max(known, default=None),
        "warnings": sorted({name for row in rows for name in row.get("warnings", [])}),
    }


def _cell(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "-"
    return "-" if value is None else f"{value:.3f}" if isinstance(value, float) else str(value)


def _target(out: Path | None, paths: list[Path]) -> Path:
    if out is not None:
        return output_file(out, *_FORMATS)
    if len(paths) > 1:
        raise BadValue(f"several runs need a file to write: --out curves.png, got {len(paths)} runs")
    return plain(RunFolder(paths[0]).curve)
