"""Which tasks an evaluation asks, and their ids."""

from __future__ import annotations

import json

import pytest

import gem
from gem import datasets
from gem.datasets import Rows
from gem.datasets.load import content_hash
from gem.errors import BadValue
from gem.evaluation import evaluate
from gem.evaluation.tasks import EvalEnv, held_out_seeds, plan_tasks
from gem.registry import ENV_REGISTRY
from gem.seeding import derive
from gem.trajectory import read_jsonl


@pytest.fixture(autouse=True)
def data_sets():
    questions = [{"question": f"q{i}", "answer": "yes"} for i in range(5)]
    for name, splits in (("Rows", {"only": questions}), ("Splits", {"train": questions, "test": questions[:2]})):
        gem.register(f"test:{name}", "gem.envs.questions.qa_env:QaEnv", dataset=splits, split=next(iter(splits)))
    yield
    for name in ("Rows", "Splits"):
        del ENV_REGISTRY[f"test:{name}"]


def test_the_tasks_of_a_data_set_are_a_random_sample_of_its_rows_that_a_larger_limit_extends():
    small, large = (plan_tasks(EvalEnv(id="test:Rows"), limit).tasks for limit in (2, 9))
    assert [t.id for t in small] == [t.id for t in large][:2] and len({t.id for t in large}) == 5
    assert plan_tasks(EvalEnv(id="test:Rows", limit=3), 9).description == "3 of 5 rows"


def test_equal_rows_are_different_tasks_and_the_content_makes_the_id():
    rows = [{"question": "same", "answer": "yes"}] * 3
    tasks = plan_tasks(EvalEnv(id="qa:Facts", kwargs={"dataset": rows}), 9).tasks
    other = plan_tasks(EvalEnv(id="qa:Facts", kwargs={"dataset": [{"question": "same", "answer": "no"}]}), 9).tasks
    assert len({task.id for task in [*tasks, *other]}) == 4


def test_an_argument_that_json_does_not_have_is_refused():
    with pytest.raises(BadValue, match=r"'opponent' of board:Nim-v0 .*gem\.register"):
        EvalEnv(id="board:Nim-v0", kwargs={"opponent": object()})


def test_the_test_split_is_asked_instead_of_the_training_split():
    planned = plan_tasks(EvalEnv(id="test:Splits"), 9)
    assert planned.description == "2 of 2 rows of the split 'test'"
    assert plan_tasks(EvalEnv(id="test:Splits", kwargs={"split": "train"}), 9).description.startswith("5 of 5 rows")


def written(path, count):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps({"question": f"q{i}", "answer": "yes"}) + "\n" for i in range(count)))
    return str(path)


def test_own_data_is_named_with_its_file_and_hash_in_the_report_and_the_settings(tmp_path):
    file = written(tmp_path / "own.jsonl", 3)
    out = tmp_path / "run"
    found = evaluate("oracle", f"qa:{file}", out=str(out))[f"qa:{file}"]
    assert found.solved.value == 1.0 and found.description == f"3 of 3 rows of {file} (hash {content_hash(file)})"
    [env] = json.loads((out / "eval.json").read_text())["envs"]
    assert env["id"] == f"qa:{file}" and env["data"] == {"file": file, "hash": content_hash(file)}
    assert {trajectory.env_id for trajectory in read_jsonl(out / "trajectories.jsonl")} == {f"qa:{file}"}


def test_own_data_in_place_of_that_of_an_id_is_in_the_label_and_has_no_split_of_the_id(tmp_path):
    file = written(tmp_path / "own.jsonl", 3)
    env = EvalEnv(id="qa:HotpotQA", kwargs={"dataset_name": file, "question_key": "question"}, wrappers="concat")
    assert env.label == f"qa:HotpotQA({file})+concat"
    planned = plan_tasks(env, 9)
    assert planned.description == f"3 of 3 rows of {file} (hash {content_hash(file)})" and "split" not in planned.kwargs


def test_the_test_split_of_a_folder_is_asked(tmp_path):
    written(tmp_path / "own" / "train.jsonl", 5)
    written(tmp_path / "own" / "test.jsonl", 2)
    planned = plan_tasks(EvalEnv(id=f"qa:{tmp_path / 'own'}"), 9)
    assert planned.description.startswith(f"2 of 2 rows of the split 'test' of {tmp_path / 'own'} (hash ")
    assert plan_tasks(EvalEnv(id="qa:Facts"), 2).description == "2 of 450 rows"


def test_seeds_of_evaluations_are_none_that_training_derives():
    training = {*range(10_000), *(derive(seed, "train", i) for seed in range(10) for i in range(100))}
    assert not training & set(held_out_seeds(10_000)) and len(set(held_out_seeds(10_000))) == 10_000


def test_a_data_set_is_loaded_once_for_all_slots(monkeypatch):
    loaded = []

    def load_rows(source, split=None):
        loaded.extend([] if isinstance(source, Rows) else [split])
        return datasets.load_rows(source, split)

    monkeypatch.setattr("gem.envs.dataset_env.load_rows", load_rows)
    answer = "constant:<answer>yes</answer>"
    assert evaluate(answer, "test:Rows", limit=5, concurrency=5)["test:Rows"].solved.value == 1.0
    assert loaded == ["only"]
