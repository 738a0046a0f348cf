"""Vector environments under their published names. New code should use gem.vector."""

from __future__ import annotations

import numpy as np

from gem.vector.base import Autoreset, VectorEnv

__all__ = ["ArrayType", "AutoresetMode", "VectorEnv"]

ArrayType = np.ndarray
AutoresetMode = Autoreset


class ForwardingType(type):
    """Type of a class whose isinstance() also accepts its attribute ``forwards_to``, which make_vec() returns."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, vars(cls).get("forwards_to", ())) or super().__instancecheck__(instance)
