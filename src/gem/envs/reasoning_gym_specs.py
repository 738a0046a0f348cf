"""``rg:<name>`` for every generator of reasoning-gym."""

from __future__ import annotations

from typing import Any

from gem.envs.reasoning_gym_names import NAMES
from gem.registry import EnvSpec

FORMAT_ERROR = -0.1

# What a generator cannot be built without.
KWARGS: dict[str, dict[str, Any]] = {
    "composite": {
        "datasets": [{"name": name, "weight": 1.0, "config": {}} for name in ("chain_sum", "leg_counting", "maze")]
    },
}


def reasoning_gym_specs() -> list[EnvSpec]:
    """The specs, by name. None of them says floors: most scorers pay a little for any answer of the right form."""
    return [
        EnvSpec(
            id=f"rg:{name}",
            entry_point="gem.envs.reasoning_gym:ReasoningGymEnv",
            kwargs={"name": name, **KWARGS.get(name, {})},
            extra="reasoning",
            reward_range=(FORMAT_ERROR, 1.0),
            oracle="gem.envs.reasoning_gym:Oracle",
            oracle_sees="state",
            description=f"Questions of reasoning-gym's generator {name}.",
        )
        for name in NAMES
    ]
