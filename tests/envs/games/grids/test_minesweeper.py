import json
import random
from itertools import combinations
from unittest.mock import ANY

import pytest

from gem.core import StopReason
from gem.envs.games.grids.minesweeper import (
    MinesweeperEnv,
    Oracle,
    lay_mines,
    mine_odds,
    neighbours,
    numbered,
    opened_by,
)
from gem.errors import BadValue

VARIANTS = {
    "": {"rows": 8, "cols": 8, "num_mines": 10, "max_turns": 100},
    "very-easy": {"rows": 5, "cols": 5, "num_mines": 3, "max_turns": 25},
    "easy": {"rows": 5, "cols": 5, "num_mines": 5, "max_turns": 25},
    "hard": {"rows": 8, "cols": 8, "num_mines": 12, "max_turns": 64},
    "random": {"random_size": True},
}


def reveal(env, cell):
    return env.step(rf"\boxed{{reveal {cell // env.cols} {cell % env.cols}}}")


@pytest.fixture
def env():
    env = MinesweeperEnv(rows=5, cols=5, num_mines=5)
    env.reset(seed=0)
    return env


def test_numbers_count_the_mines_in_all_eight_directions():
    assert numbered(3, 3, [4]) == "1111*1111"
    assert numbered(2, 4, [0, 5]) == "*2102*10"


def test_a_zero_opens_its_neighbors_except_flagged_cells():
    field = numbered(3, 4, [3])
    assert field == "001*00110000"
    around = neighbours(3, 4)
    assert opened_by(0, field, "." * 12, around) == set(range(12)) - {3}
    assert opened_by(0, field, ".F..FF......", around) == {0}
    assert opened_by(2, field, "." * 12, around) == {2}


@pytest.mark.parametrize(("rows", "cols"), [(2, 2), (2, 3), (3, 3), (4, 5)])
def test_the_first_reveal_is_safe_and_never_wins_with_any_number_of_mines(rows, cols):
    for num_mines in range(1, rows * cols - 1):
        for first in range(rows * cols):
            for seed in range(5):
                field = lay_mines(random.Random(seed), rows, cols, num_mines, first)
                assert field.count("*") == num_mines and field[first] != "*"
                left = rows * cols - num_mines - len(opened_by(first, field, "." * len(field), neighbours(rows, cols)))
                assert left > 0


def test_the_neighborhood_of_the_first_reveal_is_free_of_mines_if_there_is_room():
    fields = [lay_mines(random.Random(seed), 8, 8, 12, first=9) for seed in range(200)]
    assert all(field[9] == "0" for field in fields)
    assert len(set(fields)) == 200


@pytest.mark.slow
@pytest.mark.parametrize("variant", VARIANTS)
def test_the_oracle_wins_as_often_as_documented_and_a_win_earns_exactly_one(variant, play):
    env = MinesweeperEnv(**VARIANTS[variant])
    oracle = Oracle(env)
    played = [play(env, oracle.act, seed) for seed in range(100)]
    won = [total for total, step in played if step.info["stop_reason"] is StopReason.SOLVED]
    stated = {"": 0.9, "very-easy": 0.91, "easy": 0.8, "hard": 0.82, "random": 0.85}[variant]
    assert stated - 0.08 <= len(won) / 100 and set(won) == {1.0}
    assert all(0.0 <= total < 1.0 for total, step in played if step.info["stop_reason"] is StopReason.LOST)


def test_revealing_every_safe_cell_wins_without_a_flag(env):
    reveal(env, 12)
    total = 0.0
    for cell in range(25):
        if env.state.field[cell] != "*" and not env.over and env.state.shown[cell] == ".":
            assert not env._is_solved()
            step = reveal(env, cell)
            total += step.reward
    assert step.terminated and step.info == {"stop_reason": StopReason.SOLVED, "explanation": ANY}
    assert env._is_solved() and total == 1.0


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_turns_suffice_for_one_reveal_per_safe_cell(variant):
    env = MinesweeperEnv(**VARIANTS[variant])
    for seed in range(30):
        env.reset(seed=seed)
        assert env.rows * env.cols - env.num_mines <= env.turn_limit()


@pytest.mark.parametrize("variant", VARIANTS)
def test_no_constant_action_earns_anything(variant, play):
    env = MinesweeperEnv(**VARIANTS[variant])
    for text in [rf"\boxed{{{word} {r} {c}}}" for word in ("reveal", "flag") for r in range(5) for c in range(r, 5)]:
        assert {play(env, lambda _, text=text: text, seed)[0] for seed in range(10)} == {0.0}, text


def test_a_mine_loses_without_deducting_rewards(env):
    reveal(env, 12)
    safe = next(c for c in range(25) if env.state.field[c] != "*" and env.state.shown[c] == ".")
    assert 0 < reveal(env, safe).reward < 1
    step = reveal(env, env.state.field.index("*"))
    assert step.terminated and step.reward == 0.0
    assert step.info == {"stop_reason": StopReason.LOST, "revealed": [env.state.field], "explanation": ANY}
    assert "*" in step.observation and not env._is_solved()


def test_mines_depend_only_on_the_seed_and_the_first_reveal(env):
    other = MinesweeperEnv(rows=5, cols=5, num_mines=5)
    other.reset(seed=0)
    other.step(r"\boxed{flag 0 0}")
    other.step(r"\boxed{reveal 9 9}")
    other.sample_random_action()
    reveal(env, 12)
    reveal(other, 12)
    assert env.state.field == other.state.field


def test_flags_toggle_and_protect_their_cell(env):
    assert env.step(r"\boxed{flag 0 1}").info == {}
    before = env.state
    assert env.step(r"\boxed{reveal 0 1}").info == {"invalid": "flagged"} and env.state == before
    assert "flags: 1" in env.board()
    env.step(r"\boxed{flag 0 1}")
    assert env.state.shown == "." * 25
    assert "invalid" not in env.step(r"\boxed{reveal 0 1}").info


@pytest.mark.parametrize(
    ("action", "reason"),
    [
        ("reveal 2 2", "already_open"),
        ("flag 2 2", "already_open"),
        ("reveal 5 0", "out_of_range"),
        ("flag 0 9999", "out_of_range"),
        ("open 0 0", "unknown_action"),
    ],
)
def test_an_impossible_action_is_invalid_and_uses_up_a_turn(env, action, reason):
    reveal(env, 12)
    before = env.state
    step = env.step(rf"\boxed{{{action}}}")
    assert (step.info["invalid"], step.reward, env.turn) == (reason, 0.0, 2)
    assert env.state == before


def test_odds_agree_with_enumerating_every_field():
    shown = ".....2..1..F"
    fields = [numbered(3, 4, mines) for mines in combinations(range(12), 3)]
    fits = [f for f in fields if all(s in ".F" or s == f[c] for c, s in enumerate(shown))]
    odds = mine_odds(shown, 3, 4, 3)
    assert set(odds) == {c for c, s in enumerate(shown) if s in ".F"}
    for cell, share in odds.items():
        assert share == pytest.approx(sum(f[cell] == "*" for f in fits) / len(fits))


def test_the_oracle_removes_a_flag_before_revealing_a_cell():
    env = MinesweeperEnv(rows=2, cols=2, num_mines=1)
    observation, _ = env.reset(seed=0)
    for cell in ("0 0", "0 1", "1 0", "1 1"):
        observation = env.step(rf"\boxed{{flag {cell}}}").observation
    assert "flag" in Oracle(env).act(observation)


def test_published_attributes_read_the_state(env):
    assert env.grid == [[0] * 5] * 5 and not any(map(any, env.revealed))
    reveal(env, 12)
    assert env.grid[2][2] == 0 and env.revealed[2][2]
    assert sum(row.count(-1) for row in env.grid) == 5
    assert (MinesweeperEnv(rows=4, cols=6).rows, MinesweeperEnv(rows=4, cols=6).cols) == (4, 6)


def test_two_digit_column_numbers_are_aligned():
    env = MinesweeperEnv(rows=2, cols=11, num_mines=1)
    env.reset(seed=0)
    lines = env.board().splitlines()
    assert lines[1].split() == [str(c) for c in range(11)]
    assert len({len(line) for line in lines[1:]}) == 1


@pytest.mark.parametrize("text", ["reveal 1 2", "REVEAL 1 2", " Reveal  1,2 ", "reveal, 01, 002", "reveal\t1\n2"])
def test_an_action_can_be_written_in_several_ways(env, text):
    assert env.read(rf"first \boxed{{flag 0 0}}, no: \boxed{{{text}}} \boxed{{done}}") == ("reveal", 1, 2)


@pytest.mark.parametrize("turns", [0, 3])
def test_an_episode_restored_before_or_after_the_first_reveal_continues_identically(turns):
    env, other = MinesweeperEnv(**VARIANTS[""]), MinesweeperEnv(**VARIANTS[""])
    observation, _ = env.reset(seed=7)
    oracle = Oracle(env)
    for _ in range(turns):
        observation = env.step(oracle.act(observation)).observation
    other.set_state(json.loads(json.dumps(env.get_state())))
    while not env.over:
        action = oracle.act(observation)
        step = env.step(action)
        assert other.step(action) == step and other.state == env.state
        observation = step.observation


def test_all_random_sizes_occur():
    env = MinesweeperEnv(**VARIANTS["random"])
    sizes = set()
    for seed in range(50):
        env.reset(seed=seed)
        sizes.add((env.rows, env.cols, env.num_mines, env.turn_limit()))
    assert sizes == {(5, 5, 5, 25), (6, 6, 7, 36), (7, 7, 9, 49), (8, 8, 12, 64)}


@pytest.mark.parametrize(
    "bad", [{"rows": 1}, {"cols": 31}, {"num_mines": 0}, {"num_mines": 63}, {"max_turns": 0}, {"rows": 2.5}], ids=str
)
def test_values_out_of_range_are_rejected(bad):
    with pytest.raises(BadValue, match=str(*bad.values())):
        MinesweeperEnv(**bad)
