"""Comparisons of evaluations."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from gem.errors import BadValue
from gem.evaluation import EvalEnv, compare, evaluate
from gem.evaluation.options import EvalOptions
from gem.policies import Reply

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
    assert found.columns == ["environment", "number", "oracle", "constant:\\boxed{5}", "constant:\\boxed{5} − oracle"]
    game = found.envs[0]
    assert game.name == GAME and game.shared == [7] and game.scores[0] > game.scores[1]
    assert game.differences[0].difference.high < 0 and game.differences[0].p < 0.05
    assert game.differences[0].difference.value == pytest.approx(game.scores[1] - game.scores[0])
    best, worse, pair = game.values[0]["score"], game.values[1]["score"], game.differences[0]
    assert f"|  | score | **{best}** | {worse} | {pair.difference.value:.3f} [" in found.to_markdown()
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
    wrappers, tasks = found.warnings
    assert wrappers.startswith(f"{GAME}: wrappers ") and f"'' in {runs[0]}, 'concat' in {tmp_path}/wrapped" in wrappers
    assert f"{runs[0]} has 7 tasks and {tmp_path}/wrapped has 5; " in tasks and "5 tasks of both" in tasks


def test_names_cannot_end_a_cell_of_the_table(runs):
    found = compare(runs)
    names = [replace(run, name=name) for run, name in zip(found.runs, ("a|b", "c\nd"), strict=True)]
    table = replace(found, runs=names).to_markdown()
    assert table.splitlines()[0] == "| environment | number | a\\|b | c; d | c; d − a\\|b |"


def test_runs_without_a_common_environment_are_not_compared(runs, tmp_path):
    evaluate("oracle", "logic:Rules", limit=2, out=str(tmp_path / "other"))
    with pytest.raises(BadValue, match="no environment in common"):
        compare([runs[0], tmp_path / "other"])
    with pytest.raises(BadValue, match="at least two evaluations, got 1"):
        compare(runs[:1])


def test_what_was_asked_and_graded_otherwise_is_named(tmp_path):
    mcp = tmp_path / "mcp.json"
    mcp.write_text('{"mcpServers": {"time": {"command": "time"}}}')
    changes = {"prompt_template": "qwen3_game", "token_limit": 1000}
    evaluate("oracle", "logic:Rules", limit=2, out=str(tmp_path / "a"))
    evaluate("oracle", "logic:Rules", limit=2, out=str(tmp_path / "b"), **changes)
    file = tmp_path / "b" / "report.json"
    report = json.loads(file.read_text())
    report["settings"]["mcp"] = EvalOptions(mcp=str(mcp)).settings()["mcp"]
    report["settings"]["envs"][0]["versions"] |= {"version": 1, "environment": "e", "grader": "g"}
    report["settings"]["envs"][0]["versions"]["libraries"] = {"reasoning-gym": "0.2"}
    file.write_text(json.dumps(report))
    warnings = compare([tmp_path / "a", tmp_path / "b"]).warnings
    assert [warning.split(" differs: ")[0] for warning in warnings] == [
        "prompt_template",
        "mcp",
        "token_limit",
        "logic:Rules: version of the environment",
        "logic:Rules: code of the environment",
        "logic:Rules: grader",
        "logic:Rules: reasoning-gym",
    ]


def test_files_of_another_name_with_the_same_content_do_not_differ(tmp_path):
    for name in "ab":
        (tmp_path / f"{name}.txt").write_text("Task: {observation}")
        template = str(tmp_path / f"{name}.txt")
        evaluate("oracle", "logic:Rules", limit=2, out=str(tmp_path / name), prompt_template=template)
    assert compare([tmp_path / "a", tmp_path / "b"]).warnings == []


@pytest.mark.parametrize(
    ("served", "parts"),
    [
        (["m-2"], ["the model ", "m-1 in {a}, m-2 in {b}"]),
        (["m-1", "m-2"], ["{b}: ", "several models: m-1, m-2"]),
        (["m-1"], []),
    ],
)
def test_one_name_that_is_served_by_several_models_is_named(served, parts, tmp_path):
    names = {"a": ["m-1"], "b": served}
    for name, models in names.items():
        evaluate(Named(models), "logic:Rules", limit=4, out=str(tmp_path / name))
        assert json.loads((tmp_path / name / "report.json").read_text())["served"] == models
    warnings = compare([tmp_path / "a", tmp_path / "b"]).warnings
    assert len(warnings) == bool(parts)
    assert all(part.format(a=tmp_path / "a", b=tmp_path / "b") in warnings[0] for part in parts)


class Named:
    """Replies as several models in turn, under one name."""

    chat, max_prompt_tokens, version, model_name = None, None, 0, "m"

    def __init__(self, models):
        self.models = models

    def act(self, requests):
        return [Reply("True", model=self.models[request.key[1] % len(self.models)]) for request in requests]
