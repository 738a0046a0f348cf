"""EpisodeTrackingWrapper under its published path. New code should import it from gem.wrappers."""

from gem.wrappers.episode_tracking import EpisodeTrackingWrapper

__all__ = ["EpisodeTrackingWrapper"]
