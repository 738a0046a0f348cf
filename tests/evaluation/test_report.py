"""Reports: what is counted, and how it is shown."""

from __future__ import annotations

import json
import math

import pytest

from gem.errors import BadValue
from gem.evaluation.columns import Sample
from gem.evaluation.report import EvalReport, env_score, read_report
from gem.trajectory import Trajectory, Turn


def right(**fields) -> Sample:
    return Sample(1.0, solved=True, turns=2, **fields)


def test_the_outcome_of_a_sample_is_read_from_its_trajectory():
    turns = [
        Turn("q", "a", finish="length", reward=0.25, usage={"prompt_tokens": 5, "completion_tokens": 7}),
        Turn("q", "b", invalid="no_action", reward=0.5, context=[1, 2, 3], sampled_ids=[4]),
    ]
    sample = Sample.of(Trajectory(turns=turns, truncated=True, stop_reason="max_tokens"))
    assert sample == Sample(0.75, False, 2, True, True, False, 1, 8, 8)
    assert Sample.of(Trajectory(failure="down")).failure == "down"


def test_a_report_without_any_outcome_has_no_score():
    scores = env_score({"a": [None, Sample.of(Trajectory(failure="down"))]}, name="x", id="x")
    assert math.isnan(scores.score.value) and (scores.planned, scores.done, scores.failed) == (2, 0, 1)
    report = EvalReport(model="m", envs=[scores])
    assert report.to_json()["envs"][0]["score"]["value"] is None and not report.complete


def test_pass_at_k_leaves_out_tasks_with_fewer_than_k_finished_rollouts():
    samples = {"a": [right(), Sample(0.0)], "b": [right(), Sample.of(Trajectory(failure="down"))]}
    scores = env_score(samples, name="x", id="x")
    assert scores.pass_at[2].value == 1.0 and scores.pass_hat[2].value == 0.0
    assert scores.score.value == 0.75 and scores.if_failures_scored == (0.5, 0.75)


def test_the_tables_name_every_column_and_escape_their_separator():
    report = EvalReport(model="m", envs=[env_score({"a": [right(cut=True)]}, name="a|b", id="x")])
    assert "| a\\|b | 1/1 | 1.000 [0.207, 1.000] |" in report.to_markdown()
    assert len(report.envs[0].cells()) == len(report.columns)


def test_text_of_servers_stays_in_its_line_and_is_no_command_to_a_terminal():
    failed = Sample.of(Trajectory(failure="boom\n# \x1b[31mheading"))
    samples = {"a": [right(models=("m\n2",))], "b": [failed]}
    report = EvalReport(model="m\n# x", envs=[env_score(samples, name="a\nb", id="x")])
    text = report.to_markdown()
    assert "\x1b" not in text and "boom; # \\x1b[31mheading" in text and "| a; b | 1/2 |" in text
    assert [line for line in text.splitlines() if line.startswith("#")] == ["# Evaluation of m; # x"]


@pytest.mark.parametrize("env", ["5", "{}", '{"name": "x", "id": "x"}'])
def test_a_report_without_the_scores_of_an_environment_is_not_read(env, tmp_path):
    (tmp_path / "report.json").write_text(f'{{"envs": [{env}]}}')
    with pytest.raises(BadValue, match=r"not a report: .*name, score or tasks"):
        read_report(tmp_path)


def test_the_latex_table_escapes_names_and_leaves_unknown_scores_empty():
    envs = [env_score({"a": [right()]}, name="a_b&{c}\\", id="x"), env_score({"a": [None]}, name="y", id="y")]
    lines = EvalReport(model="m\n%", envs=envs).to_latex().splitlines()
    assert lines[0] == "% Evaluation of m; %" and lines[-1] == r"\end{tabular}"
    assert lines[5].startswith(r"a\_b\&\{c\}\textbackslash{} & 1/1 & 1.000 & [0.207, 1.000] &") and lines[5].endswith(
        r"\\"
    )
    assert lines[6] == r"y & 0/1 &  &  &  &  \\"


def test_an_environment_is_found_by_its_name():
    with pytest.raises(BadValue, match=r"'y'.*there are x"):
        EvalReport(model="m", envs=[env_score({"a": [right()]}, name="x", id="x")])["y"]


def test_what_is_no_report_is_refused(tmp_path):
    with pytest.raises(BadValue, match="cannot read the report"):
        read_report(tmp_path)
    (tmp_path / "report.json").write_text(json.dumps([]))
    with pytest.raises(BadValue, match=r"not a report: .*list"):
        read_report(tmp_path)
