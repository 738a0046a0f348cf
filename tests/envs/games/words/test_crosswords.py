import random
import re
from collections import Counter
from string import ascii_letters, ascii_uppercase
from unittest.mock import ANY

import pytest

from gem.core import StopReason
from gem.envs.game import exact_fraction
from gem.envs.games.words.crosswords import (
    Clue,
    CrosswordsEnv,
    Entry,
    Oracle,
    blanks,
    clues,
    crossings,
    first_state,
    fits,
    gives_away,
    invalid_reason,
    lay_out,
    render,
)
from gem.errors import BadValue

VARIANTS = {
    "easy": {"num_words": 3, "max_turns": 30},
    "hard": {"num_words": 3, "hardcore": True, "max_turns": 40},
    "random": {"random_level": True},
}
CAT = {(0, 0): "C", (0, 1): "A", (0, 2): "T"}
SMALL = first_state((Entry("CAT", "Purring pet", 0, 0, True), Entry("TEA", "Leaves in a pot", 0, 2, False)))


def small():
    env = CrosswordsEnv()
    env.reset(seed=0)
    env.state = SMALL
    return env


def test_there_are_enough_clues_of_both_levels_and_no_duplicates():
    plain, hard = clues("plain"), clues("hard")
    assert len(plain) >= 200 and len(hard) >= 120
    assert len({clue.answer for clue in plain + hard}) == len({clue.text for clue in plain + hard}) == len(plain + hard)


def test_clues_are_short_and_do_not_contain_their_answer():
    for answer, text in clues("plain") + clues("hard"):
        assert re.fullmatch("[A-Z]{3,9}", answer), answer
        assert answer.lower() not in text.lower(), answer
        assert 3 <= len(text) <= 90 and text == text.strip(), answer


@pytest.mark.parametrize(
    ("word", "row", "column", "across", "fitting"),
    [
        ("TEA", 0, 2, False, True),
        ("TEA", 0, 1, False, False),  # letters differ
        ("OWL", 1, 0, True, False),  # beside CAT
        ("OWL", 2, 0, True, True),
        ("SAW", 0, 3, True, False),  # extends CAT
        ("SAW", 1, 1, False, False),  # its first letter touches CAT from below
        ("CATS", 0, 0, True, False),  # overlaps CAT
    ],
)
def test_a_word_fits_if_it_matches_its_crossings_and_touches_no_other_word(word, row, column, across, fitting):
    assert fits(CAT, word, row, column, across) is fitting


def test_crossings_are_all_positions_that_share_a_letter():
    assert set(crossings(CAT, "TEA")) == {(0, 2, False), (-2, 1, False)}
    assert list(crossings(CAT, "OWL")) == []


def lines_of(state):
    """Return every run of two or more letters in the rows and columns of the solution."""
    columns = ["".join(column) for column in zip(*state.solution, strict=True)]
    return sorted(run for line in [*state.solution, *columns] for run in re.findall("[A-Z]{2,}", line))


@pytest.mark.parametrize("level", ["plain", "hard"])
@pytest.mark.parametrize("num_words", [2, 3, 5, 8])
def test_a_grid_contains_exactly_its_words_and_each_crosses_another(level, num_words):
    for seed in range(60):
        entries = lay_out(clues(level), num_words, random.Random(seed))
        state = first_state(entries)
        assert len(entries) == num_words and lines_of(state) == sorted(entry.answer for entry in entries)
        cells = Counter(cell for entry in entries for cell in entry.cells())
        assert all(any(cells[cell] == 2 for cell in entry.cells()) for entry in entries)
        assert not any(gives_away(a, b) for a in texts(entries) for b in texts(entries))


def texts(entries):
    return [Clue(entry.answer, entry.clue) for entry in entries]


def test_words_that_cannot_cross_are_placed_apart():
    deck = [Clue("OWL", "a"), Clue("HEN", "b"), Clue("CAT", "c")]
    state = first_state(lay_out(deck, 3, random.Random(0)))
    assert lines_of(state) == ["CAT", "HEN", "OWL"] and state.num_cells == 9


def test_filled_cells_and_cells_outside_words_take_no_letter():
    assert SMALL.solution == ("CAT", "..E", "..A")
    assert invalid_reason(SMALL, 0, 0) is None and invalid_reason(SMALL, 2, 2) is None
    assert (
        invalid_reason(SMALL, 1, 0)
        == invalid_reason(SMALL, 3, 0)
        == invalid_reason(SMALL, 0, 9999)
        == "not_a_letter_cell"
    )


def test_a_correct_letter_earns_its_share_once_and_a_wrong_one_nothing():
    env = small()
    wrong, right, again = (env.step(action) for action in (r"\boxed{0 2 E}", r"\boxed{0 2 t}", r"\boxed{0 2 T}"))
    assert (wrong.reward, wrong.info) == (0.0, {})
    assert (right.reward, right.info) == (exact_fraction(1, 5), {})
    assert (again.reward, again.info) == (0.0, {"invalid": "filled"})
    assert right.observation.startswith("Turn 2: T is correct at (0, 2).")


def test_the_board_shows_the_clues_of_unfinished_words():
    env = small()
    assert render(env.state) == (
        "   0 1 2\n 0 _ _ _\n 1 . . _\n 2 . . _\n"
        "1. across from (0, 0), 3 letters: Purring pet\n2. down from (0, 2), 3 letters: Leaves in a pot"
    )
    for action in (r"\boxed{0 0 C}", r"\boxed{0 1 A}", r"\boxed{0 2 T}"):
        step = env.step(action)
    assert step.observation.endswith("\n 0 C A T\n 1 . . _\n 2 . . _\n2. down from (0, 2), 3 letters: Leaves in a pot")


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_oracle_fills_every_grid_within_the_limit_and_earns_exactly_one(variant, play):
    env = CrosswordsEnv(**VARIANTS[variant])
    for seed in range(40):
        total, step = play(env, Oracle(env).act, seed)
        assert total == 1.0 and step.info == {"stop_reason": StopReason.SOLVED, "explanation": ANY}, seed


def test_the_published_limits_suffice_for_the_longest_words():
    longest = {level: max(len(clue.answer) for clue in clues(level)) for level in ("plain", "hard")}
    assert 3 * longest["plain"] < VARIANTS["easy"]["max_turns"]
    assert 3 * longest["hard"] < VARIANTS["hard"]["max_turns"]


def test_the_random_variant_draws_words_and_level_and_allows_three_turns_per_two_cells():
    env = CrosswordsEnv(**VARIANTS["random"])
    drawn = set()
    for seed in range(150):
        env.reset(seed=seed)
        assert env.turn_limit() == env.state.num_cells * 3 // 2 > env.state.num_cells
        drawn.add((len(env.state.entries), texts(env.state.entries)[0] in clues("hard")))
    assert drawn == {(words, hard) for words in (2, 3, 4, 5) for hard in (False, True)}


@pytest.mark.parametrize("variant", VARIANTS)
def test_no_constant_letter_earns_a_quarter(variant):
    env = CrosswordsEnv(**VARIANTS[variant])
    earned = Counter()  # a letter earns at most once: its share, if the solution has it there
    for seed in range(300):
        env.reset(seed=seed)
        for row, column in blanks(env.state):
            earned[row, column, env.state.solution[row][column]] += 1 / env.state.num_cells
    assert max(earned.values()) / 300 <= 0.05


@pytest.mark.parametrize("variant", VARIANTS)
def test_no_answer_is_shown_before_it_is_found(variant):
    env = CrosswordsEnv(**VARIANTS[variant])
    for seed in range(200):
        observation, _ = env.reset(seed=seed)
        shown = observation.lower() + env.step(r"\boxed{99 99 Q}").observation.lower()
        assert len(env.secrets()) == len(env.state.entries)
        assert not [answer for answer in env.secrets() if answer.lower() in shown]


@pytest.mark.parametrize("text", ["0 2 T", "0,2,t", " 0 , 2 t ", "00 2\nT"])
def test_a_move_can_be_written_in_several_ways(text):
    assert CrosswordsEnv().read(rf"\boxed{{4 4 A}} then \boxed{{{text}}} \boxed{{done}}") == (0, 2, "T")


def test_every_letter_can_be_written():
    env = CrosswordsEnv()
    assert [env.read(rf"\boxed{{0 0 {letter}}}")[2] for letter in ascii_letters] == [*ascii_uppercase * 2]


@pytest.mark.parametrize("bad", [{"num_words": 1}, {"num_words": 9}, {"num_words": 2.5}, {"max_turns": 0}])
def test_values_out_of_range_are_rejected(bad):
    with pytest.raises(BadValue, match=str(*bad.values())):
        CrosswordsEnv(**bad)
