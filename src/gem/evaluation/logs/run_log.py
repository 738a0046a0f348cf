"""The log of one evaluation, at a service for numbers or at a collector of spans."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from gem.errors import BadValue
from gem.evaluation.logs.services import NumberLog, check_installed, unless_it_fails
from gem.evaluation.logs.spans import SpanLog
from gem.evaluation.metrics import Estimate
from gem.evaluation.report import EnvScore, EvalReport
from gem.trajectory import Trajectory

LogKind: TypeAlias = Literal["wandb", "tensorboard", "trackio", "otel"]


class RunLog:
    """Sends the scores of an evaluation so far to a service, or with "otel" the spans of its episodes.

    If the service fails, one warning says so, and the evaluation goes on.

    Args:
        kind: the service.
        folder: folder of the evaluation; None if there is none.
        settings: what defines the evaluation, shown as its configuration.

    Raises:
        MissingDependency: a library is not installed.
        BadValue: unknown service, or one that writes files and no folder.
    """

    def __init__(self, kind: str, folder: str | None, settings: Mapping[str, Any]) -> None:
        if kind not in get_args(LogKind):
            raise BadValue(f"log must be wandb, tensorboard, trackio or otel, got {kind!r}")
        if kind == "tensorboard" and folder is None:
            raise BadValue("log='tensorboard' writes into the folder of the evaluation; name one with out=")
        self.kind, self.folder, self.settings = kind, folder, settings
        self._target: NumberLog | SpanLog | None = SpanLog() if kind == "otel" else None
        if kind != "otel":
            check_installed(kind)

    def episode(self, trajectory: Trajectory, env: str) -> None:
        """Send the spans of an episode that has just ended. Only for "otel"."""
        if isinstance(self._target, SpanLog):
            with unless_it_fails(self):
                self._target.episode(trajectory, env)

    def write(self, report: EvalReport) -> None:
        """Send the scores so far, if there are any. Not for "otel"."""
        done = sum(env.done for env in report.envs)
        if self.kind == "otel" or not done:
            return
        if not isinstance(self._target, NumberLog):
            # Not before the folder of the evaluation is made, which must be empty.
            folder = Path(self.folder or ".")
            name = report.model if self.folder is None else folder.resolve().name
            self._target = NumberLog(self.kind, f"eval-{name}", self.settings, folder=folder, step=done - 1)
        counts = {"done": done, "failed": sum(env.failed for env in report.envs)}
        self._target.write({**counts, **{env.name: _numbers(env) for env in report.envs}}, done)

    def close(self) -> None:
        """Send what is left."""
        if self._target is not None:
            with unless_it_fails(self):
                self._target.close()


def _numbers(env: EnvScore) -> dict[str, float]:
    found = {name: value.value if isinstance(value, Estimate) else value for name, value in vars(env).items()}
    return {name: value for name, value in found.items() if isinstance(value, (int, float)) and math.isfinite(value)}
