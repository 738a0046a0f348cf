"""Proof that a thing is sound: an environment, the rows of a data set, a tool; record and replay for what is said."""

from gem.testing.check_env import check_env
from gem.testing.check_rows import check_rows
from gem.testing.check_tool import check_tool
from gem.testing.playthroughs import Difference, record, replay
from gem.testing.report import Report, Result

__all__ = ["Difference", "Report", "Result", "check_env", "check_rows", "check_tool", "record", "replay"]
