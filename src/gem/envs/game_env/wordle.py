r"""Wordle: find a secret English word; each guess is marked letter by letter.

Action       text holding ``\boxed{crane}``, in either case, letters apart or together; the last box of letters counts.
Observation  the rules card on reset, then one line per turn: the guess and its marks, as ``CRANE: X G Y X X``.
Reward       0.5 / length for each place that is right for the first time, and the rest of 1.0 for the word itself;
             -0.1 for a turn with no readable guess, which ends the game; else 0.0.
Ends         terminated on the word or an unreadable turn; truncated when the guesses are spent. A guess of another
             length, not in the word list or made before spends its turn, unmarked, and earns nothing.
Bound        the oracle, which knows the possible secrets, needs at most 12 guesses for any word of 3 letters, 11 for
             any of 4 and 7 for any of 5.
Words        secrets are common words, guesses are checked against a longer list; see gem.envs.game_env.words.

>>> marks("eerie", "crane")
'XXYXG'
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache

from gem.core import StopReason
from gem.envs.game_env import words
from gem.envs.game_env.base import SUCCESS, GameEnv, OnUnreadable, Outcome
from gem.errors import BadValue

PLACES = 0.5  # the share of the reward for right places, as published
TURNS_PER_LETTER = 5  # the published limit of the random variant
# Accepted as guesses and never secret, so that the rules card cannot give a secret away.
EXAMPLES = {3: "eta", 4: "oats", 5: "adieu"}


@dataclass(frozen=True)
class State:
    """places: "G" where some guess was right, "X" elsewhere. paid: the sum of rewards so far."""

    secret: str
    places: str
    guesses: tuple[str, ...] = ()
    paid: float = 0.0


def marks(guess: str, secret: str) -> str:
    """One mark per letter: G right here, Y elsewhere in the secret, X not there.

    Each letter of the secret accounts for one mark, and G comes before Y, so a letter guessed more often than the
    secret has it gets X for the rest.
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


def fault(guess: str, state: State) -> tuple[str, str] | None:
    """Why a guess is not marked: the reason in a word and in a sentence. None when it is."""
    length = len(state.secret)
    if len(guess) != length:
        return "wrong_length", f"{guess.upper()} does not have {length} letters."
    if guess in state.guesses:
        return "repeated_guess", f"{guess.upper()} was guessed before."
    if guess not in words.accepted(length):
        return "not_a_word", f"{guess.upper()} is not in the word list."
    return None


def merge(places: str, found: str) -> str:
    """The places that were right in either.

    >>> merge("GXX", "XYG")
    'GXG'
    """
    return "".join(["G" if "G" in pair else "X" for pair in zip(places, found, strict=True)])


def pay(places: str, solved: bool, state: State) -> float:
    """The reward of a guess. What was paid before is taken off, so that all rewards sum to exactly 1.0."""
    if solved:
        return SUCCESS - state.paid
    return 0.0 if places == state.places else PLACES * places.count("G") / len(places) - state.paid


class WordleEnv(GameEnv):
    """See the module docstring for the rules.

    Args:
        word_length: letters of the secret, 3 to 5.
        max_turns: guesses allowed; None allows 5 per letter.
        random_length: draw another length for every episode, in place of the one given.
        on_unreadable: see GameEnv.

    Raises BadValue for a length without a word list or max_turns < 1.
    """

    state: State

    def __init__(
        self,
        word_length: int = 5,
        max_turns: int | None = 15,
        *,
        random_length: bool = False,
        on_unreadable: OnUnreadable = "end",
    ) -> None:
        if word_length not in words.ACCEPTED_LENGTHS:
            raise BadValue(f"word_length must be 3 to 5, got {word_length}")
        self.lengths = tuple(words.ACCEPTED_LENGTHS) if random_length else (word_length,)
        self.turns_from_length = max_turns is None
        longest = TURNS_PER_LETTER * self.lengths[-1]
        super().__init__(max_turns=longest if max_turns is None else max_turns, on_unreadable=on_unreadable)

    @property
    def move_format(self) -> str:  # type: ignore[override]
        return rf"\boxed{{{EXAMPLES[len(self.state.secret)]}}}"

    def start(self) -> State:
        length = self.rng.choice(self.lengths)
        return State(self.rng.choice(words.common(length)), places="X" * length)

    def turn_limit(self) -> int:
        return TURNS_PER_LETTER * len(self.state.secret) if self.turns_from_length else self.max_turns

    def rules(self) -> str:
        length = len(self.state.secret)
        return (
            f"Wordle: find the secret word, a common English word of {length} letters, "
            f"in at most {self.turn_limit()} guesses.\n"
            f"Write each guess in a box, like {self.move_format}. I mark its letters in order: G for the right letter "
            "in the right place, Y for a letter that the secret has in another place, X for one that it does not have "
            "(or not that often).\n"
            f"Each place that gets its first G earns {PLACES}/{length}, the word the rest of 1. "
            f"A guess that is repeated or no English word of {length} letters wastes the turn."
        )

    def read(self, action: str) -> str | None:
        return words.boxed(action)

    def play(self, move: str) -> Outcome:
        state = self.state
        wrong = fault(move, state)
        if wrong is not None:
            return Outcome(wrong[1], invalid=wrong[0])
        found, solved = marks(move, state.secret), move == state.secret
        places = merge(state.places, found)
        reward = pay(places, solved, state)
        self.state = replace(state, places=places, guesses=(*state.guesses, move), paid=state.paid + reward)
        return Outcome(f"{move.upper()}: {' '.join(found)}", reward, StopReason.SOLVED if solved else None)

    def secrets(self) -> list[str]:
        return [self.state.secret.upper()]

    def sample_random_action(self) -> str:
        known = words.common(len(self.state.secret))
        guess = self.action_rng.choice(known)
        while guess in self.state.guesses and not self.over:
            guess = self.action_rng.choice(known)
        return rf"\boxed{{{guess}}}"


class Oracle:
    """Guesses the word that splits the secrets still possible into most kinds of marks; sees observations alone."""

    def __init__(self, env: WordleEnv) -> None:
        self.possible: tuple[str, ...] = ()

    def act(self, observation: str) -> str:
        if card := re.match(r"Wordle: find the secret word, a common English word of (\d) ", observation):
            self.possible = words.common(int(card[1]))
        elif answer := re.search(r": ([A-Z]+): ([GYX ]+)$", observation):
            guess, found = answer[1].lower(), answer[2].replace(" ", "")
            self.possible = tuple(word for word in self.possible if marks(guess, word) == found)
        return rf"\boxed{{{best_split(self.possible)}}}"


@lru_cache(maxsize=64)  # every game begins alike, and the first guess takes longest
def best_split(possible: tuple[str, ...], tries: int = 50) -> str:
    """Of up to `tries` of these words, spread evenly, the one whose marks tell most of as many words apart."""
    some = possible[:: len(possible) // tries + 1]
    return max(some, key=lambda guess: len({marks(guess, word) for word in some}))
