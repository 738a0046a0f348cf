r"""ConnectFour: discs fall into columns; four in a line win.

Position     the cells row by row from the top (X, O or .), "|", and the seat to move.
Action       the number of a column that is not full: ``\boxed{4}``.

>>> game = ConnectFourEnv(rows=2, columns=3, length=3)
>>> print(game.view(game.after("...XX.|0", "3"), 0))
1 2 3
. . .
X X X
"""

from __future__ import annotations

import random
import re
from functools import cached_property

from gem.envs.table.game import OnIllegal, TableGame, rows_of
from gem.errors import BadValue


class ConnectFourEnv(TableGame):
    """See the module docstring for the rules, and TableGame for the other arguments.

    Args:
        rows, columns: size of the board, at most nine columns.
        length: number of discs in a row, column or diagonal that wins.

    Raises:
        BadValue: no line of this length fits the board.
    """

    seats = ("X", "O")
    pattern = re.compile(r"\s*[1-9]\s*")
    can_skip = True

    def __init__(
        self,
        rows: int = 6,
        columns: int = 7,
        length: int = 4,
        *,
        on_illegal: OnIllegal = "lose",
        show_legal: bool = False,
        max_turns: int | None = None,
    ) -> None:
        if not (1 <= rows <= 9 and 1 <= columns <= 9 and 2 <= length <= max(rows, columns)):
            raise BadValue(f"a board of {rows} × {columns} (1 to 9 each) has no lines of {length} discs")
        self.rows, self.columns, self.length = rows, columns, length
        super().__init__(on_illegal=on_illegal, show_legal=show_legal, max_turns=max_turns)

    @property
    def card(self) -> str:  # type: ignore[override]
        return (
            f"ConnectFour: X and O take turns to drop a disc into one of {self.columns} columns; {self.length} of "
            "one's own in a row, column or diagonal win.\nWrite the number of the column in a box, like \\boxed{2}."
        )

    def deal(self, rng: random.Random) -> str:
        return "." * (self.rows * self.columns) + "|0"

    def to_move(self, position: str) -> int | None:
        over = self._winner(position) is not None or "." not in position[: self.columns]
        return None if over else int(position[-1])

    def moves(self, position: str) -> list[str]:
        if self.to_move(position) is None:
            return []
        return [str(column + 1) for column in range(self.columns) if position[column] == "."]

    def every_move(self) -> list[str]:
        return [str(column + 1) for column in range(self.columns)]

    def after(self, position: str, move: str) -> str:
        column, seat = int(move) - 1, int(position[-1])
        cells = range(column, self.rows * self.columns, self.columns)
        cell = max(cell for cell in cells if position[cell] == ".")
        return f"{position[:cell]}{self.seats[seat]}{position[cell + 1 : -1]}{1 - seat}"

    def skipped(self, position: str) -> str:
        return f"{position[:-1]}{1 - int(position[-1])}"

    def scores(self, position: str) -> tuple[float, ...]:
        winner = self._winner(position)
        return (0.0, 0.0) if winner is None else (1.0, -1.0) if winner == "X" else (-1.0, 1.0)

    def view(self, position: str, seat: int) -> str:
        header = " ".join(str(column + 1) for column in range(self.columns))
        return f"{header}\n{rows_of(position[:-2], self.columns)}"

    def bits(self, position: str, mark: str) -> int:
        """Return a player's discs as bits: the last cell is the lowest bit, and an empty column separates the rows."""
        width = self.columns
        rows = [position[start : start + width] for start in range(0, self.rows * width, width)]
        other = self.seats[mark == "X"]
        return int("0".join(rows).replace(mark, "1").replace(other, "0").replace(".", "0"), 2)

    @cached_property
    def lines(self) -> list[int]:
        """The cells of every possible line as bits."""
        board = (1 << (self.rows * (self.columns + 1))) - 1
        for row in range(self.rows):
            board &= ~(1 << (row * (self.columns + 1) + self.columns))
        lines = [
            sum(1 << (cell + n * step) for n in range(self.length))
            for step in self._steps()
            for cell in range(board.bit_length())
        ]
        return [line for line in lines if line & board == line]

    def _steps(self) -> tuple[int, int, int, int]:
        """Return the distances in bits between neighbours in a row, column and diagonal."""
        return 1, self.columns, self.columns + 1, self.columns + 2

    def _winner(self, position: str) -> str | None:
        # The player who has just moved is the only one who can have won.
        mark = self.seats[1 - int(position[-1])]
        discs = self.bits(position, mark)
        for step in self._steps():
            found = discs
            for n in range(1, self.length):
                found &= discs >> (n * step)
            if found:
                return mark
        return None
