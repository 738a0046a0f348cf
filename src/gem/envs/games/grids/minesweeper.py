r"""Minesweeper: open every cell that has no mine. The rules come first, then the solver used by the oracle.

Action       text containing ``\boxed{reveal r c}`` or ``\boxed{flag r c}``, rows and columns from 0; the last such box
             counts. Flagging a flagged cell removes the flag; a flagged cell cannot be revealed.
Observation  the result of the action, then the board: ``.`` hidden, ``F`` flagged, 0-8 open with the number of adjacent
             mines.
Reward       the first reveal never hits a mine and earns nothing. With c of the n remaining safe cells open, the
             rewards sum to (c / n)^2, so to 1.0 in a won game. -0.1 for a turn without a readable action, which ends
             the game.
Ends         terminated when every safe cell is open (won; flags do not matter), on a mine (lost) or on an unreadable
             turn; truncated after ``max_turns`` turns.
Bound        some boards cannot be won without guessing. Always revealing the cell least likely to be a mine (Oracle,
             1,000 seeds) wins 80 % with 5 mines on 5x5, 90 % with 10 on 8x8, 82 % with 12 on 8x8, 85 % of random sizes.

>>> env = MinesweeperEnv(rows=3, cols=3, num_mines=2)
>>> _ = env.reset(seed=1)
>>> env.step(r"\boxed{flag 0 0}").observation.splitlines()[0]
'Turn 1: flagged (0, 0).'
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TypeVar

from gem._internal.counts import check_count
from gem.core import StopReason
from gem.envs.game import INTEGER, GameEnv, OnUnreadable, Outcome, exact_fraction
from gem.parsing import last_boxed

HIDDEN, FLAGGED, MINE = ".", "F", "*"
SIDES = range(2, 31)
POWER = 2  # see exact_fraction(): random reveals open a quarter of the safe cells on a small board
RANDOM_SIDES = range(5, 9)  # published: random_size draws a side n, with n*n // 5 mines and n*n turns

_MOVE = re.compile(rf"\s*([a-zA-Z]+)[\s,:]+({INTEGER})[\s,]+({INTEGER})\s*", re.ASCII)

Move = tuple[str, int, int]
T = TypeVar("T")


@dataclass(frozen=True)
class State:
    """State of an episode. Cells are numbered in row-major order.

    Args:
        shown: each cell as shown to the agent.
        field: content of each cell: MINE or the number of adjacent mines. Empty before the first reveal, which places
            the mines.
        unpaid: number of cells opened by the first reveal. They earn nothing.
    """

    rows: int
    cols: int
    num_mines: int
    shown: str
    field: str = ""
    unpaid: int = 0


@lru_cache(maxsize=64)
def neighbours(rows: int, cols: int) -> tuple[tuple[int, ...], ...]:
    """Return, for each cell, its adjacent cells (up to eight)."""
    return tuple(
        tuple(
            r * cols + c
            for r in range(max(0, row - 1), min(rows, row + 2))
            for c in range(max(0, col - 1), min(cols, col + 2))
            if (r, c) != (row, col)
        )
        for row in range(rows)
        for col in range(cols)
    )


def numbered(rows: int, cols: int, mines: Iterable[int]) -> str:
    """Return the content of each cell of a board with these mines: MINE or the number of adjacent mines.

    >>> numbered(2, 3, [0])
    '*10110'
    """
    around = neighbours(rows, cols)
    counts = [0] * (rows * cols)
    for mine in mines:
        counts[mine] = -9  # stays negative even if all eight neighbors are mines
        for cell in around[mine]:
            counts[cell] += 1
    return "".join([MINE if count < 0 else str(count) for count in counts])


def opened_by(cell: int, field: str, shown: str, around: tuple[tuple[int, ...], ...]) -> set[int]:
    """Return the cells opened by revealing a safe cell. A 0 also opens its neighbors, recursively, unless flagged."""
    opened, queue = {cell}, [cell]
    while queue:
        here = queue.pop()
        if field[here] == "0":
            fresh = [n for n in around[here] if shown[n] == HIDDEN and n not in opened]
            opened.update(fresh)
            queue.extend(fresh)
    return opened


def lay_mines(rng: random.Random, rows: int, cols: int, num_mines: int, first: int) -> str:
    """Place the mines at the first reveal and return the field.

    The first revealed cell has no mine. Its neighbors have mines only if the other cells cannot hold all of them. If
    the first reveal would open every safe cell, one mine is moved next to it, so that it never wins the game.
    """
    around = neighbours(rows, cols)
    near = around[first]
    far = [cell for cell in range(rows * cols) if cell != first and cell not in near]
    mines = rng.sample(far, min(num_mines, len(far)))
    mines += rng.sample(near, num_mines - len(mines))
    field = numbered(rows, cols, mines)
    if len(opened_by(first, field, HIDDEN * len(field), around)) == len(field) - num_mines:
        mines[0] = rng.choice(near)
        field = numbered(rows, cols, mines)
    return field


@lru_cache(maxsize=64)
def frame(rows: int, cols: int) -> tuple[str, str, list[str]]:
    """Return the parts of the board around the cells: the column header, the gap between cells and the row labels."""
    width = len(str(max(rows, cols) - 1))
    head = " " * width + "".join(f"{c:>{width + 1}}" for c in range(cols))
    return head, " " * width, [f"{r:>{width}}" + " " * width for r in range(rows)]


class MinesweeperEnv(GameEnv):
    """See the module docstring for the rules.

    Args:
        rows, cols: size of the board, 2 to 30 each. None for these or num_mines stands for random_size.
        num_mines: number of mines, from 1 to the number of cells minus 2.
        max_turns: number of actions allowed; None stands for one per cell.
        random_size: draw a square board and its number of mines for every episode and ignore rows, cols and num_mines.
        on_unreadable: see GameEnv.

    Raises:
        BadValue: for values outside these ranges.
    """

    state: State
    move_format = r"\boxed{reveal 0 1}"

    def __init__(
        self,
        rows: int | None = 8,
        cols: int | None = 8,
        num_mines: int | None = 10,
        max_turns: int | None = None,
        *,
        random_size: bool = False,
        on_unreadable: OnUnreadable = "end",
    ) -> None:
        if rows is None or cols is None or num_mines is None:
            random_size, rows, cols, num_mines = True, 8, 8, 10
        for name, side in (("rows", rows), ("cols", cols)):
            check_count(name, side, SIDES[0], SIDES[-1])
        check_count("num_mines", num_mines, 1, rows * cols - 2, where=f" on a {rows}x{cols} board")
        self.size, self.random_size, self.turns_from_size = (rows, cols, num_mines), random_size, max_turns is None
        cells = RANDOM_SIDES[-1] ** 2 if random_size else rows * cols
        super().__init__(max_turns=cells if max_turns is None else max_turns, on_unreadable=on_unreadable)

    def start(self) -> State:
        rows, cols, num_mines = self.size
        if self.random_size:
            rows = cols = self.rng.choice(RANDOM_SIDES)
            num_mines = rows * cols // 5
        return State(rows, cols, num_mines, shown=HIDDEN * (rows * cols))

    def turn_limit(self) -> int:
        return self.state.rows * self.state.cols if self.turns_from_size else self.max_turns

    def rules(self) -> str:
        state = self.state
        return (
            f"Minesweeper: open all cells of the {state.rows}x{state.cols} board except its {state.num_mines} mines, "
            f"in at most {self.turn_limit()} turns.\n"
            "'.' is a hidden cell and 'F' a flagged one; a digit is the number of mines in the up to eight adjacent "
            "cells. Revealing a 0 also opens the cells around it. The first reveal never hits a mine; any later mine "
            "loses the game. A flagged cell cannot be revealed until you flag it again, which removes the flag.\n"
            r"Write each action in a box, row then column, counted from 0: \boxed{reveal 0 1} or \boxed{flag 1 0}."
            f"\nWith a share s of the safe cells left after the first reveal open, you have earned s^{POWER} in total."
        )

    def board(self) -> str:
        state = self.state
        head, gap, labels = frame(state.rows, state.cols)
        rows = [
            label + gap.join(state.shown[start : start + state.cols])
            for label, start in zip(labels, range(0, len(state.shown), state.cols), strict=True)
        ]
        return f"Mines: {state.num_mines}, flags: {state.shown.count(FLAGGED)}\n{head}\n" + "\n".join(rows)

    def read(self, action: str) -> Move | None:
        content = last_boxed(action, _MOVE)
        if content is None:
            return None
        word, row, col = content.replace(",", " ").replace(":", " ").split()
        return word.lower(), int(row), int(col)

    def play(self, move: Move) -> Outcome:
        word, row, col = move
        state = self.state
        if word not in ("reveal", "flag"):
            return Outcome(f"unknown action '{word:.20}'; reveal or flag a cell.", invalid="unknown_action")
        if row not in range(state.rows) or col not in range(state.cols):
            return Outcome(f"({row}, {col}) is not on the board.", invalid="out_of_range")
        cell = row * state.cols + col
        if state.shown[cell] not in (HIDDEN, FLAGGED):
            return Outcome(f"({row}, {col}) is already open.", invalid="already_open")
        flagged = state.shown[cell] == FLAGGED
        if word == "flag":
            self.state = replace(state, shown=_put(state.shown, cell, HIDDEN if flagged else FLAGGED))
            return Outcome(f"removed the flag from ({row}, {col})." if flagged else f"flagged ({row}, {col}).")
        if flagged:
            return Outcome(f"({row}, {col}) is flagged; flag it again to remove the flag.", invalid="flagged")
        return self._reveal(cell, f"({row}, {col})")

    def _reveal(self, cell: int, name: str) -> Outcome:
        state = self.state
        first = not state.field
        field = state.field or lay_mines(self.rng, state.rows, state.cols, state.num_mines, cell)
        if field[cell] == MINE:
            self.state = replace(state, shown=_put(state.shown, cell, MINE))
            return Outcome(f"{name} is a mine; the game is lost.", stop=StopReason.LOST)
        fresh = opened_by(cell, field, state.shown, neighbours(state.rows, state.cols))
        shown = "".join(field[c] if c in fresh else seen for c, seen in enumerate(state.shown))
        opened, safe = len(shown) - shown.count(HIDDEN) - shown.count(FLAGGED), len(shown) - state.num_mines
        unpaid = len(fresh) if first else state.unpaid
        self.state = replace(state, shown=shown, field=field, unpaid=unpaid)
        line = f"{name} is safe; opened {len(fresh)}."
        paid_for, payable = opened - unpaid, safe - unpaid
        before = paid_for if first else paid_for - len(fresh)
        reward = exact_fraction(paid_for, payable, POWER) - exact_fraction(before, payable, POWER)
        return Outcome(line, reward, StopReason.SOLVED if opened == safe else None)

    def secrets(self) -> list[str]:
        """Return the field, or an empty list before the first reveal, which places the mines."""
        return [self.state.field] if self.state.field else []

    def sample_random_action(self, reveal_or_flag: str | None = None) -> str:
        """Return a random legal action. reveal_or_flag: the command of the action; None draws it."""
        cell = self.action_rng.choice([c for c, seen in enumerate(self.state.shown) if seen in (HIDDEN, FLAGGED)])
        word = "flag" if self.state.shown[cell] == FLAGGED or self.action_rng.random() < 0.1 else "reveal"
        word = word if reveal_or_flag is None else reveal_or_flag
        return rf"\boxed{{{word} {cell // self.state.cols} {cell % self.state.cols}}}"

    def ordered_actions(self) -> Iterator[str]:
        for cell in range(len(self.state.shown)):
            if self.state.shown[cell] == HIDDEN:
                yield rf"\boxed{{reveal {cell // self.state.cols} {cell % self.state.cols}}}"

    # Attributes of the published class. The grid has -1 for a mine, and is all 0 before the first reveal.

    @property
    def rows(self) -> int:
        return self.state.rows if hasattr(self, "state") else self.size[0]

    @property
    def cols(self) -> int:
        return self.state.cols if hasattr(self, "state") else self.size[1]

    @property
    def num_mines(self) -> int:
        return self.state.num_mines if hasattr(self, "state") else self.size[2]

    @property
    def grid(self) -> list[list[int]]:
        field = self.state.field or "0" * len(self.state.shown)
        return self._nested([-1 if under == MINE else int(under) for under in field])

    @property
    def revealed(self) -> list[list[bool]]:
        return self._nested([seen not in (HIDDEN, FLAGGED) for seen in self.state.shown])

    def _nested(self, cells: list[T]) -> list[list[T]]:
        return [cells[start : start + self.cols] for start in range(0, len(cells), self.cols)]

    def _is_solved(self) -> bool:
        return sum(map(sum, self.revealed)) == self.rows * self.cols - self.num_mines and MINE not in self.state.shown


def _put(shown: str, cell: int, seen: str) -> str:
    return shown[:cell] + seen + shown[cell + 1 :]


@dataclass
class Front:
    """A connected component of hidden cells and the open numbers next to them.

    Args:
        groups: hidden cells, grouped by the set of open numbers next to them; the cells of a group are interchangeable.
        touched: for each group, the indices in `needs` of the numbers next to its cells.
        needs: number of mines still missing around each number.
    """

    groups: list[list[int]]
    touched: list[tuple[int, ...]]
    needs: list[int]

    def tally(self) -> dict[int, list[int]]:
        """Count the ways to place mines on this component, by number of mines placed.

        Returns:
            Number of mines -> [number of ways, then for each group its number of mines summed over these ways].
        """
        found: dict[int, list[int]] = {}
        needs, counts = list(self.needs), [0] * len(self.groups)
        room = [0] * len(needs)  # undecided hidden cells around each number
        for group, numbers in zip(self.groups, self.touched, strict=True):
            for n in numbers:
                room[n] += len(group)

        def place(g: int, ways: int) -> None:
            if g == len(counts):
                row = found.setdefault(sum(counts), [0] * (g + 1))
                for i, value in enumerate([1, *counts]):
                    row[i] += ways * value
                return
            size, numbers = len(self.groups[g]), self.touched[g]
            for n in numbers:
                room[n] -= size
            for count in range(min(size, *(needs[n] for n in numbers)) + 1):
                if all(needs[n] - count <= room[n] for n in numbers):
                    counts[g] = count
                    for n in numbers:
                        needs[n] -= count
                    place(g + 1, ways * math.comb(size, count))
                    for n in numbers:
                        needs[n] += count
            for n in numbers:
                room[n] += size

        place(0, 1)
        return found


def fronts(shown: str, around: tuple[tuple[int, ...], ...]) -> list[Front]:
    numbers = [cell for cell, seen in enumerate(shown) if seen not in (HIDDEN, FLAGGED, MINE)]
    touching: dict[int, list[int]] = {}
    for number in numbers:
        for cell in around[number]:
            if shown[cell] in (HIDDEN, FLAGGED):
                touching.setdefault(cell, []).append(number)
    groups: dict[tuple[int, ...], list[int]] = {}
    for cell, seen_from in touching.items():
        groups.setdefault(tuple(seen_from), []).append(cell)
    found: list[Front] = []
    left = list(groups)
    while left:
        ordered = [left.pop()]  # lists connected groups next to each other, so that place() finds contradictions early
        for key in ordered:
            linked = [other for other in left if not set(other).isdisjoint(key)]
            left = [other for other in left if other not in linked]
            ordered += linked
        index = {number: i for i, number in enumerate(sorted({n for key in ordered for n in key}))}
        found.append(
            Front(
                [groups[key] for key in ordered],
                [tuple(index[n] for n in key) for key in ordered],
                [int(shown[number]) for number in index],
            )
        )
    return found


def mine_odds(shown: str, rows: int, cols: int, num_mines: int) -> dict[int, float]:
    """Return the probability that each hidden or flagged cell is a mine, given the cells shown."""
    parts = fronts(shown, neighbours(rows, cols))
    tallies = [part.tally() for part in parts]
    bound = {cell for part in parts for group in part.groups for cell in group}
    free = [cell for cell, seen in enumerate(shown) if seen in (HIDDEN, FLAGGED) and cell not in bound]

    def ways(others: list[dict[int, list[int]]], cells: int) -> list[int]:
        """Return a list: at index k, the number of ways to place all but k mines on these fronts and free cells."""
        total = [math.comb(cells, num_mines - used) if used <= num_mines else 0 for used in range(num_mines + 1)]
        for tally in others:
            total = [
                sum(row[0] * total[used + mines] for mines, row in tally.items() if used + mines <= num_mines)
                for used in range(num_mines + 1)
            ]
        return total

    every = ways(tallies, len(free))[0]
    odds: dict[int, float] = {}
    for i, (part, tally) in enumerate(zip(parts, tallies, strict=True)):
        rest = ways(tallies[:i] + tallies[i + 1 :], len(free))
        for g, group in enumerate(part.groups, start=1):
            mines = sum(row[g] * rest[used] for used, row in tally.items() if used <= num_mines)
            odds.update(dict.fromkeys(group, mines / (every * len(group))))
    if free:
        with_one = ways(tallies, len(free) - 1)[1]
        odds.update(dict.fromkeys(free, with_one / every))
    return odds


class Oracle:
    """Reveal the cell least likely to be a mine, by counting all fields consistent with the observation."""

    def __init__(self, env: MinesweeperEnv) -> None:
        pass

    def act(self, observation: str) -> str:
        head, _, *lines = observation[observation.rindex("Mines: ") :].splitlines()
        num_mines = int(head.split(",")[0].removeprefix("Mines: "))
        shown = "".join("".join(line.split()[1:]) for line in lines)
        rows, cols = len(lines), len(shown) // len(lines)
        odds = mine_odds(shown, rows, cols, num_mines)
        around = neighbours(rows, cols)

        def preference(cell: int) -> tuple[float, int, int]:
            row, col = divmod(cell, cols)
            open_around = sum(shown[n] not in (HIDDEN, FLAGGED) for n in around[cell])
            return odds[cell], -open_around, abs(2 * row + 1 - rows) + abs(2 * col + 1 - cols)

        cell = min(odds, key=preference)
        word = (
            "flag" if shown[cell] == FLAGGED else "reveal"
        )  # a flag set by another player must be removed before revealing
        return rf"\boxed{{{word} {cell // cols} {cell % cols}}}"
