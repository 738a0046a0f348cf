"""Check environments, dataset rows, tools and sandboxes; record and replay playthroughs.

check_sandbox() is in gem.testing.check_sandbox, and fake servers for tests are in gem.testing.fakes and
gem.testing.fake_search, because they need more than the core.
"""

from gem.testing.check import CheckReport, CheckResult
from gem.testing.check_env import check_env
from gem.testing.check_rows import check_rows
from gem.testing.check_tool import check_tool
from gem.testing.playthroughs import Difference, record, replay

__all__ = ["CheckReport", "CheckResult", "Difference", "check_env", "check_rows", "check_tool", "record", "replay"]
