"""Built-in environments, created with gem.make(id), and the base classes for environments of your own.

catalog lists all of them as data. The environments are in wings: games, table (games between players), questions,
computers (tasks with a shell), web and desks (agents that talk to a customer). At the top is what wings share.
Importing this package imports no environment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gem._internal.imports import lazy_names

if TYPE_CHECKING:
    from gem.envs.dataset_env import DatasetEnv
    from gem.envs.game import GameEnv
    from gem.envs.questions.code_env import CodeEnv
    from gem.envs.questions.math_env import MathEnv
    from gem.envs.questions.qa_env import QaEnv
    from gem.envs.table.game import TableGame
    from gem.envs.table.make import table_game

__all__ = ["CodeEnv", "DatasetEnv", "GameEnv", "MathEnv", "QaEnv", "TableGame", "table_game"]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "dataset_env": "DatasetEnv",
        "game": "GameEnv",
        "questions.code_env": "CodeEnv",
        "questions.math_env": "MathEnv",
        "questions.qa_env": "QaEnv",
        "table.game": "TableGame",
        "table.make": "table_game",
    },
)
