"""The scores on the front page: the columns of gem.evaluation for each environment and run.

Those of an evaluation are read from its report. They are computed in the same way for other recordings, and for an
evaluation that has no report of its newest episodes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gem.errors import BadValue
from gem.evaluation.columns import COLUMNS, EnvSamples, Sample
from gem.evaluation.metrics import Estimate
from gem.evaluation.records import FAILURES, TRAJECTORIES
from gem.evaluation.report import read_report
from gem.registry import ENV_REGISTRY
from gem.viewer.episodes import Json

_SHOWN = [column for column in COLUMNS if not column.family]
# The columns that rows suffice for; of the others, a report tells.
_COMPUTED = ["done", "score", "solved", "turns", "cut", "overflowed", "refused", "invalid", "failed"]
_COMPUTED += ["tokens_in", "tokens_out"]


def results_of(files: Sequence[Path], rows: Sequence[Json]) -> Json:
    """Return the results of recordings.

    Args:
        files: the JSON Lines files.
        rows: the rows of all episodes; see gem.viewer.episodes.

    Returns:
        "columns": key, name and definition of each column; "cells": one per environment and run, with its "name", the
        "env" and the "model" of its rows, the "run" (the heading of its column), numbers of its "files", and "values"
        by key of column: a number, an estimate {"value", "low", "high"}, or None if it is unknown.
    """
    runs: dict[tuple[Path, str | None], list[Json]] = {}
    for row in rows:
        runs.setdefault((_folder(files[row["file"]]), row["model"]), []).append(row)
    folders = {folder for folder, _ in runs}
    names = [folder.name for folder in folders]
    labels = {folder: folder.name if names.count(folder.name) == 1 else str(folder) for folder in folders}
    cells = [cell for (folder, _), found in runs.items() for cell in _cells(folder, labels[folder], found, files)]
    models = {(cell["run"], cell["model"]): cell["model"] or cell["run"] for cell in cells}
    shown = list(models.values())
    for cell in cells:
        name = models[cell["run"], cell["model"]]
        cell["run"] = name if shown.count(name) == 1 else f"{name} · {cell['run']}"
    return {"columns": [{"key": c.key, "name": c.name, "definition": c.definition} for c in _SHOWN], "cells": cells}


def _folder(file: Path) -> Path:
    """Return the folder of a run or an evaluation, or a file of its own."""
    return file.parent if file.name in (TRAJECTORIES, FAILURES) else file


def _cells(folder: Path, label: str, rows: Sequence[Json], files: Sequence[Path]) -> list[Json]:
    """Return the cells of a run whose rows have one model."""
    shared = {"model": rows[0]["model"], "run": label, "files": sorted({row["file"] for row in rows})}
    finished = [row for row in rows if files[row["file"]].name != FAILURES]
    if (report := _report(folder, len(finished))) is not None:
        run = shared | ({} if shared["model"] else {"run": str(report.get("model") or shared["run"])})
        return [
            {
                "name": str(env["name"]),
                "env": str(env["name"]),
                **run,
                "values": {c.key: _plain(env.get(c.key)) for c in _SHOWN},
            }
            for env in report["envs"]
        ]
    played = {row["episode"] for row in finished}
    failures = {row["episode"]: row for row in rows if files[row["file"]].name == FAILURES}  # of the last attempts
    by_env: dict[str | None, dict[str, list[Sample | None]]] = {}
    for row in [*finished, *(row for number, row in failures.items() if number not in played)]:
        tasks = by_env.setdefault(row["env"], {})
        tasks.setdefault(row["task"] or row["key"], []).append(_sample(row))
    return [{"name": env or "–", "env": env, **shared, "values": _values(env, tasks)} for env, tasks in by_env.items()]


def _report(folder: Path, finished: int) -> Json | None:
    """Return the report of an evaluation's folder, None if there is none of so many finished episodes."""
    try:
        report = read_report(folder) if folder.is_dir() else None
    except BadValue:
        return None
    done = [env.get("done") for env in report["envs"]] if report else []
    return report if report and all(type(n) is int for n in done) and sum(done) == finished else None


def _values(env: str | None, tasks: Mapping[str, Sequence[Sample | None]]) -> Json:
    spec = ENV_REGISTRY.get(env) if env else None
    samples = EnvSamples(tasks, spec.reward_range if spec else None)
    return {c.key: _plain(c.compute(samples)) if c.key in _COMPUTED else None for c in _SHOWN}


def _sample(row: Json) -> Sample:
    """Return the outcome of a row, as Sample.of() does of a trajectory."""
    if type(row["reward"]) not in (int, float):
        return Sample(math.nan, turns=row["turns"], failure=row["failure"] or "no reward")
    return Sample(
        row["reward"],
        row["outcome"] == "solved",
        row["turns"],
        row["cut"],
        row["outcome"] == "max_tokens",
        row["outcome"] == "refused",
        row["invalid"],
        row["tokens_in"],
        row["tokens_out"],
    )


def _plain(value: Any) -> Any:
    if isinstance(value, Estimate):
        value = value._asdict()
    if isinstance(value, Mapping):
        return {name: _plain(value.get(name)) for name in ("value", "low", "high")}
    return value if type(value) in (int, float) and math.isfinite(value) else None
