"""The episodes that the checks repeat: sampled actions, the oracle's, and one action to the turn limit."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from gem.testing.lab import Broken, Lab, Play, Player, Unchecked

COMPARED_TURNS = 100  # of an episode that is played several times and compared
LIMIT_TURNS = 2000  # of an episode that is played to its end, whatever that takes
ORACLE_PLAYS = 3
# Played where the environment samples no actions: words that some game or other understands.
STAND_INS = (r"\boxed{1}", r"\boxed{2}", r"\boxed{a}", r"\boxed{up}", r"\boxed{1 1}", "yes", r"\boxed{A B}", "")

Choose = Callable[[Any], str]  # observation → action


def record(lab: Lab) -> None:
    """Play the episodes that the checks will repeat. Raises Broken, keeping the play, when one cannot be played."""
    for seed in lab.seeds:
        lab.plays.append(_played(lab, seed, sampler, COMPARED_TURNS))
    first = lab.plays[0]
    for action in dict.fromkeys(["", *first.actions[:1]]):
        lab.long_plays.append(_played(lab, first.seed, always(action), LIMIT_TURNS))
    if lab.has_oracle:
        with suppress(Unchecked):
            for seed in lab.seeds[:ORACLE_PLAYS]:
                lab.plays.append(_played(lab, seed, _by_oracle_if_it_works, COMPARED_TURNS))


def sampler(player: Player) -> Choose:
    """Chooses the environment's sampled actions, or stand-ins once it has failed to sample one."""

    def choose(observation: Any) -> str:
        if player.lab.samples:
            try:
                return player.sample()
            except (Broken, Unchecked):  # the check "sampled-legal" reports it
                player.lab.samples = False
        return STAND_INS[player.turn % len(STAND_INS)]

    return choose


def by_oracle(player: Player) -> Choose:
    oracle = player.oracle()
    return lambda observation: str(player.lab.call("oracle.act(observation)", oracle.act, observation))


def always(action: str) -> Callable[[Player], Choose]:
    """A chooser of one action, whatever happens."""
    return lambda player: lambda observation: action


def _by_oracle_if_it_works(player: Player) -> Choose:
    try:
        oracle = by_oracle(player)
    except Broken as e:
        raise Unchecked(e.what) from e  # the check "oracle" reports it

    def choose(observation: Any) -> str:
        try:
            return oracle(observation)
        except Broken as e:
            raise Unchecked(e.what) from e

    return choose


def _played(lab: Lab, seed: int, chooser: Callable[[Player], Choose], turns: int) -> Play:
    actions: list[str] = []
    lab.scene()
    player = lab.fresh()
    try:
        observation = player.reset(seed)[0]
        choose = chooser(player)
        while not player.over and len(actions) < turns:
            actions.append(choose(observation))
            observation = player.step(actions[-1]).observation
    except Broken:
        lab.plays.append(Play(seed, tuple(actions)))
        raise
    return Play(seed, tuple(actions))
