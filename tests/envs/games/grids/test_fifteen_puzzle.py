import random
from collections import Counter, deque
from unittest.mock import ANY

import pytest

from gem.core import StopReason
from gem.envs.games.grids.fifteen_puzzle import (
    FARTHEST,
    FifteenPuzzleEnv,
    Oracle,
    goal,
    is_solvable,
    neighbours,
    permute,
    slide,
    solve,
    walk,
)
from gem.errors import BadValue

VARIANTS = {
    "": {"num_rows": 3, "max_turns": 20},
    "easy": {"num_rows": 2, "max_turns": 10},
    "hard": {"num_rows": 4, "max_turns": 50},
    "random": {"random_size": True, "max_turns": 50},
}
MOVES = ["up", "down", "left", "right"]


def distances(size):
    """Return the distance to the goal of every solvable board, by breadth-first search."""
    found, queue = {goal(size): 0}, deque([goal(size)])
    while queue:
        board = queue.popleft()
        for move in neighbours(size)[board.index(0)]:
            after = slide(board, size, move)
            if after not in found:
                found[after] = found[board] + 1
                queue.append(after)
    return found


@pytest.fixture
def three_by_three():
    env = FifteenPuzzleEnv(num_rows=3)
    env.reset(seed=0)
    return env


def test_the_direction_is_that_of_the_tile():
    board = (1, 2, 3, 4, 0, 5, 7, 8, 6)
    assert slide(board, 3, "left") == (1, 2, 3, 4, 5, 0, 7, 8, 6)
    assert slide(board, 3, "right") == (1, 2, 3, 0, 4, 5, 7, 8, 6)
    assert slide(board, 3, "up") == (1, 2, 3, 4, 8, 5, 7, 0, 6)
    assert slide(board, 3, "down") == (1, 0, 3, 4, 2, 5, 7, 8, 6)


def test_no_tile_moves_in_from_outside_the_board():
    assert slide(goal(3), 3, "up") is None and slide(goal(3), 3, "left") is None
    assert slide((1, 2, 0, 3), 2, "right") is None


def test_solvable_boards_are_exactly_the_reachable_ones():
    found = distances(2)
    assert len(found) == 12 and max(found.values()) == FARTHEST[2]
    rng = random.Random(0)
    for _ in range(200):
        board = tuple(rng.sample(range(4), 4))
        assert is_solvable(board, 2) == (board in found)
    assert not is_solvable((2, 1, *range(3, 16), 0), 4)


@pytest.mark.slow
def test_the_hardest_three_by_three_boards_take_31_moves():
    found = distances(3)
    assert len(found) == 181_440 and max(found.values()) == FARTHEST[3]
    for board in random.Random(0).sample(sorted(found), 20):
        assert len(solve(board)) == found[board]


@pytest.mark.parametrize("moves", [1, 2, 12, 13])
def test_a_walk_never_ends_on_the_goal_nor_farther_than_its_length(moves):
    found = distances(2)
    for seed in range(100):
        assert 1 <= found[walk(random.Random(seed), 2, moves)] <= moves


@pytest.mark.parametrize("size", [2, 3, 5])
@pytest.mark.parametrize("moves", [1, 7, 37])
def test_a_walk_draws_what_choice_would(size, moves):
    for seed in range(50):
        rng, walked = random.Random(seed), random.Random(seed)
        board, last, before = goal(size), "", goal(size)
        for _ in range(moves):
            ways = neighbours(size)[board.index(0)]
            opposite = {"up": "down", "down": "up", "left": "right", "right": "left"}.get(last)
            last = rng.choice([move for move in ways if move != opposite])
            board, before = slide(board, size, last), board
        assert walk(walked, size, moves) == (before if board == goal(size) else board)
        assert walked.random() == rng.random()


def test_permuted_boards_are_uniform_over_all_boards_except_the_goal():
    counts = Counter(permute(random.Random(seed), 2) for seed in range(2_200))
    assert set(counts) == set(distances(2)) - {goal(2)}
    assert min(counts.values()) > 140 and max(counts.values()) < 260


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_oracle_solves_every_board_within_the_limit_and_earns_exactly_one(variant, play):
    env = FifteenPuzzleEnv(**VARIANTS[variant])
    oracle = Oracle(env)
    for seed in range(40):
        total, step = play(env, oracle.act, seed)
        assert total == 1.0 and step.info == {"stop_reason": StopReason.SOLVED, "explanation": ANY}, seed
        assert env.turn <= env.state.within <= env.turn_limit()


def test_pure_random_boards_are_solved_within_the_known_maximum(play):
    env = FifteenPuzzleEnv(num_rows=3, max_turns=31, init_algo="pure_random")
    oracle = Oracle(env)
    assert all(play(env, oracle.act, seed)[0] == 1.0 for seed in range(30))


def test_too_few_turns_for_pure_random_boards_are_named():
    with pytest.raises(BadValue, match=r"num_rows=3 with max_turns=31.*; got num_rows=3 with max_turns=20"):
        FifteenPuzzleEnv(init_algo="pure_random")


def test_the_oracle_continues_from_any_board():
    env = FifteenPuzzleEnv(num_rows=3)
    observation, _ = env.reset(seed=3)
    oracle = Oracle(env)
    oracle.act(observation)
    step = env.step(env.sample_random_action())
    while not step.terminated:
        step = env.step(oracle.act(step.observation))
    assert step.reward == 1.0


@pytest.mark.parametrize("variant", VARIANTS)
def test_no_constant_move_earns_a_quarter(variant, play):
    env = FifteenPuzzleEnv(**VARIANTS[variant])
    for move in MOVES:
        assert sum(play(env, lambda _, move=move: rf"\boxed{{{move}}}", seed)[0] for seed in range(300)) / 300 <= 0.25


def test_no_board_starts_solved_and_all_random_sizes_occur():
    env = FifteenPuzzleEnv(**VARIANTS["random"])
    limits = set()
    for seed in range(300):
        env.reset(seed=seed)
        size = env.state.size
        assert is_solvable(env.state.board, size) and env.state.board != goal(size)
        limits.add((size, env.turn_limit()))
    assert limits == {(2, 10), (3, 20), (4, 50)}


def test_a_move_off_the_board_is_invalid_and_uses_up_a_turn():
    env = FifteenPuzzleEnv(num_rows=2)
    env.reset(seed=0)
    before = env.state
    blocked = next(move for move in MOVES if slide(before.board, 2, move) is None)
    step = env.step(rf"\boxed{{{blocked}}}")
    assert (step.info["invalid"], step.reward, env.turn) == ("no_tile", 0.0, 1)
    assert env.state == before


def test_tiles_in_place_earn_nothing_at_the_limit():
    env = FifteenPuzzleEnv(num_rows=3, max_turns=1, shuffle_moves=1)
    env.reset(seed=0)
    wrong = next(move for move in MOVES if slide(env.state.board, 3, move) not in (None, goal(3)))
    step = env.step(rf"\boxed{{{wrong}}}")
    assert step.truncated and not step.terminated and step.reward == 0.0
    assert step.info["stop_reason"] is StopReason.MAX_TURNS


@pytest.mark.parametrize("text", ["up", "UP", " Up ", "\tuP\n"])
def test_a_move_can_be_written_in_any_case(three_by_three, text):
    assert three_by_three.read(rf"\boxed{{down}} no: \boxed{{{text}}} \boxed{{done}}") == "up"


@pytest.mark.parametrize(
    "bad",
    [
        {"num_rows": 1},
        {"num_rows": 11},
        {"max_turns": 0},
        {"shuffle_moves": 0},
        {"shuffle_moves": 21},
        {"init_algo": "random"},
        {"init_algo": "pure_random"},  # 20 turns are too few for some boards
        {"init_algo": "pure_random", "num_rows": 5, "max_turns": 1_000},  # the maximum number of moves is unknown
        {"init_algo": "pure_random", "random_size": True, "max_turns": 80},
    ],
)
def test_values_out_of_range_are_rejected(bad):
    with pytest.raises(BadValue, match=next(iter(bad.values())) if "init_algo" in bad else str(*bad.values())):
        FifteenPuzzleEnv(**bad)
