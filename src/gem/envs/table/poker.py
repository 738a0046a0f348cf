r"""Two small poker games that have been solved: Kuhn poker (Kuhn 1950) and Leduc hold'em (Southey et al. 2005).

Position     the cards of the two seats, then the public card if there is one, "|", and the history: k check, b bet,
             r raise, c call, f fold, "/" between rounds.
Action       ``\boxed{check}``, ``\boxed{bet}``, ``\boxed{raise}``, ``\boxed{call}`` or ``\boxed{fold}``.
Reward       what is won or lost, divided by the most that can be lost.

>>> game = KuhnPokerEnv()
>>> game.moves("KQ|kb"), game.scores("KQ|kbc")
(['call', 'fold'], (1.0, -1.0))
>>> game.view("KQ|kb", 0)
'Your card: K. You have put in 1, the other player 2.'
"""

from __future__ import annotations

import random
import re
from collections import Counter
from itertools import permutations
from typing import ClassVar

from gem.envs.table.game import HiddenGame

RANKS = "JQK"  # from the lowest to the highest
_NAMES = {"k": "check", "b": "bet", "r": "raise", "c": "call", "f": "fold"}
_LETTERS = {name: letter for letter, name in _NAMES.items()}


class PokerEnv(HiddenGame):
    """Poker of two players with one card each, an ante of 1, and bets of a fixed size per round.

    Attributes:
        deck: the cards.
        bets: size of a bet in each round. A public card is dealt before the second.
        most_bets: maximum number of bets and raises in a round.
    """

    deck: ClassVar[str]
    bets: ClassVar[tuple[int, ...]]
    most_bets: ClassVar[int]
    seats = ("the first player", "the second player")
    pattern = re.compile(r"\s*(check|bet|raise|call|fold)\s*", re.IGNORECASE)

    @property
    def stake(self) -> int:
        """The most that a player can lose, in antes."""
        return 1 + self.most_bets * sum(self.bets)

    def deals(self) -> dict[str, float]:
        """Return the positions that deal() can return, with their probabilities."""
        counts = Counter("".join(cards) for cards in permutations(self.deck, 1 + len(self.bets)))
        return {f"{cards}|": count / counts.total() for cards, count in counts.items()}

    def deal(self, rng: random.Random) -> str:
        return "".join(rng.sample(self.deck, 1 + len(self.bets))) + "|"

    def to_move(self, position: str) -> int | None:
        history = position.partition("|")[2]
        rounds = history.split("/")
        if history.endswith("f") or (len(rounds) == len(self.bets) and _is_complete(rounds[-1])):
            return None
        return len(rounds[-1]) % 2

    def moves(self, position: str) -> list[str]:
        if self.to_move(position) is None:
            return []
        betting = position.rpartition("|")[2].rpartition("/")[2]
        made = sum(letter in "br" for letter in betting)
        if not made:
            return ["check", "bet"]
        return ["call", "fold"] if made == self.most_bets else ["call", "raise", "fold"]

    def every_move(self) -> list[str]:
        return [move for move in _LETTERS if move != "raise" or self.most_bets > 1]

    def after(self, position: str, move: str) -> str:
        position += _LETTERS[move]
        rounds = position.partition("|")[2].split("/")
        if move != "fold" and len(rounds) < len(self.bets) and _is_complete(rounds[-1]):
            position += "/"
        return position

    def scores(self, position: str) -> tuple[float, ...]:
        first, second = self.put_in(position)
        cards, _, history = position.partition("|")
        if history.endswith("f"):
            folded = (len(history.rpartition("/")[2]) - 1) % 2
            won = -first if folded == 0 else second
        else:
            public = cards[2:]
            strengths = [(card in public, RANKS.index(card)) for card in cards[:2]]
            won = 0 if strengths[0] == strengths[1] else second if strengths[0] > strengths[1] else -first
        return won / self.stake, -won / self.stake

    def put_in(self, position: str) -> tuple[int, int]:
        """Return what the two seats have put in so far, in antes."""
        put = [1, 1]
        for size, betting in zip(self.bets, position.partition("|")[2].split("/"), strict=False):
            for n, letter in enumerate(betting):
                if letter in "brc":
                    put[n % 2] = put[1 - n % 2] + (size if letter in "br" else 0)
        return put[0], put[1]

    def information(self, position: str, seat: int) -> str:
        """Return what a seat knows: its card, the public card once it is dealt, and the history."""
        cards, _, history = position.partition("|")
        return f"{cards[seat]}{cards[2:] if '/' in history else ''}|{history}"

    def secrets(self) -> list[str] | None:
        return None  # a card is a single letter; tests compare the views of equal information instead

    def view(self, position: str, seat: int) -> str:
        cards, _, history = position.partition("|")
        put = self.put_in(position)
        text = f"Your card: {cards[seat]}. You have put in {put[seat]}, the other player {put[1 - seat]}."
        if "/" in history:
            text = f"Public card: {cards[2]}. {text}"
        if self.to_move(position) is None and not history.endswith("f"):
            text += f" The other player has {cards[1 - seat]}."
        return text


class KuhnPokerEnv(PokerEnv):
    """Kuhn poker: three cards, one round, one bet of 1. With best play the first player loses 1/18 per game."""

    deck, bets, most_bets = RANKS, (1,), 1
    card = (
        "Kuhn poker: the cards are J, Q and K, from the lowest to the highest. Each of two players puts in 1 and gets "
        "one card. They may check or bet 1; against a bet one may call or fold. The higher card wins.\n"
        "Write your action in a box, like \\boxed{check}. Your reward is what you win, divided by 2."
    )


class LeducHoldemEnv(PokerEnv):
    """Leduc hold'em: six cards, two rounds with bets of 2 and 4. With best play the first player loses .0856."""

    deck, bets, most_bets = RANKS * 2, (2, 4), 2
    card = (
        "Leduc hold'em: there are two cards each of J, Q and K, from the lowest to the highest. Each of two players "
        "puts in 1 and gets one card. In each of two rounds, one may check or bet; against a bet one may call, fold or "
        "raise, once. Bets and raises are 2 in the first round and 4 in the second. Before the second round a public "
        "card is shown. A card that equals it wins, otherwise the higher card; equal cards share.\n"
        "Write your action in a box, like \\boxed{check}. Your reward is what you win, divided by 13."
    )


def _is_complete(betting: str) -> bool:
    return betting == "kk" or betting.endswith("c")
