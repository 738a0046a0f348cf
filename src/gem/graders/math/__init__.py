"""Math answers: whether two expressions have the same value.

Read the modules in this order: lexer (text → tokens), tree (the types of trees), parser (tokens → tree), heads (how
operators and functions are computed), values (exact and approximate values), equal (decisions on trees), engine and
symbolic (computer algebra for what these leave open), question (what a question contributes) and grader.
"""

from gem.graders.math.grader import MathGrader, grade_math

__all__ = ["MathGrader", "grade_math"]
