"""Which episodes an evaluation plays: rows held back from training, another split, or fresh seeds."""

from __future__ import annotations

import re
from typing import Any

import pytest

import gem
import gem.rl.data.evaluation
from gem.datasets import Stream
from gem.datasets.rows import ListRows, Without, hold_back
from gem.errors import BadValue
from gem.registry import ENV_REGISTRY
from gem.rl.config import TrainConfig
from gem.rl.data.evaluation import Evaluation, group_order, plan_evaluation
from gem.seeding import derive
from gem.vector import make_vec


def questions(*names: str) -> list[dict[str, str]]:
    return [{"id": f"{i}", "question": name, "answer": "yes"} for i, name in enumerate(names)]


@pytest.fixture
def two_splits():
    splits = {"train": questions(*"abcdef"), "test": questions(*"uvwxyz")}
    gem.register("test:Splits", "gem.envs.questions.qa_env:QaEnv", dataset=splits, split="train")
    yield "test:Splits"
    del ENV_REGISTRY["test:Splits"]


def asked_in_training(config: TrainConfig, plan: Evaluation, slots: int, rounds: int) -> set[int]:
    """Return the numbers of the rows that the slots ask, seeded as in a training run."""
    kwargs = [{**config.env_kwargs, "seed": derive(0, "train", i)} for i in range(slots)]
    with make_vec(config.envs[0].id, plan.training[0].wraps, kwargs) as vec:
        return {info["idx"] for _ in range(rounds) for info in vec.reset()[1]}


def asked_in_evaluation(config: TrainConfig, plan: Evaluation) -> list[dict[str, Any]]:
    (part,) = plan.sets
    with make_vec(part.env.id, part.rows, [part.kwargs], autoreset="disabled") as vec:
        return [vec.reset(seed=[seed])[1][0] for seed in part.seeds]


@pytest.mark.parametrize(("env_id", "rows", "held_back"), [("qa:Facts", 450, 45), ("code:Mini", 62, 6)])
def test_no_row_of_the_evaluation_is_trained_on_and_each_is_asked_once(env_id, rows, held_back):
    config = TrainConfig(env=env_id)
    plan = plan_evaluation(config)
    trained = asked_in_training(config, plan, slots=16, rounds=100)
    evaluated = [info["idx"] for info in asked_in_evaluation(config, plan)]
    assert len(evaluated) == len(set(evaluated)) == held_back
    assert trained == set(range(rows)) - set(evaluated)
    assert plan.description == f"{held_back} of {rows} rows, held back from training"


def test_fewer_episodes_than_rows_held_back_leave_the_others_out_of_training_as_well():
    config = TrainConfig(env="qa:Facts", eval_episodes=10)
    plan = plan_evaluation(config)
    assert len(asked_in_evaluation(config, plan)) == 10 and plan.description.startswith("10 of 450 rows")
    assert len(asked_in_training(config, plan, slots=16, rounds=100)) == 405


def test_make_serves_all_rows():
    env = gem.make("code:Mini", seed=0)
    assert {env.reset()[1]["idx"] for _ in range(62)} == set(range(62))


def test_another_split_is_evaluated_row_by_row_and_all_rows_are_trained_on(two_splits):
    config = TrainConfig(env=two_splits, eval_split="test")
    plan = plan_evaluation(config)
    assert sorted(info["idx"] for info in asked_in_evaluation(config, plan)) == list(range(6))
    assert asked_in_training(config, plan, slots=2, rounds=20) == set(range(6))
    assert plan.description == "6 of 6 rows of the split 'test'"


def test_the_split_of_training_is_refused(two_splits):
    with pytest.raises(BadValue, match=r"eval_split must differ .* got 'train'"):
        plan_evaluation(TrainConfig(env=two_splits, eval_split="train"))


@pytest.mark.parametrize("trained", ["qa:Facts", "game:Wordle-v0"])
def test_a_split_of_a_single_file_is_refused_because_it_would_ask_the_rows_of_training(trained):
    config = TrainConfig(env=trained, eval_env=[{"id": "qa:Facts", "split": "test"}])
    with pytest.raises(BadValue, match=r"eval_split='test': qa:Facts .*no splits"):
        plan_evaluation(config)


def test_an_environment_without_a_data_set_has_no_split():
    with pytest.raises(TypeError, match="split"):
        plan_evaluation(TrainConfig(env="game:Wordle-v0", eval_split="test"))


@pytest.mark.parametrize(
    ("env_id", "description"),
    [
        ("logic:Rules", "500 fresh seeds"),
        ("game:Sudoku-v0", "500 fresh seeds"),
        ("game:TowerofHanoi-v0-random", "500 fresh seeds; .* 348 different episodes.*"),
    ],
)
def test_generated_tasks_have_fresh_seeds_and_the_number_of_episodes_is_named_if_small(env_id, description):
    plan = plan_evaluation(TrainConfig(env=env_id))
    assert re.fullmatch(description, plan.description) and len(set(plan.sets[0].seeds)) == 500


def test_rows_of_a_stream_cannot_be_held_back_which_the_description_says():
    kwargs = {"dataset_name": "", "dataset": Stream(lambda: questions("a")), "shuffle": False}
    plan = plan_evaluation(TrainConfig(env="qa:Facts", env_kwargs=kwargs))
    assert plan.description.startswith("500 fresh seeds; rows of a stream ")


def test_rows_with_the_same_content_are_on_the_same_side_whatever_their_ids_and_order():
    rows = questions(*"abcdefghij", *"abcdefghij")
    held_back = hold_back(ListRows(rows), 0.3)
    names = {rows[i]["question"] for i in held_back}
    assert len(held_back) == 6 and len(names) == 3
    assert {rows[::-1][i]["question"] for i in hold_back(ListRows(rows[::-1]), 0.3)} == names


def test_a_data_set_of_one_row_has_none_to_hold_back():
    with pytest.raises(BadValue, match=r"0\.1 of 1 rows .*another split"):
        hold_back(ListRows(questions("a")), 0.1)


def test_numbers_without_some_of_them():
    assert [*Without(10, [9, 0, 4, 5])] == [1, 2, 3, 6, 7, 8]
    assert Without(3, [])[1:] == [1, 2] and len(Without(3, [1])) == 2
    with pytest.raises(IndexError):
        Without(3, [1])[2]


@pytest.mark.parametrize("split", [None, "test"])
def test_each_row_of_training_is_asked_by_one_group_per_epoch(two_splits, split, monkeypatch):
    monkeypatch.setattr(gem.rl.data.evaluation, "HELD_BACK", 0.2)
    config = TrainConfig(env=two_splits, eval_split=split, group_size=2)
    plan = plan_evaluation(config)
    numbers = plan.training[0].numbers
    wrappers, seed_of = group_order(config, config.envs[0], plan.training[0])
    with make_vec(config.envs[0].id, wrappers, num_envs=1, autoreset="disabled") as vec:
        epochs = [
            [vec.reset([seed_of(e * len(numbers) + i)])[1][0]["idx"] for i in range(len(numbers))] for e in range(4)
        ]
    assert len(numbers) == (5 if split is None else 6)
    assert all(sorted(epoch) == sorted(numbers) for epoch in epochs)
    assert len(set(map(tuple, epochs))) > 1


def test_groups_on_a_stream_are_refused():
    gem.register(
        "test:Streamed", "gem.envs.questions.qa_env:QaEnv", dataset=Stream(lambda: questions(*"abc")), shuffle=False
    )
    config = TrainConfig(env="test:Streamed", group_size=2)
    try:
        with pytest.raises(BadValue, match=r"group_size=2 .*random access.*test:Streamed"):
            group_order(config, config.envs[0], plan_evaluation(config).training[0])
    finally:
        del ENV_REGISTRY["test:Streamed"]
