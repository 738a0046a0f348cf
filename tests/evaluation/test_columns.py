"""Every number of an evaluation: defined once, and equal wherever it is shown under its name."""

from __future__ import annotations

import json
import math
from dataclasses import fields
from itertools import chain
from pathlib import Path
from statistics import mean

import pytest

from gem.evaluation import EvalEnv, compare, evaluate
from gem.evaluation.columns import COLUMNS, EnvSamples, Sample
from gem.evaluation.cost import Price
from gem.evaluation.exchange.inspect_logs import export_inspect
from gem.evaluation.exchange.verifiers_traces import export_verifiers
from gem.evaluation.metrics import Estimate
from gem.evaluation.records import read_records
from gem.evaluation.report import EnvScore, read_report
from gem.policies import Reply
from gem.trajectory import Trajectory

GAME, QUIZ = "game:GuessTheNumber-v0-easy", "logic:Rules"
PRICE = Price(input=2.0, output=8.0, cached_input=0.5)
KEYS = [column.key for column in COLUMNS]


class Mixed:
    """Solves, fails, refuses, fills its context, is cut off and is not understood, by the number of the episode."""

    chat, max_prompt_tokens, version, model_name = None, None, 0, "mixed"
    endings = (
        {"text": "\\boxed{5} <lookup>drawer 1</lookup>"},
        {"text": "", "failure": "EndpointError: down"},
        {"text": "\\boxed{2}", "finish": "length"},
        {"text": "", "finish": "refusal"},
        {"text": "", "finish": "context_overflow"},
        {"text": "<answer>True</answer>"},
    )

    def act(self, requests):
        return [self.reply(request.key[1], request.key[2]) for request in requests]

    def reply(self, episode, turn):
        ending = self.endings[episode % len(self.endings) if turn else 0]
        usage = {"prompt_tokens": 5 + turn, "completion_tokens": 1 + episode, "retries": {"status 429": 1}}
        usage["prompt_tokens_details"] = {"cached_tokens": 2 + turn}
        usage["completion_tokens_details"] = {"reasoning_tokens": 1}
        return Reply(usage=usage, **ending)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Twenty seeds of a game with ten different episodes, and a quiz."""
    path = tmp_path_factory.mktemp("evaluation") / "run"
    envs = [GAME, EvalEnv(id=QUIZ, limit=6), EvalEnv(id="tool:Lookup", wrappers="lookup_tool", limit=6)]
    evaluate(Mixed(), envs, limit=20, rollouts=2, retries=0, price=PRICE, out=str(path))
    return path


@pytest.fixture(scope="module")
def report(folder):
    return read_report(folder)


def samples_of(folder: Path, report) -> list[EnvSamples]:
    """Return the samples of each environment, from the records alone."""
    records = {trajectory.episode: trajectory for trajectory in read_records(folder)}
    found, first = [], 0
    for env in report["envs"]:
        tasks: dict[str, list[Sample]] = {}
        for number in range(first, first + env["planned"]):
            if number in records:
                tasks.setdefault(records[number].group_id, []).append(Sample.of(records[number], PRICE))
        failed = {f"failed {n}": [Sample.of(Trajectory(failure="down"))] for n in range(env["failed"])}
        found.append(EnvSamples({**tasks, **failed}, env["bounds"] and tuple(env["bounds"])))
        first += env["planned"]
    return found


def plain(value):
    if isinstance(value, Estimate):
        return plain(value._asdict())
    if isinstance(value, dict):
        return {str(key): plain(part) for key, part in value.items()}
    return None if isinstance(value, float) and math.isnan(value) else value


def test_the_evaluation_has_a_number_in_every_column(report):
    """Otherwise the tests below compare nothing."""
    empty = [key for key in KEYS if not any(env[key] for env in report["envs"])]
    assert empty == []
    game = report["envs"][0]
    assert len(game["tasks"]) < game["planned"] / 2  # equal episodes of several seeds
    rollouts = [task["scores"] for task in game["tasks"].values()]
    assert game["score"]["value"] == pytest.approx(mean(map(mean, rollouts))) != mean(chain(*rollouts))


@pytest.mark.parametrize("column", COLUMNS, ids=KEYS)
def test_a_number_of_the_report_follows_from_the_records(column, folder, report):
    if column.family:  # the failed rollouts decide the largest k
        pytest.skip("see test_report")
    for env, samples in zip(report["envs"], samples_of(folder, report), strict=True):
        assert plain(column.compute(samples)) == env[column.key]


@pytest.mark.parametrize("column", COLUMNS, ids=KEYS)
def test_a_number_is_equal_in_the_tables_of_a_report(column, folder, report):
    lines = (folder / "report.md").read_text().splitlines()
    heads = lines[2].strip("| ").split(" | ")
    for i, env in enumerate(report["envs"]):
        if column.family:
            for k, value in env[column.key].items():
                assert any(
                    f"{column.name[:-1]}{k} {column.text(value)}" in line for line in lines if env["name"] in line
                )
            continue
        if column.noted:
            assert column.key == "retries" or any(
                f"{column.name} {column.text(env[column.key])} s" in line for line in lines if env["name"] in line
            )
            continue
        cells = [cell.strip() for cell in lines[4 + i].strip("|").split("|")]
        out_of = f"/{env[column.out_of]}" if column.out_of else ""
        assert cells[heads.index(column.name)] == column.text(env[column.key]) + out_of
        if column.per_task:
            assert " & ".join(column.text(env[column.key]).split(" ", 1)) in (folder / "report.tex").read_text()


@pytest.mark.parametrize("column", COLUMNS, ids=KEYS)
def test_a_number_is_equal_in_a_comparison(column, folder, report):
    found = compare([folder, folder])
    data = json.loads(json.dumps(found.to_json()))
    for env, compared in zip(report["envs"], data["envs"], strict=True):
        assert [values[column.key] for values in compared["values"]] == [env[column.key]] * 2
    assert data["suite"][0] == report["suite"]
    rows = [[text for text, _ in row] for row in found.rows()]
    if not column.family:
        texts = [column.text(env[column.key]) for env in report["envs"]]
        assert [row[2] for row in rows if row[1] == column.name] == [text for text in texts if text != "0"]


@pytest.mark.parametrize("column", COLUMNS, ids=KEYS)
def test_a_number_is_equal_in_an_export_to_inspect(column, folder, report, tmp_path):
    logs = [json.loads(file.read_text()) for file in export_inspect(str(folder), str(tmp_path))]
    for env, log in zip(report["envs"], logs, strict=True):
        assert log["eval"]["metadata"]["columns"][column.name] == env[column.key]
        scores = {score["name"]: score["metrics"]["mean"]["value"] for score in log["results"]["scores"]}
        assert scores == {"reward": env["score"]["value"], "solved": env["solved"]["value"]}
        samples = [sample for sample in log["samples"] if "error" not in sample]
        assert len(samples) == env["done"] and len(log["samples"]) == env["done"] + env["failed"]
        usage = [sample["model_usage"]["mixed"] for sample in samples]
        cached = sum(each["input_tokens_cache_read"] for each in usage)
        assert (cached, sum(each["input_tokens"] for each in usage) + cached) == (
            env["tokens_cached"],
            env["tokens_in"],
        )
        assert sum(each["reasoning_tokens"] for each in usage) == env["tokens_reasoning"]
        assert sum(each["total_cost"] for each in usage) == pytest.approx(env["cost"])
        assert sum(each["output_tokens"] for each in usage) == env["tokens_out"]


def test_the_traces_of_verifiers_have_the_means_of_the_report(folder, report, tmp_path):
    (file,) = export_verifiers(str(folder), str(tmp_path))
    episodes = [json.loads(line) for line in file.read_text().splitlines()]
    for env in report["envs"]:
        is_env = {"id": env["id"]}
        traces = [t for e in episodes if e["env"] == is_env and e["ok"] for t in e["traces"]]
        traces = [t for t in traces if t["info"]["wrappers"] == env["wrappers"]]
        tasks: dict[str, list[dict]] = {}
        for trace in traces:
            tasks.setdefault(trace["task"]["key"], []).append(trace)
        solved = mean(mean(trace["metrics"]["solved"] for trace in group) for group in tasks.values())
        score = mean(mean(t["rewards"]["reward"]["score"] for t in group) for group in tasks.values())
        assert (len(traces), solved, score) == pytest.approx(
            (env["done"], env["solved"]["value"], env["score"]["value"])
        )
        assert mean(trace["metrics"]["turns"] for trace in traces) == pytest.approx(env["turns"])


@pytest.mark.parametrize("has_report", [True, False])
def test_a_number_is_equal_in_the_viewer(has_report, folder, report, tmp_path):
    results = pytest.importorskip("gem.viewer.results")
    from gem.viewer.recordings import Recordings

    for file in folder.iterdir():
        if has_report or not file.name.startswith("report"):
            (tmp_path / file.name).write_bytes(file.read_bytes())
    recordings = Recordings([tmp_path])
    found = results.results_of(recordings.files, recordings.rows)
    shown = {column["key"] for column in found["columns"]}
    by_name = {cell["name"]: cell["values"] for cell in found["cells"]}
    for env in report["envs"] if has_report else report["envs"][1:2]:  # records do not tell the wrappers of an id
        values = by_name[env["name"]]
        for key in shown:
            bounds = {"value", "low", "high"}
            expected = env[key] if not isinstance(env[key], dict) else {k: env[key][k] for k in bounds}
            known = [expected] if has_report else [expected, None]  # the list of episodes may lack a number
            assert values[key] in known, key


def test_every_column_is_a_field_of_the_scores_with_a_definition(report):
    assert set(KEYS) <= {field.name for field in fields(EnvScore)} and len({*KEYS}) == len(KEYS)
    assert [column["key"] for column in report["columns"]] == KEYS
    assert all(column["definition"] and column["name"] for column in report["columns"])
    assert len({column.name for column in COLUMNS}) == len(COLUMNS)
