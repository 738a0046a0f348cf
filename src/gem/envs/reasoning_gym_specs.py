"""``rg:<name>`` for every generator of reasoning-gym."""

from __future__ import annotations

from typing import Any

from gem.envs.reasoning_gym_names import NAMES
from gem.registry import EnvSpec

# Generators that give no answer of their own: theirs have many, and the scorer tries them out.
UNANSWERED = ("boxnet", "graph_color", "propositional_logic", "rubiks_cube", "rush_hour")

# What a generator cannot be built without.
KWARGS: dict[str, dict[str, Any]] = {
    "composite": {"datasets": [{"name": name, "weight": 1.0, "config": {}} for name in ("chain_sum", "leg_counting")]},
}


def reasoning_gym_specs(reward_range: tuple[float, float]) -> list[EnvSpec]:
    """The specs, by name. None of them declares floors: many scorers pay something for any answer of the right form."""
    return [_spec(name, reward_range) for name in NAMES]


def _spec(name: str, reward_range: tuple[float, float]) -> EnvSpec:
    answered = name not in UNANSWERED
    return EnvSpec(
        id=f"rg:{name}",
        entry_point="gem.envs.reasoning_gym:ReasoningGymEnv",
        kwargs={"name": name, **KWARGS.get(name, {})},
        extra="reasoning",
        reward_range=reward_range,
        oracle="gem.envs.generated:Oracle" if answered else None,
        oracle_sees="state" if answered else None,
        description=f"Questions of reasoning-gym's generator {name}.",
    )
