"""Proof that an environment is sound: check_env for its promises, record and replay for what it says."""

from gem.testing.check_env import check_env
from gem.testing.playthroughs import Difference, record, replay
from gem.testing.report import Report, Result

__all__ = ["Difference", "Report", "Result", "check_env", "record", "replay"]
