"""Scores of an evaluation and ratings of a tournament as pictures, with intervals. Needs the extra [plot]."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Mapping, Sequence

from gem._internal.text import one_line, shorten
from gem.errors import require
from gem.evaluation.metrics import Estimate
from gem.evaluation.report import EvalReport
from gem.evaluation.tournament import TournamentReport

MAX_TITLE = 80  # characters of a name


def draw_scores(report: EvalReport, path: str | os.PathLike[str]) -> None:
    """Save a PNG with the score and the solved share of each environment, and their 95 % intervals.

    Raises:
        MissingDependency: without matplotlib.
    """
    envs = [env for env in report.envs if not math.isnan(env.score.value)]
    series = {"score": [env.score for env in envs], "solved": [env.solved for env in envs]}
    title, unit = f"Evaluation of {report.model}", "mean over tasks, with 95 % interval"
    _draw(path, title, unit, [env.name for env in envs], series)


def draw_ratings(report: TournamentReport, path: str | os.PathLike[str]) -> None:
    """Save a PNG with the rating of each player of a finished tournament, the best on top, and 95 % intervals.

    Raises:
        MissingDependency: without matplotlib.
    """
    ratings = dict(zip(report.names, report.ratings or (), strict=False))
    order = [name for name in report.ranking if name in ratings]
    title, unit = f"Tournament in {report.env_id}", "Bradley-Terry rating (Elo scale, mean 0), with 95 % interval"
    _draw(path, title, unit, order, {"rating": [ratings[name] for name in order]})


def _draw(
    path: str | os.PathLike[str],
    title: str,
    unit: str,
    names: Sequence[str],
    series: Mapping[str, Sequence[Estimate]],
) -> None:
    """Draw one line per name, from the top, with the estimates of each series side by side."""
    figure_module = require("matplotlib.figure", extra="plot")
    figure = figure_module.Figure(figsize=(7, 1.2 + 0.45 * max(1, len(names))), layout="constrained")
    axes = figure.subplots()
    for k, (label, found) in enumerate(series.items()):
        places = [i + 0.24 * (k - (len(series) - 1) / 2) for i in range(len(names))]
        widths = [[_width(e.low, e.value) for e in found], [_width(e.value, e.high) for e in found]]
        axes.errorbar([e.value for e in found], places, xerr=widths, fmt="os"[k], capsize=3, label=label)
    axes.set_yticks(range(len(names)), [_plain(name) for name in names])
    axes.invert_yaxis()
    axes.set_xlabel(unit)
    axes.set_title(_plain(title), fontsize="medium")
    axes.grid(axis="x", alpha=0.3)
    if len(series) > 1:
        figure.legend(loc="outside lower center", ncols=len(series), frameon=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a character that the font lacks is drawn as a box
        figure.savefig(path, dpi=120)


def _width(low: float, high: float) -> float:
    """Return the length of an error bar; 0 if a bound is unknown."""
    return 0.0 if math.isnan(high - low) else max(0.0, high - low)


def _plain(text: str) -> str:
    return shorten(one_line(text), MAX_TITLE).replace("$", r"\$")
