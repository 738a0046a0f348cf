"""Ids over datasets of the Hub, with small local copies; tests/compat/test_published_ids.py plays each of them."""

from __future__ import annotations

from typing import Any

import pytest

import gem
from gem.errors import BadValue
from gem.policies import oracle
from gem.testing import check_env

from ...stub_datasets import COUNT, write_stub_datasets

IDS = ["math:GSM8K", "qa:HotpotQA", "logic:RuleTaker-d3", "math:Geometry3K"]


@pytest.fixture(scope="module")
def copies(tmp_path_factory):
    folder = tmp_path_factory.mktemp("datasets")
    write_stub_datasets(folder)
    return folder


@pytest.fixture
def local_copies(copies, monkeypatch):
    monkeypatch.setenv("GEM_DATA", str(copies))


def make(env_id: str) -> Any:
    pytest.importorskip("sympy", reason="needs the extra [math]")
    pytest.importorskip("PIL", reason="needs the extra [vision]")
    pytest.importorskip("pyarrow", reason="needs the extra [data]")
    return gem.make(env_id)


@pytest.mark.parametrize("env_id", IDS)
def test_the_gold_answer_of_a_row_scores_one_and_that_of_another_row_zero(env_id, local_copies):
    with make(env_id) as env:
        for idx in range(0, COUNT, 4):
            env.reset(idx=(idx + 1) % COUNT)
            other = oracle(env).act("")
            observation, info = env.reset(idx=idx)
            assert info["idx"] == idx
            if env_id == "math:Geometry3K":
                assert observation["images"][0].size == (8 + idx, 8)
            assert env.step(other).reward == 0.0
            env.reset(idx=idx)
            step = env.step(oracle(env).act(""))
            assert (step.reward, step.terminated, step.truncated, step.info["correct"]) == (1.0, True, False, True)


@pytest.mark.slow
@pytest.mark.parametrize("env_id", IDS)
def test_environments_over_data_sets_pass_check_env(env_id, local_copies):
    make(env_id).close()
    report = check_env(env_id, seeds=2, episodes=4)
    assert report.ok, report.to_text(only_failed=True)


def test_an_evaluation_visits_every_task_once_on_any_number_of_slots(local_copies):
    from gem.policies import ScriptedPolicy
    from gem.rollout import play_seeds

    make("eval:MATH500").close()
    for slots in (1, 3, 7):
        with gem.make_vec("eval:MATH500", num_envs=slots, shuffle=False, autoreset="disabled") as vec_env:
            played = play_seeds(vec_env, ScriptedPolicy([r"\boxed{0}"]), range(COUNT))
        seen = [trajectory.turns[0].observation for trajectory in played]
        assert len(set(seen)) == COUNT


def test_an_id_without_its_data_set_explains_in_one_line_how_to_provide_it(monkeypatch):
    monkeypatch.delenv("GEM_DATA", raising=False)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    pytest.importorskip("sympy", reason="needs the extra [math]")
    with pytest.raises(BadValue, match=r"axon-rl/GSM-8k.*hub.*GEM_DATA/axon-rl/GSM-8k.*dataset=") as caught:
        gem.make("math:GSM8K")
    assert "\n" not in str(caught.value)
