"""check_sandbox(), and the programs that it runs, which are harmless where a sandbox does not hold.

Programs that do harm are in tests/sandbox/attacks, and run in an envelope only.
"""

from gem.testing.sandbox.check_sandbox import check_sandbox

__all__ = ["check_sandbox"]
