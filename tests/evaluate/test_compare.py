"""Comparisons of evaluations."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gem.errors import BadValue
from gem.evaluate import EvalEnv, compare, evaluate

GAME = "game:GuessTheNumber-v0-easy"


@pytest.fixture
def runs(tmp_path):
    paths = [str(tmp_path / name) for name in ("good", "bad")]
    for path, policy in zip(paths, ("oracle", "constant:\\boxed{5}"), strict=True):
        evaluate(policy, [GAME, "qa:Facts"], limit=20, out=path)
    return paths


# 20 seeds of the game start 7 different episodes, 10 seeds start 5.
def test_two_runs_are_compared_on_the_tasks_that_they_share(runs):
    found = compare(runs)
    assert found.columns == ["environment", "oracle", "constant:\\boxed{5}", "constant:\\boxed{5} − oracle"]
    game = found.envs[0]
    assert game.name == GAME and game.shared == [7] and game.scores[0] > game.scores[1]
    assert game.differences[0].difference.high < 0 and game.differences[0].p < 0.05
    assert game.differences[0].difference.value == pytest.approx(game.scores[1] - game.scores[0])
    assert f"| {GAME} | **{game.scores[0]:.3f}** | {game.scores[1]:.3f} | -" in found.to_markdown()
    assert found.warnings == []


def test_settings_that_differ_and_failed_samples_are_named(runs):
    file = Path(runs[1]) / "report.json"
    report = json.loads(file.read_text())
    report["settings"]["policy"]["sampling"]["temperature"] = 0.5
    report["envs"][0]["failed"] = 3
    file.write_text(json.dumps(report))
    assert [warning.split(":")[0] for warning in compare(runs).warnings] == ["temperature differs", "constant"]


def test_runs_with_and_without_a_wrapper_are_matched_by_id(runs, tmp_path):
    evaluate("oracle", EvalEnv(id=GAME, wrappers="concat"), limit=10, out=str(tmp_path / "wrapped"))
    found = compare([runs[0], tmp_path / "wrapped"])
    assert found.envs[0].shared == [5] and found.envs[0].differences[0].difference.value == 0.0
    assert found.warnings == [
        f"{GAME}: wrappers differ: '' in {runs[0]}, 'concat' in {tmp_path / 'wrapped'}",
        f"{GAME}: {runs[0]} has 7 tasks and {tmp_path / 'wrapped'} has 5; the scores are over all tasks of each run, "
        "the difference is over the 5 tasks of both",
    ]


def test_runs_without_a_common_environment_are_not_compared(runs, tmp_path):
    evaluate("oracle", "logic:Rules", limit=2, out=str(tmp_path / "other"))
    with pytest.raises(BadValue, match="no environment in common"):
        compare([runs[0], tmp_path / "other"])
    with pytest.raises(BadValue, match="at least two evaluations, got 1"):
        compare(runs[:1])
