"""Registry functions under the import path of the published GEM package."""

from gem.registry import ENV_REGISTRY, EnvSpec, list_envs, make, print_envs, register
from gem.vector.make import make_vec

__all__ = ["ENV_REGISTRY", "EnvSpec", "list_envs", "make", "make_vec", "print_envs", "register"]
