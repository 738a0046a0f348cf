"""Collect trajectories by running a policy in vectorized environments."""

from gem.rollout.collector import Collector, collect
from gem.rollout.play import play_each, play_seeds

__all__ = ["Collector", "collect", "play_each", "play_seeds"]
