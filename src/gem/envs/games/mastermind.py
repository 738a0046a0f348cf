r"""Mastermind: find a secret code of numbers from black and white pegs.

Action       text containing ``\boxed{1 1 2 3}``: numbers separated by spaces or commas; the last box of numbers counts.
Observation  the rules card on reset, then one line per turn with the pegs of the guess.
Reward       with b black pegs in the best guess so far, the rewards sum to (b / length)^4, so 1.0 if the code is found;
             -0.1 for a turn without a readable guess, which ends the game.
Ends         terminated on the code or an unreadable turn; truncated at the turn limit. A guess that has the wrong
             length, is out of range or repeats an earlier one uses up its turn and earns nothing.
Bound        always guessing the first code consistent with all answers takes at most 5 guesses for 2 of 6 numbers, 6
             for 4 of 6 and 7 for 4 of 8.

>>> pegs((1, 1, 2, 3), (3, 1, 4, 2))
(1, 2)
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import permutations, product
from operator import eq

from gem._internal.counts import check_count
from gem.core import StopReason
from gem.envs.game import INTEGER, GameEnv, OnUnreadable, Outcome, exact_fraction
from gem.parsing import last_boxed

Code = tuple[int, ...]

MAX_LENGTH, MAX_NUMBERS = 8, 20
POWER = 4  # see exact_fraction(): the best of 20 random guesses has 2 or 3 black pegs of 4
DEFAULT_TURNS = 20  # published limit of the plain id
# The "-random" variant draws from the published (length, numbers, turns).
RANDOM_SIZES = ((2, 4, 10), (4, 6, 20), (4, 8, 30))

_GUESS = re.compile(rf"[\s,]*{INTEGER}(?:[\s,]+{INTEGER}){{0,31}}[\s,]*", re.ASCII)


@dataclass  # not frozen: each guess creates one, and a frozen dataclass takes six times as long to create
class State:
    """State of an episode.

    Args:
        code: the secret, made of the numbers 1 to `numbers`.
        numbers: largest number that may occur.
        turns: turn limit of the episode.
        guesses: valid guesses so far.
        best: most black pegs of any guess so far.
    """

    code: Code
    numbers: int
    turns: int
    guesses: tuple[Code, ...] = ()
    best: int = 0


def pegs(guess: Code, code: Code) -> tuple[int, int]:
    """Return (black, white): the numbers in the right place, and other numbers that occur elsewhere in the code."""
    black = sum(map(eq, guess, code))
    unmatched = list(code)
    for number in guess:
        if number in unmatched:
            unmatched.remove(number)
    return black, len(code) - len(unmatched) - black


def rejection(guess: Code, state: State) -> tuple[str, str] | None:
    """Return why a guess is invalid, as a reason code and a sentence; None if it is valid."""
    if len(guess) != len(state.code):
        return "wrong_length", f"a guess needs {len(state.code)} numbers, but this one has {len(guess)}."
    if min(guess) < 1 or max(guess) > state.numbers:
        return "out_of_range", f"the numbers must be from 1 to {state.numbers}."
    if guess in state.guesses:
        return "repeated_guess", f"{show(guess)} was already guessed."
    return None


def show(code: Code) -> str:
    return " ".join(map(str, code))


@cache
def example(length: int) -> str:
    r"""Return an example guess such as ``\boxed{1 1 2 3}``. It repeats the number 1 if length is at least 2."""
    return rf"\boxed{{{show((1, *range(1, length)))}}}"


def all_codes(length: int, numbers: int, duplicates: bool) -> Iterator[Code]:
    pool = range(1, numbers + 1)
    return product(pool, repeat=length) if duplicates else permutations(pool, length)


class MastermindEnv(GameEnv):
    """See the module docstring for the rules.

    Args:
        code_length: length of the code, 1 to 8. None for this or the next stands for random_size.
        num_numbers: largest number in the code: 2 to 20, and at least code_length if numbers may not repeat.
        max_turns: number of guesses allowed; None stands for 20 or, with random_size, the limit of the drawn size.
        duplicate_numbers: whether a number may occur twice in the code. Guesses may always repeat numbers.
        random_size: draw code_length, num_numbers and the turn limit from RANDOM_SIZES for every episode and ignore the
            given code_length and num_numbers. If max_turns is given, it replaces the drawn limit.
        on_unreadable: see GameEnv.

    Raises:
        BadValue: for values outside these ranges.
    """

    state: State

    def __init__(
        self,
        code_length: int | None = 4,
        num_numbers: int | None = 6,
        duplicate_numbers: bool = False,
        max_turns: int | None = None,
        *,
        random_size: bool = False,
        on_unreadable: OnUnreadable = "end",
    ) -> None:
        if code_length is None or num_numbers is None:
            random_size, code_length, num_numbers = True, 4, 6
        check_count("code_length", code_length, 1, MAX_LENGTH)
        fewest = 2 if duplicate_numbers else max(2, code_length)
        check_count("num_numbers", num_numbers, fewest, MAX_NUMBERS, where=" for this code")
        self.sizes = RANDOM_SIZES if random_size else ((code_length, num_numbers, DEFAULT_TURNS),)
        self.duplicate_numbers, self.turns_from_size = duplicate_numbers, max_turns is None
        most_turns = max(turns for _, _, turns in self.sizes)
        super().__init__(max_turns=most_turns if max_turns is None else max_turns, on_unreadable=on_unreadable)

    @property
    def move_format(self) -> str:  # type: ignore[override]
        return example(len(self.state.code))

    def start(self) -> State:
        length, numbers, turns = self.rng.choice(self.sizes)
        code = self._draw(self.rng, length, numbers)
        return State(code, numbers, turns if self.turns_from_size else self.max_turns)

    def turn_limit(self) -> int:
        return self.state.turns

    def rules(self) -> str:
        length, numbers = len(self.state.code), self.state.numbers
        guess = "a guess" if self.duplicate_numbers else "a guess, unlike the secret,"
        kind = "numbers, repeats allowed," if self.duplicate_numbers else "different numbers"
        return (
            f"Mastermind: find the secret row of {length} {kind} from 1 to {numbers}, "
            f"in at most {self.state.turns} guesses.\n"
            f"Write each guess in a box, like {self.move_format}; {guess} may repeat numbers. I reply with "
            "black pegs (numbers in the right place) and white pegs (other numbers of the secret, in the wrong "
            "place).\n"
            f"With b black pegs in your best guess, you have earned (b/{length})^{POWER} in total. "
            "Repeating a guess wastes a turn."
        )

    def read(self, action: str) -> Code | None:
        box = last_boxed(action, _GUESS)
        return None if box is None else tuple(map(int, box.replace(",", " ").split()))

    def play(self, move: Code) -> Outcome:
        state = self.state
        rejected = rejection(move, state)
        if rejected is not None:
            reason, sentence = rejected
            return Outcome(sentence, invalid=reason)
        black, white = pegs(move, state.code)
        best, length = max(state.best, black), len(state.code)
        reward = exact_fraction(best, length, POWER) - exact_fraction(state.best, length, POWER)
        self.state = State(
            state.code,
            state.numbers,
            state.turns,
            guesses=(*state.guesses, move),
            best=best,
        )
        line = f"{show(move)}: {black} black, {white} white."
        return Outcome(line, reward, StopReason.SOLVED if move == state.code else None)

    def secrets(self) -> list[str]:
        return [show(self.state.code)]

    def sample_random_action(self) -> str:
        state = self.state
        guess = self._draw(self.action_rng, len(state.code), state.numbers)
        while guess in state.guesses and not self.over:
            guess = self._draw(self.action_rng, len(state.code), state.numbers)
        return rf"\boxed{{{show(guess)}}}"

    def ordered_actions(self) -> Iterator[str]:
        codes = all_codes(len(self.state.code), self.state.numbers, self.duplicate_numbers)
        return (rf"\boxed{{{show(code)}}}" for code in codes)

    def _draw(self, rng: random.Random, length: int, numbers: int) -> Code:
        pool = range(1, numbers + 1)
        return tuple(rng.choices(pool, k=length) if self.duplicate_numbers else rng.sample(pool, length))


class Oracle:
    """Guess the first code, in a fixed order, that is consistent with all answers; uses only observations."""

    def __init__(self, env: MastermindEnv) -> None:
        self.codes: Iterator[Code] = iter(())
        self.seen: list[tuple[Code, tuple[int, int]]] = []
        self.guess: Code = ()

    def act(self, observation: str) -> str:
        if card := re.match(r"Mastermind: find the secret row of (\d+) (\w+).* from 1 to (\d+)", observation):
            self.codes = all_codes(int(card[1]), int(card[3]), duplicates=card[2] != "different")
            self.seen, self.guess = [], ()
        elif answer := re.match(r"Turn \d+: ([\d ]+): (\d+) black, (\d+) white", observation):
            self.seen.append((tuple(map(int, answer[1].split())), (int(answer[2]), int(answer[3]))))
        if not self.guess or not self._fits(self.guess):
            self.guess = next(code for code in self.codes if self._fits(code))
        return rf"\boxed{{{show(self.guess)}}}"

    def _fits(self, code: Code) -> bool:
        return all(pegs(guess, code) == answer for guess, answer in self.seen)
