"""Decide on sets of real numbers, and on tuples, sets, lists and matrices."""

from __future__ import annotations

from collections.abc import Sequence

from gem.graders.math.engine import Matching, SameEquation
from gem.graders.math.equal.core import Verdict, all_of, any_of, same, same_with
from gem.graders.math.equal.normal import difference, named
from gem.graders.math.question import Question
from gem.graders.math.sets import same_real_sets
from gem.graders.math.tree import INFINITY, MINUS_INFINITY, Interval, Op, Relation, Sym, Tree, is_op

_ITEMS = frozenset({"list", "and", "or", "tuple", "set", "matrix", "cases"})


def real_sets(a: Tree, g: Tree, q: Question) -> Verdict | None:
    return as_sets(a, g, q) if is_set_like(a) or is_set_like(g) else None


def is_set_like(tree: Tree) -> bool:
    match tree:
        case Interval() | Op("cup" | "cap" | "minus"):
            return True
        case Relation(_, operators):
            return bool({"<", "≤", "≠", "∉"} & {*operators})
        case Op("and" | "or" | "list" | "where", args):
            return any(map(is_set_like, args))
    return False


def as_sets(a: Tree, g: Tree, q: Question) -> Verdict | None:
    pairs = same_real_sets(a, g)
    if pairs is None:
        if isinstance(a, Relation) and isinstance(g, Relation):
            return _inequalities(a, g, q)
        ours, theirs = _intervals(a), _intervals(g)
        if ours is None or theirs is None or len(ours) != len(theirs):
            return None
        return _same_items(ours, theirs, q) if len(ours) > 1 else _same_interval(ours[0], theirs[0], q)
    return pairs if isinstance(pairs, bool) else all_of(same(x, y, q) for x, y in pairs)


def _same_interval(a: Interval, g: Interval, q: Question) -> Verdict:
    return a.closed == g.closed and all_of((same(a.low, g.low, q), same(a.high, g.high, q)))


def _intervals(tree: Tree) -> list[Interval] | None:
    """Return the intervals of a union whose bounds may have letters; None if a part is no interval."""
    match tree:
        case Interval():
            return [tree]
        case Op("cup" | "or", args):
            parts = [_intervals(arg) for arg in args]
            return None if None in parts else [each for part in parts for each in part or ()]
        case Relation((low, Sym(), high), ("<" | "≤" as first, "<" | "≤" as second)):
            return [Interval(low, high, (first == "≤", second == "≤"))]
        case Relation((Sym(name), high), ("<" | "≤" as operator,)) if not isinstance(high, Sym) or high.name <= name:
            return [Interval(MINUS_INFINITY, high, (False, operator == "≤"))]
        case Relation((low, Sym()), ("<" | "≤" as operator,)):
            return [Interval(low, INFINITY, (operator == "≤", False))]
    return None


def _inequalities(a: Relation, g: Relation, q: Question) -> Verdict:
    if a.operators != g.operators:
        return False
    if len(a.sides) > 2 or a.operators[0] not in ("<", "≤"):
        return all_of(same(x, y, q) for x, y in zip(a.sides, g.sides, strict=True))
    return SameEquation(difference(a), difference(g), positive=True)


def collections(a: Tree, g: Tree, q: Question) -> Verdict | None:
    """Compare tuples in their order, and sets and lists in any order."""
    if not any(is_op(tree, *_ITEMS) for tree in (a, g)):
        return None
    for tree, other in ((a, g), (g, a)):
        if (
            is_op(tree, "set")
            and len(tree.args) == 1
            and not isinstance(other, Interval)
            and not is_op(other, *_ITEMS - {"tuple"})
        ):
            return same_with(tree, tree.args[0], a, g, q)
    if not is_op(a, *_ITEMS) or not is_op(g, *_ITEMS):
        return False
    a, g = _by_name(a, g), _by_name(g, a)
    if {a.head, g.head} <= {"list", "and", "tuple"} and "tuple" in (a.head, g.head):
        a, g = Op("tuple", a.args), Op("tuple", g.args)
    heads = {a.head, g.head}
    if a.head == "set" and g.head == "set":
        return all_of((_has_all(a.args, g.args, q), _has_all(g.args, a.args, q)))
    if (heads & {"tuple", "matrix", "cases"} and len(heads) > 1) or len(a.args) != len(g.args):
        return False
    if a.head in ("tuple", "matrix"):
        return all_of(same(x, y, q) for x, y in zip(a.args, g.args, strict=True))
    if "set" in heads and any(len({_base(n) for n, _ in map(named, t.args) if n}) > 1 for t in (a, g)):
        return False
    return _same_items(a.args, g.args, q)


def _base(name: str) -> str:
    return name.partition("_")[0]


def _by_name(tree: Op, other: Op) -> Op:
    """Return "y = 2, x = 1" as the tuple (1, 2) if the other tree is a tuple."""
    pairs = sorted((named(item) for item in tree.args), key=lambda pair: pair[0].lstrip("\\"))
    names = {name for name, _ in pairs}
    is_point = other.head == "tuple" and tree.head in ("list", "and") and "" not in names
    return Op("tuple", tuple(value for _, value in pairs)) if is_point and len(names) == len(pairs) > 1 else tree


def _has_all(items: Sequence[Tree], others: Sequence[Tree], q: Question) -> Verdict:
    """Return whether each of ``others`` equals one of ``items``."""
    return all_of(any_of(same(item, other, q) for item in items) for other in others)


def _same_items(items: Sequence[Tree], golds: Sequence[Tree], q: Question) -> Verdict:
    """Compare two sequences of equal length, ignoring the order. Each reference item is matched only once."""
    left = list(golds)
    for position, item in enumerate(items):
        found = next(((i, v) for i, other in enumerate(left) if (v := same(item, other, q)) is not False), None)
        if found is None:
            return False
        if found[1] is not True:
            return Matching(tuple(tuple(same(later, other, q) for other in left) for later in items[position:]))
        del left[found[0]]
    return True
