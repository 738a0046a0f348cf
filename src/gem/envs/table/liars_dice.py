r"""Liar's dice for two players: bid how many dice show a face, or call the other player a liar.

Position     the dice of the first and of the second player, "|", and the history: a letter for each bid, from the
             lowest ("a": one die shows 1, "b": one die shows 2, …), and "!" for the challenge.
Action       ``\boxed{1 3}`` bids that at least one of all dice shows a 3; ``\boxed{liar}`` challenges the last bid.
Solution     one die each with four faces is solved by CFR, exploitable by less than .001 (gem.envs.table.poker_solver).
             With other dice, the reference player is scripted: see scripted().

>>> game = LiarsDiceEnv()
>>> game.moves("13|g"), game.scores("13|g!")
(['2 4', 'liar'], (-1.0, 1.0))
>>> game.view("13|g", 1)
'Your dice: 3. The last bid is 2 3.'
"""

from __future__ import annotations

import math
import random
import re
from collections import Counter
from itertools import product
from string import ascii_letters

from gem._internal.counts import check_count
from gem.envs.table.game import HiddenGame, OnIllegal

BELIEVED = 0.5  # the scripted player challenges a bid that is less probable


class LiarsDiceEnv(HiddenGame):
    """See the module docstring for the rules, and TableGame for the other arguments.

    Args:
        dice: dice of each player, 1 to 4.
        faces: faces of a die, 2 to 6.

    Raises:
        BadValue: for values outside these ranges.
    """

    seats = ("the first player", "the second player")
    pattern = re.compile(r"\s*(liar|[1-9]\s+[1-9])\s*", re.IGNORECASE)

    def __init__(
        self,
        dice: int = 1,
        faces: int = 4,
        *,
        on_illegal: OnIllegal = "lose",
        show_legal: bool = False,
        max_turns: int | None = None,
    ) -> None:
        check_count("dice", dice, 1, 4)
        check_count("faces", faces, 2, 6)
        self.dice, self.faces = dice, faces
        self.bids = [f"{count} {face}" for count in range(1, 2 * dice + 1) for face in range(1, faces + 1)]
        super().__init__(on_illegal=on_illegal, show_legal=show_legal, max_turns=max_turns)

    @property
    def card(self) -> str:  # type: ignore[override]
        return (
            f"Liar's dice: each of two players rolls {self.dice} {'die' if self.dice == 1 else 'dice'} with "
            f"{self.faces} faces in secret. The players bid in turn how many of all {2 * self.dice} dice show a "
            "face at least. Each bid must be higher than the last: a higher number, or the same number of a higher "
            "face. Instead of a bid, a player may call the other a liar: whoever made the last bid wins if it is "
            "true, and loses otherwise.\nWrite your move in a box: \\boxed{1 3} bids that at least one die shows a 3; "
            "\\boxed{liar} challenges the last bid."
        )

    @property
    def solution(self) -> str | None:
        return type(self).__name__ if (self.dice, self.faces) == (1, 4) else None

    def deals(self) -> dict[str, float]:
        rolls = ["".join(roll) for roll in product("123456"[: self.faces], repeat=self.dice)]
        ordered = Counter("".join(sorted(roll)) for roll in rolls)  # the order of a player's dice does not matter
        total = len(rolls) ** 2
        return {f"{a}{b}|": m * n / total for (a, m), (b, n) in product(ordered.items(), repeat=2)}

    def deal(self, rng: random.Random) -> str:
        rolls = [sorted(rng.choices("123456"[: self.faces], k=self.dice)) for _ in range(2)]
        return "".join(rolls[0] + rolls[1]) + "|"

    def to_move(self, position: str) -> int | None:
        history = position.partition("|")[2]
        return None if history.endswith("!") else len(history) % 2

    def moves(self, position: str) -> list[str]:
        history = position.partition("|")[2]
        if history.endswith("!"):
            return []
        return [*self.bids[ascii_letters.index(history[-1]) + 1 :], "liar"] if history else list(self.bids)

    def every_move(self) -> list[str]:
        return [*self.bids, "liar"]

    def after(self, position: str, move: str) -> str:
        return position + ("!" if move == "liar" else ascii_letters[self.bids.index(move)])

    def scores(self, position: str) -> tuple[float, ...]:
        dice, _, history = position.partition("|")
        count, face = self.bids[ascii_letters.index(history[-2])].split()
        bidder = len(history) % 2  # the challenge is the last move, the bid the one before
        won = 1.0 if (dice.count(face) >= int(count)) == (bidder == 0) else -1.0
        return won, -won

    def information(self, position: str, seat: int) -> str:
        dice, _, history = position.partition("|")
        return f"{self._own(dice, seat)}|{history}"

    def _own(self, dice: str, seat: int) -> str:
        return dice[: self.dice] if seat == 0 else dice[self.dice :]

    def secrets(self) -> list[str] | None:
        return None  # a die is a single digit; tests compare the views of equal information instead

    def view(self, position: str, seat: int) -> str:
        dice, _, history = position.partition("|")
        text = f"Your dice: {' '.join(self._own(dice, seat))}."
        if history.endswith("!"):
            return f"{text} The other player's dice: {' '.join(self._own(dice, 1 - seat))}."
        return f"{text} The last bid is {self.bids[ascii_letters.index(history[-1])]}." if history else text

    def scripted(self, position: str, rng: random.Random) -> str:
        """Return the move of a simple player, which looks at its own dice only.

        It challenges a bid that is less probable than one half, and otherwise makes the most probable higher bid.
        """
        seat = self.to_move(position)
        own = self._own(position.partition("|")[0], seat or 0)
        moves = self.moves(position)
        bids = [move for move in moves if move != "liar"]
        if "liar" in moves:
            last = self.bids[ascii_letters.index(position[-1])]
            if not bids or self.chance(last, own) < BELIEVED:
                return "liar"
        chances = [self.chance(bid, own) for bid in bids]
        return rng.choice([bid for bid, chance in zip(bids, chances, strict=True) if chance == max(chances)])

    def chance(self, bid: str, own: str) -> float:
        """Return the probability that a bid is true, given a player's own dice."""
        count, face = bid.split()
        needed, n, p = int(count) - own.count(face), self.dice, 1 / self.faces
        return sum(math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(max(needed, 0), n + 1))
