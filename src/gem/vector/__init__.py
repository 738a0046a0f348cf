"""Vector environments: step many environments through one interface.

What a policy sees and says is in rollout; how one environment behaves is in core and envs.
"""

from gem.vector.base import Autoreset, Received, VecStep, VectorEnv
from gem.vector.make import make_vec
from gem.vector.stats import EnvStats

__all__ = ["Autoreset", "EnvStats", "Received", "VecStep", "VectorEnv", "make_vec"]
