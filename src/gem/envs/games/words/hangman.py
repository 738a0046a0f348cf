r"""Hangman: find a secret English word, letter by letter or as a whole.

Action       text containing ``\boxed{e}`` for a letter or ``\boxed{crane}`` for the word, in either case; the last box
             of letters counts.
Observation  the rules card on reset, then one line per turn; both with the board: ``_ R A _ E  wrong: S T STARE``.
Reward       with r positions revealed, the rewards sum to 0.5 (r / length)^3, and to 1.0 if the word is completed or
             named; -0.1 for a turn without a readable guess, which ends the game.
Ends         terminated when all letters are revealed, when the word is named, or on an unreadable turn; truncated at
             the turn limit. An invalid guess (wrong length, or repeated) uses up its turn.
Bound        words of 3 letters cannot always be found within the limit, because many of these words differ in only
             one letter. The oracle, which knows the word list, finds 83 % of the 3-letter words in 10 turns, all
             5-letter words in 15 turns and all 7-letter words in 20 turns.
Words        secrets are common words; see gem.envs.games.words.lists.

>>> shown("level", "ave")
'_eve_'
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from string import ascii_lowercase

from gem._internal.counts import check_count
from gem.core import StopReason
from gem.envs.game import SUCCESS, GameEnv, OnUnreadable, Outcome, exact_fraction
from gem.envs.games.words import lists as words

LETTERS = 0.5  # the part of the reward given for letters, as published
POWER = 3  # see exact_fraction(): random letters reveal half to three quarters of the positions
RANDOM_LENGTHS = (3, 5, 7)  # published lengths, from which the "-random" variant draws


@dataclass(frozen=True)
class State:
    """State of an episode.

    Args:
        secret: the word, in lower case.
        letters: letters guessed so far, in order.
        guesses: whole words guessed so far, in order.
    """

    secret: str
    letters: str = ""
    guesses: tuple[str, ...] = ()


def default_turns(length: int) -> int:
    """Return the turn limit: as published for 3, 5 and 7 letters (10, 15 and 20), interpolated for other lengths."""
    return 5 * (length + 1) // 2


def shown(secret: str, letters: str) -> str:
    """Return the secret with _ for every letter that is not among `letters`."""
    return "".join([letter if letter in letters else "_" for letter in secret])


def solved(state: State) -> bool:
    return state.secret in state.guesses or shown(state.secret, state.letters) == state.secret


def rejection(guess: str, state: State) -> tuple[str, str] | None:
    """Return why a guess is invalid, as a reason code and a sentence; None if it is valid."""
    length = len(state.secret)
    if len(guess) not in (1, length):
        return "wrong_length", f"{guess.upper()} is neither a single letter nor a word of {length} letters."
    if guess in state.guesses or (len(guess) == 1 and guess in state.letters):
        return "repeated_guess", f"{guess.upper()} was already guessed."
    return None


def after(state: State, guess: str) -> State:
    """Return the state after a valid guess."""
    if len(guess) == 1:
        return replace(state, letters=state.letters + guess)
    return replace(state, guesses=(*state.guesses, guess))


def paid(state: State) -> float:
    """Return the sum of the rewards so far."""
    if solved(state):
        return SUCCESS
    found = sum(letter in state.letters for letter in state.secret)
    return LETTERS * exact_fraction(found, len(state.secret), POWER)


def verdict(guess: str, secret: str) -> str:
    if len(guess) == 1:
        return f"{guess.upper()} is {'' if guess in secret else 'not '}in the word."
    return f"{guess.upper()} is {'' if guess == secret else 'not '}the word."


class HangmanEnv(GameEnv):
    """See the module docstring for the rules.

    Args:
        word_length: number of letters of the secret, 3 to 8; None stands for random_length.
        hardcore: draw secrets of 3 to 5 letters from all words, including rare ones.
        max_turns: number of guesses allowed, at least 1; None stands for the limit of default_turns().
        random_length: draw a length of 3, 5 or 7 for every episode and ignore word_length.
        on_unreadable: see GameEnv.

    Raises:
        BadValue: for values outside these ranges.
    """

    state: State
    move_format = r"\boxed{e}"

    def __init__(
        self,
        word_length: int | None = 5,
        hardcore: bool = False,
        max_turns: int | None = None,
        *,
        random_length: bool = False,
        on_unreadable: OnUnreadable = "end",
    ) -> None:
        random_length, word_length = random_length or word_length is None, 5 if word_length is None else word_length
        self.hardcore = hardcore
        check_count("word_length", word_length, words.COMMON_LENGTHS[0], words.COMMON_LENGTHS[-1])
        self.lengths = RANDOM_LENGTHS if random_length else (word_length,)
        self.turns_from_length = max_turns is None
        longest = default_turns(self.lengths[-1])
        super().__init__(max_turns=longest if max_turns is None else max_turns, on_unreadable=on_unreadable)

    def start(self) -> State:
        length = self.rng.choice(self.lengths)
        return State(self.rng.choice(sorted(words.accepted(length)) if self.hardcore else words.common(length)))

    def turn_limit(self) -> int:
        return default_turns(len(self.state.secret)) if self.turns_from_length else self.max_turns

    def rules(self) -> str:
        length = len(self.state.secret)
        return (
            f"Hangman: find the secret word, a common English word of {length} letters, "
            f"in at most {self.turn_limit()} guesses.\n"
            rf"Write one letter in a box, like {self.move_format}, or the whole word in the same way. "
            "A correct letter is revealed everywhere it occurs. You win when all letters are revealed or you name the "
            "word.\n"
            f"With r positions revealed, you have earned {LETTERS} (r/{length})^{POWER} in total, and winning earns "
            "the rest of 1. "
            "Repeating a guess wastes a turn."
        )

    def read(self, action: str) -> str | None:
        return words.boxed(action)

    def play(self, move: str) -> Outcome:
        rejected = rejection(move, self.state)
        if rejected is not None:
            reason, sentence = rejected
            return Outcome(sentence, invalid=reason)
        state = after(self.state, move)
        reward = paid(state) - paid(self.state)
        self.state = state
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
        return rf"\boxed{{{self.sample_random_letter()}}}"

    def sample_random_letter(self) -> str:
        """Return a random letter that was not guessed yet, drawn from ``self.action_rng``."""
        left = [letter for letter in ascii_lowercase if letter not in self.state.letters]
        return self.action_rng.choice(left or ascii_lowercase)

    def sample_random_word(self) -> str:
        """Return a random word as long as the secret, drawn from ``self.action_rng``."""
        return self.action_rng.choice(words.common(len(self.state.secret)))

    def ordered_actions(self) -> Iterator[str]:
        return (rf"\boxed{{{letter}}}" for letter in words.letters(len(self.state.secret)))


class Oracle:
    """Guess the most informative letter until at most two words are possible; uses only observations."""

    def __init__(self, env: HangmanEnv) -> None:
        pass

    def act(self, observation: str) -> str:
        row, _, wrong = observation.rpartition("\n")[2].lower().partition("  wrong: ")
        return rf"\boxed{{{best_guess(row.replace(' ', ''), tuple(wrong.split()))}}}"


@lru_cache(maxsize=4096)  # the first guesses take longest to compute and recur in every game
def best_guess(pattern: str, wrong: tuple[str, ...]) -> str:
    """Return a possible word if at most two remain, otherwise the letter with the lowest expected remaining entropy."""
    possible = fitting(pattern, wrong)

    def left(letter: str) -> float:
        sizes = Counter(shown(word, letter) for word in possible).values()
        return sum(size * math.log(size) for size in sizes)

    return possible[0] if len(possible) <= 2 else min(ascii_lowercase, key=left)


def fitting(pattern: str, wrong: tuple[str, ...]) -> list[str]:
    """Return the common words that are consistent with a board."""
    letters = "".join([guess for guess in wrong if len(guess) == 1]) + pattern.replace("_", "")
    return [word for word in words.common(len(pattern)) if shown(word, letters) == pattern and word not in wrong]
