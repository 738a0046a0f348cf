import random
from unittest.mock import ANY

import pytest

from gem.core import StopReason
from gem.envs.games.grids.sokoban import (
    Level,
    Oracle,
    SokobanEnv,
    State,
    draw_level,
    draw_room,
    is_trivial,
    on_target,
    paid,
    push,
    reach,
    search,
    steps,
)
from gem.errors import BadValue

VARIANTS = {
    "easy": {"dim_room": (6, 6), "num_boxes": 2, "max_turns": 20},
    "hard": {"dim_room": (8, 8), "num_boxes": 4, "max_turns": 50},
    "random": {"random_size": True, "max_turns": 50},
}
MOVES = ["up", "down", "left", "right"]
HALL = """
#######
#_$_.@#
#.$___#
#######
"""


def level(text):
    """Parse a level drawn without spaces between cells."""
    rows = text.split()
    cells = "".join(rows)
    room = "".join({"$": "_", "@": "_", "*": ".", "+": "."}.get(cell, cell) for cell in cells)
    boxes = tuple(i for i, cell in enumerate(cells) if cell in "$*")
    return Level(room, len(rows[0]), boxes, next(i for i, cell in enumerate(cells) if cell in "@+"))


def in_level(text, max_turns=20):
    """Return an environment whose episode is in this level."""
    env, drawn = SokobanEnv(max_turns=max_turns), level(text)
    env.reset(seed=0)
    env.state = State(drawn, drawn.boxes, drawn.player, on_target(drawn.room, drawn.boxes), max_turns)
    return env


def test_a_step_walks_or_pushes_one_box_and_stops_at_walls_and_at_two_boxes():
    corridor = level("####### #_$_$@# #_____# #######")
    room, boxes, player = corridor.room, corridor.boxes, corridor.player
    offset = steps(7)
    assert push(room, offset["right"], boxes, player) is None
    assert push(room, offset["down"], boxes, player) == (boxes, player + 7)
    once = push(room, offset["left"], boxes, player)
    assert once == ((9, 10), 11)
    assert push(room, offset["left"], *once) is None
    assert push(room, offset["up"], (11,), 18) is None


@pytest.mark.parametrize("boxes", [1, 2, 3, 4, 5])
def test_rewards_start_at_zero_keep_half_for_the_end_and_sum_to_one(boxes):
    for first in range(boxes):
        payments = [paid(n + 1, first, boxes) - paid(n, first, boxes) for n in range(first, boxes)]
        assert paid(first, first, boxes) == 0.0 and sum(payments) == 1.0
        assert payments[-1] > 0.5 or boxes - first == 1


def test_a_box_pushed_off_its_target_and_back_earns_once():
    env = in_level("######## #__.$@_# #______# #__.$__# ########")
    moves = ["left", "left", "down", "left", "left", "up", "right"]
    played = [env.step(rf"\boxed{{{move}}}") for move in moves]
    assert [step.reward for step in played] == [0.25, 0, 0, 0, 0, 0, 0]
    assert on_target(env.state.level.room, env.state.boxes) == 1


def test_the_board_shows_boxes_and_player_on_and_off_targets():
    env = in_level("##### #+$_# #*__# #####")
    assert env.board() == "# # # # #\n# + $ _ #\n# * _ _ #\n# # # # #"


def test_a_blocked_move_is_invalid_and_uses_up_a_turn():
    env = in_level(HALL)
    before = env.state
    step = env.step(r"\boxed{right}")
    assert (step.info["invalid"], step.reward, env.turn) == ("blocked", 0.0, 1)
    assert env.state == before


@pytest.mark.parametrize("size", [(5, 5), (6, 9), (8, 8), (12, 12)])
def test_rooms_are_walled_and_connected(size):
    rows, cols = size
    for seed in range(20):
        room = draw_room(random.Random(seed), rows, cols)
        border = room[:cols] + room[-cols:] + room[::cols] + room[cols - 1 :: cols]
        assert len(room) == rows * cols and set(border) == {"#"}
        assert len(reach(room, tuple(steps(cols).values()), (), room.index("_"))) == room.count("_")


@pytest.mark.parametrize(("side", "boxes", "turns"), [(6, 2, 20), (8, 4, 50), (8, 5, 50)])
def test_levels_start_with_no_box_on_a_target_and_are_solved_by_their_solution(side, boxes, turns):
    budget = turns * 4 // 5
    for seed in range(40):
        drawn = draw_level(random.Random(seed), side, side, boxes, budget)
        assert on_target(drawn.room, drawn.boxes) == 0 and drawn.room.count(".") == boxes
        assert budget / 2 <= len(drawn.solution) <= budget
        where = drawn.boxes, drawn.player
        for move in drawn.solution:
            where = push(drawn.room, steps(drawn.cols)[move], *where)
        assert on_target(drawn.room, where[0]) == boxes, seed


@pytest.mark.parametrize(
    "arguments",
    [
        {"dim_room": (5, 5), "num_boxes": 1, "max_turns": 2},
        {"dim_room": (5, 5), "num_boxes": 2, "max_turns": 1},
        {"dim_room": [5, 12], "num_boxes": 7, "max_turns": 30},
        {"dim_room": (12, 12), "num_boxes": 25, "max_turns": 100},
    ],
)
def test_small_levels_are_unsolved_and_solvable(arguments, play):
    env = SokobanEnv(**arguments)
    for seed in range(2):
        assert play(env, Oracle(env).act, seed)[0] == 1.0


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_oracle_solves_every_level_within_the_limit_and_earns_exactly_one(variant, play):
    env = SokobanEnv(**VARIANTS[variant])
    oracle = Oracle(env)
    for seed in range(40):
        total, step = play(env, oracle.act, seed)
        assert total == 1.0 and step.info == {"stop_reason": StopReason.SOLVED, "explanation": ANY}, seed


def test_the_oracle_searches_when_the_game_is_off_its_solution():
    env = in_level("###### #____# #_$$_# #_..@# ######")
    oracle = Oracle(env)
    oracle.plan, env.turn = ["up"], 1
    total = 0.0
    while not env.over:
        total += env.step(oracle.act("")).reward
    assert total == 1.0 and on_target(env.state.level.room, env.state.boxes) == 2


def test_the_search_gives_up_on_a_box_in_a_corner_and_the_oracle_still_moves():
    stuck = level("##### #$__# #_.@# #####")
    assert search(stuck.room, stuck.cols, stuck.boxes, stuck.player) == []
    env = in_level("##### #$__# #_.@# #####")
    env.turn = 1
    assert env.read(Oracle(env).act("")) in MOVES


def test_a_level_that_one_direction_solves_is_trivial():
    assert is_trivial(level("####### #_.$_@# #######"))
    assert not is_trivial(level(HALL))


@pytest.mark.parametrize("variant", VARIANTS)
def test_no_constant_move_earns_a_quarter(variant, play):
    env = SokobanEnv(**VARIANTS[variant])
    for move in MOVES:
        assert sum(play(env, lambda _, move=move: rf"\boxed{{{move}}}", seed)[0] for seed in range(20)) / 20 <= 0.25


@pytest.mark.parametrize("text", ["up", "UP", " Up ", "\tuP\n"])
def test_a_move_can_be_written_in_any_case(text):
    env = SokobanEnv()
    assert env.read(rf"\boxed{{down}} no: \boxed{{{text}}} \boxed{{done}}") == "up"


def test_all_random_tasks_occur():
    env = SokobanEnv(**VARIANTS["random"])
    tasks = set()
    for seed in range(30):
        env.reset(seed=seed)
        tasks.add((env.state.level.cols, len(env.state.boxes), env.turn_limit()))
    assert tasks == {(6, 2, 20), (8, 5, 50)}


@pytest.mark.parametrize(
    "bad",
    [
        {"dim_room": (4, 6)},
        {"dim_room": (6, 13)},
        {"dim_room": (6, 6, 6)},
        {"dim_room": 6},
        {"num_boxes": 0},
        {"num_boxes": 5},
        {"max_turns": 0},
    ],
    ids=str,
)
def test_values_out_of_range_are_rejected(bad):
    with pytest.raises(BadValue) as refused:
        SokobanEnv(**bad)
    assert str(*bad.values()) in str(refused.value)
