"""Vector environments under their published names. New code should use gem.vector."""

from __future__ import annotations

import numpy as np

from gem.vector.base import Autoreset, VectorEnv

__all__ = ["ArrayType", "AutoresetMode", "VectorEnv"]

ArrayType = np.ndarray
AutoresetMode = Autoreset
