"""Equality of trees: a table of deciders, asked one after the other, and how their verdicts combine."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from gem.graders.math.engine import AllOf, AnyOf, Condition
from gem.graders.math.question import Question
from gem.graders.math.tree import Tree

Verdict = bool | Condition
Decider = Callable[[Tree, Tree, Question], "Verdict | None"]
DECIDERS: dict[str, Decider] = {}  # filled by the package


def same(a: Tree, g: Tree, q: Question) -> Verdict:
    """Return whether an answer equals a reference answer, or the condition under which it does."""
    if a == g:
        return True
    for decide in DECIDERS.values():
        if (verdict := decide(a, g, q)) is not None:
            return verdict
    return False


def same_with(old: Tree, new: Tree, a: Tree, g: Tree, q: Question) -> Verdict:
    """Compare two trees, of which one is replaced by another reading of it."""
    return same(new, g, q) if old is a else same(a, new, q)


def all_of(verdicts: Iterable[Verdict]) -> Verdict:
    """Return False if any verdict is False, True if all are True, else the conjunction of the undecided verdicts."""
    return _combined(verdicts, False, AllOf)


def any_of(verdicts: Iterable[Verdict]) -> Verdict:
    """Return True if any verdict is True, False if all are False, else the disjunction of the undecided verdicts."""
    return _combined(verdicts, True, AnyOf)


def _combined(verdicts: Iterable[Verdict], decisive: bool, joined: type[AllOf] | type[AnyOf]) -> Verdict:
    undecided: list[Condition] = []
    for verdict in verdicts:
        if verdict is decisive:
            return decisive
        if not isinstance(verdict, bool):
            undecided.append(verdict)
    return joined(tuple(undecided)) if len(undecided) > 1 else undecided[0] if undecided else not decisive
