r"""Crosswords: fill a small grid of crossing words from their clues, letter by letter.

Action       text containing ``\boxed{r c L}``: row and column (from 0) and a letter of either case; the last such box
             counts.
Observation  the rules card on reset, then one line per turn; both with the grid and the clues of unfinished words.
Reward       1/cells for a correct letter, so 1.0 in total for the full grid; -0.1 for an unreadable turn, which ends
             the game. A wrong letter is not entered and earns nothing, but uses up a turn.
Ends         terminated when the grid is full or on an unreadable turn; truncated at the turn limit.
Bound        one turn for each cell. Trying the letters of the alphabet one by one takes 13 turns per cell on average;
             the published limits allow at most 28 wrong letters for a whole grid.

>>> env = CrosswordsEnv(num_words=2)
>>> _ = env.reset(seed=0)
>>> env.step(r"\boxed{99 99 e}").info
{'invalid': 'not_a_letter_cell'}
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from string import ascii_uppercase
from typing import NamedTuple

from gem._internal.counts import check_count
from gem.core import StopReason
from gem.envs.game import INTEGER, GameEnv, OnUnreadable, Outcome, exact_fraction
from gem.parsing import last_boxed

NUM_WORDS = range(2, 9)
RANDOM_WORDS = range(2, 6)  # range that random_level draws from
BLANK, OUTSIDE = "_", "."

_MOVE = re.compile(rf"\s*{INTEGER}(?:\s*,\s*|\s+){INTEGER}(?:\s*,\s*|\s+)[A-Za-z]\s*")

Letters = dict[tuple[int, int], str]  # cell (row, column) -> letter


class Clue(NamedTuple):
    answer: str
    text: str


@dataclass(frozen=True)
class Entry:
    """A word in the grid, with the cell of its first letter and its direction."""

    answer: str
    clue: str
    row: int
    column: int
    across: bool

    def cells(self) -> list[tuple[int, int]]:
        return path(len(self.answer), self.row, self.column, self.across)


@dataclass(frozen=True)
class State:
    """State of an episode.

    Args:
        entries: the words in the grid.
        solution: rows of the filled grid, with OUTSIDE for cells that belong to no word.
        shown: rows of the grid as shown, with BLANK for empty cells.
        num_cells: number of cells that belong to words.
        num_filled: number of these cells that are filled.
    """

    entries: tuple[Entry, ...]
    solution: tuple[str, ...]
    shown: tuple[str, ...]
    num_cells: int
    num_filled: int = 0


@cache
def clues(level: str) -> tuple[Clue, ...]:
    """Return the shipped clues of a level, "plain" or "hard"."""
    lines = (files("gem.envs.games") / "data" / "clues.tsv").read_text(encoding="ascii").splitlines()
    rows = [line.split("\t") for line in lines if not line.startswith("#")]
    return tuple(Clue(answer, text) for answer, text, of_level in rows if of_level == level)


@cache
def letters_by_frequency() -> tuple[str, ...]:
    """Return the letters of the answers, the most frequent first."""
    counts = Counter(letter for level in ("plain", "hard") for clue in clues(level) for letter in clue.answer)
    return tuple(letter for letter, _ in counts.most_common())


def path(length: int, row: int, column: int, across: bool) -> list[tuple[int, int]]:
    return [(row, column + k) if across else (row + k, column) for k in range(length)]


def fits(letters: Letters, word: str, row: int, column: int, across: bool) -> bool:
    """Return whether a word can be placed with its first letter in this cell and in this direction.

    The word must match the letters that it crosses, must not overlap a word in the same direction, and must not touch
    another word at its sides or ends.
    """
    step, side = ((0, 1), (1, 0)) if across else ((1, 0), (0, 1))
    cells = path(len(word), row, column, across)
    (last_row, last_column) = cells[-1]
    if (row - step[0], column - step[1]) in letters or (last_row + step[0], last_column + step[1]) in letters:
        return False
    before: str | None = None
    for (r, c), letter in zip(cells, word, strict=True):
        there = letters.get((r, c))
        if there is None:
            if (r - side[0], c - side[1]) in letters or (r + side[0], c + side[1]) in letters:
                return False
        elif there != letter or before is not None:  # two filled cells in a row belong to a word in the same direction
            return False
        before = there
    return True


def crossings(letters: Letters, word: str) -> Iterator[tuple[int, int, bool]]:
    """Yield each (row, column, across) where a word fits and crosses an existing letter."""
    for (row, column), letter in letters.items():
        for k, own in enumerate(word):
            if own == letter:
                for spot in ((row, column - k, True), (row - k, column, False)):
                    if fits(letters, word, *spot):
                        yield spot


def gives_away(clue: Clue, other: Clue) -> bool:
    """Return whether the text of one clue contains the answer of the other."""
    return clue.answer.lower() in other.text.lower() or other.answer.lower() in clue.text.lower()


def lay_out(deck: Sequence[Clue], num_words: int, rng: random.Random) -> tuple[Entry, ...]:
    """Place num_words clues in a grid, each crossing an earlier word if possible, otherwise two rows below the grid.

    The text of a placed clue never contains the answer of another. The deck must contain enough clues for this.
    """
    waiting = rng.sample(deck, len(deck))
    letters: Letters = {}
    entries: list[Entry] = []
    while len(entries) < num_words:
        clue, (row, column, across) = _next_entry(letters, waiting, rng)
        entry = Entry(clue.answer, clue.text, row, column, across)
        entries.append(entry)
        letters.update(zip(entry.cells(), clue.answer, strict=True))
        waiting = [other for other in waiting if other is not clue and not gives_away(clue, other)]
    top, left = min(row for row, _ in letters), min(column for _, column in letters)
    moved = [replace(entry, row=entry.row - top, column=entry.column - left) for entry in entries]
    return tuple(sorted(moved, key=lambda entry: (entry.row, entry.column, not entry.across)))


def first_state(entries: tuple[Entry, ...]) -> State:
    letters = {cell: letter for entry in entries for cell, letter in zip(entry.cells(), entry.answer, strict=True)}
    rows, columns = max(row for row, _ in letters) + 1, max(column for _, column in letters) + 1
    solution = tuple("".join(letters.get((r, c), OUTSIDE) for c in range(columns)) for r in range(rows))
    shown = tuple(re.sub("[A-Z]", BLANK, row) for row in solution)
    return State(entries, solution, shown, num_cells=len(letters))


def invalid_reason(state: State, row: int, column: int) -> str | None:
    """Return a reason code if no letter can be entered in a cell, else None."""
    if row not in range(len(state.shown)) or column not in range(len(state.shown[0])):
        return "not_a_letter_cell"
    if state.shown[row][column] == OUTSIDE:
        return "not_a_letter_cell"
    return None if state.shown[row][column] == BLANK else "filled"


def filled(state: State, row: int, column: int) -> State:
    """Return a copy of the state with the correct letter filled in at (row, column)."""
    line, letter = state.shown[row], state.solution[row][column]
    line = f"{line[:column]}{letter}{line[column + 1 :]}"
    shown = (*state.shown[:row], line, *state.shown[row + 1 :])
    return State(state.entries, state.solution, shown, state.num_cells, state.num_filled + 1)


def letters_shown(state: State, entry: Entry) -> str:
    """Return the letters of a word as shown in the grid."""
    if entry.across:
        return state.shown[entry.row][entry.column : entry.column + len(entry.answer)]
    return "".join([row[entry.column] for row in state.shown[entry.row : entry.row + len(entry.answer)]])


def render(state: State) -> str:
    """Return the grid with row and column numbers, then the clues of the incomplete words."""
    columns = len(state.shown[0])
    between = " " * len(str(columns - 1))
    lines = [_header(columns)]
    lines += [f"{r:>2}{between}{between.join(row)}" for r, row in enumerate(state.shown)]
    for number, entry in enumerate(state.entries, 1):
        if BLANK in letters_shown(state, entry):
            start = f"{'across' if entry.across else 'down'} from ({entry.row}, {entry.column})"
            lines.append(f"{number}. {start}, {len(entry.answer)} letters: {entry.clue}")
    return "\n".join(lines)


class CrosswordsEnv(GameEnv):
    """See the module docstring for the rules.

    Args:
        num_words: number of words in the grid, 2 to 8.
        hardcore: use the harder clues. None for this or num_words stands for random_level.
        max_turns: number of turns allowed; None stands for 1.5 times the number of cells. Words have up to 9 letters,
            so with fewer than 9 turns per word some grids cannot be filled.
        random_level: draw 2 to 5 words and plain or harder clues for every episode and ignore the given values.
        on_unreadable: see GameEnv.

    Raises:
        BadValue: when num_words is out of range or max_turns < 1.
    """

    state: State
    move_format = r"\boxed{0 2 E}"

    def __init__(
        self,
        hardcore: bool | None = False,
        max_turns: int | None = None,
        num_words: int | None = 3,
        *,
        random_level: bool = False,
        on_unreadable: OnUnreadable = "end",
    ) -> None:
        if hardcore is None or num_words is None:
            random_level, hardcore, num_words = True, False, 3
        check_count("num_words", num_words, NUM_WORDS[0], NUM_WORDS[-1])
        self.num_words, self.hardcore, self.random_level = num_words, hardcore, random_level
        self.turns_from_cells = max_turns is None
        if max_turns is None:
            max_turns = default_turns(9 * (RANDOM_WORDS[-1] if random_level else num_words))
        super().__init__(max_turns=max_turns, on_unreadable=on_unreadable)

    def start(self) -> State:
        num_words, hardcore = self.num_words, self.hardcore
        if self.random_level:
            num_words, hardcore = self.rng.choice(RANDOM_WORDS), self.rng.random() < 0.5
        return first_state(lay_out(clues("hard" if hardcore else "plain"), num_words, self.rng))

    def turn_limit(self) -> int:
        return default_turns(self.state.num_cells) if self.turns_from_cells else self.max_turns

    def rules(self) -> str:
        cells = self.state.num_cells
        return (
            f"Crossword: fill the {cells} cells of {len(self.state.entries)} words, in at most {self.turn_limit()} "
            "turns.\n"
            rf"Write row, column and letter in a box, like \boxed{{0 2 E}}; rows and columns count from 0 at the top "
            f"left.\nA correct letter is filled in and is worth 1/{cells}; a wrong one is not filled in, is worth "
            f"nothing and uses up a turn. In the grid, {BLANK} is an empty cell and {OUTSIDE} is not part of any word."
        )

    def board(self) -> str:
        return render(self.state)

    def read(self, action: str) -> tuple[int, int, str] | None:
        content = last_boxed(action, _MOVE)
        if content is None:
            return None
        row, column, letter = content.replace(",", " ").split()
        return int(row), int(column), letter.upper()

    def play(self, move: tuple[int, int, str]) -> Outcome:
        state, (row, column, letter) = self.state, move
        reason = invalid_reason(state, row, column)
        if reason == "not_a_letter_cell":
            return Outcome(f"({row}, {column}) is not part of any word.", invalid=reason)
        if reason == "filled":
            return Outcome(f"({row}, {column}) already contains {state.shown[row][column]}.", invalid=reason)
        if state.solution[row][column] != letter:
            return Outcome(f"{letter} is wrong at ({row}, {column}).")
        self.state = after = filled(state, row, column)
        reward = exact_fraction(after.num_filled, after.num_cells) - exact_fraction(state.num_filled, state.num_cells)
        line = f"{letter} is correct at ({row}, {column})."
        if after.num_filled == after.num_cells:
            return Outcome(f"{line} Solved.", reward, StopReason.SOLVED)
        return Outcome(line, reward)

    def secrets(self) -> list[str]:
        return [entry.answer for entry in self.state.entries]

    def sample_random_action(self) -> str:
        row, column = self.action_rng.choice(blanks(self.state) or [(0, 0)])
        return rf"\boxed{{{row} {column} {self.action_rng.choice(ascii_uppercase)}}}"

    def ordered_actions(self) -> Iterator[str]:
        for row, column in blanks(self.state):
            for letter in letters_by_frequency():
                if self.state.shown[row][column] == BLANK:
                    yield rf"\boxed{{{row} {column} {letter}}}"


def default_turns(num_cells: int) -> int:
    return num_cells * 3 // 2


def blanks(state: State) -> list[tuple[int, int]]:
    """Return the empty cells, as (row, column)."""
    return [(r, c) for r, row in enumerate(state.shown) for c, shown in enumerate(row) if shown == BLANK]


class Oracle:
    """Copy the solution from the state, cell by cell."""

    def __init__(self, env: CrosswordsEnv) -> None:
        self.env = env

    def act(self, observation: str) -> str:
        state = self.env.state
        row, column = next(iter(blanks(state)), (0, 0))
        return rf"\boxed{{{row} {column} {state.solution[row][column]}}}"


@cache
def _header(columns: int) -> str:
    width = len(str(columns - 1))
    return "   " + " ".join(f"{column:>{width}}" for column in range(columns))


def _next_entry(letters: Letters, waiting: list[Clue], rng: random.Random) -> tuple[Clue, tuple[int, int, bool]]:
    """Return the first clue that crosses a placed word, with the crossing that keeps the grid smallest.

    The first word of a grid is placed at its origin. If no clue crosses a word, the next clue is placed two rows
    below the grid.
    """
    if not letters:
        return waiting[0], (0, 0, True)
    for clue in waiting:
        spots = list(crossings(letters, clue.answer))
        if spots:
            rng.shuffle(spots)
            return clue, min(spots, key=lambda spot: _area(letters, len(clue.answer), spot))
    return waiting[0], (max(row for row, _ in letters) + 2, min(column for _, column in letters), True)


def _area(letters: Letters, length: int, spot: tuple[int, int, bool]) -> int:
    cells = [*letters, *path(length, *spot)]
    rows, columns = [row for row, _ in cells], [column for _, column in cells]
    return (max(rows) - min(rows) + 1) * (max(columns) - min(columns) + 1)
