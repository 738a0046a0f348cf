"""Simple players of the games, which measure how much a game pays to play without skill. See baselines.py."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Callable, Iterator, Sequence
from itertools import cycle
from typing import NamedTuple

from gem.core import StopReason
from gem.envs.game import GameEnv
from gem.envs.games.baselines import Score
from gem.policies import oracle
from gem.registry import make
from gem.seeding import stream

SEARCH_SEEDS = range(10_000, 10_012)  # open-loop sequences are searched on these, and the best ones compared on …
FINAL_SEEDS = range(10_100, 10_160)
START_SEEDS = range(9_000, 9_006)
POPULATION, FINALISTS = 12, 4
LONGEST = 60  # actions in an open-loop sequence, which is repeated until the episode ends
SEARCH_STEPS = 30_000  # steps of one search; a reset counts as RESET_STEPS
RESET_STEPS = 20

Act = Callable[[str], str]  # observation → action
Player = Callable[[GameEnv], Act]  # called after each reset


class Episode(NamedTuple):
    """The result of one episode: the sum of rewards, whether it was won, and the actions."""

    total: float
    won: bool
    actions: list[str]


def random_player(env: GameEnv) -> Act:
    return lambda observation: env.sample_random_action()


def ordered_player(env: GameEnv) -> Act:
    """Take the actions in the fixed order of the game, again and again; random legal ones if the game has no order."""

    def actions() -> Iterator[str]:
        while True:
            empty = True
            for action in env.ordered_actions():
                empty = False
                yield action
            if empty:
                yield env.sample_random_action()

    left = actions()
    return lambda observation: next(left)


def open_loop_player(sequence: Sequence[str]) -> Player:
    """Repeat a sequence of actions without boxes."""

    def player(env: GameEnv) -> Act:
        left = cycle(sequence)
        return lambda observation: rf"\boxed{{{next(left)}}}"

    return player


def oracle_player(epsilon: float = 0.0) -> Player:
    """Play like the oracle, but take a random legal action instead with probability epsilon."""

    def player(env: GameEnv) -> Act:
        known, chance = oracle(env), stream(env.action_rng.getrandbits(32), "epsilon")

        def act(observation: str) -> str:
            action = known.act(observation) if epsilon < 1 else ""
            return action if chance.random() >= epsilon else env.sample_random_action()

        return act

    return player


def play(env: GameEnv, player: Player, seed: int) -> Episode:
    observation, _ = env.reset(seed=seed)
    act, total, actions = player(env), [], []
    while not env.over:
        actions.append(act(str(observation)))
        observation, reward, _, _, info = env.step(actions[-1])
        total.append(reward)
    return Episode(math.fsum(total), info["stop_reason"] is StopReason.SOLVED, actions)


def score(env_id: str, player: Player, seeds: Sequence[int]) -> Score:
    env = game(env_id)
    episodes = [play(env, player, seed) for seed in seeds]
    totals = [episode.total for episode in episodes]
    return Score(
        mean=statistics.fmean(totals),
        wins=statistics.fmean(episode.won for episode in episodes),
        turns=statistics.fmean([len(episode.actions) for episode in episodes if episode.won] or [0.0]),
        not_won=statistics.fmean([episode.total for episode in episodes if not episode.won] or [0.0]),
        deviation=statistics.pstdev(totals),
    )


def game(env_id: str) -> GameEnv:
    env = make(env_id).unwrapped
    assert isinstance(env, GameEnv)
    return env


def search_open_loop(env_id: str, steps: int = SEARCH_STEPS) -> tuple[str, ...]:
    """Search for the best fixed sequence of actions by evolution.

    The first population are sequences of the oracle, of random legal play and of the fixed order on other seeds.
    A sequence that has a higher mean than the worst of the population replaces it. The best few are then compared on
    further seeds.
    """
    env, chance = game(env_id), stream(0, env_id, "open-loop")
    first = [play(env, player, seed) for player in (oracle_player(), random_player) for seed in START_SEEDS]
    first.append(play(env, ordered_player, START_SEEDS[0]))
    starts = [tuple(action[7:-1] for action in episode.actions[:LONGEST]) for episode in first]
    alphabet = sorted({action for sequence in starts for action in sequence})
    starts += [(action,) for action in chance.sample(alphabet, min(len(START_SEEDS), len(alphabet)))]

    def mean(sequence: tuple[str, ...], seeds: Sequence[int]) -> float:
        nonlocal steps
        episodes = [play(env, open_loop_player(sequence), seed) for seed in seeds]
        steps -= sum(len(episode.actions) + RESET_STEPS for episode in episodes)
        return statistics.fmean(episode.total for episode in episodes)

    ranked = sorted(((mean(start, SEARCH_SEEDS), start) for start in set(starts)), reverse=True)[:POPULATION]
    while steps > 0:
        parent, other = chance.choice(ranked)[1], chance.choice(ranked)[1]
        child = mutated(parent, other, alphabet, chance)
        if all(child != sequence for _, sequence in ranked):
            ranked = sorted([*ranked, (mean(child, SEARCH_SEEDS), child)], reverse=True)[:POPULATION]
    return max((sequence for _, sequence in ranked[:FINALISTS]), key=lambda sequence: mean(sequence, FINAL_SEEDS))


def mutated(
    parent: tuple[str, ...], other: tuple[str, ...], alphabet: Sequence[str], chance: random.Random
) -> tuple[str, ...]:
    """Return the parent with one action replaced, inserted or removed, or with the end of another sequence."""
    cut = chance.randrange(len(parent))
    before, after = parent[:cut], parent[cut + 1 :]
    child = chance.choice(
        [
            (*before, chance.choice(alphabet), *after),
            (*before, chance.choice(alphabet), *parent[cut:]),
            before + after,
            before + other[cut:],
        ]
    )
    return child[:LONGEST] or parent
