"""Programs: run their tests in a sandbox, and compare the outputs outside it."""

from gem.graders.code.grader import CodeGrader

__all__ = ["CodeGrader"]
