"""Math answers: whether two expressions have the same value."""

from gem.graders.math.grader import MathGrader, grade_math

__all__ = ["MathGrader", "grade_math"]
