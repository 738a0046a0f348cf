"""Built-in environments, made by id with gem.make. Importing this package loads the registry, not the environments."""

from gem.registry import ENV_REGISTRY

len(ENV_REGISTRY)
