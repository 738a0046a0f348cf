"""Evaluation: score a policy on environments, with intervals.

The package itself can be called: ``gem.evaluate(policy, envs)`` is ``gem.evaluate.evaluate(policy, envs)``.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from gem.evaluate.compare import Comparison, compare
from gem.evaluate.report import EnvScore, EvalReport
from gem.evaluate.rescore import Rescored, rescore
from gem.evaluate.run import evaluate
from gem.evaluate.suites import load_suite
from gem.evaluate.tasks import EvalEnv
from gem.evaluate.tournament import TournamentReport, play_tournament, sparring_player

__all__ = [
    "Comparison",
    "EnvScore",
    "EvalEnv",
    "EvalReport",
    "Rescored",
    "TournamentReport",
    "compare",
    "evaluate",
    "load_suite",
    "play_tournament",
    "rescore",
    "sparring_player",
]


class _CallableModule(ModuleType):
    def __call__(self, *args: Any, **kwargs: Any) -> EvalReport:
        return evaluate(*args, **kwargs)


sys.modules[__name__].__class__ = _CallableModule
