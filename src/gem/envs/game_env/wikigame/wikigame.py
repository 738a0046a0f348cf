"""WikiGameEnv under its published path."""

from gem.envs.game_env.wikigame import WikiGameEnv

__all__ = ["WikiGameEnv"]
