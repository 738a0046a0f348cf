r"""Minesweeper: open every cell that hides no mine. The rules come first, then the solver that the oracle plays with.

Action       text holding ``\boxed{reveal r c}`` or ``\boxed{flag r c}``, rows and columns from 0; the last such box
             counts. Flagging a flagged cell takes the flag away; a flagged cell cannot be revealed.
Observation  what the action did, then the board: ``.`` hidden, ``F`` flagged, 0-8 open with the number of mines around.
Reward       each safe cell opened pays an equal share of 1.0, those of the first reveal excepted: that one cannot fail
             and pays nothing. A won game returns 1.0. -0.1 for a turn with no readable action, which ends the game.
Ends         terminated when every safe cell is open (won; flags do not matter), on a mine (lost) or on an unreadable
             turn; truncated when ``max_turns`` are spent.
Bound        some boards cannot be won without a guess. Always revealing the cell least likely a mine (Oracle, 1,000
             seeds) wins 80 % with 5 mines on 5x5, 90 % with 10 on 8x8, 82 % with 12 on 8x8, 85 % of random sizes.

>>> env = MinesweeperEnv(rows=3, cols=3, num_mines=2)
>>> _ = env.reset(seed=1)
>>> env.step(r"\boxed{flag 0 0}").observation.splitlines()[0]
'Turn 1: flagged (0, 0).'
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TypeVar

from gem.core import StopReason
from gem.envs.game_env.base import GameEnv, OnUnreadable, Outcome, share
from gem.errors import BadValue
from gem.parsing import last_boxed

HIDDEN, FLAGGED, MINE = ".", "F", "*"
SIDES = range(2, 31)
RANDOM_SIDES = range(5, 9)  # the random variant draws n and plays n*n cells, n*n // 5 mines, n*n turns, as published

_MOVE = re.compile(r"\s*([a-zA-Z]+)[\s,]+([0-9]{1,4})[\s,]+([0-9]{1,4})\s*", re.ASCII)

Move = tuple[str, int, int]
T = TypeVar("T")


@dataclass(frozen=True)
class State:
    """One game. Cells are numbered row by row.

    Args:
        field: what is under each cell, MINE or its number; empty before the first reveal, which decides it.
        shown: what the agent sees of each cell.
        unpaid: how many cells the first reveal opened.
    """

    rows: int
    cols: int
    num_mines: int
    shown: str
    field: str = ""
    unpaid: int = 0


@lru_cache(maxsize=64)
def neighbours(rows: int, cols: int) -> tuple[tuple[int, ...], ...]:
    """For each cell, the up to eight around it."""
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
    """The field with these mines.

    >>> numbered(2, 3, [0])
    '*10110'
    """
    around = neighbours(rows, cols)
    counts = [0] * (rows * cols)
    for mine in mines:
        counts[mine] = -9  # fewer than the neighbours that may yet add to it
        for cell in around[mine]:
            counts[cell] += 1
    return "".join([MINE if count < 0 else str(count) for count in counts])


def opened_by(cell: int, field: str, shown: str, around: tuple[tuple[int, ...], ...]) -> set[int]:
    """The cells that revealing a safe cell opens: a 0 opens all around it, and so on; flags stop that."""
    opened, queue = {cell}, [cell]
    while queue:
        here = queue.pop()
        if field[here] == "0":
            fresh = [n for n in around[here] if shown[n] == HIDDEN and n not in opened]
            opened.update(fresh)
            queue.extend(fresh)
    return opened


def lay_mines(rng: random.Random, rows: int, cols: int, num_mines: int, first: int) -> str:
    """A field without a mine at the first reveal, nor around it where there is room elsewhere.

    Where that would open all there is to find, one mine goes next to the first cell instead, so that the first reveal
    never wins.
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
    """What is around the cells on the board: the line of column numbers, the gap between cells, the row labels."""
    width = len(str(max(rows, cols) - 1))
    head = " " * width + "".join(f"{c:>{width + 1}}" for c in range(cols))
    return head, " " * width, [f"{r:>{width}}" + " " * width for r in range(rows)]


class MinesweeperEnv(GameEnv):
    """See the module docstring for the rules.

    Args:
        rows, cols: size of the board, 2 to 30 each.
        num_mines: at least 1, and at least two cells fewer than there are.
        max_turns: actions allowed; None allows one per cell.
        random_size: draw a square board, its mines and its turns for every episode, in place of those given.
        on_unreadable: see GameEnv.

    Raises BadValue for values outside these ranges.
    """

    state: State
    move_format = r"\boxed{reveal 0 1}"

    def __init__(
        self,
        rows: int = 8,
        cols: int = 8,
        num_mines: int = 10,
        max_turns: int | None = None,
        *,
        random_size: bool = False,
        on_unreadable: OnUnreadable = "end",
    ) -> None:
        for name, side in (("rows", rows), ("cols", cols)):
            if side not in SIDES:
                raise BadValue(f"{name} must be an integer from {SIDES[0]} to {SIDES[-1]}, got {side!r}")
        if num_mines not in range(1, rows * cols - 1):
            most = f"{rows * cols - 2} on a {rows}x{cols} board"
            raise BadValue(f"num_mines must be an integer from 1 to {most}, got {num_mines!r}")
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
            f"Minesweeper: open all cells of the {state.rows}x{state.cols} board but its {state.num_mines} mines, "
            f"in at most {self.turn_limit()} turns.\n"
            "'.' is hidden, 'F' is flagged; a digit says how many of the up to eight cells around hold a mine. "
            "Revealing a 0 opens the cells around it too. The first reveal never hits a mine; any later mine loses the "
            "game. Flags are notes: a flagged cell cannot be revealed until you flag it again.\n"
            r"Write each action in a box, row then column, counted from 0: \boxed{reveal 0 1} or \boxed{flag 1 0}."
            "\nEvery cell opened after the first reveal pays an equal share of 1."
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
        word, row, col = content.replace(",", " ").split()
        return word.lower(), int(row), int(col)

    def play(self, move: Move) -> Outcome:
        word, row, col = move
        state = self.state
        if word not in ("reveal", "flag"):
            return Outcome(f"there is no action '{word:.20}'; reveal or flag a cell.", invalid="unknown_action")
        if row >= state.rows or col >= state.cols:
            return Outcome(f"({row}, {col}) is not on the board.", invalid="out_of_range")
        cell = row * state.cols + col
        if state.shown[cell] not in (HIDDEN, FLAGGED):
            return Outcome(f"({row}, {col}) is open already.", invalid="already_open")
        flagged = state.shown[cell] == FLAGGED
        if word == "flag":
            self.state = replace(state, shown=_put(state.shown, cell, HIDDEN if flagged else FLAGGED))
            return Outcome(f"took the flag off ({row}, {col})." if flagged else f"flagged ({row}, {col}).")
        if flagged:
            return Outcome(f"({row}, {col}) is flagged; flag it again to take the flag away.", invalid="flagged")
        return self._reveal(cell, f"({row}, {col})")

    def _reveal(self, cell: int, name: str) -> Outcome:
        state = self.state
        first = not state.field
        field = state.field or lay_mines(self.rng, state.rows, state.cols, state.num_mines, cell)
        if field[cell] == MINE:
            self.state = replace(state, shown=_put(state.shown, cell, MINE))
            return Outcome(f"{name} was a mine; the game is lost.", stop=StopReason.LOST)
        fresh = opened_by(cell, field, state.shown, neighbours(state.rows, state.cols))
        shown = "".join(field[c] if c in fresh else seen for c, seen in enumerate(state.shown))
        opened, safe = len(shown) - shown.count(HIDDEN) - shown.count(FLAGGED), len(shown) - state.num_mines
        unpaid = len(fresh) if first else state.unpaid
        self.state = replace(state, shown=shown, field=field, unpaid=unpaid)
        line = f"{name} is safe; {len(fresh)} opened."
        paid_for, payable = opened - unpaid, safe - unpaid
        reward = 0.0 if first else share(paid_for, payable) - share(paid_for - len(fresh), payable)
        return Outcome(line, reward, StopReason.SOLVED if opened == safe else None)

    def secrets(self) -> list[str]:
        """The field; none before the first reveal, which decides it."""
        return [self.state.field] if self.state.field else []

    def sample_random_action(self) -> str:
        cell = self.action_rng.choice([c for c, seen in enumerate(self.state.shown) if seen in (HIDDEN, FLAGGED)])
        word = "flag" if self.state.shown[cell] == FLAGGED or self.action_rng.random() < 0.1 else "reveal"
        return rf"\boxed{{{word} {cell // self.state.cols} {cell % self.state.cols}}}"

    # What code written against the published class reads: the state as nested lists, -1 for a mine, all 0 before the
    # first reveal.

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
    """Hidden cells that hang together through the numbers beside them.

    Args:
        groups: cells that touch the same numbers, and so are alike.
        touched: for each group, the indices of those numbers in `needs`.
        needs: mines that each number still asks for.
    """

    groups: list[list[int]]
    touched: list[tuple[int, ...]]
    needs: list[int]

    def tally(self) -> dict[int, list[int]]:
        """For each possible sum of mines: in how many ways, and for each group the mines in it summed over them."""
        found: dict[int, list[int]] = {}
        needs, counts = list(self.needs), [0] * len(self.groups)
        room = [0] * len(needs)  # hidden cells not decided yet, by number
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
        ordered = [left.pop()]  # neighbours follow each other, so that place() meets contradictions early
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
    """For each hidden cell, the share of the fields that fit what is shown in which it is a mine."""
    parts = fronts(shown, neighbours(rows, cols))
    tallies = [part.tally() for part in parts]
    bound = {cell for part in parts for group in part.groups for cell in group}
    free = [cell for cell, seen in enumerate(shown) if seen in (HIDDEN, FLAGGED) and cell not in bound]

    def ways(others: list[dict[int, list[int]]], cells: int) -> list[int]:
        """By number of mines elsewhere, how many ways there are to lay the rest on these fronts and free cells."""
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
    """Reveals the cell that is least likely a mine, by counting every field that fits the observation."""

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
        word = "flag" if shown[cell] == FLAGGED else "reveal"  # takes away a flag that somebody else put there
        return rf"\boxed{{{word} {cell // cols} {cell % cols}}}"
