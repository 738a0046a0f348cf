"""Environment wrappers: observation history, episode statistics, turn limits, keys of states, and wrappers by name.

The wrapper that gives an environment tools is in gem.tools, and what changes tasks is an option of the environment.
"""

from gem.wrappers.episode_tracking import EpisodeTrackingWrapper
from gem.wrappers.observation import ObservationWrapper
from gem.wrappers.state_key import StateKeyWrapper
from gem.wrappers.turn_limit import TurnLimit
from gem.wrappers.wrapper_factory import WRAPPER_FACTORY, get_wrapper_fns, tool_wrapper

__all__ = [
    "WRAPPER_FACTORY",
    "EpisodeTrackingWrapper",
    "ObservationWrapper",
    "StateKeyWrapper",
    "TurnLimit",
    "get_wrapper_fns",
    "tool_wrapper",
]
