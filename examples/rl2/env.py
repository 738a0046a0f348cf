"""The rollout.env_path of RL2."""

from gem.integrations.rl2 import generate

__all__ = ["generate"]
