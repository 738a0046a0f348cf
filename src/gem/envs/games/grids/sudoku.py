r"""Sudoku: fill the grid so that every row, column and box holds every digit once.

Action       text containing ``\boxed{r c d}``: row, column (from 1) and digit, 0 to erase; the last such box counts.
Observation  the rules card on reset, then one line per turn; both with the grid, "." for an empty cell.
Reward       with c of the n empty cells filled with their correct digits, the rewards sum to (c / n)^3, so to 1.0 for
             the solved grid; changing a correct cell costs what it earned; -0.1 for an unreadable turn, which ends the
             game.
Ends         terminated when solved or on an unreadable turn; truncated after ``max_turns`` turns.
Bound        one turn for each empty cell.

A digit that is already in the same row, column or box is rejected. Any other digit is entered, right or wrong. The
observation does not say whether the digit is right. Every puzzle has exactly one solution, so a full grid is solved.

>>> env = SudokuEnv(scale=4, clues=10, max_turns=15)
>>> _ = env.reset(seed=0)
>>> env.step(r"\boxed{1 5 1}").info
{'invalid': 'out_of_range'}
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from gem._internal.counts import check_count
from gem.core import StopReason
from gem.envs.game import INTEGER, GameEnv, OnUnreadable, Outcome, exact_fraction
from gem.errors import BadValue
from gem.parsing import last_boxed

# Scale -> maximum number of cells removed. A unique solution needs at least 4 givens at scale 4 and 17 at scale 9.
MOST_REMOVED = {4: 12, 9: 64}
LEVELS = {4: (10, 15), 9: (50, 50)}  # scale -> published (cells removed, turns)
POWER = 3  # see exact_fraction(): random legal digits fill half of a small grid correctly
ATTEMPTS = 8  # grids tried before a puzzle with fewer empty cells than requested is accepted

_MOVE = re.compile(rf"\s*{INTEGER}(?:(?:\s*,\s*|\s+){INTEGER}){{2}}\s*")
_NUMBER = re.compile(INTEGER)
_ROW_LINE = re.compile(r"^[1-9]: ([1-9. |]+)$", re.MULTILINE)


@dataclass(frozen=True)
class State:
    """State of an episode. Boards are strings of digits in row-major order, with 0 for an empty cell.

    Args:
        scale: number of digits, rows and columns.
        puzzle: the initial board.
        solution: the solved board.
        cells: the current board.
        correct: number of cells that the player has filled with the correct digit.
    """

    scale: int
    puzzle: str
    solution: str
    cells: str
    correct: int = 0


class Geometry(NamedTuple):
    """Tables that depend only on the scale.

    Args:
        units: for each cell, the indices of its row, column and box, which are numbered consecutively.
        peers: for each cell, the other cells in its row, column or box.
        template: the grid as text, with a %s for each cell.
    """

    units: tuple[tuple[int, int, int], ...]
    peers: tuple[tuple[int, ...], ...]
    template: str


@cache
def geometry(scale: int) -> Geometry:
    side = round(scale**0.5)
    units = tuple((r, scale + c, 2 * scale + r // side * side + c // side) for r in range(scale) for c in range(scale))
    cells = range(scale * scale)
    peers = tuple(tuple(j for j in cells if j != i and set(units[i]) & set(units[j])) for i in cells)
    row = " | ".join([" ".join(["%s"] * side)] * side)
    return Geometry(units, peers, template="\n".join(f"{r + 1}: {row}" for r in range(scale)))


def free_digits(cells: str, index: int, scale: int) -> list[str]:
    """Return the digits that do not occur in the row, column or box of a cell."""
    seen = {cells[j] for j in geometry(scale).peers[index]}
    return [digit for digit in "123456789"[:scale] if digit not in seen]


def invalid_reason(state: State, row: int, column: int, digit: int) -> str | None:
    """Return a reason code if a digit cannot be entered in a cell (row and column from 1), else None."""
    scale = state.scale
    if not (1 <= row <= scale and 1 <= column <= scale and 0 <= digit <= scale):
        return "out_of_range"
    index, entry = (row - 1) * scale + column - 1, str(digit)
    if state.puzzle[index] != "0":
        return "given"
    if state.cells[index] == entry:
        return "no_change"
    if digit and any(state.cells[j] == entry for j in geometry(scale).peers[index]):
        return "conflict"
    return None


def entered(state: State, row: int, column: int, digit: int) -> State:
    index, entry = (row - 1) * state.scale + column - 1, str(digit)
    cells = f"{state.cells[:index]}{entry}{state.cells[index + 1 :]}"
    wanted = state.solution[index]
    correct = state.correct + (entry == wanted) - (state.cells[index] == wanted)
    return State(state.scale, state.puzzle, state.solution, cells, correct)


def solve(cells: str, rng: random.Random | None = None) -> str | None:
    """Return a completed board, or None if the board cannot be completed.

    If the board has several completions, rng chooses one at random; without rng, the choice is deterministic.
    """
    scale = round(len(cells) ** 0.5)
    units = geometry(scale).units
    grid, used = [0] * len(cells), [0] * (3 * scale)  # digit d is the bit 1 << d - 1
    for i, character in enumerate(cells):
        if character != "0":
            _put(grid, used, i, 1 << int(character) - 1, units[i])
    empty = [i for i, bit in enumerate(grid) if not bit]
    solved = _complete(grid, used, empty, units, rng)
    return None if solved is None else "".join(str(bit.bit_length()) for bit in solved)


def carve(solution: str, removed: int, rng: random.Random) -> str:
    """Empty up to `removed` cells of a solution such that the solution stays unique.

    Cells are tried once each, in random order. A cell is emptied only if no other digit in it can be completed to a
    full board, so the result may have fewer empty cells than requested.
    """
    scale, cells, left = round(len(solution) ** 0.5), solution, removed
    for index in rng.sample(range(len(solution)), len(solution)):
        if not left:
            break
        before, after = cells[:index], cells[index + 1 :]
        others = [d for d in free_digits(cells, index, scale) if d != solution[index]]
        if all(solve(f"{before}{digit}{after}") is None for digit in others):
            cells, left = f"{before}0{after}", left - 1
    return cells


def new_puzzle(scale: int, removed: int, rng: random.Random) -> tuple[str, str]:
    """Return (puzzle, solution), where the solution is unique.

    If no attempt of ATTEMPTS reaches `removed` empty cells, the puzzle with the most empty cells is returned.
    """
    best = solution = ""
    for _ in range(ATTEMPTS):
        full = solve("0" * scale**2, rng)
        assert full is not None  # an empty grid always has a completion
        puzzle = carve(full, removed, rng)
        if not best or puzzle.count("0") > best.count("0"):
            best, solution = puzzle, full
        if best.count("0") == removed:
            break
    return best, solution


def render(cells: str, scale: int) -> str:
    return geometry(scale).template % tuple(cells.replace("0", "."))


class SudokuEnv(GameEnv):
    """See the module docstring for the rules.

    Args:
        clues: number of cells *removed* from the full grid (the published name of the argument): 1 to 12 at scale 4, 1
            to 64 at scale 9; None stands for the published 10 or 50. Fewer cells are removed if no puzzle
            with that many empty cells and a unique solution is found, which is common above 55 at scale 9.
        max_turns: number of turns allowed; None stands for the published limit of the scale or the number of empty
            cells, whichever is larger. With fewer turns than empty cells the puzzle cannot be solved.
        scale: number of digits, rows and columns: 4 or 9; None stands for random_level.
        random_level: draw one of the two published levels, (scale 4, 10 removed, 15 turns) and (9, 50, 50), for every
            episode and ignore scale and clues; max_turns still applies unless it is None.
        on_unreadable: see GameEnv.

    Raises:
        BadValue: when scale or clues are out of range or max_turns < 1.
    """

    state: State
    move_format = r"\boxed{1 3 4}"

    def __init__(
        self,
        clues: int | None = None,
        max_turns: int | None = None,
        scale: int | None = 9,
        *,
        random_level: bool = False,
        on_unreadable: OnUnreadable = "end",
    ) -> None:
        random_level, scale = random_level or scale is None, 9 if scale is None else scale
        if scale not in LEVELS:
            raise BadValue(f"scale must be 4 or 9, got {scale!r}")
        if clues is None:
            clues, _ = LEVELS[scale]
        removed = "clues, the number of cells removed,"
        check_count(removed, clues, 1, MOST_REMOVED[scale], where=f" at scale {scale}")
        self.scale, self.clues, self.random_level = scale, clues, random_level
        self.turns_from_scale = max_turns is None
        if max_turns is None:
            max_turns = max(turns for _, turns in LEVELS.values()) if random_level else default_turns(scale, clues)
        super().__init__(max_turns=max_turns, on_unreadable=on_unreadable)

    def start(self) -> State:
        scale, removed = self.scale, self.clues
        if self.random_level:
            scale = self.rng.choice(sorted(LEVELS))
            removed, _ = LEVELS[scale]
        puzzle, solution = new_puzzle(scale, removed, self.rng)
        return State(scale, puzzle, solution, cells=puzzle)

    def turn_limit(self) -> int:
        if not self.turns_from_scale:
            return self.max_turns
        return default_turns(self.state.scale, self.state.puzzle.count("0"))

    def rules(self) -> str:
        scale, empty = self.state.scale, self.state.puzzle.count("0")
        side = round(scale**0.5)
        return (
            f"Sudoku: fill the {empty} empty cells so that every row, every column and every {side}x{side} box holds "
            f"the digits 1 to {scale} once each, in at most {self.turn_limit()} turns.\n"
            rf"Write row, column and digit in a box, like \boxed{{1 3 4}} for a 4 in row 1, column 3. "
            "Rows are numbered from the top and columns from the left, starting at 1; the digit 0 erases your entry.\n"
            "A digit that is already in the same row, column or box is rejected; any other is entered, right or wrong. "
            "There is exactly one solution. "
            f"With c correct entries, you have earned (c/{empty})^{POWER} in total; changing a correct entry loses "
            "what it earned.\n"
            "The grid:"
        )

    def board(self) -> str:
        return render(self.state.cells, self.state.scale)

    def read(self, action: str) -> tuple[int, int, int] | None:
        content = last_boxed(action, _MOVE)
        if content is None:
            return None
        row, column, digit = map(int, _NUMBER.findall(content))
        return row, column, digit

    def play(self, move: tuple[int, int, int]) -> Outcome:
        state, (row, column, digit) = self.state, move
        reason = invalid_reason(state, row, column, digit)
        if reason is not None:
            return Outcome(self._refusal(reason, move), invalid=reason)
        self.state = after = entered(state, row, column, digit)
        empty = state.puzzle.count("0")
        reward = exact_fraction(after.correct, empty, POWER) - exact_fraction(state.correct, empty, POWER)
        line = f"placed {digit} at row {row}, column {column}." if digit else f"erased row {row}, column {column}."
        if after.correct == empty:
            return Outcome(f"{line} Solved.", reward, StopReason.SOLVED)
        return Outcome(line, reward)

    def _refusal(self, reason: str, move: tuple[int, int, int]) -> str:
        row, column, digit = move
        if reason == "out_of_range":
            return f"rows, columns and digits must be from 1 to {self.state.scale}."
        if reason == "given":
            return f"row {row}, column {column} is given and cannot be changed."
        if reason == "conflict":
            return f"there is already a {digit} in the same row, column or box as row {row}, column {column}."
        return f"row {row}, column {column} already {f'contains {digit}' if digit else 'is empty'}."

    def secrets(self) -> list[str]:
        return []  # the solution follows from the puzzle, which is shown

    def sample_random_action(self) -> str:
        state, rng = self.state, self.action_rng
        empty = [i for i, entry in enumerate(state.cells) if entry == "0"]
        first = rng.randrange(len(empty)) if empty else 0
        for index in empty[first:] + empty[:first]:
            if digits := free_digits(state.cells, index, state.scale):
                return written(index, rng.choice(digits), state.scale)
        own = [i for i, entry in enumerate(state.puzzle) if entry == "0" and state.cells[i] != "0"]
        return written(rng.choice(own), "0", state.scale)

    def ordered_actions(self) -> Iterator[str]:
        for index in range(self.state.scale**2):
            if self.state.cells[index] == "0" and (digits := free_digits(self.state.cells, index, self.state.scale)):
                yield written(index, digits[0], self.state.scale)


def default_turns(scale: int, removed: int) -> int:
    _, published = LEVELS[scale]
    return max(published, removed)


def written(index: int, digit: str, scale: int) -> str:
    return rf"\boxed{{{index // scale + 1} {index % scale + 1} {digit}}}"


class Oracle:
    """Solve the puzzle on the rules card, then fill it in cell by cell."""

    def __init__(self, env: SudokuEnv) -> None:
        self.solution = ""

    def act(self, observation: str) -> str:
        rows = _ROW_LINE.findall(observation)
        cells = "".join(rows).replace(" ", "").replace("|", "").replace(".", "0")
        if observation.startswith("Sudoku"):
            self.solution = solve(cells) or ""
        wrong = [i for i, digit in enumerate(self.solution) if cells[i] != digit]
        standing = [i for i in wrong if cells[i] != "0"]  # a wrong entry by another player may block a correct digit
        if standing or not wrong:
            return written(standing[0] if standing else 0, "0", len(rows))
        return written(wrong[0], self.solution[wrong[0]], len(rows))


def _complete(
    grid: list[int],
    used: list[int],
    empty: list[int],
    units: tuple[tuple[int, int, int], ...],
    rng: random.Random | None,
) -> list[int] | None:
    """Return the grid with all empty cells filled, or None if it cannot be completed. Modifies `grid` and `used`.

    Args:
        grid: the digit of each cell as a bit, 0 for an empty cell.
        used: the bits of the digits in each row, column and box.
        empty: indices of the empty cells.
        units: see Geometry.
        rng: shuffles the order in which digits are tried; None tries them in ascending order.
    """
    full = (1 << len(used) // 3) - 1
    while True:  # until a pass finds no empty cell with a single possible digit
        waiting: list[int] = []
        best, choices, fewest = -1, 0, 10
        for i in empty:
            row, column, box = units[i]
            free = full & ~(used[row] | used[column] | used[box])
            if not free:
                return None
            if not free & (free - 1):
                _put(grid, used, i, free, units[i])
                continue
            waiting.append(i)
            count = free.bit_count()
            if count < fewest:
                best, choices, fewest = i, free, count
        if not waiting:
            return grid
        if len(waiting) == len(empty):
            break
        empty = waiting
    waiting.remove(best)
    bits = [1 << k for k in range(full.bit_length()) if choices >> k & 1]
    if rng is not None:
        rng.shuffle(bits)
    for bit in bits:
        next_grid, next_used = grid[:], used[:]
        _put(next_grid, next_used, best, bit, units[best])
        solved = _complete(next_grid, next_used, waiting, units, rng)
        if solved is not None:
            return solved
    return None


def _put(grid: list[int], used: list[int], index: int, bit: int, units: tuple[int, int, int]) -> None:
    grid[index] = bit
    for unit in units:
        used[unit] |= bit
