"""DatasetEnv: the order of the rows, answers, state, and data sources."""

from __future__ import annotations

import json
import pickle
from collections import Counter

import pytest

import gem
from gem.core import Step
from gem.envs.dataset_env import DatasetEnv
from gem.errors import BadAction, BadValue, EpisodeOver, InfraError
from gem.graders import Grade
from gem.seeding import permuted


class Sums(DatasetEnv):
    """Rows {"a", "b"}; the answer is their sum. The action "broken" makes the grader fail."""

    answer_format = "write a number."

    def open(self, row):
        self.wanted = row["a"] + row["b"]
        return f"{row['a']} + {row['b']}?"

    def grade_action(self, action):
        if action == "broken":
            raise InfraError("the grader is gone")
        if not action.isdigit():
            return None
        correct = int(action) == self.wanted
        return Grade(reward=float(correct), correct=correct, reason="Judged.", details={"off_by": 1 - correct})

    def sample_random_action(self):
        return str(self.action_rng.randint(0, 9))


def rows(count):
    return [{"a": i, "b": 100} for i in range(count)]


def opened(env, count, seed=None):
    """The rows of the next episodes."""
    return [env.reset(seed=seed if k == 0 else None)[1]["idx"] for k in range(count)]


# Which task


def test_each_epoch_of_a_seed_visits_every_row_in_a_new_order():
    env = Sums(dataset=rows(7))
    epochs = [opened(env, 7, seed=3), opened(env, 7), opened(env, 7)]
    assert all(sorted(epoch) == list(range(7)) for epoch in epochs)
    assert epochs[0] != epochs[1] or epochs[1] != epochs[2]


def test_the_order_depends_only_on_the_seed():
    assert opened(Sums(dataset=rows(50)), 80, seed=3) == opened(Sums(dataset=rows(50)), 80, seed=3)
    assert opened(Sums(dataset=rows(50)), 80, seed=3) != opened(Sums(dataset=rows(50)), 80, seed=4)


def test_without_shuffling_consecutive_seeds_cover_every_row_once():
    env = Sums(dataset=rows(9), shuffle=False)
    assert [opened(env, 1, seed=seed) for seed in range(9)] == [[i] for i in range(9)]
    assert opened(env, 11, seed=7) == [7, 8, 0, 1, 2, 3, 4, 5, 6, 7, 8]


def test_reset_opens_a_row_by_number():
    env = Sums(dataset=rows(9))
    assert env.reset(seed=1, idx=4) == ("4 + 100?", {"idx": 4})
    assert env.reset(idx=0)[1] == {"idx": 0}


@pytest.mark.parametrize("idx", [-1, 9, "1", True, 1.0])
def test_an_invalid_row_number_is_rejected_and_changes_nothing(idx):
    env = Sums(dataset=rows(9))
    env.reset(seed=1)
    before = env.get_state()
    with pytest.raises(BadValue, match=r"idx .*0 to 8"):
        env.reset(idx=idx)
    assert env.get_state() == before


def test_the_first_reset_uses_the_seed_of_the_constructor():
    assert opened(Sums(dataset=rows(50), seed=3), 60) == opened(Sums(dataset=rows(50)), 60, seed=3)
    with pytest.raises(BadValue, match="seed"):
        Sums(dataset=rows(1), seed=-1)


@pytest.mark.parametrize("count", [1, 2, 3, 10, 97, 1000])
def test_a_permutation_is_a_bijection(count):
    assert sorted(permuted(position, count, 5, "x") for position in range(count)) == list(range(count))


def test_permutations_are_uniform():
    images = Counter(permuted(0, 10, name) for name in range(5000))
    assert len(images) == 10 and all(400 < count < 600 for count in images.values())
    neighbours = Counter((permuted(0, 5, name), permuted(1, 5, name)) for name in range(5000))
    assert len(neighbours) == 20 and all(150 < count < 350 for count in neighbours.values())


# Answers


def test_a_right_answer_solves_the_task_and_a_wrong_one_loses_it():
    env = Sums(dataset=rows(5))
    env.reset(seed=0, idx=2)
    said = {"idx": 2, "explanation": "Judged."}
    solved = {**said, "correct": True, "off_by": 0, "stop_reason": "solved"}
    assert env.step("102") == Step("Judged.", 1.0, True, False, solved)
    env.reset(idx=2)
    lost = {**said, "correct": False, "off_by": 1, "stop_reason": "lost"}
    assert env.step("103") == Step("Judged.", 0.0, True, False, lost)


def test_an_unparsable_answer_is_penalized_and_the_format_is_repeated():
    env = Sums(dataset=rows(5))
    env.reset(seed=0, idx=2)
    said = "No answer found; write a number."
    info = {"idx": 2, "correct": False, "invalid": "no_answer", "stop_reason": "format", "explanation": said}
    assert env.step("?") == Step(said, -0.1, True, False, info)


def test_a_task_accepts_one_answer():
    env = Sums(dataset=rows(5))
    with pytest.raises(EpisodeOver):
        env.step("1")
    env.reset(seed=0)
    with pytest.raises(BadAction):
        env.step(None)
    env.step("1")
    with pytest.raises(EpisodeOver):
        env.step("1")


def test_a_grader_failure_raises_and_the_task_stays_open():
    env = Sums(dataset=rows(5))
    env.reset(seed=0, idx=1)
    with pytest.raises(InfraError):
        env.step("broken")
    assert env.step("101").reward == 1.0


# State


def test_a_saved_task_continues_in_another_instance():
    env = Sums(dataset=rows(50))
    env.reset(seed=4)
    env.reset()
    for twin in (Sums(dataset=rows(50)), env.spawn(), pickle.loads(pickle.dumps(env))):
        twin.set_state(json.loads(json.dumps(env.get_state())))
        assert (twin.idx, twin.first_obs) == (env.idx, env.first_obs)
        assert twin.spawn(same_state=True).step(str(env.wanted)).reward == 1.0
        assert opened(twin, 3) == opened(env.spawn(same_state=True), 3)


@pytest.mark.parametrize("state", [{}, {"state": None}, {"state": {"idx": 50}}, {"state": {"idx": "1"}}, {"state": 5}])
def test_an_invalid_state_is_rejected_and_changes_nothing(state):
    env = Sums(dataset=rows(50))
    env.reset(seed=4)
    before = env.get_state()
    with pytest.raises(BadValue):
        env.set_state({**before, **state} if state else state)
    assert env.get_state() == before and env.first_obs == f"{env.idx} + 100?"


def test_vector_reset_accepts_a_row_number_per_slot():
    gem.register("test:Sums", Sums, dataset=rows(30))
    try:
        env = gem.make_vec("test:Sums", num_envs=3, seed=0)
        _, infos = env.reset(env0_kwargs={"idx": 7}, env2_kwargs={"idx": 9})
        assert (infos[0]["idx"], infos[2]["idx"]) == (7, 9)
    finally:
        del gem.ENV_REGISTRY["test:Sums"]


# Data


def test_a_file_is_read_once_for_all_environments(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text('{"a": 1, "b": 2}\n', encoding="utf-8")
    assert Sums(str(path)).dataset is Sums(str(path)).dataset
    assert Sums(str(path)).reset(seed=0)[0] == "1 + 2?"


def test_a_built_in_data_set_is_opened_by_its_gem_path():
    assert len(Sums("gem:code/warmup.jsonl").dataset) == 10
    with pytest.raises(BadValue, match=r"none\.jsonl"):
        Sums("gem:none.jsonl")


def test_a_split_is_selected_by_name():
    data = {"train": rows(3), "test": rows(2)}
    assert len(Sums(dataset=data, split="test").dataset) == 2
    assert len(Sums(dataset=data).dataset) == 3
    with pytest.raises(BadValue, match=r"split .*'train', 'test'.*'validation'"):
        Sums(dataset=data, split="validation")


class Halves(Sums):
    def open(self, row):
        if row["a"] % 2:
            raise BadValue("a is odd")
        return super().open(row)


def test_opening_a_bad_row_names_file_and_row(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows(4)), encoding="utf-8")
    env = Halves(str(path), shuffle=False)
    assert env.reset(seed=0)[1]["idx"] == 0
    with pytest.raises(BadValue, match=r"rows\.jsonl, line 2 \(row 1\): a is odd"):
        env.reset(seed=1)


def test_bad_rows_can_be_skipped_and_are_counted(caplog):
    env = Halves(dataset=rows(5), skip_bad_rows=True)
    assert (len(env.dataset), env.skipped_rows) == (3, 2)
    assert "2 of 5 rows are malformed" in caplog.text and "row 1: a is odd" in caplog.text
    assert {env.reset(seed=0)[0] for _ in range(1)} <= {"0 + 100?", "2 + 100?", "4 + 100?"}
    with pytest.raises(BadValue, match="all 1 rows"):
        Halves(dataset=[{"a": 1, "b": 1}], skip_bad_rows=True)


@pytest.mark.parametrize("data", [[], {"train": []}])
def test_an_empty_data_set_is_rejected(data):
    with pytest.raises(BadValue, match="no rows"):
        Sums(dataset=data)


@pytest.mark.parametrize("kwargs", [{}, {"dataset": iter(rows(1))}])
def test_a_source_is_required_and_it_must_be_a_sequence(kwargs):
    with pytest.raises(BadValue):
        Sums(**kwargs)
