"""The form and the order in which a question asks for its answer."""

from __future__ import annotations

from gem.graders.math2.question.read import Question
from gem.graders.math2.tree import Tree


def has_asked_form(answer: Tree, gold: Tree, question: Question) -> bool:
    """Return whether an answer has each form that the question asks for and the reference answer has."""
    return True


def is_ordered(question: Question) -> bool:
    """Return whether the items of a list without brackets have an order."""
    return False
