r"""Blackjack: win a number of hands before the dealer does.

Action       text containing ``\boxed{hit}`` or ``\boxed{stand}``; the last such box counts.
Observation  the rules card on reset, then one line per turn; both with the player's cards, the dealer's card and the
             score of the match.
Reward       1.0 when the player has won ``hands`` hands; -0.1 for an unreadable turn, which ends the game; else 0.0.
Ends         terminated when either side has won ``hands`` hands, or on an unreadable turn; truncated after
             ``max_turns`` turns.
Bound        each card is drawn with the probabilities of a full deck, whatever was drawn before, so the hands are
             independent. The best strategy wins 47.4 % of the hands that are not tied; see best_share().

>>> best_share()
0.474
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import cycle

from gem._internal.counts import check_count
from gem.core import StopReason
from gem.envs.game import SUCCESS, GameEnv, OnUnreadable, Outcome
from gem.parsing import last_boxed

CARDS = ("A", "2", "3", "4", "5", "6", "7", "8", "9", "10", "J", "Q", "K")
LIMIT, DEALER_STANDS = 21, 17
HANDS = range(1, 21)
TURNS_PER_HAND = 6  # default turn limit: this for each of the 2 · hands - 1 hands that a match can take, and for ties
_MOVE = re.compile(r"\s*(hit|stand)\s*", re.IGNORECASE | re.ASCII)
_SHOWN = re.compile(r"Your hand: ([^()\n]+) \(.*\nThe dealer shows: (\w+)")


@dataclass(frozen=True)
class State:
    """State of an episode.

    Args:
        hand: the player's cards.
        dealer: the dealer's card that is shown. The others are drawn after the player stands.
        won, lost: hands won and lost by the player.
    """

    hand: tuple[str, ...]
    dealer: str
    won: int = 0
    lost: int = 0


def points(card: str) -> int:
    """Return the points of a card; an ace counts 1 here."""
    return min(CARDS.index(card) + 1, 10)


def total(hand: tuple[str, ...]) -> tuple[int, bool]:
    """Return the points of a hand, and whether an ace in it counts 11.

    >>> total(("A", "6")), total(("A", "6", "K"))
    ((17, True), (17, False))
    """
    low = sum(points(card) for card in hand)
    soft = "A" in hand and low + 10 <= LIMIT
    return low + 10 * soft, soft


def dealers_hand(first: str, rng: random.Random) -> tuple[str, ...]:
    """Draw the dealer's cards: the dealer stands on 17 or more."""
    hand: tuple[str, ...] = (first, rng.choice(CARDS))
    while total(hand)[0] < DEALER_STANDS:
        hand = (*hand, rng.choice(CARDS))
    return hand


class BlackjackEnv(GameEnv):
    """See the module docstring for the rules.

    Args:
        hands: hands that a side needs to win the match, 1 to 20.
        max_turns: number of turns allowed; None stands for 6 for each of 2 * hands hands.
        on_unreadable: see GameEnv.

    Raises:
        BadValue: when hands is out of range or max_turns < 1.
    """

    state: State
    move_format = r"\boxed{hit}"

    def __init__(self, hands: int = 3, max_turns: int | None = None, *, on_unreadable: OnUnreadable = "end") -> None:
        check_count("hands", hands, HANDS[0], HANDS[-1])
        self.hands = hands
        turns = TURNS_PER_HAND * 2 * hands if max_turns is None else max_turns
        super().__init__(max_turns=turns, on_unreadable=on_unreadable)

    def start(self) -> State:
        return self._deal(State((), ""))

    def rules(self) -> str:
        return (
            f"Blackjack: win {self.hands} {'hand' if self.hands == 1 else 'hands'} before the dealer does, in at most "
            f"{self.max_turns} turns.\n"
            'Cards count their number, J, Q and K count 10, and an ace 1 or 11. "Hit" draws a card; over 21 you lose '
            'the hand. After "stand" the dealer draws up to 17 or more. The higher hand up to 21 wins; equal hands '
            "count for nobody. Each card is drawn from a full deck of 52.\n"
            r"Write your move in a box: \boxed{hit} or \boxed{stand}. Winning the match earns 1."
        )

    def board(self) -> str:
        state = self.state
        points_held, soft = total(state.hand)
        return (
            f"Your hand: {' '.join(state.hand)} ({'soft ' if soft else ''}{points_held})\n"
            f"The dealer shows: {state.dealer}\nHands won: you {state.won}, the dealer {state.lost}"
        )

    def read(self, action: str) -> str | None:
        content = last_boxed(action, _MOVE)
        return None if content is None else content.strip().lower()

    def play(self, move: str) -> Outcome:
        state = self.state
        if move == "hit":
            card = self.rng.choice(CARDS)
            hand = (*state.hand, card)
            if total(hand)[0] <= LIMIT:
                self.state = replace(state, hand=hand)
                return Outcome(f"you draw {card}.")
            return self._settle(-1, f"you draw {card} and are over {LIMIT}")
        dealer = dealers_hand(state.dealer, self.rng)
        mine, theirs = total(state.hand)[0], total(dealer)[0]
        line = f"you stand with {mine}; the dealer has {' '.join(dealer)} ({theirs})"
        return self._settle(1 if theirs > LIMIT else (mine > theirs) - (mine < theirs), line)

    def _settle(self, result: int, line: str) -> Outcome:
        """Count a hand, 1 won, 0 tied and -1 lost, and deal the next one unless the match is over."""
        state = replace(self.state, won=self.state.won + (result > 0), lost=self.state.lost + (result < 0))
        line += {1: ". You win the hand.", 0: ". The hand is a tie.", -1: ". You lose the hand."}[result]
        if self.hands in (state.won, state.lost):
            self.state = state
            return Outcome(line, SUCCESS, StopReason.SOLVED) if result > 0 else Outcome(line, stop=StopReason.LOST)
        self.state = self._deal(state)
        return Outcome(line)

    def _deal(self, state: State) -> State:
        first, second, dealer = (self.rng.choice(CARDS) for _ in range(3))
        return replace(state, hand=(first, second), dealer=dealer)

    def secrets(self) -> list[str]:
        return []  # cards are drawn when they are shown

    def sample_random_action(self) -> str:
        return rf"\boxed{{{self.action_rng.choice(('hit', 'stand'))}}}"

    def ordered_actions(self) -> Iterator[str]:
        return cycle([r"\boxed{stand}"])


class Oracle:
    """Play the strategy that wins the largest share of the hands that are not tied; uses only observations."""

    def __init__(self, env: BlackjackEnv) -> None:
        pass

    def act(self, observation: str) -> str:
        shown = _SHOWN.search(observation)
        assert shown is not None, observation
        held, soft = total(tuple(shown[1].split()))
        hits = _hit_value(held, soft, points(shown[2]), best_share()) > _stand_value(
            held, points(shown[2]), best_share()
        )
        return r"\boxed{hit}" if hits else r"\boxed{stand}"


@cache
def best_share() -> float:
    """Return the largest share of hands that are not tied that a strategy can win, rounded to three decimals.

    For a share s, playing to maximize (1 - s) P(win) - s P(loss) has a positive value if and only if a strategy wins
    more than s; so s is found by bisection (Dinkelbach 1967).
    """
    low, high = 0.0, 1.0
    while high - low > 1e-4:
        share = (low + high) / 2
        low, high = (share, high) if _deal_value(share) > 0 else (low, share)
    return round(low, 3)


def _deal_value(share: float) -> float:
    ranks = [points(card) for card in CARDS]
    best = {
        (first + second, 1 in (first, second), dealer): _best_value(
            *_counted(first + second, 1 in (first, second)), dealer, share
        )
        for first in set(ranks)
        for second in set(ranks)
        for dealer in set(ranks)
    }
    deals = [(a + b, 1 in (a, b), dealer) for a in ranks for b in ranks for dealer in ranks]
    return sum(best[deal] for deal in deals) / len(deals)


def _counted(low: int, ace: bool) -> tuple[int, bool]:
    """Return (points, whether an ace counts 11) of cards that sum to `low` with aces as 1."""
    soft = ace and low + 10 <= LIMIT
    return low + 10 * soft, soft


@cache
def _dealer_totals(held: int, soft: bool, cards: int = 1) -> dict[int, float]:
    """Return the probabilities of the dealer's final points; over 21 counts as 22."""
    if held > LIMIT:
        return {LIMIT + 1: 1.0}
    if held >= DEALER_STANDS and cards > 1:
        return {held: 1.0}
    found: dict[int, float] = {}
    for card in CARDS:
        low = held - 10 * soft + points(card)
        for end, chance in _dealer_totals(*_counted(low, soft or card == "A"), 2).items():
            found[end] = found.get(end, 0.0) + chance / len(CARDS)
    return found


def _stand_value(held: int, dealer: int, share: float) -> float:
    ends = _dealer_totals(*_counted(dealer, dealer == 1))
    won = sum(chance for end, chance in ends.items() if end > LIMIT or end < held)
    lost = sum(chance for end, chance in ends.items() if held < end <= LIMIT)
    return (1 - share) * won - share * lost


@cache
def _hit_value(held: int, soft: bool, dealer: int, share: float) -> float:
    value = 0.0
    for card in CARDS:
        after, soft_after = _counted(held - 10 * soft + points(card), soft or card == "A")
        value += -share if after > LIMIT else _best_value(after, soft_after, dealer, share)
    return value / len(CARDS)


def _best_value(held: int, soft: bool, dealer: int, share: float) -> float:
    return max(_stand_value(held, dealer, share), _hit_value(held, soft, dealer, share))
