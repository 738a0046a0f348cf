"""CrosswordsEnv under its published path."""

from gem.envs.game_env.crosswords import CrosswordsEnv

__all__ = ["CrosswordsEnv"]
