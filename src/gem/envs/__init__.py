"""Built-in environments, created with gem.make(id). Importing this package imports only the registry."""

from gem.registry import ENV_REGISTRY

len(ENV_REGISTRY)
