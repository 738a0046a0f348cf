"""Scores to compare with: what the oracle, a random player and a small public model reach in an environment.

benchmarks/scores.py measures them, and scripts/docs.py writes data/scores.json and docs/reference/scores.md from its
rows. Nothing is measured here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from gem.evaluation.metrics import Estimate
from gem.evaluation.report import EvalReport


class ReferenceScore(NamedTuple):
    """The score of a player in an environment with its registered arguments and no wrappers.

    Args:
        player: "oracle", "random", or a model's name.
        score, solved: see gem.evaluation.columns.
        turns: mean number of turns per episode.
        episodes: number of episodes, one per task.
    """

    player: str
    score: Estimate
    solved: Estimate
    turns: float
    episodes: int

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> ReferenceScore:
        """Return the score that data/scores.json holds."""
        means = {name: Estimate.read(data[name]) for name in ("score", "solved")}
        return cls(**{**data, **means})


def reference_scores(env_id: str) -> list[ReferenceScore]:
    """Return the scores that are known of an environment; none for an id that was not measured."""
    return [ReferenceScore.read(data) for data in _measured().get(env_id, ())]


def reference_notes(report: EvalReport) -> list[str]:
    """Return a line on what others solve in each environment that was played as it is registered, without wrappers."""
    notes = []
    for env, planned in zip(report.envs, report.settings["envs"], strict=True):
        found = [f"{one.player} {one.solved.value:.3f}" for one in reference_scores(env.id)]
        if found and env.name == env.id and not planned["kwargs"]:
            notes.append(f"{env.id}: solved by others: {', '.join(found)} (gem info {env.id})")
    return notes


@cache
def _measured() -> dict[str, list[dict[str, Any]]]:
    text = files("gem.evaluation").joinpath("data").joinpath("scores.json").read_text("utf-8")
    measured: dict[str, list[dict[str, Any]]] = json.loads(text)
    return measured
