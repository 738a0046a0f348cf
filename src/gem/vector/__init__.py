"""Vector environments: step many environments through one interface."""

from gem.vector.base import Autoreset, Received, VecStep, VectorEnv
from gem.vector.make import make_vec
from gem.vector.stats import EnvStats

__all__ = ["Autoreset", "EnvStats", "Received", "VecStep", "VectorEnv", "make_vec"]
