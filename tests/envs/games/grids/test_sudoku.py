import random
from itertools import permutations
from unittest.mock import ANY

import pytest

from gem.core import StopReason
from gem.envs.game import exact_fraction
from gem.envs.games.grids.sudoku import (
    POWER,
    Oracle,
    State,
    SudokuEnv,
    carve,
    entered,
    free_digits,
    invalid_reason,
    new_puzzle,
    render,
    solve,
    written,
)
from gem.errors import BadValue

VARIANTS = {
    "": {"scale": 9, "clues": 50, "max_turns": 50},
    "easy": {"scale": 4, "clues": 10, "max_turns": 15},
    "hard": {"scale": 9, "clues": 50, "max_turns": 50},
    "random": {"random_level": True},
}
SOLUTION = "1234341221434321"
PUZZLE = "1200341221434321"  # the third and fourth cell of the first row are empty
SMALL = State(4, PUZZLE, SOLUTION, PUZZLE)
EMPTY = State(4, "0" * 16, SOLUTION, "0" * 16)  # has other solutions as well


def at(env, state):
    env.reset(seed=0)
    env.state = state
    return env


def all_solutions(cells):
    """Return all solutions of a board of scale 4, by brute force."""
    rows = [
        [
            "".join(p)
            for p in permutations("1234")
            if all(c in ("0", d) for c, d in zip(cells[i : i + 4], p, strict=True))
        ]
        for i in range(0, 16, 4)
    ]
    grids = [a + b + c + d for a in rows[0] for b in rows[1] for c in rows[2] for d in rows[3]]
    units = [[4 * r + c for r in range(4)] for c in range(4)]
    units += [[8 * a + 2 * b + k for k in (0, 1, 4, 5)] for a in range(2) for b in range(2)]
    return [g for g in grids if all(len({g[i] for i in unit}) == 4 for unit in units)]


def test_the_solver_agrees_with_brute_force():
    rng = random.Random(0)
    for _ in range(60):
        grid = solve("0" * 16, rng)
        cells = "".join(digit if rng.random() < 0.4 else "0" for digit in grid)
        found = all_solutions(cells)
        assert solve(cells) in found
        assert {solve(cells, rng) for _ in range(20)} <= set(found)


def test_a_board_without_completion_has_no_solution():
    assert all_solutions("1230000400000000") == [] and solve("1230000400000000") is None


def test_random_full_grids_reach_every_grid_of_scale_4():
    rng = random.Random(1)
    assert len({solve("0" * 16, rng) for _ in range(6000)}) == 288


def test_carved_puzzles_have_exactly_one_solution():
    rng = random.Random(2)
    for removed in (1, 8, 12):
        for _ in range(30):
            solution = solve("0" * 16, rng)
            assert all_solutions(carve(solution, removed, rng)) == [solution]


def test_only_the_digits_of_the_solution_can_be_completed_in_a_hard_puzzle():
    for seed in range(5):
        puzzle, solution = new_puzzle(9, 50, random.Random(seed))
        for index in (i for i, entry in enumerate(puzzle) if entry == "0"):
            for digit in set(free_digits(puzzle, index, 9)) - {solution[index]}:
                assert solve(f"{puzzle[:index]}{digit}{puzzle[index + 1 :]}") is None


@pytest.mark.parametrize(("scale", "removed"), [(4, 1), (4, 10), (9, 1), (9, 50)])
def test_the_requested_number_of_cells_is_removed(scale, removed):
    for seed in range(200 if scale == 4 else 60):
        puzzle, solution = new_puzzle(scale, removed, random.Random(seed))
        assert puzzle.count("0") == removed
        assert all(entry in ("0", digit) for entry, digit in zip(puzzle, solution, strict=True))


def test_removal_stops_when_the_solution_would_not_be_unique():
    puzzle, solution = new_puzzle(9, 64, random.Random(0))
    assert 50 < puzzle.count("0") <= 64 and solve(puzzle) == solution


@pytest.mark.parametrize(
    ("move", "reason"),
    [
        ((1, 3, 3), None),
        ((1, 3, 4), None),
        ((1, 3, 2), "conflict"),
        ((1, 1, 3), "given"),
        ((1, 1, 0), "given"),
        ((1, 3, 0), "no_change"),
        ((0, 3, 3), "out_of_range"),
        ((1, 5, 3), "out_of_range"),
        ((1, 3, 5), "out_of_range"),
    ],
)
def test_a_digit_is_rejected_only_for_visible_reasons(move, reason):
    free = State(4, "1200" + "0" * 12, SOLUTION, "1200" + "0" * 12)
    assert invalid_reason(free, *move) == reason


def test_exact_fractions_sum_without_rounding_in_any_order():
    for total in range(1, 82):
        steps = [exact_fraction(k + 1, total) - exact_fraction(k, total) for k in range(total)]
        assert sum(steps) == sum(reversed(steps)) == sum(sorted(steps)) == 1.0
        assert steps[0] == pytest.approx(1 / total)
        convex = [exact_fraction(k + 1, total, 3) - exact_fraction(k, total, 3) for k in range(total)]
        assert sum(convex) == sum(reversed(convex)) == 1.0 and convex == sorted(convex)


def test_a_wrong_digit_is_entered_like_a_correct_one_and_earns_nothing():
    env = at(SudokuEnv(scale=4), EMPTY)
    wrong, right = env.step(r"\boxed{1 1 2}"), env.step(r"\boxed{2 1 3}")
    assert wrong.observation.startswith("Turn 1: placed 2 at row 1, column 1.\n1: 2 .")
    assert right.observation.startswith("Turn 2: placed 3 at row 2, column 1.\n1: 2 .")
    assert (wrong.reward, right.reward) == (0.0, exact_fraction(1, 16, POWER))
    assert wrong.info == right.info == {}


def test_changing_a_correct_digit_deducts_its_reward():
    env = at(SudokuEnv(scale=4, max_turns=50), EMPTY)
    rewards = [env.step(rf"\boxed{{1 1 {digit}}}").reward for digit in (1, 2, 1, 0, 1)]
    share = exact_fraction(1, 16, POWER)
    assert rewards == [share, -share, share, -share, share]


def test_the_same_digit_again_is_invalid():
    env = at(SudokuEnv(scale=4), EMPTY)
    env.step(r"\boxed{1 1 1}")
    again = env.step(r"\boxed{1 1 1}")
    assert again.info["invalid"] == "no_change" and again.reward == 0.0


def test_a_full_grid_is_the_solved_one():
    state = entered(entered(SMALL, 1, 3, 3), 1, 4, 4)
    assert state.cells == SOLUTION and state.correct == 2
    env = at(SudokuEnv(scale=4), SMALL)
    env.step(r"\boxed{1 3 3}")
    step = env.step(r"\boxed{1 4 4}")
    assert step.terminated and step.info["stop_reason"] is StopReason.SOLVED


def test_the_grid_is_drawn_with_its_boxes_and_row_numbers():
    assert render(PUZZLE, 4) == "1: 1 2 | . .\n2: 3 4 | 1 2\n3: 2 1 | 4 3\n4: 4 3 | 2 1"


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_oracle_solves_every_puzzle_within_the_limit_and_earns_exactly_one(variant, play):
    env = SudokuEnv(**VARIANTS[variant])
    for seed in range(40):
        total, step = play(env, Oracle(env).act, seed)
        assert total == 1.0 and step.info == {"stop_reason": StopReason.SOLVED, "explanation": ANY}, seed


def test_the_random_variant_draws_both_levels_with_their_limits():
    env = SudokuEnv(**VARIANTS["random"])
    drawn = set()
    for seed in range(40):
        env.reset(seed=seed)
        drawn.add((env.state.scale, env.state.puzzle.count("0"), env.turn_limit()))
    assert drawn == {(4, 10, 15), (9, 50, 50)}
    assert SudokuEnv(random_level=True, max_turns=7).turn_limit() == 7


@pytest.mark.slow
def test_no_constant_move_earns_a_quarter(play):
    env = SudokuEnv(**VARIANTS["easy"])
    for action in (written(cell, digit, 4) for cell in range(16) for digit in "01234"):
        assert sum(play(env, lambda _, action=action: action, seed)[0] for seed in range(20)) / 20 <= 0.1, action


def test_trying_digits_without_reasoning_does_not_solve_the_puzzle(play):
    env = SudokuEnv(**VARIANTS["hard"])

    def first_digit_that_is_not_refused(_):
        state = env.state
        for index, entry in enumerate(state.cells):
            if entry == "0" and (digits := free_digits(state.cells, index, 9)):
                return written(index, digits[0], 9)
        return written(0, "0", 9)

    totals = [play(env, first_digit_that_is_not_refused, seed)[0] for seed in range(50)]
    assert sum(totals) / 50 < 0.4 and max(totals) < 1.0


@pytest.mark.parametrize("text", ["1 2 3", "1,2,3", " 1 ,2, 3 ", "01 2\n3"])
def test_a_move_can_be_written_in_several_ways(text):
    assert SudokuEnv().read(rf"\boxed{{4 4 4}} then \boxed{{{text}}} \boxed{{done}}") == (1, 2, 3)


def test_a_dead_end_can_be_left_by_erasing():
    stuck = State(4, "0" * 16, SOLUTION, "1230" + "0004" + "0" * 8)  # no digit fits the fourth cell
    assert free_digits(stuck.cells, 3, 4) == []
    full = State(4, "1200" + SOLUTION[4:], SOLUTION, "1240" + SOLUTION[4:])
    env = at(SudokuEnv(scale=4), full)
    assert env.sample_random_action() == r"\boxed{1 3 0}"
    assert "invalid" not in env.step(r"\boxed{1 3 0}").info


@pytest.mark.parametrize(
    "bad",
    [{"scale": 8}, {"scale": 16}, {"scale": 4, "clues": 13}, {"clues": 65}, {"clues": 0}, {"max_turns": 0}],
)
def test_values_out_of_range_are_rejected(bad):
    with pytest.raises(BadValue, match=str(list(bad.values())[-1])):
        SudokuEnv(**bad)
