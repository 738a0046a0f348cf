"""Constants under their published names."""

from __future__ import annotations

from gem.sandbox.usual_imports import USUAL_IMPORTS

# The published last observation of single-turn environments. The environments of this package return the verdict.
TERMINAL_STATE = "<｜TERMINAL_STATE｜>"


class LanguageGameReward:
    """Rewards of the published games."""

    success_reward = 1.0
    internal_step_reward = 0.0
    fail_reward = 0.0
    invalid_action_reward = 0.0
    format_error_reward = -0.1


# Import statements, one per line, which bind the names of the standard library that programs use most.
BASE_IMPORTS = USUAL_IMPORTS
BASE_LEETCODE_IMPORTS = USUAL_IMPORTS
