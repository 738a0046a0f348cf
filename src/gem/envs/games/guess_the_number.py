r"""Guess the Number: find a secret integer from the hints "too low" and "too high".

Action       text containing ``\boxed{n}``; the last box with an integer counts.
Observation  the rules card on reset, then one hint line per turn.
Reward       1.0 for the secret; -0.1 for a turn without a readable guess, which ends the game; otherwise 0.0.
Ends         terminated on the secret or an unreadable turn; truncated after ``max_turns`` guesses.
Bound        balanced search needs at most ceil(log2(range + 1)) turns.

>>> env = GuessTheNumberEnv(min_number=1, max_number=8)
>>> _ = env.reset(seed=3)
>>> env.step(r"\boxed{2}").observation
'Turn 1: 2 is too low.'
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

from gem.core import Optimum, StopReason
from gem.envs.game import SUCCESS, GameEnv, OnUnreadable, Outcome
from gem.errors import BadValue
from gem.parsing import last_boxed_int

# The "-random" variant draws from the published ranges: minimum 1 to 10, maximum 5 to 50 above the minimum.
RANDOM_MIN, RANDOM_WIDTH = (1, 10), (5, 50)


@dataclass  # not frozen: each reset creates one, and a frozen dataclass takes six times as long to create
class State:
    low: int
    high: int
    secret: int


def hint(guess: int, secret: int) -> str:
    if guess == secret:
        return "right"
    return "too high" if guess > secret else "too low"


def balanced_search(width: int, turns: int) -> Optimum:
    """Compute the success rate and mean turns of balanced search among `width` numbers in at most `turns` turns.

    The numbers are equally likely. Balanced search finds at most 2^(k-1) of them in turn k, the number of nodes at
    depth k of a binary search tree.
    """
    left, found, weighted = width, 0, 0
    for depth in range(1, turns + 1):
        here = min(left, 2 ** (depth - 1))
        left, found, weighted = left - here, found + here, weighted + depth * here
    return Optimum(found / width, weighted / found, "balanced search")


def default_turns(width: int) -> int:
    """Return the published turn limit for a range of this width."""
    return math.ceil(math.sqrt(width)) + 1


class GuessTheNumberEnv(GameEnv):
    """See the module docstring for the rules.

    Args:
        min_number, max_number: inclusive range of the secret. None for one of them stands for random_range.
        max_turns: number of guesses allowed; None stands for ceil(sqrt(width of the range)) + 1.
        random_range: draw a new range for every episode and ignore min_number and max_number.
        on_unreadable: see GameEnv.

    Raises:
        BadValue: when the range is empty or max_turns < 1.
    """

    state: State

    def __init__(
        self,
        min_number: int | None = 1,
        max_number: int | None = 20,
        max_turns: int | None = 10,
        *,
        random_range: bool = False,
        on_unreadable: OnUnreadable = "end",
    ) -> None:
        if min_number is None or max_number is None:
            random_range, min_number, max_number = True, 1, 20
        if min_number > max_number:
            raise BadValue(f"min_number must not exceed max_number, got {min_number} > {max_number}")
        self.min_number, self.max_number = min_number, max_number
        self.random_range, self.turns_from_range = random_range, max_turns is None
        width = RANDOM_WIDTH[1] + 1 if random_range else max_number - min_number + 1
        super().__init__(
            max_turns=default_turns(width) if max_turns is None else max_turns, on_unreadable=on_unreadable
        )

    @property
    def move_format(self) -> str:  # type: ignore[override]
        return rf"\boxed{{{self.state.low}}}"

    def start(self) -> State:
        low, high = self.min_number, self.max_number
        if self.random_range:
            low = self.rng.randint(*RANDOM_MIN)
            high = low + self.rng.randint(*RANDOM_WIDTH)
        return State(low, high, secret=self.rng.randint(low, high))

    def turn_limit(self) -> int:
        return default_turns(self.state.high - self.state.low + 1) if self.turns_from_range else self.max_turns

    def rules(self) -> str:
        low, high = self.state.low, self.state.high
        return (
            f"Guess the secret integer between {low} and {high}, in at most {self.turn_limit()} turns.\n"
            f"Write each guess in a box, like {self.move_format}. I answer 'too low' or 'too high'."
        )

    def read(self, action: str) -> int | None:
        return last_boxed_int(action)

    def play(self, move: int) -> Outcome:
        state = self.state
        if not state.low <= move <= state.high:
            return Outcome(f"{move} is not between {state.low} and {state.high}.", invalid="out_of_range")
        line = f"{move} is {hint(move, state.secret)}."
        return Outcome(line, SUCCESS, StopReason.SOLVED) if move == state.secret else Outcome(line)

    def optimum(self) -> Optimum | None:
        if self.random_range:
            return None
        return balanced_search(self.max_number - self.min_number + 1, self.max_turns)

    def instances(self) -> int | None:
        return None if self.random_range else self.max_number - self.min_number + 1

    def secrets(self) -> list[str]:
        return [str(self.state.secret)]

    def sample_random_action(self) -> str:
        return rf"\boxed{{{self.action_rng.randint(self.state.low, self.state.high)}}}"

    def ordered_actions(self) -> Iterator[str]:
        return (rf"\boxed{{{number}}}" for number in range(self.state.low, self.state.high + 1))


class Oracle:
    """Balanced search that uses only observations."""

    def __init__(self, env: GuessTheNumberEnv) -> None:
        self.low = self.high = 0

    def act(self, observation: str) -> str:
        if bounds := re.match(r"Guess the secret integer between (-?\d+) and (-?\d+)", observation):
            self.low, self.high = int(bounds[1]), int(bounds[2])
        elif answer := re.match(r"Turn \d+: (-?\d+) is too (low|high)", observation):
            guess = int(answer[1])
            if answer[2] == "low":
                self.low = max(self.low, guess + 1)
            else:
                self.high = min(self.high, guess - 1)
        return rf"\boxed{{{(self.low + self.high) // 2}}}"
