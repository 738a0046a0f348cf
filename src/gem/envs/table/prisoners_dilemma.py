r"""Iterated prisoner's dilemma: in each round both players cooperate or defect without seeing the other's choice.

Position     the choices in their order, "c" and "d": the first player's and the second player's of each round.
Action       ``\boxed{cooperate}`` or ``\boxed{defect}``, and a message to the other player in ``<say>…</say>``.
Reward       not zero-sum: a player's points of all rounds, divided by the most possible; -1 for an illegal move.
Reference    the scripted player cooperates until the other has defected, and defects in the last round. best_reply()
             has the best choices against a strategy that reacts to the last round, by dynamic programming.

>>> game = IteratedPrisonersDilemmaEnv(rounds=2)
>>> game.scores("cdcd")
(0.0, 1.0)
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from itertools import product

from gem._internal.counts import check_count
from gem.envs.table.game import OnIllegal, TableGame

POINTS = {"cc": (3, 3), "cd": (0, 5), "dc": (5, 0), "dd": (1, 1)}
MOST = 5
_NAMES = {"c": "cooperate", "d": "defect"}


class IteratedPrisonersDilemmaEnv(TableGame):
    """See the module docstring for the rules, and TableGame for the other arguments.

    Args:
        rounds: number of rounds, 1 to 100.

    Raises:
        BadValue: rounds is out of range.
    """

    seats = ("the first player", "the second player")
    pattern = re.compile(r"\s*(cooperate|defect)\s*", re.IGNORECASE)
    talks = needs_history = True
    zero_sum = False

    def __init__(
        self,
        rounds: int = 8,
        *,
        on_illegal: OnIllegal = "lose",
        show_legal: bool = False,
        max_turns: int | None = None,
    ) -> None:
        check_count("rounds", rounds, 1, 100)
        self.rounds = rounds
        super().__init__(on_illegal=on_illegal, show_legal=show_legal, max_turns=max_turns)

    @property
    def card(self) -> str:  # type: ignore[override]
        return (
            f"Iterated prisoner's dilemma, {self.rounds} rounds: in each round both players cooperate or defect "
            "without seeing the other's choice. Both cooperate: 3 points each. Both defect: 1 point each. Otherwise "
            "the one who defects gets 5 points and the other 0.\n"
            "Write your choice in a box: \\boxed{cooperate} or \\boxed{defect}. Your reward is the sum of your points, "
            f"divided by {MOST * self.rounds}."
        )

    def deal(self, rng: random.Random) -> str:
        return ""

    def to_move(self, position: str) -> int | None:
        return None if len(position) == 2 * self.rounds else len(position) % 2

    def moves(self, position: str) -> list[str]:
        return [] if self.to_move(position) is None else list(_NAMES.values())

    def every_move(self) -> list[str]:
        return list(_NAMES.values())

    def after(self, position: str, move: str) -> str:
        return position + move[0]

    def announced(self, position: str, seat: int, move: str) -> str:
        number = len(position) // 2 + 1
        if seat == 0:
            return f"Round {number}: {self.seats[0]} has chosen."
        return f"Round {number}: {self.seats[0]} chose {_NAMES[position[-1]]}, {self.seats[1]} {move}."

    def scores(self, position: str) -> tuple[float, ...]:
        points = [POINTS[position[start : start + 2]] for start in range(0, len(position), 2)]
        return tuple(sum(pair[seat] for pair in points) / (MOST * self.rounds) for seat in (0, 1))

    def view(self, position: str, seat: int) -> str:
        return ""

    def secrets(self) -> list[str] | None:
        return None  # the other's choice is hidden only until both have chosen; a test compares the views

    def scripted(self, position: str, rng: random.Random) -> str:
        """Cooperate until the other has defected; defect in the last round."""
        seat = self.to_move(position) or 0
        rounds = len(position) // 2
        others = [position[2 * number + 1 - seat] for number in range(rounds)]
        return "defect" if "d" in others or rounds == self.rounds - 1 else "cooperate"


def best_reply(strategy: Mapping[str, float], rounds: int) -> dict[tuple[int, str], str]:
    """Return the best choice by (round, last round) against a strategy that depends on the last round alone.

    Args:
        strategy: the other player's probability to cooperate, after "" (the first round) and after "cc", "cd", "dc" and
            "dd", where its own choice comes first.
        rounds: number of rounds; the first is round 0.

    Returns:
        "cooperate" or "defect" by (round, last round), where one's own choice comes first.
    """
    value = dict.fromkeys([*POINTS, ""], 0.0)
    found: dict[tuple[int, str], str] = {}
    for number in reversed(range(rounds)):
        now: dict[str, float] = {}
        for last in [""] if number == 0 else list(POINTS):
            chance = strategy[last[::-1]]
            worth = {own: 0.0 for own in _NAMES}
            for own, other in product(_NAMES, repeat=2):
                p = chance if other == "c" else 1 - chance
                worth[own] += p * (POINTS[own + other][0] + value[own + other])
            best = max(worth, key=worth.__getitem__)
            found[number, last], now[last] = _NAMES[best], worth[best]
        value = now
    return found
