"""Learning curves: several runs in one figure, and the seeds of one configuration as their interquartile mean.

Runs in progress are read as far as their lines are complete.
"""

from __future__ import annotations

import json
import os
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gem._internal.folders import is_own, plain
from gem._internal.inbound import read_json
from gem.core import Optimum
from gem.errors import BadValue, GemError, require
from gem.evaluation.logs.services import scalars
from gem.evaluation.metrics import LEVEL, interquartile_band
from gem.registry import make
from gem.rl.metrics import Metrics, modes
from gem.rl.run.folder import RunFolder

MAX_LABEL = 48  # characters of the name of a configuration in the legend
WINDOW = 10  # number of updates in the moving average of training curves
CURVES = ("success", "turns_when_won")  # the metrics that are drawn by default
LABELS = {"success": "success rate", "turns_when_won": "turns of won games", "reward": "total reward"}
_SEEDS = "seeds"
_OF_ONE_RUN = {"seed", "name", "out", "checkpoint_every", "keep_trajectories", "threads", "eval_every"}


@dataclass(frozen=True)
class RecordedRun:
    """A training run as its files have it.

    Args:
        path: its folder.
        config: config.json.
        rows: the complete lines of metrics.jsonl.
    """

    path: Path
    config: Mapping[str, Any]
    rows: Sequence[Metrics]

    @classmethod
    def read(cls, path: Path) -> RecordedRun:
        """Read a run. Raises BadValue if the folder is not a training run or a file is damaged."""
        folder = RunFolder(path)
        if not is_run(path):
            raise BadValue(f"{path} is not a training run: it has no {folder.config_file.name} and metrics.jsonl")
        try:
            config = read_json(plain(folder.config_file))
            if not all(isinstance(env["id"], str) for env in _envs(config)):
                raise BadValue("the id of an environment must be text")
        except (ValueError, TypeError, KeyError, AttributeError) as e:
            raise BadValue(f"{folder.config_file} is damaged: {e}") from e
        return cls(path, config, folder.read_metrics())

    @property
    def optimum(self) -> Optimum | None:
        """The best result that any policy can reach; None if it is unknown or there are several environments.

        It is also None for a run that this user has not made here, whose settings would choose the code that is run.
        """
        envs = _envs(self.config)
        if len(envs) != 1 or not is_own(RunFolder(self.path).config_file):
            return None
        try:
            with make(envs[0]["id"], **self.config.get("env_kwargs", {}), **envs[0].get("kwargs", {})) as env:
                return env.optimum()
        except GemError:  # an environment of a package that is not installed here
            return None

    @property
    def title(self) -> str:
        """The names of the environments, or the ids of those without a name."""
        return ", ".join(env.get("name") or env["id"] for env in _envs(self.config))

    def evaluations(self) -> list[tuple[Metrics, Metrics]]:
        """Return the rows with an evaluation, each with the metrics of its first mode, which is usually "greedy"."""
        found = [(row, modes(row["eval"])) for row in self.rows if "eval" in row]
        return [(row, row["eval"][names[0]]) for row, names in found if names]


def is_run(path: Path) -> bool:
    folder = RunFolder(path)
    return folder.config_file.is_file() and folder.metrics.is_file()


def find_runs(path: Path) -> list[Path]:
    """Return a run itself, or the runs inside a folder, by name. Raises BadValue if there are none."""
    if is_run(path):
        return [path]
    if not path.is_dir():
        raise BadValue(f"{path} is not a folder")
    runs = sorted(child for child in path.iterdir() if is_run(child))
    if not runs:
        raise BadValue(f"no training run in {path}")
    return runs


def by_configuration(runs: Sequence[RecordedRun]) -> dict[str, list[RecordedRun]]:
    """Group runs that differ only in their seed. The name of a group has the settings in which the groups differ.

    A name that would be longer than MAX_LABEL has only as many of them as tell the groups apart.
    """
    settings = [_settings(run) for run in runs]
    keys = sorted({key for each in settings for key in each}, key=lambda key: (key != "env", "." in key, key))
    differing = [key for key in keys if len({each.get(key) for each in settings}) > 1]
    groups: dict[tuple[str | None, ...], list[int]] = {}
    for i, each in enumerate(settings):
        groups.setdefault(tuple(map(each.get, differing)), []).append(i)
    members = [[runs[i] for i in found] for found in groups.values()]
    firsts = [settings[found[0]] for found in groups.values()]
    names = [_label(first, differing) or runs[0].title for first in firsts]
    while max(map(len, names)) > MAX_LABEL and (shorter := _without_one(differing, firsts)) is not None:
        differing, names = shorter, [_label(first, shorter) for first in firsts]
    return dict(zip(names, members, strict=True))


def _settings(run: RecordedRun) -> dict[str, str]:
    """Return the settings of a run as text, nested ones by the names of their leaves."""
    found = {"env": run.title}
    waiting: list[tuple[str, Any]] = [(key, value) for key, value in run.config.items() if key not in _OF_ONE_RUN]
    while waiting:
        name, value = waiting.pop()
        if name == "env":
            waiting += [(f"env.{key}", part) for env in _envs(run.config) for key, part in env.items() if key != "id"]
        elif isinstance(value, Mapping):
            waiting += [(f"{name}.{key}", part) for key, part in value.items()]
        else:
            found[name] = _text(value)
    return found


def _label(settings: Mapping[str, str], keys: Sequence[str]) -> str:
    return ", ".join(settings[key] if key == "env" else f"{key}={settings[key]}" for key in keys if key in settings)


def _without_one(keys: Sequence[str], firsts: Sequence[Mapping[str, str]]) -> list[str] | None:
    """Return the keys without the last one that is not needed to tell the groups apart; None if all are needed."""
    for key in reversed(keys):
        rest = [other for other in keys if other != key]
        if len({_label(first, rest) for first in firsts}) == len(firsts):
            return rest
    return None


def draw_curves(
    path: str | os.PathLike[str], runs: Sequence[RecordedRun], metrics: Sequence[str], title: str = ""
) -> None:
    """Plot metrics against training episodes and save the figure; the suffix of ``path`` determines its format.

    A line is the interquartile mean over the seeds of a configuration, as far as all of them got, in a band that is its
    95 % interval from a bootstrap over seeds (rliable). Points are evaluations. The optimum of success and turns is a
    dashed line.

    Args:
        metrics: names of numbers in the rows of metrics.jsonl, nested ones as in "time/seconds"; one panel each.

    Raises:
        BadValue: no row has one of the metrics.
        MissingDependency: matplotlib is not installed.
    """
    for metric in metrics:
        if not any(_has(row, metric) for run in runs for row in run.rows):
            raise BadValue(f"no run has the metric {metric!r} yet; docs/reference/metrics.md lists the metrics")
    require("matplotlib", extra="plot").use("Agg")
    pyplot = require("matplotlib.pyplot", extra="plot")
    size, ink = (5.5 * len(metrics), 4.2), pyplot.rcParams["text.color"]
    figure, grid = pyplot.subplots(1, len(metrics), figsize=size, layout="constrained", squeeze=False)
    for axes, metric in zip(grid[0], metrics, strict=True):
        for i, (label, members) in enumerate(by_configuration(runs).items()):
            _draw_group(axes, members, metric, f"C{i}", label)
        for optimum in {known for run in runs if (known := run.optimum) is not None}:
            if metric in ("success", "turns_when_won"):
                best = optimum.success if metric == "success" else optimum.turns
                axes.axhline(
                    best, linestyle="--", color=ink, linewidth=1, label=f"{optimum.name}: {best:.3g} {LABELS[metric]}"
                )
        if metric == "success":
            axes.set_ylim(0, 1.05)
        axes.set_xlabel("training episodes")
        axes.set_ylabel(LABELS.get(metric, metric))
        axes.grid(alpha=0.3)
    figure.suptitle(title)
    named = {label: handle for axes in grid[0] for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    bands = f"bands: {LEVEL:.0%} intervals over seeds; " if any(_SEEDS in label for label in named) else ""
    about = f"lines: training, mean of {WINDOW} updates; {bands}points: evaluation"
    legend = {"title": about, "fontsize": "small", "title_fontsize": "small", "frameon": False}
    figure.legend(named.values(), named.keys(), loc="outside lower center", ncols=len(metrics), **legend)
    figure.savefig(path, dpi=120)
    pyplot.close(figure)


def _draw_group(axes: Any, members: Sequence[RecordedRun], metric: str, color: str, label: str) -> None:
    """Draw the runs of one configuration."""
    for row, scores in [point for run in members for point in run.evaluations()]:
        if (value := dict(scalars(scores)).get(metric)) is not None:
            axes.plot(row["episodes"], value, "o", color=color, markersize=4)
    curves = [curve for run in members if (curve := _smoothed(run.rows, metric))]
    if not curves:
        return
    common = sorted(set.intersection(*(set(curve) for curve in curves)))
    x = [statistics.fmean(curve[update][0] for curve in curves) for update in common]
    values, low, high = interquartile_band([[curve[update][1] for update in common] for curve in curves])
    axes.plot(x, values, color=color, label=label + (f" ({len(members)} {_SEEDS})" if len(members) > 1 else ""))
    if len(curves) > 1:
        axes.fill_between(x, low, high, color=color, alpha=0.2, linewidth=0)
        for curve in curves:  # a seed that went on for longer than the others
            rest = [curve[update] for update in sorted(curve) if not common or update >= common[-1]]
            axes.plot(*zip(*rest, strict=True), color=color, alpha=0.4, linewidth=0.8)


def _smoothed(rows: Sequence[Metrics], metric: str) -> dict[float, tuple[float, float]]:
    """Return the episodes and the moving average of a metric by update."""
    numbers = [dict(scalars(row)) for row in rows]
    found = [(row["update"], row["episodes"], row[metric]) for row in numbers if metric in row]
    means = [statistics.fmean(v for _, _, v in found[max(0, i + 1 - WINDOW) : i + 1]) for i in range(len(found))]
    return {update: (episodes, mean) for (update, episodes, _), mean in zip(found, means, strict=True)}


def _envs(config: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the environments of a config.json as mappings with "id" and perhaps "kwargs"."""
    given = config.get("env", ())
    return [{"id": env} if isinstance(env, str) else env for env in ([given] if isinstance(given, str) else given)]


def _has(row: Metrics, metric: str) -> bool:
    """Return whether a row has a number, or null in place of one."""
    return (metric in row and row[metric] is None) or metric in dict(scalars(row))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
