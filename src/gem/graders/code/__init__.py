"""Programs: run their tests in a sandbox, and compare the outputs outside it.

No program runs here in the process of the caller. Isolation is in gem.sandbox.
"""

from gem.graders.code.grader import CodeGrader

__all__ = ["CodeGrader"]
