r"""Word Search: find listed words that are hidden in a grid of letters.

Action       text containing ``\boxed{r c r c}``: row and column (from 0) of the two ends of a word, in either order;
             the last such box counts.
Observation  the rules card on reset, then one line per turn; both with the grid and the words left to find.
Reward       1/words for each word, so 1.0 in total; -0.1 for an unreadable turn, which ends the game.
Ends         terminated when all words are found or on an unreadable turn; truncated at the turn limit.
Bound        one turn for each word.

>>> env = WordSearchEnv(num_words=5, max_turns=20)
>>> _ = env.reset(seed=0)
>>> env.step(r"\boxed{0 0 2 1}").info
{'invalid': 'not_a_line'}
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from string import ascii_uppercase

from gem._internal.counts import check_count
from gem.core import Optimum, StopReason
from gem.envs.game import INTEGER, GameEnv, OnUnreadable, Outcome, exact_fraction
from gem.envs.games.words.crosswords import clues
from gem.parsing import last_boxed

SIZE = 10  # rows and columns of the published grid
NUM_WORDS = range(1, 9)
RANDOM_WORDS = range(3, 8)  # range that random_level draws from
TURNS_PER_WORD = 4  # the published 20 turns for 5 words
PLAIN_LENGTHS, HARD_LENGTHS = range(4, 8), range(7, 10)  # shorter words occur by chance
FORWARD = ((0, 1), (1, 0), (1, 1), (-1, 1))  # right, down and the two diagonals to the right
BACKWARD = tuple((-row, -column) for row, column in FORWARD)
ATTEMPTS = 50
_HEADER = "  " + " ".join(map(str, range(SIZE)))

_BETWEEN = r"(?:\s*,\s*|\s+)"
_MOVE = re.compile(rf"\s*{INTEGER}{_BETWEEN}{INTEGER}{_BETWEEN}(?:to{_BETWEEN})?{INTEGER}{_BETWEEN}{INTEGER}\s*")
_NUMBER = re.compile(INTEGER)
_ROW_LINE = re.compile(r"^\d ([A-Z](?: [A-Z])+)$", re.MULTILINE)
_WORDS_LINE = re.compile(r"^Words left: (.*)$", re.MULTILINE)

Directions = tuple[tuple[int, int], ...]  # reading directions, as (row step, column step)
Spot = tuple[int, int, int, int]  # row and column of the first letter, then of the last


@dataclass(frozen=True)
class State:
    """State of an episode.

    Args:
        grid: rows of letters.
        words: all hidden words.
        found: words found so far, in order.
    """

    grid: tuple[str, ...]
    words: tuple[str, ...]
    found: tuple[str, ...] = ()


@cache
def pool(hardcore: bool) -> tuple[str, ...]:
    """Return the words to choose from: crossword answers of 4 to 7 letters or, if hardcore, hard ones of 7 to 9."""
    level, lengths = ("hard", HARD_LENGTHS) if hardcore else ("plain", PLAIN_LENGTHS)
    return tuple(clue.answer for clue in clues(level) if len(clue.answer) in lengths)


def choose_words(words: Sequence[str], num_words: int, rng: random.Random) -> tuple[str, ...]:
    """Choose words such that no word contains another, forwards or backwards."""
    chosen: list[str] = []
    for word in rng.sample(words, len(words)):
        if len(chosen) == num_words:
            break
        if not any(word in other or word[::-1] in other or other in word or other in word[::-1] for other in chosen):
            chosen.append(word)
    return tuple(chosen)


def line(spot: Spot) -> list[tuple[int, int]]:
    """Return the cells between two ends in the same row, column or diagonal.

    Returns an empty list if the ends coincide or are not aligned.
    """
    top, left, bottom, right = spot
    rows, columns = bottom - top, right - left
    steps = max(abs(rows), abs(columns))
    if not steps or (rows and columns and abs(rows) != abs(columns)):
        return []
    down, across = rows // steps, columns // steps
    return [(top + k * down, left + k * across) for k in range(steps + 1)]


def letters_along(grid: Sequence[str], spot: Spot) -> str:
    return "".join([grid[row][column] for row, column in line(spot)])


@cache
def spots(length: int, directions: Directions) -> tuple[Spot, ...]:
    """Return every position that a word of this length can have in the grid, in the given reading directions."""
    reach = length - 1
    return tuple(
        (row, column, row + down * reach, column + across * reach)
        for down, across in directions
        for row in range(SIZE)
        for column in range(SIZE)
        if 0 <= row + down * reach < SIZE and 0 <= column + across * reach < SIZE
    )


def find(grid: Sequence[str], word: str) -> list[Spot]:
    """Return every position where a word can be read in the grid, in any direction."""
    return [
        spot
        for spot in spots(len(word), FORWARD + BACKWARD)
        if grid[spot[0]][spot[1]] == word[0] and letters_along(grid, spot) == word
    ]


def hide(words: Sequence[str], directions: Directions, rng: random.Random) -> tuple[str, ...]:
    """Return a grid that contains every word exactly once. After ATTEMPTS failures, the grid is built by in_rows()."""
    for _ in range(ATTEMPTS):
        grid = _scattered(words, directions, rng)
        if grid is not None and all(len(find(grid, word)) == 1 for word in words):
            return grid
    return in_rows(words, rng)


def in_rows(words: Sequence[str], rng: random.Random) -> tuple[str, ...]:
    """Return a grid with one word per row, filled up with letters that occur in no word (or Q if there are none)."""
    fillers = sorted(set(ascii_uppercase) - set("".join(words))) or ["Q"]
    rows = [*words, *[""] * (SIZE - len(words))]
    rng.shuffle(rows)
    return tuple(word + "".join(rng.choices(fillers, k=SIZE - len(word))) for word in rows)


def invalid_reason(state: State, spot: Spot) -> str | None:
    """Return a reason code if a pair of ends is not a valid guess, else None."""
    if not all(0 <= number < SIZE for number in spot):
        return "out_of_range"
    letters = letters_along(state.grid, spot)
    if not letters:
        return "not_a_line"
    return "already_found" if letters in state.found or letters[::-1] in state.found else None


class WordSearchEnv(GameEnv):
    """See the module docstring for the rules.

    Args:
        num_words: number of words to find, 1 to 8.
        hardcore: hide words of 7 to 9 letters, which may also run backwards, instead of words of 4 to 7 letters.
            None for this or num_words stands for random_level.
        max_turns: number of turns allowed; None stands for 4 per word. At least num_words turns are needed to win.
        random_level: draw 3 to 7 words, and hardcore or not, for every episode and ignore the given values.
        on_unreadable: see GameEnv.

    Raises:
        BadValue: when num_words is out of range or max_turns < 1.
    """

    state: State
    move_format = r"\boxed{0 2 0 6}"

    def __init__(
        self,
        hardcore: bool | None = False,
        max_turns: int | None = None,
        num_words: int | None = 5,
        *,
        random_level: bool = False,
        on_unreadable: OnUnreadable = "end",
    ) -> None:
        if hardcore is None or num_words is None:
            random_level, hardcore, num_words = True, False, 5
        check_count("num_words", num_words, NUM_WORDS[0], NUM_WORDS[-1])
        self.num_words, self.hardcore, self.random_level = num_words, hardcore, random_level
        self.turns_from_words = max_turns is None
        if max_turns is None:
            max_turns = TURNS_PER_WORD * (RANDOM_WORDS[-1] if random_level else num_words)
        super().__init__(max_turns=max_turns, on_unreadable=on_unreadable)

    def start(self) -> State:
        num_words, hardcore = self.num_words, self.hardcore
        if self.random_level:
            num_words, hardcore = self.rng.choice(RANDOM_WORDS), self.rng.random() < 0.5
        words = choose_words(pool(hardcore), num_words, self.rng)
        return State(hide(words, FORWARD + BACKWARD if hardcore else FORWARD, self.rng), words)

    def turn_limit(self) -> int:
        return TURNS_PER_WORD * len(self.state.words) if self.turns_from_words else self.max_turns

    def rules(self) -> str:
        words = self.state.words
        return (
            f"Word Search: find the {len(words)} listed words in the grid, in at most {self.turn_limit()} turns.\n"
            "Each word runs in a straight line: along a row, a column or a diagonal, possibly backwards. Write row and "
            rf"column of its first and last letter in a box, like \boxed{{0 2 0 6}} for the five letters from row 0, "
            "column 2 to row 0, column 6; rows and columns are numbered from 0 at the top left. The order of the two "
            f"ends does not matter.\nEach word found earns 1/{len(words)}; any other line only uses up a turn."
        )

    def board(self) -> str:
        state = self.state
        left = [word for word in state.words if word not in state.found]
        rows = [f"{r} {' '.join(row)}" for r, row in enumerate(state.grid)]
        return "\n".join([_HEADER, *rows, f"Words left: {', '.join(left) or 'none'}"])

    def read(self, action: str) -> Spot | None:
        content = last_boxed(action, _MOVE)
        if content is None:
            return None
        top, left, bottom, right = map(int, _NUMBER.findall(content))
        return top, left, bottom, right

    def play(self, move: Spot) -> Outcome:
        state, total = self.state, len(self.state.words)
        reason = invalid_reason(state, move)
        if reason is not None:
            return Outcome(_REFUSALS[reason], invalid=reason)
        letters = letters_along(state.grid, move)
        word = letters if letters in state.words else letters[::-1]
        if word not in state.words:
            return Outcome(f"{letters} is not on the list.")
        found = (*state.found, word)
        self.state = State(state.grid, state.words, found)
        reward = exact_fraction(len(found), total) - exact_fraction(len(found) - 1, total)
        if len(found) == total:
            return Outcome(f"found {word}. Solved.", reward, StopReason.SOLVED)
        return Outcome(f"found {word}.", reward)

    def optimum(self) -> Optimum | None:
        if self.random_level or self.max_turns < self.num_words:
            return None
        return Optimum(1.0, self.num_words, "reading the whole grid")

    def secrets(self) -> list[str]:
        return []  # the words and the grid are both shown

    def sample_random_action(self) -> str:
        state, rng = self.state, self.action_rng
        while True:  # terminates quickly, because only the lines of words already found are rejected
            length = len(rng.choice(state.words))
            spot = rng.choice(spots(length, FORWARD + BACKWARD))
            if invalid_reason(state, spot) is None:
                return written(spot)

    def ordered_actions(self) -> Iterator[str]:
        for word in self.state.words:
            for spot in spots(len(word), FORWARD):
                if word not in self.state.found and invalid_reason(self.state, spot) is None:
                    yield written(spot)


def written(spot: Spot) -> str:
    return rf"\boxed{{{' '.join(map(str, spot))}}}"


class Oracle:
    """Search the whole grid for the first remaining word; uses only observations."""

    def __init__(self, env: WordSearchEnv) -> None:
        pass

    def act(self, observation: str) -> str:
        grid = [row.replace(" ", "") for row in _ROW_LINE.findall(observation)]
        words_left = _WORDS_LINE.findall(observation)[-1].split(", ")
        found = find(grid, words_left[0])
        return written(found[0] if found else (0, 0, 0, 0))


_REFUSALS = {
    "out_of_range": f"rows and columns must be from 0 to {SIZE - 1}.",
    "not_a_line": "those two cells are not the ends of a row, column or diagonal line.",
    "already_found": "that word was already found.",
}


def _scattered(words: Sequence[str], directions: Directions, rng: random.Random) -> tuple[str, ...] | None:
    """Return a grid with the words at random positions, possibly crossing, and random letters in the other cells.

    Returns None if a word does not fit.
    """
    grid = [[""] * SIZE for _ in range(SIZE)]
    for word in sorted(words, key=len, reverse=True):
        for spot in _shuffled_spots(len(word), directions, rng):
            cells = line(spot)
            if all(grid[r][c] in ("", letter) for (r, c), letter in zip(cells, word, strict=True)):
                break
        else:
            return None
        for (r, c), letter in zip(cells, word, strict=True):
            grid[r][c] = letter
    return tuple("".join(letter or rng.choice(ascii_uppercase) for letter in row) for row in grid)


def _shuffled_spots(length: int, directions: Directions, rng: random.Random) -> Iterator[Spot]:
    """Yield all positions in random order, grouped by direction.

    Grouping makes all directions equally likely, although a long word has few diagonal positions.
    """
    for direction in rng.sample(directions, len(directions)):
        aligned = spots(length, (direction,))
        yield from rng.sample(aligned, len(aligned))
