"""Vector environments with their published names and arguments. New code should use gem.vector."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gem.vector.base import Autoreset, VectorEnv
from gem.vector.slots import Factory

__all__ = ["ArrayType", "AsyncVectorEnv", "AutoresetMode", "SyncVectorEnv", "VectorEnv"]

ArrayType = np.ndarray
AutoresetMode = Autoreset


class _PublishedType(type):
    """Type of classes that stand for a backend: what make_vec() returns for the backend is an instance of them."""

    def __instancecheck__(cls, instance: object) -> bool:
        backend = vars(cls).get("stands_for")
        return (isinstance(instance, VectorEnv) and instance.backend == backend) or super().__instancecheck__(instance)


class SyncVectorEnv(VectorEnv, metaclass=_PublishedType):
    """A vector environment of backend "sync", with the published arguments.

    Args:
        env_ids: one id per slot.
        env_fns: one callable per slot that builds its environment.
        autoreset_mode: see Autoreset.
    """

    stands_for = "sync"

    def __init__(
        self, env_ids: Sequence[str], env_fns: Sequence[Factory], autoreset_mode: Autoreset = Autoreset.SAME_STEP
    ) -> None:
        built = VectorEnv.of(env_fns, autoreset_mode, backend=self.stands_for)
        super().__init__(built.engine, built.autoreset)
        self.env_ids = list(env_ids)


class AsyncVectorEnv(SyncVectorEnv):
    """A vector environment of backend "async", with the published arguments and one thread per slot."""

    stands_for = "async"
