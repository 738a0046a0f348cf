"""Entry points of the ids of table games."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from numbers import Real
from typing import Any, Literal

from gem.core import Env
from gem.envs.table.game import OnIllegal, TableGame
from gem.envs.table.players import TablePlayer
from gem.errors import BadValue, UnknownArgument, did_you_mean
from gem.multiagent import EpisodicPlayer, OneSeat, Player
from gem.registry import resolve

Opponent = Literal["random", "best"]


def table_game(
    game: str | Callable[..., TableGame],
    opponent: Opponent | float | Player | EpisodicPlayer | None = "random",
    *,
    on_illegal: OnIllegal = "lose",
    show_legal: bool = False,
    max_turns: int | None = None,
    options: dict[str, Any] | None = None,
) -> Env:
    """Return a seat of a game, or the game itself.

    Args:
        game: the class of the game, or its "module:class".
        opponent: who plays the other seats: "random", "best", the strength of a TablePlayer, between 0 and 1, or a
            player such as gem.rollout.PolicyPlayer. None returns the game itself, a gem.multiagent.MultiAgentEnv for
            all players.
        on_illegal, show_legal, max_turns: see TableGame.
        options: further arguments of the game's class.

    Raises:
        UnknownArgument: the class does not take one of ``options``.
        BadValue: a value out of range.
    """
    if options is not None and not isinstance(options, dict):
        raise BadValue(f"options must be a dict of arguments of the game, got {options!r}")
    build, options = resolve(game) if isinstance(game, str) else game, options or {}
    known = [name for name in inspect.signature(build).parameters if name not in _GENERAL]
    for name in options:
        if name not in known:
            taken = ", ".join(known) or "none"
            raise UnknownArgument(
                f"the game has no option {name!r}{did_you_mean(str(name), known)}  (options: {taken})"
            )
    env: TableGame = build(on_illegal=on_illegal, show_legal=show_legal, max_turns=max_turns, **options)
    if opponent is None:
        return env
    if isinstance(opponent, str) and opponent not in _STRENGTHS:
        near = did_you_mean(opponent, _STRENGTHS)
        choices = "one of 'random', 'best', a strength between 0 and 1, a player, or None"
        raise BadValue(f"opponent must be {choices}, got {opponent!r}{near}")
    player: Any = opponent
    if isinstance(opponent, str | Real) and not isinstance(opponent, bool):
        player = TablePlayer(_STRENGTHS[opponent] if isinstance(opponent, str) else float(opponent))
    return OneSeat(env, others=dict.fromkeys(env.possible_agents[1:], player))


_GENERAL = ("on_illegal", "show_legal", "max_turns")
_STRENGTHS = {"random": 0.0, "best": 1.0}
