"""Every built-in environment, as data: reading this file imports none of them."""

from __future__ import annotations

from typing import Any, Literal

from gem.registry import EnvSpec

FORMAT_ERROR = -0.1
CONSTANT_FLOOR = 0.25  # no constant action earns more, of the oracle's 1.0


def _game(
    name: str,
    module: str,
    variants: dict[str, dict[str, Any]],
    description: str,
    oracle_sees: Literal["observation", "state"],
) -> list[EnvSpec]:
    """One family of games: a variant name ("" is the plain id) → the constructor's arguments."""
    return [
        EnvSpec(
            id=f"game:{name}-v0{variant and '-' + variant}",
            entry_point=f"gem.envs.game_env.{module}:{name}Env",
            kwargs=kwargs,
            reward_range=(FORMAT_ERROR, 1.0),
            oracle=f"gem.envs.game_env.{module}:Oracle",
            oracle_sees=oracle_sees,
            floors={"constant": CONSTANT_FLOOR},
            description=description,
        )
        for variant, kwargs in variants.items()
    ]


SPECS: list[EnvSpec] = [
    *_game(
        "GuessTheNumber",
        "guess_the_number",
        {
            "": {"min_number": 1, "max_number": 20, "max_turns": 10},
            "easy": {"min_number": 1, "max_number": 10, "max_turns": 4},
            "hard": {"min_number": 1, "max_number": 50, "max_turns": 7},
            "hard-no-max-turn": {"min_number": 1, "max_number": 50, "max_turns": 50},
            "random": {"random_range": True, "max_turns": None},
        },
        "Find a secret integer from 'too low' and 'too high'.",
        oracle_sees="observation",
    ),
]
