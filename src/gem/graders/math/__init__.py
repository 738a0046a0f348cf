"""Math answers: whether two expressions have the same value.

Prose is judged by gem.graders.judge, and short answers in words by exact.
"""

from gem.graders.math.grader import MathGrader, grade_math

__all__ = ["MathGrader", "grade_math"]
