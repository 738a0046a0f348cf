"""Comparisons of evaluations."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from itertools import chain
from pathlib import Path
from statistics import mean

import pytest

from gem.errors import BadValue
from gem.evaluation import EvalEnv, compare, evaluate
from gem.evaluation.options import EvalOptions
from gem.policies import Endpoint, EndpointPolicy, Reply
from gem.testing.fakes import FakeEndpoint

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


def test_variants_of_a_suite_are_matched_by_their_wrappers_if_the_names_differ(runs, tmp_path):
    named = [EvalEnv(id=GAME, wrappers=wrappers, name=wrappers or "plain") for wrappers in ("", "concat")]
    evaluate("oracle", named, limit=10, out=str(tmp_path / "suite"))
    found = compare([runs[1], tmp_path / "suite"])
    assert [env.name for env in found.envs] == [GAME] and not any("wrappers" in line for line in found.warnings)
    evaluate("oracle", EvalEnv(id=GAME, wrappers="concat_with_action"), limit=10, out=str(tmp_path / "other"))
    with pytest.raises(BadValue, match="no environment in common"):
        compare([tmp_path / "other", tmp_path / "suite"])


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


class Guesser:
    """Solves a share of the tasks, others with each seed."""

    chat, max_prompt_tokens, version = None, None, 0

    def __init__(self, name, share, seed, **backend):
        self.model_name, self.share, self.settings = name, share, {"temperature": 0.7, "seed": seed}
        self.backend = lambda: backend

    def act(self, requests):
        return [Reply(self.guess(*request.key), usage={"completion_tokens": 3}) for request in requests]

    def guess(self, _, episode, turn):
        right = random.Random(f"{self.settings['seed']} {episode}").random() < self.share
        return f"\\boxed{{{turn + 1}}}" if right else ""


@pytest.fixture(scope="module")
def seeds(tmp_path_factory):
    """Two models on two environments with three seeds each."""
    folder = tmp_path_factory.mktemp("seeds")
    for name, share in (("worse", 0.3), ("better", 0.9)):
        for seed in range(3):
            out = str(folder / f"{name}-{seed}")
            evaluate(Guesser(name, share, seed), [GAME, EvalEnv(id=GAME, wrappers="concat")], limit=20, out=out)
    return folder


def paths_of(folder, name):
    return [str(folder / f"{name}-{seed}") for seed in range(3)]


def reports_of(folder, name):
    return [json.loads(Path(path, "report.json").read_text()) for path in paths_of(folder, name)]


def test_evaluations_that_differ_in_their_seed_are_one_run_whose_rollouts_are_pooled(seeds):
    found = compare([*paths_of(seeds, "worse"), *paths_of(seeds, "better")])
    assert [(run.name, run.seeds) for run in found.runs] == [
        ("worse (3 seeds)", [0, 1, 2]),
        ("better (3 seeds)", [0, 1, 2]),
    ]
    assert found.warnings == []
    values, reports = found.envs[0].values[0], [report["envs"][0] for report in reports_of(seeds, "worse")]
    pooled = {task: [s for env in reports for s in env["tasks"][task]["solved"]] for task in reports[0]["tasks"]}
    assert values["solved"].value == pytest.approx(mean(mean(flags) for flags in pooled.values()))
    assert 3 in values["pass_at"] and reports[0]["pass_at"] == {}
    assert values["turns"] == pytest.approx(mean(env["turns"] for env in reports))
    assert values["tokens_out"] == pytest.approx(mean(env["tokens_out"] for env in reports))
    pair = found.envs[0].differences[0]
    assert pair.wins == 7 and pair.difference.value == pytest.approx(found.envs[0].scores[1] - found.envs[0].scores[0])


def test_the_interquartile_mean_is_over_the_seeds_of_all_environments(seeds):
    found = compare([*paths_of(seeds, "worse"), *paths_of(seeds, "better")])
    scores = [env["score"]["value"] for report in reports_of(seeds, "better") for env in report["envs"]]
    assert found.suite[1]["iqm"].value == pytest.approx(mean(sorted(scores)[1:5]))
    assert min(scores) <= found.suite[1]["iqm"].low <= found.suite[1]["iqm"].high <= max(scores)
    means = [env.values[1]["score"].value for env in found.envs]
    assert found.suite[1]["score"].value == pytest.approx(mean(means))
    assert found.suite_differences[0]["score"].low > 0
    assert "| all 2 environments | mean score |" in found.to_markdown()


def test_equal_seeds_stay_two_runs(seeds):
    found = compare([seeds / "worse-0", seeds / "worse-0", seeds / "worse-1"])
    assert [len(run.paths) for run in found.runs] == [2, 1]
    assert found.envs[0].differences[0].difference.value != 0


def test_tasks_that_only_one_run_solves_are_linked(runs):
    found = compare(runs)
    flips = found.envs[1].flipped[0]
    assert len(flips) == 20 and all((flip.before, flip.after) == (1.0, 0.0) for flip in flips)
    assert flips[0].link == f"{runs[0]}/view.html#task={flips[0].task}"
    lines = found.flips()
    assert "qa:Facts: only constant:\\boxed{5} solves 0 tasks, only oracle 20 tasks" in lines
    assert sum(flips[0].link in line for line in lines) == 1 and lines[-1].endswith(f"gem view {' '.join(runs)}")
    assert compare([runs[0], runs[0]]).flips() == []


def test_a_task_flips_if_most_of_its_rollouts_do(seeds):
    found = compare([*paths_of(seeds, "worse"), *paths_of(seeds, "better")])
    shares = [
        {task: mean(chain(*(r["envs"][0]["tasks"][task]["solved"] for r in reports))) for task in tasks}
        for reports in (reports_of(seeds, "worse"), reports_of(seeds, "better"))
        for tasks in [reports[0]["envs"][0]["tasks"]]
    ]
    changed = {task for task, share in shares[0].items() if shares[1][task] != share}
    flipped = {flip.task for flip in found.envs[0].flipped[0]}
    assert flipped == {task for task in changed if shares[0][task] <= 0.5 < shares[1][task]}
    assert 0 < len(flipped) < len(changed)


def test_the_json_of_a_comparison_names_every_number(runs):
    found = json.loads(json.dumps(compare(runs).to_json()))
    env = found["envs"][0]
    assert env["paired"][0]["score"]["difference"].keys() == {"value", "low", "high", "method"}
    assert {*env["paired"][0]["score"]} == {"difference", "wins", "losses", "ties", "p"}
    assert env["flipped"][0][0].keys() == {"task", "before", "after", "link"}
    assert env["values"][0]["solved"]["value"] == 1.0 and found["runs"][0]["name"] == "oracle"
    assert {column["key"] for column in found["columns"]} == env["values"][0].keys()


def test_the_report_has_the_host_of_the_endpoint_without_secrets(tmp_path):
    pytest.importorskip("aiohttp", reason="needs the extra [eval]")
    with FakeEndpoint(["True"]) as fake, Endpoint(fake.url, "m") as endpoint:
        report = evaluate(EndpointPolicy(endpoint), "logic:Rules", limit=2, out=str(tmp_path / "run"))
        host = fake.url.removeprefix("http://").removesuffix("/v1")
    assert report.backend == {"endpoint": host}
    assert json.loads((tmp_path / "run" / "report.json").read_text())["backend"] == {"endpoint": host}


def test_the_host_of_the_endpoint_and_the_format_of_the_weights_are_compared(tmp_path):
    backends = {"a": {"endpoint": "one:80", "weights": "bfloat16"}, "b": {"endpoint": "two:80", "weights": "Q4_K_M"}}
    for name, backend in backends.items():
        evaluate(Guesser("m", 1.0, 0, **backend), GAME, limit=2, out=str(tmp_path / name))
    a, b = (str(tmp_path / name) for name in backends)
    assert compare([a, b]).warnings == [
        f"endpoint differs: 'one:80' in {a}, 'two:80' in {b}",
        f"weights differs: 'bfloat16' in {a}, 'Q4_K_M' in {b}",
    ]


class Named:
    """Replies as several models in turn, under one name."""

    chat, max_prompt_tokens, version, model_name = None, None, 0, "m"

    def __init__(self, models):
        self.models = models

    def act(self, requests):
        return [Reply("True", model=self.models[request.key[1] % len(self.models)]) for request in requests]
