"""check_rows(): gold answers score 1.0 and corrupted ones 0.0."""

from __future__ import annotations

import pytest

import gem
from gem.errors import BadValue
from gem.registry import ENV_REGISTRY, EnvSpec
from gem.testing import check_rows

FAMILIES = ["math:Arithmetic", "math:Algebra", "math:NumberTheory", "math:Geometry"]


def spec(env_id: str, rows: list[dict[str, str]], **kwargs: object) -> EnvSpec:
    return EnvSpec(
        id=env_id,
        entry_point="gem.envs.qa_env:QaEnv",
        kwargs={"dataset": rows, **kwargs},
        oracle="gem.envs.answer_format:AnswerOracle",
        oracle_sees="state",
    )


@pytest.fixture
def registered():
    """Registers specs for the duration of a test."""
    ids = []

    def add(one: EnvSpec) -> str:
        gem.register(one)
        ids.append(one.id)
        return one.id

    yield add
    for env_id in ids:
        del ENV_REGISTRY[env_id]


@pytest.mark.parametrize("env_id", ["logic:Rules", "qa:Facts"])
def test_gold_answers_of_shipped_datasets_score_one_and_wrong_ones_zero(env_id):
    result = check_rows(env_id, rows=100)
    assert (result.status, result.reproduction) == ("passed", ""), result


@pytest.mark.parametrize("env_id", FAMILIES)
def test_gold_answers_of_generated_math_score_one_and_wrong_ones_zero(env_id):
    pytest.importorskip("latex2sympy2_extended", reason="needs the extra [math]")
    assert check_rows(env_id, rows=60).status == "passed"


@pytest.mark.parametrize("env_id", ["vision:Geometry", "vision:Charts"])
def test_gold_answers_of_vision_tasks_score_one_and_wrong_ones_zero(env_id):
    pytest.importorskip("latex2sympy2_extended", reason="needs the extra [math]")
    pytest.importorskip("PIL", reason="needs the extra [vision]")
    assert check_rows(env_id, rows=30).status == "passed"


def test_reference_programs_pass_their_tests_and_corrupted_ones_do_not():
    assert check_rows("code:Warmup-v0").status == "passed"
    assert check_rows("code:Mini", rows=12).status == "passed"


def test_rows_are_spaced_over_the_dataset_and_capped_at_its_size(registered):
    done = []
    rows = [{"question": f"{n}?", "answer": f"word{n}"} for n in range(10)]
    env_id = registered(spec("test:Rows", rows))
    assert check_rows(env_id, rows=3, progress=lambda *counts: done.append(counts)).detail == "3 of 10 rows"
    assert done == [(1, 3), (2, 3), (3, 3)]
    assert check_rows(env_id, rows=99).detail == check_rows(env_id).detail == "all 10 rows"
    with pytest.raises(BadValue, match="at least 1"):
        check_rows(env_id, rows=0)


def test_a_rejected_gold_answer_is_reported_with_a_program_that_reproduces_it(registered):
    rows = [{"question": "1?", "answer": "a"}, {"question": "2?", "answer": "</answer>"}]
    result = check_rows(registered(spec("test:Rows", rows)))
    assert result.status == "failed" and "row 1: the gold answer" in result.detail
    exec(compile(result.reproduction, "shown", "exec"), {"print": lambda *shown: None})


def test_a_grader_that_accepts_everything_is_reported(registered, monkeypatch):
    from gem.envs import qa_env

    monkeypatch.setattr(
        qa_env, "exact_match", lambda answer, gold: gem.graders.Grade(reward=1.0, correct=True, reason="")
    )
    result = check_rows(registered(spec("test:Rows", [{"question": "1?", "answer": "a"}])))
    assert result.status == "failed" and "the wrong answer" in result.detail


def test_a_malformed_row_is_reported_with_file_and_row(registered, tmp_path):
    path = tmp_path / "data.jsonl"
    path.write_text('{"question": "1?", "answer": "a"}\n{"question": "2?", "answer": null}\n')
    one = spec("test:Rows", [], dataset=None, dataset_name=str(path))
    result = check_rows(registered(one))
    assert result.status == "failed" and "data.jsonl, row 1: the column 'answer'" in result.detail


def test_an_env_without_dataset_or_oracle_is_unchecked(registered):
    assert check_rows("game:GuessTheNumber-v0").status == "unchecked"
    one = EnvSpec("test:NoOracle", "gem.envs.qa_env:QaEnv", {"dataset": [{"question": "1?", "answer": "a"}]})
    assert check_rows(registered(one)).status == "unchecked"
