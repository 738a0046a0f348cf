import random
from collections import Counter
from unittest.mock import ANY

import pytest

from gem.core import StopReason
from gem.envs.games.grids.sudoku import exact_fraction
from gem.envs.games.words.word_search import (
    BACKWARD,
    FORWARD,
    SIZE,
    Oracle,
    State,
    WordSearchEnv,
    choose_words,
    find,
    hide,
    in_rows,
    invalid_reason,
    letters_along,
    line,
    pool,
    spots,
    written,
)
from gem.errors import BadValue

VARIANTS = {
    "easy": {"num_words": 5, "max_turns": 20},
    "hard": {"num_words": 5, "hardcore": True, "max_turns": 20},
    "random": {"random_level": True},
}
GRID = (
    "OWLXXXXXXX",
    "XAXXXXXXXX",
    "XXRXXXXXXX",
    "XXXMXXXXXX",
    "XXXXXXXXXX",
    "XXXXXXXXXX",
    "XXXXXXXXXX",
    "XXXXXXXXXX",
    "XXXXXXXXXD",
    "XXXXXXXGEN",
)
SMALL = State(GRID, ("OWL", "WARD", "NEG"))


def small():
    env = WordSearchEnv(num_words=3)
    env.reset(seed=0)
    env.state = SMALL
    return env


def occurrences(grid, word):
    """Return where a word can be read, by walking from every cell in every direction."""
    found = set()
    for row in range(SIZE):
        for column in range(SIZE):
            for down, across in FORWARD + BACKWARD:
                cells = [(row + k * down, column + k * across) for k in range(len(word))]
                if all(0 <= r < SIZE and 0 <= c < SIZE for r, c in cells) and word == "".join(
                    grid[r][c] for r, c in cells
                ):
                    found.add((*cells[0], *cells[-1]))
    return found


@pytest.mark.parametrize(
    ("spot", "letters"),
    [((0, 0, 0, 2), "OWL"), ((0, 2, 0, 0), "LWO"), ((0, 0, 3, 3), "OARM"), ((8, 9, 9, 9), "DN"), ((9, 7, 8, 8), "GX")],
)
def test_letters_are_read_along_rows_columns_and_diagonals(spot, letters):
    assert letters_along(GRID, spot) == letters


def test_ends_that_are_equal_or_not_aligned_form_no_line():
    assert line((1, 1, 1, 1)) == line((0, 0, 1, 2)) == line((0, 0, 9, 8)) == []


def test_find_returns_every_occurrence_of_a_word():
    assert len(spots(10, FORWARD)) == 10 + 10 + 1 + 1
    assert len(set(spots(4, FORWARD + BACKWARD))) == 2 * (2 * 70 + 2 * 49)
    assert all(len(line(spot)) == 4 for spot in spots(4, FORWARD + BACKWARD))


@pytest.mark.parametrize("hardcore", [False, True])
def test_the_pool_has_many_words_and_no_palindrome(hardcore):
    words = pool(hardcore)
    assert len(words) == len(set(words)) >= 80
    assert not [word for word in words if word == word[::-1]]


def test_no_chosen_word_is_contained_in_another():
    for seed in range(20):
        chosen = choose_words(["BEAR", "EAR", "RAE", "OWL", "LWO"], 5, random.Random(seed))
        assert len(chosen) == 2 and len({"OWL", "LWO"} & set(chosen)) == 1
    assert len(choose_words(pool(True), 8, random.Random(0))) == 8


@pytest.mark.parametrize(("hardcore", "directions"), [(False, FORWARD), (True, FORWARD + BACKWARD)])
def test_every_word_can_be_read_exactly_once(hardcore, directions):
    for seed in range(20):
        rng = random.Random(seed)
        words = choose_words(pool(hardcore), 8, rng)
        grid = hide(words, directions, rng)
        assert len(grid) == SIZE and all(len(row) == SIZE for row in grid)
        for word in words:
            (place,) = occurrences(grid, word)
            assert place in spots(len(word), directions) and find(grid, word) == [place]


def test_words_run_in_every_direction():
    seen = {False: Counter(), True: Counter()}
    for hardcore in seen:
        env = WordSearchEnv(hardcore=hardcore)
        for seed in range(60):
            env.reset(seed=seed)
            for word in env.state.words:
                ((r, c), (s, d)) = line(find(env.state.grid, word)[0])[:2]
                seen[hardcore][s - r, d - c] += 1
    assert set(seen[False]) == set(FORWARD) and set(seen[True]) == set(FORWARD + BACKWARD)
    assert min(seen[True].values()) > 10


def test_words_are_placed_in_rows_when_random_grids_fail():
    words = choose_words(pool(True), 8, random.Random(0))
    grid = in_rows(words, random.Random(0))
    assert [len(row) for row in grid] == [SIZE] * SIZE
    assert all(len(occurrences(grid, word)) == 1 for word in words)
    assert hide(words, (), random.Random(0)) == grid  # without directions there is no position to try


@pytest.mark.parametrize(
    ("spot", "reason"),
    [
        ((0, 0, 0, 2), None),
        ((0, 0, 9, 9), None),
        ((0, 0, 0, 10), "out_of_range"),
        ((9999, 0, 0, 0), "out_of_range"),
        ((4, 4, 4, 4), "not_a_line"),
        ((0, 0, 1, 2), "not_a_line"),
    ],
)
def test_a_guess_must_be_a_line_in_the_grid(spot, reason):
    assert invalid_reason(SMALL, spot) == reason


@pytest.mark.parametrize("action", [r"\boxed{0 0 0 2}", r"\boxed{0 2 0 0}"])
def test_a_word_is_found_from_either_end_and_earns_once(action):
    env = small()
    step = env.step(action)
    assert (step.reward, step.info) == (exact_fraction(1, 3), {})
    assert step.observation.startswith("Turn 1: found OWL.") and step.observation.endswith("Words left: WARD, NEG")
    for again in (r"\boxed{0 0 0 2}", r"\boxed{0 2 0 0}"):
        step = env.step(again)
        assert (step.reward, step.info["invalid"]) == (0.0, "already_found")


def test_a_backward_word_is_found_and_other_lines_earn_nothing():
    env = small()
    assert env.step(r"\boxed{9 9 9 7}").reward == exact_fraction(1, 3)
    miss = env.step(r"\boxed{0 0 3 3}")
    assert (miss.reward, miss.info) == (0.0, {}) and "OARM is not on the list" in miss.observation


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_oracle_finds_every_word_within_the_limit_and_earns_exactly_one(variant, play):
    env = WordSearchEnv(**VARIANTS[variant])
    for seed in range(40):
        total, step = play(env, Oracle(env).act, seed)
        assert total == 1.0 and step.info == {"stop_reason": StopReason.SOLVED, "explanation": ANY}, seed
        assert env.turn == len(env.state.words)


def test_hard_words_are_longer():
    assert max(map(len, pool(False))) <= min(map(len, pool(True))) == 7
    assert WordSearchEnv(**VARIANTS["hard"]).optimum().turns == 5
    assert WordSearchEnv(num_words=5, max_turns=4).optimum() is None


def test_the_random_variant_draws_words_and_level_and_allows_four_turns_a_word():
    env = WordSearchEnv(**VARIANTS["random"])
    drawn = set()
    for seed in range(150):
        env.reset(seed=seed)
        assert env.turn_limit() == 4 * len(env.state.words)
        drawn.add((len(env.state.words), set(env.state.words) <= set(pool(True))))
    assert drawn == {(words, hard) for words in range(3, 8) for hard in (False, True)}


@pytest.mark.parametrize("variant", VARIANTS)
def test_no_constant_line_earns_a_quarter(variant):
    env = WordSearchEnv(**VARIANTS[variant])
    earned = Counter()  # a line earns at most once: its share, if a word is there
    for seed in range(300):
        env.reset(seed=seed)
        for word in env.state.words:
            earned[find(env.state.grid, word)[0]] += 1 / len(env.state.words)
    assert max(earned.values()) / 300 <= 0.05


@pytest.mark.parametrize("text", ["0 2 0 6", "0,2,0,6", " 0 , 2 0 ,6 ", "00 2\n0 6"])
def test_a_move_can_be_written_in_several_ways(text):
    assert WordSearchEnv().read(rf"\boxed{{4 4 4 8}} then \boxed{{{text}}} \boxed{{done}}") == (0, 2, 0, 6)


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_word_that_was_found_is_not_sampled_again(variant):
    env = WordSearchEnv(**VARIANTS[variant])
    for seed in range(100):
        env.reset(seed=seed)
        env.step(Oracle(env).act(env.board()))  # one word is found and must not be sampled again
        total, over = 1 / len(env.state.words), False
        while not over:
            step = env.step(env.sample_random_action())
            assert "invalid" not in step.info
            total, over = total + step.reward, step.terminated or step.truncated
        assert 0.0 <= total <= 1.0 + 1e-9


def test_the_example_move_is_a_written_spot():
    assert written((0, 2, 0, 6)) == WordSearchEnv.move_format


@pytest.mark.parametrize("bad", [{"num_words": 0}, {"num_words": 9}, {"num_words": 2.5}, {"max_turns": 0}])
def test_values_out_of_range_are_rejected(bad):
    with pytest.raises(BadValue, match=str(*bad.values())):
        WordSearchEnv(**bad)
