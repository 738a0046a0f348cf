"""EnvSpecs of the ``rg:<name>`` environments, one per generator of reasoning-gym.

The names are in data/reasoning_gym/generators.txt, so that listing the ids does not import the library.
``python scripts/reasoning_gym_names.py`` writes that file, and a test compares it with the installed version.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gem.envs.spec_defaults import ANSWERS, built_in
from gem.registry import EnvSpec

NAMES_FILE = Path(__file__).parents[2] / "data" / "reasoning_gym" / "generators.txt"

# Generators without a gold answer: many answers are right, and the scorer checks them.
UNANSWERED = ("boxnet", "graph_color", "propositional_logic", "rubiks_cube", "rush_hour")

# Arguments that a generator requires.
KWARGS: dict[str, dict[str, Any]] = {
    "composite": {"datasets": [{"name": name, "weight": 1.0, "config": {}} for name in ("chain_sum", "leg_counting")]},
}


def generator_names() -> list[str]:
    """Return the names of all generators, sorted."""
    return NAMES_FILE.read_text(encoding="utf-8").split()


def reasoning_gym_specs() -> list[EnvSpec]:
    """Return one spec per generator, sorted by name.

    The specs declare no baseline scores, because many scorers give partial credit for any answer of the right form.
    """
    return [
        built_in(
            f"rg:{name}",
            "questions.reasoning_gym.env:ReasoningGymEnv",
            {"name": name, **KWARGS.get(name, {})},
            f"Questions of the reasoning-gym generator {name}.",
            oracle=None if name in UNANSWERED else ANSWERS,
            baseline=None,
            extra="reasoning",
        )
        for name in generator_names()
    ]
