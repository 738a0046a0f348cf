"""Copies of the rows of metrics.jsonl for TensorBoard, Weights & Biases and Trackio. The file remains the record."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

from gem.errors import require
from gem.rl.metrics import Metrics
from gem.rl.run.folder import RunFolder

PROJECT = "gem"  # of wandb and trackio


class MetricsMirror(Protocol):
    """Receives the rows of a run."""

    def write(self, row: Metrics) -> None: ...
    def close(self) -> None: ...


def open_mirror(kind: str, folder: RunFolder, config: Mapping[str, Any], update: int) -> MetricsMirror:
    """Open a mirror of a new or resumed run.

    Args:
        kind: "tensorboard" writes event files to tensorboard/ in the folder of the run; "wandb" and "trackio" have a
            run with the name of the folder in a project, which a resumed run continues.
        config: the settings to show, as config.json has them.
        update: updates done; the rows after it will be written again.

    Raises:
        MissingDependency: the library is not installed.
    """
    if kind == "tensorboard":
        return _TensorBoard(folder.path / "tensorboard", update)
    library, name = require(kind, extra=kind), folder.path.resolve().name
    options = {"project": PROJECT, "name": name, "config": dict(config), "resume": "allow"}
    if kind == "wandb":
        id = re.sub(r"[^\w.-]", "-", name)  # ids may not contain / \ # ? % :
        return _Tracker(library.init(id=id, dir=str(folder.path), **options))
    library.init(**options)
    return _Tracker(library)


def scalars(row: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, float]]:
    """Yield the numbers of a row. Names of nested numbers are joined by "/"; ``warnings`` is their count.

    >>> dict(scalars({"update": 3, "eval": {"greedy": {"success": 0.5}}, "warnings": ["clipped"], "value": None}))
    {'update': 3, 'eval/greedy/success': 0.5, 'warnings': 1}
    """
    for name, value in row.items():
        if isinstance(value, Mapping):
            yield from scalars(value, f"{prefix}{name}/")
        elif isinstance(value, list):
            yield prefix + name, len(value)
        elif isinstance(value, (int, float)):
            yield prefix + name, value


class _TensorBoard:
    def __init__(self, folder: Path, update: int) -> None:
        require("tensorboard", extra="tensorboard")
        writer = require("torch.utils.tensorboard", extra="tensorboard").SummaryWriter
        self._writer = writer(str(folder), purge_step=update + 1)

    def write(self, row: Metrics) -> None:
        for name, value in scalars(row):
            self._writer.add_scalar(name, value, row["update"])
        self._writer.flush()

    def close(self) -> None:
        self._writer.close()


class _Tracker:
    """A mirror in a run of wandb, or in trackio, whose module has the same functions."""

    def __init__(self, run: Any) -> None:
        self._run = run

    def write(self, row: Metrics) -> None:
        self._run.log(dict(scalars(row)), step=row["update"])

    def close(self) -> None:
        self._run.finish()
