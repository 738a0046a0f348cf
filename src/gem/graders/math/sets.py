"""Sets of real numbers: unions of intervals and points, from intervals, inequalities and conditions."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise

from gem.graders.math.tree import (
    INFINITY,
    MINUS_INFINITY,
    Interval,
    Num,
    Op,
    Relation,
    Sym,
    Tree,
    is_op,
    names_in,
)
from gem.graders.math.values import approximate, fraction_of, is_formula

_CLOSE = 1e-9


def same_real_sets(a: Tree, g: Tree) -> bool | list[tuple[Tree, Tree]] | None:
    """Compare two sets of real numbers up to the values of their bounds.

    Returns:
        False if they differ; else the pairs of bounds that have to be equal; None if one is no such set.
    """
    if _is_points(a) and _is_points(g):
        return None
    names = _variables(a) | _variables(g)
    if len(names) > 1:
        return False if _pieces(a) is not None and _pieces(g) is not None else None
    ours, theirs = _pieces(a), _pieces(g)
    if ours is None or theirs is None:
        return None
    if len(ours) != len(theirs):
        return False
    pairs: list[tuple[Tree, Tree]] = []
    for (low, high, closed), (gold_low, gold_high, gold_closed) in zip(ours, theirs, strict=True):
        if closed != gold_closed:
            return False
        pairs += [(low, gold_low), (high, gold_high)]
    return pairs


_Piece = tuple[Tree, Tree, tuple[bool, bool]]


def _is_points(tree: Tree) -> bool:
    return is_op(tree, "set", "list", "tuple")


def _pieces(tree: Tree) -> list[_Piece] | None:
    """Return the disjoint pieces of a set, in order; None if it is no set of real numbers."""
    found = bounds_of(tree)
    if found is None:
        return None
    bounds: list[tuple[float, Tree]] = []
    for value, bound in sorted(found, key=lambda pair: pair[0]):
        if not bounds or value - bounds[-1][0] > _CLOSE * max(1.0, abs(value)):
            bounds.append((value, bound))
    values = [value for value, _ in bounds]
    inside = [contains(tree, x) for x in values]
    middles = [(low + high) / 2 for low, high in pairwise(values)]
    gaps = [contains(tree, (values[0] if values else 0.0) - 1.0), *(contains(tree, x) for x in middles)]
    gaps.append(contains(tree, (values[-1] if values else 0.0) + 1.0))
    pieces: list[_Piece] = []
    if is_op(tree, "list") and not any(inside) and not any(gaps) and tree.args:
        return _pieces(Op("or", tree.args))  # x ≤ -3, x ≥ 1
    start: tuple[Tree, bool] | None = (MINUS_INFINITY, False) if gaps[0] else None
    for i, (_, bound) in enumerate(bounds):
        if start is None and inside[i]:
            start = bound, True
        elif start is not None and not inside[i]:
            pieces.append((start[0], bound, (start[1], False)))
            start = None
        if start is not None and inside[i] and not gaps[i + 1]:
            pieces.append((start[0], bound, (start[1], True)))
            start = None
        if start is None and gaps[i + 1]:
            start = bound, inside[i]
    if start is not None:
        pieces.append((start[0], INFINITY, (start[1], False)))
    return pieces


def bounds_of(tree: Tree) -> list[tuple[float, Tree]] | None:
    """Return the finite bounds of a set of real numbers with their values; None if it is no such set."""
    found: list[tuple[float, Tree]] = []
    for bound in _bounds(tree):
        if bound is None:
            return None
        if bound in (INFINITY, MINUS_INFINITY):
            continue
        value = approximate(bound, {}) if is_formula(bound) else None
        if value is None or abs(value.imag) > _CLOSE:
            return None
        found.append((value.real, bound))
    return found


def _bounds(tree: Tree) -> Iterator[Tree | None]:
    if isinstance(tree, Interval):
        yield from (tree.low, tree.high)
    elif is_op(tree, "set", "list", "and", "or"):
        for item in tree.args:
            yield from _bounds(item) if not is_formula(item) else (item,)
    elif is_op(tree, "tuple") and len(tree.args) == 2:
        yield from tree.args
    elif is_op(tree, "cup", "cap", "minus", "where"):
        for item in tree.args:
            yield from _bounds(item)
    elif isinstance(tree, Relation):
        yield from _relation_bounds(tree)
    else:
        yield None


def _relation_bounds(tree: Relation) -> Iterator[Tree | None]:
    names = names_in(tree)
    if len(names) != 1:
        yield None
        return
    if tree.operators[0] in ("∈", "∉"):
        yield from _bounds(tree.sides[1])
        return
    if not set(tree.operators) <= {"<", "≤", "≠", "="}:
        yield None
        return
    for left, right in pairwise(tree.sides):
        variable, constant = (left, right) if names_in(left) else (right, left)
        if constant not in (INFINITY, MINUS_INFINITY):
            is_value = not names_in(constant) and not is_op(constant, "list", "tuple")
            yield from (_solutions(variable, constant) if is_value else None) or (None,)


def _solutions(tree: Tree, value: Tree) -> list[Tree] | None:
    """Return the real x at which a formula of x has a value, if it is x, |x - a|, or a polynomial up to degree 2."""
    if isinstance(tree, Sym):
        return [value]
    if is_op(tree, "abs"):
        negative = _solutions(tree.args[0], Op("neg", (value,)))
        positive = _solutions(tree.args[0], value)
        return None if negative is None or positive is None else [*negative, *positive]
    coefficients, right = _polynomial(tree), fraction_of(value)
    if coefficients is None:
        return None
    c, b, a = coefficients
    if a == 0 and b != 0:
        return [Op("/", (Op("+", (value, Num(-c))), Num(b)))]
    if right is None or a == 0:
        return None
    inside = b * b - 4 * a * (c - right)
    if inside < 0:
        return []
    root = Op("sqrt", (Num(inside), Num(Fraction(2))))
    return [Op("/", (Op("+", (Num(-b), Op(*sign))), Num(2 * a))) for sign in (("neg", (root,)), ("+", (root,)))]


def _polynomial(tree: Tree) -> tuple[Fraction, Fraction, Fraction] | None:
    """Return the coefficients of a polynomial of degree 2 at most in its only name; None for other trees."""
    if (exact := fraction_of(tree)) is not None:
        return exact, Fraction(0), Fraction(0)
    if isinstance(tree, Sym):
        return Fraction(0), Fraction(1), Fraction(0)
    if not isinstance(tree, Op):
        return None
    if tree.head == "^" and tree.args[1] == Num(Fraction(2)):
        return _polynomial(Op("*", (tree.args[0], tree.args[0])))
    parts = [_polynomial(arg) for arg in tree.args]
    known = [part for part in parts if part is not None]
    if len(known) < len(parts) or tree.head not in ("+", "neg", "*"):
        return None
    if tree.head in ("+", "neg"):
        sign = -1 if tree.head == "neg" else 1
        return tuple(sign * sum((part[i] for part in known), Fraction(0)) for i in range(3))  # type: ignore[return-value]
    product = [Fraction(1), Fraction(0), Fraction(0)]
    for part in known:
        full = [sum((product[i] * part[n - i] for i in range(3) if 0 <= n - i < 3), Fraction(0)) for n in range(5)]
        if full[3] or full[4]:
            return None
        product = full[:3]
    return product[0], product[1], product[2]


def _variables(tree: Tree) -> set[str]:
    if isinstance(tree, Relation):
        return names_in(tree)
    if isinstance(tree, Op):
        return {name for arg in tree.args for name in _variables(arg)} if not is_formula(tree) else set()
    return set()


def contains(tree: Tree, x: float) -> bool:
    """Return whether a set of real numbers contains a number."""
    if isinstance(tree, Interval):
        low, high = _float(tree.low), _float(tree.high)
        above = low < x - _near(x) or (tree.closed[0] and low <= x + _near(x))
        return above and (x < high - _near(x) or (tree.closed[1] and x <= high + _near(x)))
    if isinstance(tree, Relation):
        return _holds(tree, x)
    if isinstance(tree, Op):
        if tree.head == "tuple":
            return contains(Interval(tree.args[0], tree.args[1], (False, False)), x)
        if tree.head == "minus":
            return contains(tree.args[0], x) and not contains(tree.args[1], x)
        members = [contains(arg, x) for arg in tree.args] if not is_formula(tree) else [_is_at(tree, x)]
        return all(members) if _is_joint(tree) else any(members)
    return _is_at(tree, x)


def _is_joint(tree: Op) -> bool:
    """Return whether the parts of a set are conditions that hold together."""
    return tree.head in ("cap", "where") or (
        tree.head in ("and", "list") and any(isinstance(a, Relation) for a in tree.args)
    )


def _near(x: float) -> float:
    return _CLOSE * max(1.0, abs(x))


def _is_at(tree: Tree, x: float) -> bool:
    return abs(_float(tree) - x) <= _near(x)


def _float(tree: Tree) -> float:
    if tree in (INFINITY, MINUS_INFINITY):
        return math.inf if tree == INFINITY else -math.inf
    value = approximate(tree, {})
    return math.nan if value is None else value.real


def _holds(tree: Relation, x: float) -> bool:
    if tree.operators[0] in ("∈", "∉"):
        return contains(tree.sides[1], x) is (tree.operators[0] == "∈")
    names = dict.fromkeys(names_in(tree), complex(x))
    values = []
    for side in tree.sides:
        if side in (INFINITY, MINUS_INFINITY):
            values.append(_float(side))
        else:
            value = approximate(side, names)
            values.append(math.nan if value is None else value.real)
    for (left, right), operator in zip(pairwise(values), tree.operators, strict=True):
        near = abs(left - right) <= _CLOSE * max(1.0, abs(left)) if math.isfinite(left - right) else False
        if not {"<": left < right and not near, "≤": left <= right or near, "=": near, "≠": not near}[operator]:
            return False
    return True
