"""Numbers of a training run or an evaluation for TensorBoard, Weights & Biases and Trackio."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gem.errors import require

logger = logging.getLogger(__name__)
PROJECT = "gem"  # of wandb and trackio


class NumberLog:
    """The log of a new or resumed run. If the service fails, one warning says so, and the rest is not logged.

    Args:
        kind: "tensorboard" writes event files to tensorboard/ in the folder of the run; "wandb" and "trackio" have a
            run with this name in a project, which a resumed run continues.
        config: the settings to show, as JSON data.
        step: the last step done; the rows after it will be written again.

    Raises:
        MissingDependency: the library is not installed.
    """

    def __init__(self, kind: str, name: str, config: Mapping[str, Any], *, folder: Path, step: int) -> None:
        check_installed(kind)
        self.kind, self._target = kind, None
        with unless_it_fails(self):
            self._target = _open(kind, name, dict(config), folder, step)

    def write(self, row: Mapping[str, Any], step: int) -> None:
        """Log the numbers of a row."""
        if self._target is not None:
            with unless_it_fails(self):
                self._target.write(row, step)

    def close(self) -> None:
        if self._target is not None:
            with unless_it_fails(self):
                self._target.close()


def check_installed(kind: str) -> None:
    """Raise MissingDependency if the library of a service is not installed."""
    require(kind, extra=kind)


@contextmanager
def unless_it_fails(log: Any) -> Iterator[None]:
    """Log a warning for an exception of the block, and give up the log's target."""
    try:
        yield
    except Exception as e:  # of a service: whatever it is, it is not worth a run
        log._target = None
        logger.warning("--log %s failed, and gets no more of this run: %s: %s", log.kind, type(e).__name__, e)


def _open(kind: str, name: str, config: dict[str, Any], folder: Path, step: int) -> Any:
    if kind == "tensorboard":
        return _TensorBoard(folder / "tensorboard", step)
    library, options = require(kind, extra=kind), {"project": PROJECT, "name": name, "config": config}
    if kind == "wandb":
        id = re.sub(r"[^\w.-]", "-", name)  # ids may not contain / \ # ? % :
        return _Tracker(library.init(id=id, dir=str(folder), resume="allow", **options))
    library.init(resume="allow", **options)
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
    def __init__(self, folder: Path, step: int) -> None:
        self._events: Any = require("tensorboard.compat.proto.event_pb2", extra="tensorboard")
        self._summaries: Any = require("tensorboard.compat.proto.summary_pb2", extra="tensorboard")
        writers = require("tensorboard.summary.writer.event_file_writer", extra="tensorboard")
        self._writer = writers.EventFileWriter(str(folder))
        start = self._events.SessionLog(status=self._events.SessionLog.START)  # readers drop later steps of before
        self._add(step + 1, session_log=start)

    def write(self, row: Mapping[str, Any], step: int) -> None:
        values = [self._summaries.Summary.Value(tag=name, simple_value=value) for name, value in scalars(row)]
        self._add(step, summary=self._summaries.Summary(value=values))
        self._writer.flush()

    def close(self) -> None:
        self._writer.close()

    def _add(self, step: int, **content: Any) -> None:
        self._writer.add_event(self._events.Event(wall_time=time.time(), step=step, **content))


class _Tracker:
    """A run of wandb, or of trackio, whose module has the same functions."""

    def __init__(self, run: Any) -> None:
        self._run = run

    def write(self, row: Mapping[str, Any], step: int) -> None:
        self._run.log(dict(scalars(row)), step=step)

    def close(self) -> None:
        self._run.finish()
