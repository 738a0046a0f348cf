"""Game2048Env under its published path."""

from gem.envs.game_env.game2048 import Game2048Env

__all__ = ["Game2048Env"]
