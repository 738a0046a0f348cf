r"""Othello on a board of 6 × 6: enclose discs of the other colour to turn them over.

Position     36 cells row by row (X, O or .), "|", and the seat to move. A player without a move is passed over.
Action       a column and a row: ``\boxed{c2}``.

>>> game = OthelloEnv()
>>> game.moves(game.deal(random.Random(0)))
['c2', 'b3', 'e4', 'd5']
"""

from __future__ import annotations

import random
import re

from gem.envs.table.game import TableGame, rows_of

SIDE = 6
_DIRECTIONS = [(down, right) for down in (-1, 0, 1) for right in (-1, 0, 1) if (down, right) != (0, 0)]


def _name(cell: int) -> str:
    return f"{'abcdef'[cell % SIDE]}{cell // SIDE + 1}"


def _rays(cell: int) -> list[list[int]]:
    row, column = divmod(cell, SIDE)
    rays = []
    for down, right in _DIRECTIONS:
        ray, r, c = [], row + down, column + right
        while 0 <= r < SIDE and 0 <= c < SIDE:
            ray.append(r * SIDE + c)
            r, c = r + down, c + right
        if len(ray) > 1:
            rays.append(ray)
    return rays


_RAYS = [_rays(cell) for cell in range(SIDE * SIDE)]
_CELLS = {_name(cell): cell for cell in range(SIDE * SIDE)}


class OthelloEnv(TableGame):
    """See the module docstring for the rules, and TableGame for the arguments."""

    seats = ("X", "O")
    card = (
        "Othello on a board of 6 columns (a to f) and 6 rows (1 to 6): place a disc so that discs of the other player "
        "lie in a line between it and another disc of yours; they become yours. A player without such a move is passed "
        "over. If nobody can move, whoever has more discs wins.\nWrite the cell in a box, like \\boxed{c2}."
    )
    pattern = re.compile(r"\s*[a-f][1-6]\s*", re.IGNORECASE)

    def deal(self, rng: random.Random) -> str:
        cells = ["."] * (SIDE * SIDE)
        cells[14], cells[15], cells[20], cells[21] = "O", "X", "X", "O"
        return "".join(cells) + "|0"

    def to_move(self, position: str) -> int | None:
        return None if position[-1] == "-" else int(position[-1])

    def moves(self, position: str) -> list[str]:
        seat = self.to_move(position)
        return [] if seat is None else self._moves(position, seat)

    def every_move(self) -> list[str]:
        return list(_CELLS)

    def after(self, position: str, move: str) -> str:
        seat, cell = int(position[-1]), _CELLS[move]
        cells = list(position[:-2])
        for turned in [cell, *self._turned(position, cell, seat)]:
            cells[turned] = self.seats[seat]
        board = "".join(cells)
        next_seat = next((other for other in (1 - seat, seat) if self._moves(board, other)), "-")
        return f"{board}|{next_seat}"

    def scores(self, position: str) -> tuple[float, ...]:
        lead = position.count("X") - position.count("O")
        first = float((lead > 0) - (lead < 0))
        return first, -first

    def view(self, position: str, seat: int) -> str:
        rows = rows_of(position[:-2], SIDE).splitlines()
        return "\n".join(["  a b c d e f", *(f"{number} {row}" for number, row in enumerate(rows, 1))])

    def _moves(self, board: str, seat: int) -> list[str]:
        return [name for name, cell in _CELLS.items() if board[cell] == "." and self._turned(board, cell, seat)]

    def _turned(self, board: str, cell: int, seat: int) -> list[int]:
        """Return the discs that a disc in a free cell would turn over."""
        own, turned = self.seats[seat], []
        for ray in _RAYS[cell]:
            for n, other in enumerate(ray):
                if board[other] == own:
                    turned += ray[:n]
                    break
                if board[other] == ".":
                    break
        return turned
