r"""TicTacToe: three in a row.

Position     nine cells (X, O or .), "|", and the seat to move.
Action       a free cell, 1 to 9 from the top left to the bottom right: ``\boxed{5}``.

>>> game = TicTacToeEnv()
>>> game.moves("XX.OO....|0"), game.scores(game.after("XX.OO....|0", "3"))
(['3', '6', '7', '8', '9'], (1.0, -1.0))
"""

from __future__ import annotations

import random
import re

from gem.envs.table.game import TableGame, rows_of

_LINES = [(0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6)]


class TicTacToeEnv(TableGame):
    """See the module docstring for the rules, and TableGame for the arguments."""

    seats = ("X", "O")
    card = (
        "TicTacToe: X and O take turns to mark a free cell; three of one's own in a row, column or diagonal win.\n"
        "The cells are numbered 1 to 9, from the top left to the bottom right. Write the cell in a box: \\boxed{5}."
    )
    pattern = re.compile(r"\s*[1-9]\s*")
    can_skip = True

    def deal(self, rng: random.Random) -> str:
        return "." * 9 + "|0"

    def to_move(self, position: str) -> int | None:
        return None if self._winner(position) is not None or "." not in position else int(position[-1])

    def moves(self, position: str) -> list[str]:
        if self.to_move(position) is None:
            return []
        return [str(cell + 1) for cell in range(9) if position[cell] == "."]

    def every_move(self) -> list[str]:
        return [str(cell + 1) for cell in range(9)]

    def after(self, position: str, move: str) -> str:
        cell, seat = int(move) - 1, int(position[-1])
        return f"{position[:cell]}{self.seats[seat]}{position[cell + 1 : 9]}|{1 - seat}"

    def skipped(self, position: str) -> str:
        return f"{position[:9]}|{1 - int(position[-1])}"

    def scores(self, position: str) -> tuple[float, ...]:
        winner = self._winner(position)
        return (0.0, 0.0) if winner is None else (1.0, -1.0) if winner == "X" else (-1.0, 1.0)

    def view(self, position: str, seat: int) -> str:
        return rows_of(position[:9], 3)

    def _winner(self, position: str) -> str | None:
        return next((position[a] for a, b, c in _LINES if position[a] == position[b] == position[c] != "."), None)
