r"""Colonel Blotto: both players divide troops among fields in secret; whoever holds more wins (Borel 1921).

Position     the chosen divisions with ";" between, such as "3 3 2;4 4 0".
Action       the troops of each field: ``\boxed{3 3 2}``, and a message to the other player in ``<say>…</say>``.
Solution     one matrix game: an equilibrium by regret matching, exact best responses (gem.envs.table.matrix).

>>> game = ColonelBlottoEnv()
>>> len(game.moves("")), game.scores("3 3 2;4 4 0")
(45, (-1.0, 1.0))
"""

from __future__ import annotations

import random
import re
from functools import cache
from itertools import product

from gem._internal.counts import check_count
from gem.envs.table.game import OnIllegal, TableGame
from gem.envs.table.matrix import Mixture, Payoffs, equilibrium, payoff_matrix


class ColonelBlottoEnv(TableGame):
    """See the module docstring for the rules, and TableGame for the other arguments.

    Args:
        troops: troops of each player, 2 to 12.
        fields: number of fields, 3 to 5.

    Raises:
        BadValue: for values outside these ranges.
    """

    seats = ("the first player", "the second player")
    pattern = re.compile(r"\s*[0-9]{1,2}(\s+[0-9]{1,2}){2,4}\s*")
    talks = needs_history = True

    def __init__(
        self,
        troops: int = 8,
        fields: int = 3,
        *,
        on_illegal: OnIllegal = "lose",
        show_legal: bool = False,
        max_turns: int | None = None,
    ) -> None:
        check_count("troops", troops, 2, 12)
        check_count("fields", fields, 3, 5)
        self.troops, self.fields = troops, fields
        super().__init__(on_illegal=on_illegal, show_legal=show_legal, max_turns=max_turns)

    @property
    def card(self) -> str:  # type: ignore[override]
        example = " ".join(map(str, (self.troops, *[0] * (self.fields - 1))))
        return (
            f"Colonel Blotto: each of two players divides {self.troops} troops among {self.fields} fields. "
            "Neither sees the other's division before both have chosen. A field goes to whoever has more troops there; "
            "whoever holds more fields wins.\nWrite the troops of each field in a box: "
            f"\\boxed{{{example}}} puts all of them on the first field."
        )

    def deal(self, rng: random.Random) -> str:
        return ""

    def to_move(self, position: str) -> int | None:
        return 0 if not position else None if ";" in position else 1

    def moves(self, position: str) -> list[str]:
        return [] if ";" in position else list(divisions(self.troops, self.fields))

    def every_move(self) -> list[str]:
        return list(divisions(self.troops, self.fields))

    def after(self, position: str, move: str) -> str:
        return f"{position};{move}" if position else move

    def announced(self, position: str, seat: int, move: str) -> str:
        if not position:
            return f"{self.seats[0]} has chosen a division."
        return f"{self.seats[0]} has placed {position}, {self.seats[1]} {move}."

    def scores(self, position: str) -> tuple[float, ...]:
        first, second = position.split(";")
        won = float(result(first, second))
        return won, -won

    def view(self, position: str, seat: int) -> str:
        return ""

    def secrets(self) -> list[str] | None:
        return None  # the other's division is hidden only until both have chosen; a test compares the views

    def scripted(self, position: str, rng: random.Random) -> str:
        """Draw a division from an equilibrium."""
        moves = divisions(self.troops, self.fields)
        return rng.choices(moves, list(solution(self.troops, self.fields)))[0]


@cache
def divisions(troops: int, fields: int) -> tuple[str, ...]:
    found = product(range(troops + 1), repeat=fields)
    return tuple(" ".join(map(str, division)) for division in found if sum(division) == troops)


def result(first: str, second: str) -> int:
    """Return 1 if the first division holds more fields, -1 if the second does, 0 for a draw."""
    pairs = list(zip(map(int, first.split()), map(int, second.split()), strict=True))
    balance = sum((a > b) - (a < b) for a, b in pairs)
    return (balance > 0) - (balance < 0)


@cache
def payoffs(troops: int, fields: int) -> Payoffs:
    """Return the first player's reward for each pair of divisions."""
    rows = divisions(troops, fields)
    return payoff_matrix([[result(row, column) for column in rows] for row in rows])


@cache
def solution(troops: int, fields: int) -> Mixture:
    """Return probabilities of the divisions close to an equilibrium. The game is symmetric: both players use them."""
    first, second = equilibrium(payoffs(troops, fields))
    mixture: Mixture = (first + second) / 2
    return mixture
