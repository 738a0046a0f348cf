"""The learning curve as a picture."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from gem.core import Optimum
from gem.errors import require

WINDOW = 10  # updates that the training curve averages over


def draw_curve(
    path: str | os.PathLike[str], title: str, metrics: Sequence[dict[str, Any]], optimum: Optimum | None
) -> None:
    """Write a PNG of success and of turns per won game against training episodes.

    metrics: rows of metrics.jsonl. optimum: drawn as a dashed line where it is known.
    """
    require("matplotlib", extra="train").use("Agg")
    pyplot = require("matplotlib.pyplot", extra="train")
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(11, 4), layout="constrained")
    evaluated = [row for row in metrics if "eval" in row]
    for axes, name, label in ((left, "success", "success rate"), (right, "turns_when_won", "turns of won games")):
        rows = [row for row in metrics if row[name] is not None]
        smooth = _rolling_mean([row[name] for row in rows], WINDOW)
        axes.plot([r["episodes"] for r in rows], smooth, label=f"training, mean of {WINDOW} updates")
        scored = [r for r in evaluated if r["eval"]["greedy"][name] is not None]
        points = [r["eval"]["greedy"][name] for r in scored]
        axes.plot([r["episodes"] for r in scored], points, "o", label="held-out seeds, greedy")
        if optimum is not None:
            best = optimum.success if name == "success" else optimum.turns
            axes.axhline(best, linestyle="--", color="black", label=f"{optimum.name}: {best:.3g}")
        axes.set_xlabel("training episodes")
        axes.set_ylabel(label)
        axes.grid(alpha=0.3)
        axes.legend()
    left.set_ylim(0, 1.05)
    figure.suptitle(title)
    figure.savefig(path, dpi=120)
    pyplot.close(figure)


def _rolling_mean(values: Sequence[float], window: int) -> list[float]:
    recent = [values[max(0, i + 1 - window) : i + 1] for i in range(len(values))]
    return [sum(part) / len(part) for part in recent]
