"""Readings of an answer in words: the number in a sentence, the parts with labels, the choice with its text."""

from __future__ import annotations

from collections.abc import Iterator

from gem.graders.math2.question.read import Question
from gem.graders.math2.tree import Tree


def readings(answer: Tree, gold: Tree, question: Question) -> Iterator[tuple[Tree, Tree]]:
    """Yield the two trees and the pairs of their other readings with regard to the question."""
    yield answer, gold
