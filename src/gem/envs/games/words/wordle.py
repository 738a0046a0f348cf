r"""Wordle: find a secret English word; each guess is marked letter by letter.

Action       text containing ``\boxed{crane}``, in either case, with or without spaces between letters; the last box of
             letters counts.
Observation  the rules card on reset, then one line per turn: the guess and its marks, as ``CRANE: X G Y X X``.
Reward       with g positions marked G so far, the rewards sum to 0.5 (g / length)^4, and to 1.0 with the word itself;
             -0.1 for a turn without a readable guess, which ends the game.
Ends         terminated on the word or an unreadable turn; truncated at the turn limit. A guess that has the wrong
             length, is not in the word list or repeats an earlier one uses up its turn without marks or reward.
Bound        the oracle, which knows the possible secrets, needs at most 12 guesses for any word of 3 letters, 11 for
             any of 4 and 7 for any of 5.
Words        secrets are common words; guesses are checked against a longer list, see gem.envs.games.words.lists.

>>> marks("eerie", "crane")
'XXYXG'
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from gem._internal.counts import check_count
from gem.core import StopReason
from gem.envs.game import SUCCESS, GameEnv, OnUnreadable, Outcome, exact_fraction
from gem.envs.games.words import lists as words

GREENS = 0.5  # the part of the reward given for right positions, as published
POWER = 4  # see exact_fraction(): 15 to 25 random words mark three quarters of the positions
TURNS_PER_LETTER = 5  # the published limit of the random variant
# Valid guesses that are never the secret, so that the rules card cannot reveal it.
EXAMPLES = {3: "eta", 4: "oats", 5: "adieu"}


@dataclass(frozen=True)
class State:
    """State of an episode.

    Args:
        secret: the word, in lower case.
        greens: one character per position: "G" if a guess had the right letter there, else "X".
        guesses: valid guesses so far.
    """

    secret: str
    greens: str
    guesses: tuple[str, ...] = ()


def marks(guess: str, secret: str) -> str:
    """Return one mark per letter: G for the right position, Y for another position, X if not in the secret.

    Each letter of the secret is matched with at most one letter of the guess, and G takes precedence over Y. If a
    letter occurs more often in the guess than in the secret, its surplus occurrences are marked X.
    """
    spare = [s for g, s in zip(guess, secret, strict=True) if g != s]
    found = []
    for g, s in zip(guess, secret, strict=True):
        if g == s:
            found.append("G")
        elif g in spare:
            spare.remove(g)
            found.append("Y")
        else:
            found.append("X")
    return "".join(found)


def rejection(guess: str, state: State) -> tuple[str, str] | None:
    """Return why a guess is invalid, as a reason code and a sentence; None if it is valid."""
    length = len(state.secret)
    if len(guess) != length:
        return "wrong_length", f"{guess.upper()} does not have {length} letters."
    if guess in state.guesses:
        return "repeated_guess", f"{guess.upper()} was already guessed."
    if guess not in words.accepted(length):
        return "not_a_word", f"{guess.upper()} is not in the word list."
    return None


def merge(greens: str, found: str) -> str:
    """Merge two strings of marks: G where either has a G, X elsewhere.

    >>> merge("GXX", "XYG")
    'GXG'
    """
    return "".join(["G" if "G" in pair else "X" for pair in zip(greens, found, strict=True)])


def paid(greens: str) -> float:
    """Return the sum of the rewards before the word is found."""
    return GREENS * exact_fraction(greens.count("G"), len(greens), POWER)


class WordleEnv(GameEnv):
    """See the module docstring for the rules.

    Args:
        word_length: number of letters of the secret, 3 to 5; None stands for random_length.
        only_real_words: whether a guess must be a word.
        max_turns: number of guesses allowed; None stands for 5 per letter.
        random_length: draw a length of 3 to 5 for every episode and ignore word_length.
        on_unreadable: see GameEnv.

    Raises:
        BadValue: when word_length is out of range or max_turns < 1.
    """

    state: State

    def __init__(
        self,
        word_length: int | None = 5,
        only_real_words: bool = True,
        max_turns: int | None = 15,
        *,
        random_length: bool = False,
        on_unreadable: OnUnreadable = "end",
    ) -> None:
        random_length, word_length = random_length or word_length is None, 5 if word_length is None else word_length
        self.only_real_words = only_real_words
        check_count("word_length", word_length, words.ACCEPTED_LENGTHS[0], words.ACCEPTED_LENGTHS[-1])
        self.lengths = tuple(words.ACCEPTED_LENGTHS) if random_length else (word_length,)
        self.turns_from_length = max_turns is None
        longest = TURNS_PER_LETTER * self.lengths[-1]
        super().__init__(max_turns=longest if max_turns is None else max_turns, on_unreadable=on_unreadable)

    @property
    def move_format(self) -> str:  # type: ignore[override]
        return rf"\boxed{{{EXAMPLES[len(self.state.secret)]}}}"

    def start(self) -> State:
        length = self.rng.choice(self.lengths)
        return State(self.rng.choice(words.common(length)), greens="X" * length)

    def turn_limit(self) -> int:
        return TURNS_PER_LETTER * len(self.state.secret) if self.turns_from_length else self.max_turns

    def rules(self) -> str:
        length = len(self.state.secret)
        return (
            f"Wordle: find the secret word, a common English word of {length} letters, "
            f"in at most {self.turn_limit()} guesses.\n"
            f"Write each guess in a box, like {self.move_format}. I mark its letters in order: G for the right letter "
            "in the right position, Y for a letter that occurs in another position, X for a letter that does not occur "
            "(or not that often).\n"
            f"With g positions marked G so far, you have earned {GREENS} (g/{length})^{POWER} in total, and the word "
            "earns the rest of 1. "
            f"A guess that is repeated or is not an English word of {length} letters wastes a turn."
        )

    def read(self, action: str) -> str | None:
        return words.boxed(action)

    def play(self, move: str) -> Outcome:
        state = self.state
        rejected = rejection(move, state)
        if rejected is not None and (self.only_real_words or rejected[0] != "not_a_word"):
            reason, sentence = rejected
            return Outcome(sentence, invalid=reason)
        found, solved = marks(move, state.secret), move == state.secret
        greens = merge(state.greens, found)
        reward = (SUCCESS if solved else paid(greens)) - paid(state.greens)
        self.state = replace(state, greens=greens, guesses=(*state.guesses, move))
        return Outcome(f"{move.upper()}: {' '.join(found)}", reward, StopReason.SOLVED if solved else None)

    def secrets(self) -> list[str]:
        return [self.state.secret.upper()]

    def sample_random_action(self) -> str:
        known = words.common(len(self.state.secret))
        guess = self.action_rng.choice(known)
        while guess in self.state.guesses and not self.over:
            guess = self.action_rng.choice(known)
        return rf"\boxed{{{guess}}}"

    def ordered_actions(self) -> Iterator[str]:
        return (rf"\boxed{{{word}}}" for word in words.by_letters(len(self.state.secret)))


class Oracle:
    """Guess the word whose marks distinguish the most possible secrets; uses only observations."""

    def __init__(self, env: WordleEnv) -> None:
        self.possible: tuple[str, ...] = ()

    def act(self, observation: str) -> str:
        if card := re.match(r"Wordle: find the secret word, a common English word of (\d) ", observation):
            self.possible = words.common(int(card[1]))
        elif answer := re.search(r": ([A-Z]+): ([GYX ]+)$", observation):
            guess, found = answer[1].lower(), answer[2].replace(" ", "")
            self.possible = tuple(word for word in self.possible if marks(guess, word) == found)
        return rf"\boxed{{{best_split(self.possible)}}}"


@lru_cache(maxsize=64)  # the first guess takes longest to compute and is the same in every game
def best_split(possible: tuple[str, ...], tries: int = 50) -> str:
    """Return the guess whose marks distinguish the most possible secrets.

    To save time, only `tries` or fewer evenly spaced words are considered, both as guesses and as secrets.
    """
    some = possible[:: len(possible) // tries + 1]
    return max(some, key=lambda guess: len({marks(guess, word) for word in some}))
