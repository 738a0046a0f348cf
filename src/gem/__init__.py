r"""GEM, the General Experience Maker: a gym for agentic language models.

>>> import gem
>>> env = gem.make("game:GuessTheNumber-v0-easy", seed=0)
>>> observation, info = env.reset()
>>> observation, reward, terminated, truncated, info = env.step(r"\boxed{5}")
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from gem import _published

if TYPE_CHECKING:
    from gem.core import Env, EnvWrapper, Step, StopReason
    from gem.evaluation import evaluate
    from gem.registry import ENV_REGISTRY, EnvSpec, list_envs, make, print_envs, register, register_exporter
    from gem.vector.make import make_vec

__version__ = "0.2.0.dev0"

__all__ = [
    "ENV_REGISTRY",
    "Env",
    "EnvSpec",
    "EnvWrapper",
    "Step",
    "StopReason",
    "evaluate",
    "list_envs",
    "make",
    "make_vec",
    "print_envs",
    "register",
    "register_exporter",
]

# Loaded on first use, so that `import gem` is fast and imports only the standard library.
_HOME = {
    **dict.fromkeys(["Env", "EnvWrapper", "Step", "StopReason"], "gem.core"),
    **dict.fromkeys(["ENV_REGISTRY", "EnvSpec", "list_envs", "make", "print_envs"], "gem.registry"),
    **dict.fromkeys(["register", "register_exporter"], "gem.registry"),
    "make_vec": "gem.vector.make",
    "evaluate": "gem.evaluation.run",
}
_published.install()


def __getattr__(name: str) -> Any:
    if name in _HOME:
        value = globals()[name] = getattr(importlib.import_module(_HOME[name]), name)
        return value
    try:
        return importlib.import_module(f"gem.{name}")  # so that `import gem; gem.core.Env` works
    except ModuleNotFoundError as e:
        if e.name != f"gem.{name}":
            raise
        raise AttributeError(f"module 'gem' has no attribute {name!r}") from None


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
