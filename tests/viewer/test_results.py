"""The scores on the front page."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from recorded import failed, guessing, with_tools

import gem
from gem.evaluation import EvalEnv
from gem.trajectory import write_jsonl
from gem.viewer.page import overview
from gem.viewer.recordings import Recordings

ENVS = ["game:GuessTheNumber-v0-easy", "logic:Rules"]


def results(*paths: Path) -> dict[str, Any]:
    return overview(Recordings(paths))["results"]


@pytest.fixture(scope="module")
def evaluation(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("evals") / "random"
    gem.evaluate("random", ENVS, limit=16, out=str(folder))
    return folder


def test_the_results_of_an_evaluation_are_those_of_its_report(evaluation: Path):
    report = json.loads((evaluation / "report.json").read_text())
    shown = results(evaluation)
    for cell, env in zip(shown["cells"], report["envs"], strict=True):
        assert (cell["name"], cell["env"]) == (env["name"], env["name"])
        for column in shown["columns"]:
            expected = env[column["key"]]
            expected = (
                {name: expected[name] for name in ("value", "low", "high")} if isinstance(expected, dict) else expected
            )
            assert cell["values"][column["key"]] == expected, column["key"]


def test_variants_of_one_environment_keep_their_names_and_their_episodes(tmp_path: Path):
    plain = EvalEnv(id="qa:Facts", name="plain")
    gem.evaluate("oracle", [plain, replace(plain, name=None, wrappers="concat")], limit=3, out=str(tmp_path / "run"))
    found = Recordings([tmp_path / "run"])
    assert Counter(row["env"] for row in found.rows) == {"plain": 3, "qa:Facts+concat": 3}
    assert [cell["env"] for cell in overview(found)["results"]["cells"]] == ["plain", "qa:Facts+concat"]


def test_results_without_a_report_are_computed_in_the_same_way(evaluation: Path, tmp_path: Path):
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy" / "trajectories.jsonl").write_bytes((evaluation / "trajectories.jsonl").read_bytes())
    reported, computed = (results(folder)["cells"] for folder in (evaluation, tmp_path / "copy"))
    for cell, expected in zip(computed, reported, strict=True):
        known = {key: value for key, value in cell["values"].items() if value is not None}
        assert known == {key: expected["values"][key] for key in known}
        assert known.keys() >= {"done", "score", "solved", "turns", "invalid", "failed", "tokens_in"}


def test_a_report_of_other_episodes_is_not_used(evaluation: Path, tmp_path: Path):
    for name in ("trajectories.jsonl", "report.json"):
        lines = (evaluation / name).read_bytes().splitlines(keepends=True)
        (tmp_path / name).write_bytes(b"".join(lines[:-1] if name == "trajectories.jsonl" else lines))
    assert sum(cell["values"]["done"] for cell in results(tmp_path)["cells"]) == 31


def test_columns_are_models_and_their_runs_where_a_model_has_several(tmp_path: Path):
    for run, models in {"a": ["small"], "b": ["small", "large"]}.items():
        (tmp_path / run).mkdir()
        write_jsonl(tmp_path / run / "trajectories.jsonl", [guessing(n, model=model) for n, model in enumerate(models)])
    cells = results(tmp_path / "a", tmp_path / "b")["cells"]
    assert [cell["run"] for cell in cells] == ["small · a", "small · b", "large"]
    assert [cell["files"] for cell in cells] == [[0], [1], [1]]


def test_a_failure_counts_unless_a_later_attempt_repaired_it(tmp_path: Path):
    write_jsonl(tmp_path / "trajectories.jsonl", [guessing(1, episode=0), guessing(2, episode=1)])
    attempts = [failed(), failed(), failed()]
    for attempt, number in zip(attempts, (1, 2, 2), strict=True):
        attempt.episode, attempt.env_id = number, "game:GuessTheNumber-v0-easy"
    write_jsonl(tmp_path / "failures.jsonl", attempts)
    [cell] = results(tmp_path)["cells"]
    assert (cell["values"]["done"], cell["values"]["failed"]) == (2, 1)


def test_a_plain_file_has_results_by_environment(tmp_path: Path):
    write_jsonl(tmp_path / "a.jsonl", [guessing(1), with_tools()])
    cells = results(tmp_path / "a.jsonl")["cells"]
    assert [(cell["name"], cell["run"]) for cell in cells] == [
        ("game:GuessTheNumber-v0-easy", "a.jsonl"),
        ("math:Sample", "served-model"),
    ]
    assert cells[1]["values"]["tokens_in"] == 31 + 5 + 2
