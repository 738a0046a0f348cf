"""check_sandbox(), and the programs that it runs."""

from gem.testing.sandbox.check_sandbox import check_sandbox

__all__ = ["check_sandbox"]
