r"""Sealed auction: three players bid in secret for items that they value differently; the highest bid pays itself.

Position     the values of the items to each player and the bids by rounds, with "|" between players and rounds, such as
             "7 2 5|3 9 1|8 8 2|4 2 6|1": three players, then the bids of the first round and one bid of the second.
Action       ``\boxed{4}``, and a message to the other players in ``<say>…</say>``.
Reward       not zero-sum: the sum of value less bid of the items won, divided by the most possible, 10 per item; -1
             for an illegal bid.
Reference    the scripted player bids two thirds of the value, which is the equilibrium for three players with values
             drawn uniformly from an interval (Vickrey 1961).

>>> game = SealedAuctionEnv(items=1)
>>> game.scores("7|3|8|4 2 6"), game.scores("7|3|8|4 2 4")
((0.0, 0.0, 0.2), (0.3, 0.0, 0.0))
"""

from __future__ import annotations

import random
import re

from gem._internal.counts import check_count
from gem.envs.table.game import OnIllegal, TableGame

HIGHEST = 10  # value and bid


class SealedAuctionEnv(TableGame):
    """See the module docstring for the rules, and TableGame for the other arguments.

    Args:
        items: number of items, auctioned one after another, 1 to 10.

    Raises:
        BadValue: items is out of range.
    """

    seats = ("the first player", "the second player", "the third player")
    pattern = re.compile(r"\s*(?:[0-9]|10)\s*")
    talks = needs_history = True
    zero_sum = False

    def __init__(
        self,
        items: int = 4,
        *,
        on_illegal: OnIllegal = "lose",
        show_legal: bool = False,
        max_turns: int | None = None,
    ) -> None:
        check_count("items", items, 1, 10)
        self.items = items
        super().__init__(on_illegal=on_illegal, show_legal=show_legal, max_turns=max_turns)

    @property
    def card(self) -> str:  # type: ignore[override]
        return (
            f"Sealed auction: three players bid for {self.items} items, one after another. Each knows only what the "
            f"items are worth to itself, 1 to {HIGHEST}, any number equally likely. In each round all bid, from 0 to "
            f"{HIGHEST}, without seeing the bids of the others. The highest bid gets the item and pays itself; of "
            "equal bids, that of the earlier player.\n"
            "Write your bid in a box, like \\boxed{4}. Your reward is the sum of value less bid of the items that you "
            f"get, divided by {HIGHEST * self.items}."
        )

    def deal(self, rng: random.Random) -> str:
        values = (" ".join(str(rng.randint(1, HIGHEST)) for _ in range(self.items)) for _ in self.seats)
        return "|".join(values)

    def bids(self, position: str) -> list[list[int]]:
        """Return the bids by rounds; the last round may be incomplete."""
        return [[int(bid) for bid in bids.split()] for bids in position.split("|")[len(self.seats) :]]

    def to_move(self, position: str) -> int | None:
        rounds = self.bids(position)
        made = len(rounds[-1]) % len(self.seats) if rounds else 0
        return None if len(rounds) == self.items and not made else made

    def moves(self, position: str) -> list[str]:
        return [] if self.to_move(position) is None else self.every_move()

    def every_move(self) -> list[str]:
        return [str(bid) for bid in range(HIGHEST + 1)]

    def after(self, position: str, move: str) -> str:
        return f"{position}{' ' if self.to_move(position) else '|'}{move}"

    def announced(self, position: str, seat: int, move: str) -> str:
        rounds = self.bids(self.after(position, move))
        if len(rounds[-1]) < len(self.seats):
            return f"Item {len(rounds)}: {self.seats[seat]} has bid."
        bids = ", ".join(f"{name} {bid}" for name, bid in zip(self.seats, rounds[-1], strict=True))
        return f"Item {len(rounds)}: the bids are {bids}. It goes to {self.seats[winner(rounds[-1])]}."

    def scores(self, position: str) -> tuple[float, ...]:
        gains = [0] * len(self.seats)
        for number, bids in enumerate(self.bids(position)):
            seat = winner(bids)
            gains[seat] += self._values(position, seat)[number] - bids[seat]
        return tuple(gain / (HIGHEST * self.items) for gain in gains)

    def view(self, position: str, seat: int) -> str:
        return f"Worth to you: {', '.join(map(str, self._values(position, seat)))}."

    def secrets(self) -> list[str] | None:
        return None  # values are small numbers; a test compares the views instead

    def scripted(self, position: str, rng: random.Random) -> str:
        """Bid two thirds of the value, rounded down."""
        seat, rounds = self.to_move(position) or 0, self.bids(position)
        number = len(rounds) - 1 if seat else len(rounds)
        return str(2 * self._values(position, seat)[number] // 3)

    def _values(self, position: str, seat: int) -> list[int]:
        return [int(value) for value in position.split("|")[seat].split()]


def winner(bids: list[int]) -> int:
    """Return the seat of the highest bid, the first of several."""
    return bids.index(max(bids))
