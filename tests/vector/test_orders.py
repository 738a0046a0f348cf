"""Shared orders of rows: the slots of a vector over a data set ask each row once per epoch together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from worker_envs import Awaiting, Crashing

import gem
from gem.core import Info
from gem.errors import BadValue
from gem.vector import VectorEnv, make_vec

ROWS = [{"id": i, "question": f"{i}?", "answer": "yes"} for i in range(23)]
ANSWER = "<answer>yes</answer>"


def make_rows(**kwargs: Any) -> VectorEnv:
    return make_vec("qa:Facts", **{"num_envs": 4, "dataset_name": "", "dataset": ROWS, **kwargs})


def rows_asked(rounds: int, **kwargs: Any) -> list[int]:
    """Return the rows that the resets of a vector of 8 slots over 23 rows ask, in the order of the slots."""
    data = [{"id": i, "question": f"{i}?", "answer": "yes"} for i in range(23)]
    with make_vec("qa:Facts", **{"num_envs": 8, "dataset_name": "", "dataset": data, **kwargs}) as vec:
        return [info["idx"] for _ in range(rounds) for info in vec.reset()[1]]


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["sync", "process"])
def test_the_slots_together_ask_each_row_once_per_epoch(backend):
    asked = rows_asked(6, backend=backend)
    assert sorted(asked[:23]) == sorted(asked[23:46]) == list(range(23)) and asked[:23] != asked[23:46]
    assert asked == rows_asked(6) != rows_asked(6, seed=1)


def test_an_epoch_is_the_same_when_autoreset_starts_the_episodes():
    data = [{"id": i, "question": f"{i}?", "answer": "yes"} for i in range(23)]
    with make_vec("qa:Facts", num_envs=8, dataset_name="", dataset=data) as vec:
        asked = [info["idx"] for info in vec.reset()[1]]
        for _ in range(5):
            asked += [info["idx"] for info in vec.step(["<answer>yes</answer>"] * 8).infos_B]
    assert asked == rows_asked(6)


def test_unshuffled_slots_ask_the_rows_in_order():
    assert rows_asked(3, shuffle=False) == [*range(23), 0]
    assert rows_asked(1, shuffle=False, seed=20) == [20, 21, 22, 0, 1, 2, 3, 4]


def test_a_group_of_slots_asks_the_same_row():
    asked = rows_asked(6, group_size=4)
    assert asked[::4] == asked[1::4] == asked[3::4] and len(set(asked)) == 12


def test_slots_with_their_own_seeds_keep_their_own_order_unless_a_group_size_is_given():
    own = [{"seed": 5}] * 8
    assert rows_asked(1, vec_kwargs=own) == rows_asked(1, vec_kwargs=own)[:1] * 8
    assert len(set(rows_asked(1, vec_kwargs=own, group_size=1))) == 8


def test_a_seed_or_a_row_given_to_reset_bypasses_the_shared_order():
    data = [{"id": i, "question": f"{i}?", "answer": "yes"} for i in range(23)]
    alone = gem.make("qa:Facts", dataset_name="", dataset=data)
    with make_vec("qa:Facts", num_envs=2, dataset_name="", dataset=data) as vec:
        expected = [alone.reset(seed=1)[1]["idx"], alone.reset()[1]["idx"], alone.reset()[1]["idx"]]
        asked = [vec.reset(seed=[1, 1])[1], vec.reset()[1], vec.reset()[1]]
        assert [[info["idx"] for info in infos] for infos in asked] == [[row, row] for row in expected]
        assert vec.reset(ids=[1], env1_kwargs={"idx": 7})[1][0]["idx"] == 7


def test_a_restored_vector_continues_the_shared_order():
    data = [{"id": i, "question": f"{i}?", "answer": "yes"} for i in range(23)]
    with make_vec("qa:Facts", num_envs=8, dataset_name="", dataset=data) as vec:
        vec.reset()
        state = vec.get_state()
        expected = [info["idx"] for info in vec.reset()[1]]
        vec.reset(seed=3)
        vec.set_state(state)
        assert [info["idx"] for info in vec.reset()[1]] == expected


def step_two_slots(vec: VectorEnv) -> Sequence[Info]:
    return vec.step({0: ANSWER, 2: ANSWER}).infos_B


def send_to_three_and_receive_two(vec: VectorEnv) -> Sequence[Info]:
    idle = [slot for slot in range(3) if slot not in vec.pending]
    vec.send([ANSWER] * len(idle), ids=idle)
    return vec.recv(min_envs=2).step.infos_B


def reset_two_slots(vec: VectorEnv) -> Sequence[Info]:
    return vec.reset(ids=[3, 1])[1]


def send_resets(vec: VectorEnv) -> Sequence[Info]:
    vec.send_reset([0, 3])
    return vec.recv(min_envs=2).step.infos_B


def asked_in_order(vec: VectorEnv, count: int, play: Callable[[VectorEnv], Sequence[Info]]) -> list[int]:
    """Return the first ``count`` rows that are asked from now on, in the order of the resets."""
    asked: list[int] = []
    while len(asked) < count:
        asked += [info["idx"] for info in play(vec)]
    return asked


UNEQUAL = [step_two_slots, send_to_three_and_receive_two, reset_two_slots, send_resets]


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["sync", "thread", "process"])
@pytest.mark.parametrize("play", UNEQUAL, ids=lambda play: play.__name__)
def test_slots_that_progress_unequally_ask_each_row_once_per_epoch(backend, play):
    with make_rows(backend=backend) as vec:
        asked = [info["idx"] for info in vec.reset()[1]]
        asked += asked_in_order(vec, 42, play)
        asked += [info["idx"] for info in vec.recv(min_envs=len(vec.pending)).step.infos_B] if vec.pending else []
    # On a waiting backend, two results may arrive in another order than their resets.
    assert len(set(asked[:23])) >= (23 if backend == "sync" else 21) and len(asked) >= 46
    assert {asked.count(row) for row in range(23)} <= {2, 3}


@pytest.mark.parametrize("play", UNEQUAL, ids=lambda play: play.__name__)
def test_slots_that_are_awaited_ask_each_row_once_per_epoch(play):
    with make_rows(backend="async", wrappers=[Awaiting]) as vec:
        asked = [info["idx"] for info in vec.reset()[1]] + asked_in_order(vec, 65, play)
    assert {asked[:69].count(row) for row in range(23)} <= {2, 3, 4} and len(set(asked[:23])) >= 21


@pytest.mark.parametrize("autoreset", ["same_step", "next_step"])
def test_an_unequal_epoch_is_the_same_in_each_run_of_an_inline_backend(autoreset):
    def asked(backend: str) -> list[int]:
        with make_rows(backend=backend, autoreset=autoreset) as vec:
            vec.reset()
            return asked_in_order(vec, 60, step_two_slots)

    assert asked("sync") == asked("sync") == asked("async")


def test_an_episode_depends_on_the_seed_and_its_place_and_not_on_the_slot_that_plays_it():
    def states(play: Callable[[VectorEnv], Sequence[Info]]) -> dict[int, Any]:
        with make_vec("code:Mini", num_envs=4, autoreset="disabled") as vec:
            vec.reset()
            found = {}
            for _ in range(4):
                found |= {slot["env"]["episode"]: slot["env"] for slot in vec.get_state()["slots"]}
                play(vec)
            return found

    one, other = states(reset_two_slots), states(lambda vec: vec.reset(ids=[0, 2])[1])
    assert len(one) == len(other) == 10 and one == other


@pytest.mark.parametrize("backend", ["sync", "thread", "process"])
def test_a_slot_that_is_restarted_takes_the_next_place(backend):
    with make_rows(backend=backend, wrappers=[Crashing], on_failure="restart") as vec:
        asked = [info["idx"] for info in vec.reset()[1]]
        failures = turn = 0
        while len(asked) < 23:
            infos = vec.step({1: ANSWER} if turn % 2 == 0 else {1: "crash", 3: ANSWER}).infos_B
            failures += sum("failure" in info["final_info"] for info in infos)
            asked += [info["idx"] for info in infos]
            turn += 1
    assert sorted(asked) == list(range(23)) and failures == 6


def test_the_slots_of_a_dead_worker_take_the_next_places():
    with make_rows(backend="process", num_workers=1, wrappers=[Crashing], on_failure="restart") as vec:
        asked = [info["idx"] for info in vec.reset()[1]]
        for actions in ({1: "exit"}, {2: ANSWER}, {0: ANSWER}, {2: ANSWER}):
            asked += [info["idx"] for info in vec.step(actions).infos_B]
        asked += asked_in_order(vec, 23 - len(asked), reset_two_slots)
    assert len(set(asked[:23])) == 23


def test_a_slot_that_failed_and_was_reset_takes_the_next_place():
    with make_rows(wrappers=[Crashing]) as vec:
        asked = [info["idx"] for info in vec.reset()[1]]
        for _ in range(19):
            with pytest.raises(gem.errors.EnvFailed):
                vec.step({2: "crash"})
            asked += [info["idx"] for info in vec.reset(ids=[2])[1]]
    assert sorted(asked) == list(range(23))


def test_two_data_sets_in_one_vector_have_an_order_each():
    other = [{**row, "question": f"other {row['question']}"} for row in ROWS[:5]]
    own = [{"dataset": ROWS}, {"dataset": other}] * 2
    with make_vec("qa:Facts", vec_kwargs=own, dataset_name="", group_size=1) as vec:
        asked = [info["idx"] for info in vec.reset()[1]][1::2]
        asked += [info["idx"] for _ in range(8) for info in vec.step({0: ANSWER, 1: ANSWER, 3: ANSWER}).infos_B[1:]]
    assert [sorted(asked[i : i + 5]) for i in (0, 5, 10)] == [list(range(5))] * 3


def test_a_row_given_to_reset_takes_no_place():
    with make_rows() as vec:
        asked = [info["idx"] for info in vec.reset()[1]]
        for _ in range(19):
            assert vec.reset(ids=[1], env1_kwargs={"idx": 7})[1][0]["idx"] == 7
            asked += [info["idx"] for info in vec.step({3: ANSWER}).infos_B]
    assert sorted(asked) == list(range(23))


def test_unequal_slots_ask_the_same_row_in_consecutive_resets_of_a_group():
    with make_rows(group_size=4) as vec:
        asked = [info["idx"] for info in vec.reset()[1]] + asked_in_order(vec, 88, step_two_slots)
    assert asked[::4] == asked[1::4] == asked[2::4] == asked[3::4]
    assert sorted(asked[::4]) == list(range(23))


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["sync", "process"])
def test_a_restored_vector_of_unequal_slots_asks_the_same_rows(backend):
    with make_rows(backend=backend) as vec, make_rows(backend=backend) as other:
        vec.reset()
        asked_in_order(vec, 10, step_two_slots)
        vec.reset(ids=[3], seed=[5])  # this slot leaves the order
        state = vec.get_state()
        other.set_state(state)
        rows = [asked_in_order(restored, 30, reset_two_slots) for restored in (vec, other)]
        assert rows[0] == rows[1]


def test_the_state_of_a_vector_without_an_order_is_refused():
    with make_rows(seed=1) as vec:
        vec.reset()
        state = vec.get_state()
        with pytest.raises(BadValue, match=r"no places .*rows"):
            vec.set_state({name: value for name, value in state.items() if name != "places"})


def test_the_epoch_of_a_slot_that_left_a_grouped_order_counts_its_own_rows():
    with make_rows(num_envs=1, group_size=4) as vec:
        vec.reset(seed=3)
        epochs = []
        for _ in range(24):
            epochs.append(vec.envs[0].unwrapped.epoch)
            vec.reset()
    assert epochs == [0] * 23 + [1]
