"""Environments of gem for the commands of verifiers, which find them by the name of this module."""

from gem.integrations.verifiers import GemEnv, GemEnvConfig, GemTaskset, GemTasksetConfig

__all__ = ["GemEnv", "GemEnvConfig", "GemTaskset", "GemTasksetConfig"]
