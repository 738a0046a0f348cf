"""Vector environments with their published names and arguments. New code should use gem.vector."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gem.vector import async_, sync
from gem.vector.base import Autoreset, VectorEnv
from gem.vector.slots import Factory

__all__ = ["ArrayType", "AsyncVectorEnv", "AutoresetMode", "SyncVectorEnv", "VectorEnv"]

ArrayType = np.ndarray
AutoresetMode = Autoreset


class _ForwardingType(type):
    """Type of a class whose isinstance() also accepts its attribute ``forwards_to``, which make_vec() returns."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, vars(cls).get("forwards_to", ())) or super().__instancecheck__(instance)


class SyncVectorEnv(sync.SyncVectorEnv, metaclass=_ForwardingType):
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


class AsyncVectorEnv(async_.AsyncVectorEnv, metaclass=_ForwardingType):
    """gem.vector's AsyncVectorEnv with the published arguments, which are those of SyncVectorEnv above.

    As published, it has one thread per slot.
    """

    forwards_to = async_.AsyncVectorEnv

    def __init__(
        self, env_ids: Sequence[str], env_fns: Sequence[Factory], autoreset_mode: Autoreset = Autoreset.SAME_STEP
    ) -> None:
        super().__init__(env_fns, autoreset_mode)
        self.env_ids = list(env_ids)
