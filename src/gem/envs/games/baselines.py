"""Stored scores of simple players in the games, and the order of the levels of a game.

benchmarks/games.py measures the players in players.py and writes data/baselines.json. Nothing is measured here.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import pairwise
from typing import Any

EPSILONS = (0.1, 0.3, 0.6)  # probabilities of a random legal action instead of the oracle's
LEVELS = ("very-easy", "easy", "", "hard", "extreme-hard")  # suffixes of ids, the easiest first; "" is the plain id
Z = 1.96  # a 95 % interval

# Levels that are harder than the next one because of published parameters: (id, next id) -> why.
_HANGMAN = "3 letters in 10 turns, 5 in 15 and 7 in 20: long words have more turns and fewer similar words"
INVERTED = {
    ("game:GuessTheNumber-v0-easy", "game:GuessTheNumber-v0"): "10 numbers in 4 turns, but 20 numbers in 10 turns",
    ("game:Hangman-v0-easy", "game:Hangman-v0"): _HANGMAN,
    ("game:Hangman-v0", "game:Hangman-v0-hard"): _HANGMAN,
    ("game:Minesweeper-v0-easy", "game:Minesweeper-v0"): "5 mines in 25 cells, but 10 mines in 64 cells",
}


@dataclass(frozen=True)
class Score:
    """The score of a player.

    Args:
        mean: mean sum of rewards of an episode.
        wins: fraction of the episodes that are won.
        turns: mean number of turns of the episodes that are won; 0 if none is.
        not_won: mean sum of rewards of the episodes that are not won; 0 if all are.
        deviation: standard deviation of the sum of rewards.
    """

    mean: float
    wins: float
    turns: float
    not_won: float
    deviation: float


@dataclass(frozen=True)
class Baselines:
    """The scores of simple players in one game.

    Args:
        episodes: number of episodes of each player; the seeds are 0, 1, 2, …
        oracle_episodes: number of episodes of the oracle, also with random moves; fewer where episodes are long.
        oracle: the oracle that the spec names.
        random: random legal actions.
        ordered: the actions of GameEnv.ordered_actions().
        open_loop: one sequence of actions, repeated whatever the observations are.
        sequence: this sequence, found by players.search_open_loop(), without the boxes around the actions.
        noisy_wins: for each of EPSILONS, the fraction of episodes won by the oracle if each of its actions is
            replaced by a random legal one with this probability.
    """

    episodes: int
    oracle_episodes: int
    oracle: Score
    random: Score
    ordered: Score
    open_loop: Score
    sequence: tuple[str, ...]
    noisy_wins: tuple[float, ...]

    @property
    def ladder(self) -> dict[float, float]:
        """Win rates of the oracle by probability of a random legal action, from 0 to 1."""
        return {0.0: self.oracle.wins, **dict(zip(EPSILONS, self.noisy_wins, strict=True)), 1.0: self.random.wins}


@cache
def stored() -> dict[str, Baselines]:
    """Return the stored baselines of all games, by id."""
    text = (files("gem.envs.games") / "data" / "baselines.json").read_text(encoding="ascii")
    return {env_id: _from_plain(row) for env_id, row in json.loads(text).items()}


def _from_plain(row: dict[str, Any]) -> Baselines:
    scores = {name: Score(**row[name]) for name in ("oracle", "random", "ordered", "open_loop")}
    return Baselines(**{**row, **scores, "sequence": tuple(row["sequence"]), "noisy_wins": tuple(row["noisy_wins"])})


def describe(env_id: str) -> list[tuple[str, str]]:
    """Return (player, score) rows for ``gem info``. Empty if no scores are stored for this id."""
    if env_id not in stored():
        return []
    row = stored()[env_id]
    players = {
        "random legal actions": row.random,
        "actions in a fixed order": row.ordered,
        "best fixed sequence": row.open_loop,
        "oracle": row.oracle,
    }
    return [
        (name, f"mean reward {score.mean:.2f}, wins {score.wins:.1%}" + _otherwise(score))
        for name, score in players.items()
    ]


def _otherwise(score: Score) -> str:
    return "" if score.wins == 1 else f", otherwise {score.not_won:.2f}"


def families(ids: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the ids of each game that are levels, the easiest first."""
    found: dict[str, list[str]] = {}
    for level in LEVELS:
        for env_id in ids:
            family, _, suffix = env_id.partition("-v0")
            if suffix == (level and f"-{level}"):
                found.setdefault(family, []).append(env_id)
    return found


@dataclass(frozen=True)
class Inversion:
    """A level that a player wins significantly less often than the next harder level."""

    easier: str
    harder: str
    epsilon: float


def inversions(rows: Mapping[str, Baselines]) -> Iterator[Inversion]:
    """Compare each level of a game with the next one, for every oracle with random moves."""
    for levels in families(rows).values():
        for easier, harder in pairwise(levels):
            for epsilon, wins in rows[easier].ladder.items():
                other = rows[harder].ladder[epsilon]
                if surely_less((wins, rows[easier].oracle_episodes), (other, rows[harder].oracle_episodes)):
                    yield Inversion(easier, harder, epsilon)


def surely_less(one: tuple[float, int], other: tuple[float, int]) -> bool:
    """Return whether a win rate is lower than another by more than the 95 % interval of their difference.

    The interval is that of Agresti and Caffo (2000), which adds a won and a lost episode to both samples.

    Args:
        one, other: win rate and number of episodes.
    """
    (p, m), (q, n) = (((rate * count + 1) / (count + 2), count + 2) for rate, count in (one, other))
    return q - p > Z * math.sqrt(p * (1 - p) / m + q * (1 - q) / n)
