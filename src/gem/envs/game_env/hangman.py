r"""Hangman: find a secret English word, letter by letter or as a whole.

Action       text holding ``\boxed{e}`` for a letter or ``\boxed{crane}`` for the word, in either case; the last box of
             letters counts.
Observation  the rules card on reset, then one line per turn; always with the board: ``_ R A _ E  wrong: S T STARE``.
Reward       0.5 / length for each place that a letter uncovers, and the rest of 1.0 for finding the word, by its last
             letter or as a whole; -0.1 for a turn with no readable guess, which ends the game; else 0.0.
Ends         terminated when all letters are shown, on the word, or on an unreadable turn; truncated when the turns are
             spent. A guess of another length or made before spends its turn too.
Bound        none within the limit for 3 letters, where many words differ in one letter; the oracle, which knows the
             possible words, finds 83 % of those in 10 turns, and all words of 5 or 7 letters in 15 and 20.
Words        secrets are common words; see gem.envs.game_env.words.

>>> shown("level", "ave")
'_eve_'
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from functools import lru_cache
from string import ascii_lowercase

from gem.core import StopReason
from gem.envs.game_env import words
from gem.envs.game_env.base import SUCCESS, GameEnv, OnUnreadable, Outcome
from gem.errors import BadValue

LETTERS = 0.5  # the share of the reward for letters, as published
RANDOM_LENGTHS = (3, 5, 7)  # what "-random" draws from, as published


@dataclass(frozen=True)
class State:
    """letters, guesses: the letters and whole words tried, in order. paid: the sum of rewards so far."""

    secret: str
    letters: str = ""
    guesses: tuple[str, ...] = ()
    paid: float = 0.0


def default_turns(length: int) -> int:
    """The published limits, 10, 15 and 20 turns for 3, 5 and 7 letters, and what lies between."""
    return 5 * (length + 1) // 2


def shown(secret: str, letters: str) -> str:
    """The secret, with _ for whatever is not among these letters."""
    return "".join([letter if letter in letters else "_" for letter in secret])


def solved(state: State) -> bool:
    return state.secret in state.guesses or shown(state.secret, state.letters) == state.secret


def fault(guess: str, state: State) -> tuple[str, str] | None:
    """Why a guess cannot be judged: the reason in a word and in a sentence. None when it can."""
    length = len(state.secret)
    if len(guess) not in (1, length):
        return "wrong_length", f"{guess.upper()} is neither one letter nor a word of {length} letters."
    if guess in state.guesses or (len(guess) == 1 and guess in state.letters):
        return "repeated_guess", f"{guess.upper()} was guessed before."
    return None


def after(state: State, guess: str) -> State:
    """The state after a faultless guess, not paid yet."""
    if len(guess) == 1:
        return replace(state, letters=state.letters + guess)
    return replace(state, guesses=(*state.guesses, guess))


def pay(state: State, guess: str) -> float:
    """The reward of a guess that led to this state. What was paid before is taken off, so that all sum to 1.0."""
    if solved(state):
        return SUCCESS - state.paid
    if len(guess) > 1 or guess not in state.secret:
        return 0.0
    places = sum(letter in state.letters for letter in state.secret)
    return LETTERS * places / len(state.secret) - state.paid


def verdict(guess: str, secret: str) -> str:
    if len(guess) == 1:
        return f"{guess.upper()} is {'' if guess in secret else 'not '}in the word."
    return f"{guess.upper()} is {'' if guess == secret else 'not '}the word."


class HangmanEnv(GameEnv):
    """See the module docstring for the rules.

    Args:
        word_length: letters of the secret, 3 to 8.
        max_turns: guesses allowed, 1 or more; None allows 10 for 3 letters, and 5 for every 2 letters more.
        random_length: draw 3, 5 or 7 letters for every episode, in place of the length given.
        on_unreadable: see GameEnv.

    Raises BadValue outside these ranges.
    """

    state: State
    move_format = r"\boxed{e}"

    def __init__(
        self,
        word_length: int = 5,
        max_turns: int | None = None,
        *,
        random_length: bool = False,
        on_unreadable: OnUnreadable = "end",
    ) -> None:
        if word_length not in words.COMMON_LENGTHS:
            raise BadValue(f"word_length must be 3 to 8, got {word_length}")
        self.lengths = RANDOM_LENGTHS if random_length else (word_length,)
        self.turns_from_length = max_turns is None
        longest = default_turns(self.lengths[-1])
        super().__init__(max_turns=longest if max_turns is None else max_turns, on_unreadable=on_unreadable)

    def start(self) -> State:
        return State(self.rng.choice(words.common(self.rng.choice(self.lengths))))

    def turn_limit(self) -> int:
        return default_turns(len(self.state.secret)) if self.turns_from_length else self.max_turns

    def rules(self) -> str:
        length = len(self.state.secret)
        return (
            f"Hangman: find the secret word, a common English word of {length} letters, "
            f"in at most {self.turn_limit()} guesses.\n"
            rf"Write one letter in a box, like {self.move_format}, or the whole word in the same way. "
            "A letter of the word is shown wherever it stands; the game is won when all letters are shown "
            "or you name the word.\n"
            f"Each place shown earns {LETTERS}/{length}, the win the rest of 1. Repeating a guess wastes the turn."
        )

    def read(self, action: str) -> str | None:
        return words.boxed(action)

    def play(self, move: str) -> Outcome:
        wrong = fault(move, self.state)
        if wrong is not None:
            return Outcome(wrong[1], invalid=wrong[0])
        state = after(self.state, move)
        reward = pay(state, move)
        self.state = replace(state, paid=state.paid + reward)
        return Outcome(verdict(move, state.secret), reward, StopReason.SOLVED if solved(state) else None)

    def board(self) -> str:
        state = self.state
        letters = state.secret if solved(state) else state.letters
        wrong = [guess for guess in (*state.letters, *state.guesses) if guess not in state.secret]
        row = " ".join(shown(state.secret, letters)).upper()
        return f"{row}  wrong: {' '.join(wrong).upper()}" if wrong else row

    def secrets(self) -> list[str]:
        return [self.state.secret.upper()]

    def sample_random_action(self) -> str:
        left = [letter for letter in ascii_lowercase if letter not in self.state.letters]
        return rf"\boxed{{{self.action_rng.choice(left or ascii_lowercase)}}}"


class Oracle:
    """Picks the letter that tells most about the words still possible, then the word; sees observations alone."""

    def __init__(self, env: HangmanEnv) -> None:
        pass

    def act(self, observation: str) -> str:
        row, _, wrong = observation.rpartition("\n")[2].lower().partition("  wrong: ")
        return rf"\boxed{{{best_guess(row.replace(' ', ''), tuple(wrong.split()))}}}"


@lru_cache(maxsize=4096)  # every game begins alike, and the first letters take longest
def best_guess(pattern: str, wrong: tuple[str, ...]) -> str:
    """The word when at most two are left, else the letter whose answer leaves the least entropy over them."""
    possible = fitting(pattern, wrong)

    def left(letter: str) -> float:
        sizes = Counter(shown(word, letter) for word in possible).values()
        return sum(size * math.log(size) for size in sizes)

    return possible[0] if len(possible) <= 2 else min(ascii_lowercase, key=left)


def fitting(pattern: str, wrong: tuple[str, ...]) -> list[str]:
    """The common words that a board leaves possible."""
    letters = "".join([guess for guess in wrong if len(guess) == 1]) + pattern.replace("_", "")
    return [word for word in words.common(len(pattern)) if shown(word, letters) == pattern and word not in wrong]
