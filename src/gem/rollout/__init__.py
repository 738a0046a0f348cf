"""Collect trajectories by running a policy in vectorized environments.

How environments are stepped together is in vector, the record itself in gem.trajectory, and training on it in rl.
"""

from gem.rollout.branches import BranchCollector, BranchPlan, check_forkable, sampled_tokens
from gem.rollout.collector import Collector, collect
from gem.rollout.games import Match, PlayedGame, play_games
from gem.rollout.groups import Batch, GroupCollector
from gem.rollout.play import play_each, play_seeds
from gem.rollout.policy_player import PolicyPlayer
from gem.rollout.stepwise import StepwiseEpisode, play_episode

__all__ = [
    "Batch",
    "BranchCollector",
    "BranchPlan",
    "Collector",
    "GroupCollector",
    "Match",
    "PlayedGame",
    "PolicyPlayer",
    "StepwiseEpisode",
    "check_forkable",
    "collect",
    "play_each",
    "play_episode",
    "play_games",
    "play_seeds",
    "sampled_tokens",
]
