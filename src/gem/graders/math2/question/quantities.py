"""Units, percentages and rounding that a question asks for."""

from __future__ import annotations

from fractions import Fraction

from gem.graders.math2.question.read import Question
from gem.graders.math2.tree import Tree


def in_asked_units(answer: Tree, gold: Tree, question: Question) -> tuple[Tree, Tree] | None:
    """Return both values with the unit that the question asks for where they have none.

    Returns:
        None if the answer has a unit that no answer to this question has.
    """
    return answer, gold


def tolerance(gold: Tree, question: Question) -> Fraction:
    """Return by how much an answer may differ from a reference answer that is rounded; 0 if it is exact."""
    return Fraction(0)
