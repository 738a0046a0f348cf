"""Collect trajectories by running a policy in vectorized environments."""

from gem.rollout.collector import Collector, collect
from gem.rollout.groups import GroupBatch, GroupCollector
from gem.rollout.play import play_each, play_seeds

__all__ = ["Collector", "GroupBatch", "GroupCollector", "collect", "play_each", "play_seeds"]
