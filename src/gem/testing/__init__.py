"""Check environments, dataset rows, tools and sandboxes; record and replay playthroughs.

These are checks of anything that keeps a contract of gem, also of others. Tests of gem itself are in tests.

The following need more than the core package, so they have to be imported from their own modules: check_sandbox() from
gem.testing.sandbox.check_sandbox, check_judge() from gem.testing.check_judge, and the fake servers for tests from
gem.testing.fakes.endpoint and gem.testing.fakes.search.
"""

from gem.testing.check import CheckReport, CheckResult
from gem.testing.check_rows import check_rows
from gem.testing.check_tool import check_tool
from gem.testing.env.check_env import check_env
from gem.testing.env.playthroughs import Difference, record, replay

__all__ = ["CheckReport", "CheckResult", "Difference", "check_env", "check_rows", "check_tool", "record", "replay"]
