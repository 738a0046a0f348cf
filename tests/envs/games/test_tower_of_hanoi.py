from collections import deque
from itertools import product
from unittest.mock import ANY

import pytest

from gem.core import StopReason
from gem.envs.games.tower_of_hanoi import (
    Oracle,
    TowerofHanoiEnv,
    invalid_reason,
    longest,
    moved,
    settled,
    shortest_solution,
)
from gem.errors import BadValue

VARIANTS = {
    "": {"num_disks": 4, "max_turns": 20, "random_start": True},
    "easy": {"num_disks": 3, "max_turns": 10},
    "hard": {"num_disks": 5, "max_turns": 35},
    "random": {"random_level": True, "random_start": True},
}
MOVES = [rf"\boxed{{{source} {target}}}" for source, target in product("ABC", repeat=2)]


def distances(disks):
    """Return the distance from every position to the solved one, by breadth-first search."""
    solved = (2,) * disks
    found, queue = {solved: 0}, deque([solved])
    while queue:
        where = queue.popleft()
        for source, target in product(range(3), repeat=2):
            if invalid_reason(where, source, target) is None:
                after = moved(where, source, target)
                if after not in found:
                    found[after] = found[where] + 1
                    queue.append(after)
    return found


@pytest.mark.parametrize(
    ("where", "move", "reason"),
    [
        ((0, 0, 0), (0, 0), "same_peg"),
        ((0, 0, 0), (1, 2), "empty_peg"),
        ((2, 0, 0), (0, 2), "larger_on_smaller"),
        ((2, 0, 0), (0, 1), None),
        ((2, 0, 1), (2, 0), None),
    ],
)
def test_only_a_top_disk_moves_and_never_onto_a_smaller_one(where, move, reason):
    assert invalid_reason(where, *move) == reason


def test_a_disk_is_settled_only_with_all_larger_ones():
    assert settled((2, 2, 0)) == 0
    assert settled((2, 0, 2)) == 1
    assert settled((2, 2, 2)) == 3


@pytest.mark.parametrize("disks", [2, 3, 4, 5])
def test_the_shortest_solution_agrees_with_breadth_first_search(disks):
    found = distances(disks)
    assert len(found) == 3**disks and max(found.values()) == longest(disks)
    for where, distance in found.items():
        length, move = shortest_solution(where)
        assert length == distance
        if move is not None:
            assert found[moved(where, *move)] == distance - 1


def test_the_optimum_is_the_mean_distance_of_the_starts():
    found = [d for d in distances(4).values() if d]
    assert TowerofHanoiEnv(**VARIANTS[""]).optimum().turns == pytest.approx(sum(found) / len(found))
    assert TowerofHanoiEnv(**VARIANTS["easy"]).optimum().turns == 7
    assert TowerofHanoiEnv(num_disks=3, max_turns=6).optimum() is None


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_oracle_solves_every_start_within_the_limit_and_earns_exactly_one(variant, play):
    env = TowerofHanoiEnv(**VARIANTS[variant])
    for seed in range(250):
        total, step = play(env, Oracle(env).act, seed)
        assert total == 1.0 and step.info == {"stop_reason": StopReason.SOLVED, "explanation": ANY}, seed


def test_easy_and_hard_start_stacked_and_random_starts_differ_and_are_never_solved():
    env = TowerofHanoiEnv(**VARIANTS["easy"])
    env.reset(seed=0)
    assert env.state.where == (0, 0, 0)
    env = TowerofHanoiEnv(**VARIANTS["random"])
    starts = set()
    for seed in range(400):
        env.reset(seed=seed)
        assert env.turn_limit() == {3: 10, 4: 20, 5: 35}[len(env.state.where)]
        starts.add(env.state.where)
    assert len(starts) > 150 and {len(where) for where in starts} == {3, 4, 5}
    assert not any(set(where) == {2} for where in starts)


@pytest.mark.parametrize("variant", VARIANTS)
def test_no_constant_move_earns_a_quarter(variant, play):
    env = TowerofHanoiEnv(**VARIANTS[variant])
    for text in MOVES:
        assert sum(play(env, lambda _, text=text: text, seed)[0] for seed in range(50)) / 50 <= 0.25, text


def test_a_move_to_the_same_peg_is_invalid_and_uses_up_a_turn():
    env = TowerofHanoiEnv(num_disks=3)
    env.reset(seed=0)
    before = env.state
    step = env.step(r"\boxed{A A}")
    assert (step.info["invalid"], step.reward, env.turn) == ("same_peg", 0.0, 1)
    assert env.state == before


def test_one_small_disk_on_c_earns_nothing_at_the_limit():
    env = TowerofHanoiEnv(num_disks=3, max_turns=2)
    env.reset(seed=0)
    env.step(r"\boxed{A C}")
    step = env.step(r"\boxed{A A}")
    assert step.truncated and not step.terminated and step.reward == 0.0
    assert step.info["stop_reason"] is StopReason.MAX_TURNS


def test_newly_settled_disks_earn_their_share_at_the_limit(play):
    env = TowerofHanoiEnv(num_disks=3, max_turns=4)
    total, step = play(env, Oracle(env).act, seed=0)  # the fourth of seven moves brings the largest disk to C
    assert step.truncated and total == 1 / 3


def test_disks_that_start_settled_earn_nothing():
    env = TowerofHanoiEnv(num_disks=4, max_turns=1, random_start=True)
    seen = 0
    for seed in range(100):
        env.reset(seed=seed)
        if env.state.settled_at_start:
            seen += 1
            assert env.step(r"\boxed{A A}").reward == 0.0
    assert seen > 10


@pytest.mark.parametrize("text", ["A C", "AC", "a,c", " a , C ", "a  c"])
def test_a_move_can_be_written_in_several_ways(text):
    env = TowerofHanoiEnv()
    assert env.read(rf"first \boxed{{B C}}, no: \boxed{{{text}}} \boxed{{done}}") == (0, 2)


@pytest.mark.parametrize("bad", [{"num_disks": 1}, {"num_disks": 11}, {"num_disks": 2.5}, {"max_turns": 0}])
def test_values_out_of_range_are_rejected(bad):
    with pytest.raises(BadValue, match=str(*bad.values())):
        TowerofHanoiEnv(**bad)
