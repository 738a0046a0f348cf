"""A policy meets a world."""

from gem.rollout.batch import Collector, collect
from gem.rollout.episode import play_seeds

__all__ = ["Collector", "collect", "play_seeds"]
