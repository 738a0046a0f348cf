"""The best player of an environment, where its spec names one."""

from __future__ import annotations

from typing import Any, Protocol, cast

from gem.errors import BadValue
from gem.registry import ENV_REGISTRY, resolve


class Oracle(Protocol):
    """Plays one environment, episode after episode."""

    def act(self, observation: str) -> str:
        """The action after this observation; that of reset starts a new episode."""
        ...


def oracle(env: Any) -> Oracle:
    """The oracle of an environment made by id; its spec says whether it sees the observation or the state.

    Raises BadValue where the spec names none.
    """
    spec = None if env.env_id is None else ENV_REGISTRY[env.env_id]
    if spec is None or spec.oracle is None:
        raise BadValue(f"no oracle is known for {env!r}; EnvSpec.oracle names one")
    return cast(Oracle, resolve(spec.oracle)(env.unwrapped))
