r"""Negotiation: two players divide books, hats and balls that they value differently (DeVault et al. 2015).

Position     the numbers of the items, the values of the first and of the second player, and the offers, with "|"
             between, such as "2 1 1|2 3 3|4 1 1|1 1 0;1 0 1"; an offer is what its player keeps, "a" accepts it.
Action       ``\boxed{offer 1 0 2}`` keeps one book, no hat and two balls and gives the rest to the other player;
             ``\boxed{accept}`` accepts the last offer; and a message to the other player in ``<say>…</say>``.
Reward       not zero-sum: the value of what a player gets, divided by 10, the value of everything to either player; 0
             for both if the offers run out; -1 for an illegal move.
Reference    the scripted player asks for less with every offer, and accepts what is worth as much as its next offer.

>>> game = NegotiationEnv()
>>> game.scores("2 1 1|2 3 3|4 1 1|1 1 0;a")
(0.5, 0.5)
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from functools import cache
from itertools import product

from gem._internal.counts import check_count
from gem.envs.table.game import OnIllegal, TableGame

ITEMS = ("books", "hats", "balls")
WORTH = 10  # of all items together, to either player
MOST_OF_A_KIND = 3


class NegotiationEnv(TableGame):
    """See the module docstring for the rules, and TableGame for the other arguments.

    Args:
        offers: offers that the players may make together, 2 to 20; an accepted offer ends the game before.

    Raises:
        BadValue: offers is out of range.
    """

    seats = ("the first player", "the second player")
    pattern = re.compile(r"\s*(accept|offer\s+[0-9](\s+[0-9]){2})\s*", re.IGNORECASE)
    talks = needs_history = True
    zero_sum = False

    def __init__(
        self,
        offers: int = 8,
        *,
        on_illegal: OnIllegal = "lose",
        show_legal: bool = False,
        max_turns: int | None = None,
    ) -> None:
        check_count("offers", offers, 2, 20)
        self.offers = offers
        super().__init__(on_illegal=on_illegal, show_legal=show_legal, max_turns=max_turns)

    @property
    def card(self) -> str:  # type: ignore[override]
        return (
            "Negotiation: two players divide books, hats and balls. Each knows only what the items are worth to "
            f"itself; everything together is worth {WORTH} to either player. They offer divisions in turn, until one "
            f"accepts the last offer of the other. Without an agreement after {self.offers} offers both get nothing, "
            "so the last one cannot be accepted.\n"
            "Write your move in a box: \\boxed{offer 1 0 2} keeps one book, no hat and two balls for you and leaves "
            "the rest to the other; \\boxed{accept} accepts the last offer. Your reward is what you get, divided by "
            f"{WORTH}."
        )

    def deal(self, rng: random.Random) -> str:
        while True:
            counts = tuple(rng.randint(1, MOST_OF_A_KIND) for _ in ITEMS)
            possible = _possible_values(counts)
            if len(possible) > 1:
                first, second = rng.choice(possible), rng.choice(possible)
                return "|".join(" ".join(map(str, row)) for row in (counts, first, second)) + "|"

    def to_move(self, position: str) -> int | None:
        offers = _offers(position)
        return None if offers[-1:] == ["a"] or len(offers) >= self.offers else len(offers) % 2

    def moves(self, position: str) -> list[str]:
        if self.to_move(position) is None:
            return []
        kept = product(*(range(count + 1) for count in _numbers(position, 0)))
        offers = [f"offer {' '.join(map(str, division))}" for division in kept]
        return [*offers, "accept"] if _offers(position) else offers

    def every_move(self) -> list[str]:
        kept = product(range(MOST_OF_A_KIND + 1), repeat=len(ITEMS))
        return [*(f"offer {' '.join(map(str, division))}" for division in kept), "accept"]

    def after(self, position: str, move: str) -> str:
        made = "a" if move == "accept" else move.removeprefix("offer ")
        return position + (";" if _offers(position) else "") + made

    def announced(self, position: str, seat: int, move: str) -> str:
        if move == "accept":
            return f"{self.seats[seat]} accepts."
        kept = [int(n) for n in move.split()[1:]]
        left = [count - n for count, n in zip(_numbers(position, 0), kept, strict=True)]
        return f"{self.seats[seat]} offers to keep {_listed(kept)} and to give {_listed(left)}."

    def scores(self, position: str) -> tuple[float, ...]:
        offers = _offers(position)
        if offers[-1] != "a":
            return 0.0, 0.0
        return tuple(_worth(self.portion(position, seat), _numbers(position, 1 + seat)) / WORTH for seat in (0, 1))

    def portion(self, position: str, seat: int) -> list[int]:
        """Return what a seat gets if the last offer is accepted."""
        made = [offer for offer in _offers(position) if offer != "a"]
        kept = [int(n) for n in made[-1].split()]
        if seat == (len(made) - 1) % 2:
            return kept
        return [count - n for count, n in zip(_numbers(position, 0), kept, strict=True)]

    def view(self, position: str, seat: int) -> str:
        counts, values = _numbers(position, 0), _numbers(position, 1 + seat)
        worth = ", ".join(f"each of {n} {item} {value}" for n, item, value in zip(counts, ITEMS, values, strict=True))
        return f"Worth to you: {worth}. Offers left: {self.offers - len(_offers(position))}."

    def secrets(self) -> list[str] | None:
        return None  # values are single digits; a test compares the views instead

    def scripted(self, position: str, rng: random.Random) -> str:
        """Ask for everything of value first and for a little less each time, down to half of the worth."""
        seat, made = self.to_move(position) or 0, _offers(position)
        values = _numbers(position, 1 + seat)
        wanted = WORTH - (WORTH // 2) * len(made) / max(self.offers - 2, 1)
        if made:
            offered = _worth(self.portion(position, seat), values)
            last = len(made) == self.offers - 1
            if offered >= wanted or (last and offered > 0):
                return "accept"
        offers = [move for move in self.moves(position) if move != "accept"]
        worth = {move: _worth([int(n) for n in move.split()[1:]], values) for move in offers}
        least = min(value for value in worth.values() if value >= min(wanted, WORTH))
        few = min(sum(map(int, move.split()[1:])) for move in offers if worth[move] == least)
        return rng.choice([m for m in offers if worth[m] == least and sum(map(int, m.split()[1:])) == few])


@cache
def _possible_values(counts: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Return the values of single items for which all items together have the value WORTH."""
    return [values for values in product(range(WORTH + 1), repeat=len(ITEMS)) if _worth(counts, values) == WORTH]


def _numbers(position: str, part: int) -> list[int]:
    return [int(number) for number in position.split("|")[part].split()]


def _offers(position: str) -> list[str]:
    made = position.split("|")[3]
    return made.split(";") if made else []


def _worth(counts: Sequence[int], values: Sequence[int]) -> int:
    return sum(count * value for count, value in zip(counts, values, strict=True))


def _listed(counts: list[int]) -> str:
    return ", ".join(f"{count} {item}" for count, item in zip(counts, ITEMS, strict=True))
