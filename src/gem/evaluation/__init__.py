"""Evaluation: score a policy on environments, with intervals; compare, rescore and export what was recorded.

What a grader says of one answer is in graders, and how episodes are played in rollout. Training measures itself in rl.
"""

from gem.evaluation.compare import Comparison, compare
from gem.evaluation.cost import CostLimitReached, Price
from gem.evaluation.report import EnvScore, EvalReport
from gem.evaluation.rescore import Rescored, rescore
from gem.evaluation.run import evaluate
from gem.evaluation.suites import load_suite
from gem.evaluation.tasks import EvalEnv
from gem.evaluation.tournament import TournamentReport, play_tournament, sparring_player

__all__ = [
    "Comparison",
    "CostLimitReached",
    "EnvScore",
    "EvalEnv",
    "EvalReport",
    "Price",
    "Rescored",
    "TournamentReport",
    "compare",
    "evaluate",
    "load_suite",
    "play_tournament",
    "rescore",
    "sparring_player",
]
