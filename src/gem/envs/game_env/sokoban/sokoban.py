"""SokobanEnv under its published path."""

from gem.envs.game_env.sokoban import SokobanEnv

__all__ = ["CHANGE_COORDINATES", "SokobanEnv"]

# Changes of row and column by the published number of a move: up, down, left, right.
CHANGE_COORDINATES = {0: (-1, 0), 1: (1, 0), 2: (0, -1), 3: (0, 1)}
