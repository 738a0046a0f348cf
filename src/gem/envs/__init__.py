"""Built-in environments, created with gem.make(id), and the base classes for environments of your own.

catalog lists all of them as data. The environments are in wings: games, table (games between players), questions,
computers (tasks with a shell), web and desks (agents that talk to a customer). At the top is what wings share.
Importing this package imports no environment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gem._internal.imports import resolve

if TYPE_CHECKING:
    from gem.envs.dataset_env import DatasetEnv
    from gem.envs.game import GameEnv
    from gem.envs.questions.code_env import CodeEnv
    from gem.envs.questions.math_env import MathEnv
    from gem.envs.questions.qa_env import QaEnv
    from gem.envs.table.game import TableGame
    from gem.envs.table.make import table_game

__all__ = ["CodeEnv", "DatasetEnv", "GameEnv", "MathEnv", "QaEnv", "TableGame", "table_game"]

_HOMES = {
    "CodeEnv": "questions.code_env",
    "DatasetEnv": "dataset_env",
    "GameEnv": "game",
    "MathEnv": "questions.math_env",
    "QaEnv": "questions.qa_env",
    "TableGame": "table.game",
    "table_game": "table.make",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'gem.envs' has no attribute {name!r}")
    return resolve(f"gem.envs.{_HOMES[name]}:{name}")
