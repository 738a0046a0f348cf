"""Scores of an evaluation and ratings of a tournament as pictures, with intervals. Needs the extra [plot]."""

from __future__ import annotations

import math
import os
import warnings
from typing import Any

from gem._internal.text import one_line, shorten
from gem.errors import require
from gem.evaluation.report import EvalReport
from gem.evaluation.tournament import TournamentReport

MAX_TITLE = 80  # characters of a name


def draw_scores(report: EvalReport, path: str | os.PathLike[str]) -> None:
    """Save a PNG with the score and the solved share of each environment, and their 95 % intervals.

    Raises:
        MissingDependency: without matplotlib.
    """
    figure_module = require("matplotlib.figure", extra="plot")
    envs = [env for env in report.envs if not math.isnan(env.score.value)]
    figure = figure_module.Figure(figsize=(7, 1.2 + 0.45 * max(1, len(envs))), layout="constrained")
    axes = figure.subplots()
    for offset, name, mark in ((-0.12, "score", "o"), (0.12, "solved", "s")):
        found = [getattr(env, name) for env in envs]
        widths = [[max(0.0, e.value - e.low) for e in found], [max(0.0, e.high - e.value) for e in found]]
        values, places = [e.value for e in found], [i + offset for i in range(len(envs))]
        finite = [[0.0 if math.isnan(width) else width for width in side] for side in widths]
        axes.errorbar(values, places, xerr=finite, fmt=mark, capsize=3, label=name)
    axes.set_yticks(range(len(envs)), [_plain(env.name) for env in envs])
    axes.invert_yaxis()
    axes.set_xlabel("mean over tasks, with 95 % interval")
    axes.set_title(_plain(f"Evaluation of {report.model}"), fontsize="medium")
    axes.grid(axis="x", alpha=0.3)
    axes.legend()
    _save(figure, path)


def draw_ratings(report: TournamentReport, path: str | os.PathLike[str]) -> None:
    """Save a PNG with the rating of each player of a finished tournament, the best on top, and 95 % intervals.

    Raises:
        MissingDependency: without matplotlib.
    """
    figure_module = require("matplotlib.figure", extra="plot")
    ratings = dict(zip(report.names, report.ratings or (), strict=False))
    order = [name for name in report.ranking if name in ratings]
    figure = figure_module.Figure(figsize=(7, 1.2 + 0.45 * max(1, len(order))), layout="constrained")
    axes = figure.subplots()
    values = [ratings[name].value for name in order]
    below = [ratings[name].value - ratings[name].low for name in order]
    above = [ratings[name].high - ratings[name].value for name in order]
    widths = [[max(0.0, width) for width in side] for side in (below, above)]
    axes.errorbar(values, range(len(order)), xerr=widths, fmt="o", capsize=3)
    axes.set_yticks(range(len(order)), [_plain(name) for name in order])
    axes.invert_yaxis()
    axes.set_xlabel("Bradley-Terry rating (Elo scale, mean 0), with 95 % interval")
    axes.set_title(_plain(f"Tournament in {report.env_id}"), fontsize="medium")
    axes.grid(axis="x", alpha=0.3)
    _save(figure, path)


def _save(figure: Any, path: str | os.PathLike[str]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a character that the font lacks is drawn as a box
        figure.savefig(path, dpi=120)


def _plain(text: str) -> str:
    return shorten(one_line(text), MAX_TITLE).replace("$", r"\$")
