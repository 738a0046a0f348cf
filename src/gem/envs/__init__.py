"""The worlds. Reached by id (gem.make); importing this package fills the registry and imports no environment."""

from gem.registry import ENV_REGISTRY

len(ENV_REGISTRY)
