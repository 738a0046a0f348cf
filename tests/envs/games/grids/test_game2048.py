import random
from collections import Counter
from unittest.mock import ANY

import pytest

from gem.core import StopReason
from gem.envs.games.grids.game2048 import (
    TARGETS,
    Game2048Env,
    Oracle,
    State,
    add_tile,
    legal_moves,
    paid,
    slide,
    squeeze,
)
from gem.errors import BadValue

VARIANTS = {
    "": {"target_tile": 64, "max_turns": 50},
    "hard": {"target_tile": 512, "max_turns": 400},
    "extreme-hard": {"target_tile": 2048, "max_turns": 1600},
    "random": {"random_target": True},
}
MOVES = ["up", "down", "left", "right"]
BOARD = (
    *(2, 2, 4, 0),
    *(0, 2, 0, 2),
    *(4, 4, 4, 4),
    *(0, 0, 0, 8),
)
STUCK = (16, 32, 16, 32, 32, 16, 32, 16) * 2


def on_board(board, target=64):
    """Return an environment in the middle of a game."""
    env = Game2048Env(target_tile=target)
    env.reset(seed=0)
    env.state = State(board, max(board), target, env.max_turns)
    return env


@pytest.mark.parametrize(
    ("line", "after"),
    [
        ((0, 2, 0, 2), (4, 0, 0, 0)),
        ((2, 2, 2, 2), (4, 4, 0, 0)),
        ((4, 2, 2, 0), (4, 4, 0, 0)),
        ((2, 2, 2, 0), (4, 2, 0, 0)),
        ((8, 4, 2, 0), (8, 4, 2, 0)),
        ((0, 0, 0, 0), (0, 0, 0, 0)),
    ],
)
def test_a_tile_merges_at_most_once_per_move_starting_from_the_front(line, after):
    assert squeeze(line) == after


def test_each_direction_slides_all_lines_that_way():
    assert slide(BOARD, "left") == (4, 4, 0, 0, 4, 0, 0, 0, 8, 8, 0, 0, 8, 0, 0, 0)
    assert slide(BOARD, "right") == (0, 0, 4, 4, 0, 0, 0, 4, 0, 0, 8, 8, 0, 0, 0, 8)
    assert slide(BOARD, "up") == (2, 4, 8, 2, 4, 4, 0, 4, 0, 0, 0, 8, 0, 0, 0, 0)
    assert slide(BOARD, "down") == (0, 0, 0, 0, 0, 0, 0, 2, 2, 4, 0, 4, 4, 4, 8, 8)


def test_new_tiles_are_uniform_over_empty_cells_and_one_in_ten_is_a_four():
    rng, board = random.Random(0), (2,) * 12 + (0,) * 4
    drawn = [
        next((i, a) for i, (a, b) in enumerate(zip(add_tile(rng, board), board, strict=True)) if a != b)
        for _ in range(4_000)
    ]
    assert all(900 < count < 1_100 for count in Counter(cell for cell, _ in drawn).values())
    assert {cell for cell, _ in drawn} == {12, 13, 14, 15} and {tile for _, tile in drawn} == {2, 4}
    assert 330 < sum(tile == 4 for _, tile in drawn) < 470


@pytest.mark.parametrize("target", TARGETS)
def test_a_won_game_earns_exactly_one_and_a_small_tile_little(target):
    env = on_board((*[0] * 14, 4, 4), target)
    total, largest = 0.0, 8
    while True:
        step = env.step(r"\boxed{left}")
        total += step.reward
        if step.terminated:
            break
        assert (step.reward > 0) == (largest > 8)
        env.state = State((*[0] * 14, largest, largest), largest, target, env.max_turns)
        largest *= 2
    assert total == 1.0 and step.info == {"stop_reason": StopReason.SOLVED, "explanation": ANY}
    assert paid(16, target) == pytest.approx(1 / (TARGETS.index(target) + 1) ** 4, abs=2**-40)


def test_a_tile_that_appeared_before_earns_nothing():
    env = on_board((16, 16, 0, 0, 8, 8, 0, 0, *[0] * 8), 64)
    env.state = State(env.state.board, 32, 64, 50)
    assert env.step(r"\boxed{left}").reward == 0.0


def test_a_move_that_changes_nothing_is_invalid_and_adds_no_tile():
    env = on_board((2, 4, 0, 0, *[0] * 12))
    before = env.state
    step = env.step(r"\boxed{up}")
    assert (step.info["invalid"], step.reward, env.turn) == ("no_change", 0.0, 1)
    assert env.state == before


def test_the_game_is_lost_when_no_move_is_left():
    assert legal_moves(STUCK) == []
    env = on_board((*STUCK[:12], 0, 2, 4, 8), 64)
    step = env.step(r"\boxed{left}")  # the new tile fills the only empty cell, next to 8 and 16
    assert 0 not in env.state.board
    assert step.terminated and step.info["stop_reason"] is StopReason.LOST and step.reward == 0.0


def test_a_full_board_with_a_merge_left_is_not_lost():
    assert legal_moves((8, 8, *STUCK[2:])) == ["left", "right"]


@pytest.mark.slow
@pytest.mark.parametrize(("variant", "seeds", "won"), [("", 40, 0.97), ("random", 40, 0.97), ("hard", 4, 0.9)])
def test_the_oracle_usually_wins_and_earns_exactly_one(variant, seeds, won, play):
    env = Game2048Env(**VARIANTS[variant])
    oracle = Oracle(env)
    played = [play(env, oracle.act, seed) for seed in range(seeds)]
    solved = [total for total, step in played if step.info["stop_reason"] is StopReason.SOLVED]
    assert len(solved) >= won * seeds and set(solved) == {1.0}
    assert all(0.0 <= total <= 1.0 for total, _ in played)


@pytest.mark.slow
def test_2048_can_be_reached_within_its_limit(play):
    env = Game2048Env(**VARIANTS["extreme-hard"])
    assert [play(env, Oracle(env).act, seed)[0] for seed in range(1)] == [1.0]


@pytest.mark.parametrize("variant", ["", "random"])  # a larger target gives less for the same tile
def test_no_constant_move_earns_a_quarter(variant, play):
    env = Game2048Env(**VARIANTS[variant])
    for move in MOVES:
        assert sum(play(env, lambda _, move=move: rf"\boxed{{{move}}}", seed)[0] for seed in range(200)) / 200 <= 0.25


@pytest.mark.parametrize("text", ["left", "LEFT", " Left ", "\tleFt\n"])
def test_a_move_can_be_written_in_any_case(text):
    env = Game2048Env()
    assert env.read(rf"\boxed{{up}} no: \boxed{{{text}}} \boxed{{done}}") == "left"


def test_all_random_tasks_occur():
    env = Game2048Env(**VARIANTS["random"])
    tasks = set()
    for seed in range(50):
        env.reset(seed=seed)
        tasks.add((env.state.target, env.turn_limit()))
    assert tasks == {(16, 20), (32, 30), (64, 50)}


@pytest.mark.parametrize(("target", "turns"), [(64, 50), (512, 400), (2048, 1600)])
def test_the_default_limit_grows_with_the_target(target, turns):
    assert Game2048Env(target_tile=target).max_turns == turns


@pytest.mark.parametrize("bad", [{"target_tile": 8}, {"target_tile": 100}, {"target_tile": 2**18}, {"max_turns": 0}])
def test_values_out_of_range_are_rejected(bad):
    with pytest.raises(BadValue, match=str(*bad.values())):
        Game2048Env(**bad)
