"""SyncVectorEnv with its published arguments. New code should use gem.vector."""

from __future__ import annotations

from collections.abc import Sequence

from gem.vector import sync
from gem.vector.base import Autoreset
from gem.vector.slots import Factory
from gem.vector.vector_env import ForwardingType


class SyncVectorEnv(sync.SyncVectorEnv, metaclass=ForwardingType):
    """gem.vector.SyncVectorEnv with the published arguments.

    Args:
        env_ids: one id per slot.
        env_fns: one callable per slot that builds its environment.
        autoreset_mode: see Autoreset.
    """

    forwards_to = sync.SyncVectorEnv

    def __init__(
        self, env_ids: Sequence[str], env_fns: Sequence[Factory], autoreset_mode: Autoreset = Autoreset.SAME_STEP
    ) -> None:
        super().__init__(env_fns, autoreset_mode)
        self.env_ids = list(env_ids)
