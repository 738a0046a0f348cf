"""Values that the specifications of many environments share."""

FORMAT_ERROR = -0.1  # reward of an action that cannot be read
BASELINE = 0.25  # maximum mean reward of policies that ignore the task; the oracle earns 1.0
