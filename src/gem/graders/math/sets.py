"""Sets of real numbers: unions of intervals and points, from intervals, inequalities and conditions."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
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
    if [closed for *_, closed in ours] != [closed for *_, closed in theirs]:
        return False
    return [pair for piece, gold in zip(ours, theirs, strict=True) for pair in zip(piece[:2], gold[:2], strict=True)]


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
    match tree:
        case Interval(low, high):
            yield from (low, high)
        case Op("tuple", (low, high)):
            yield from (low, high)
        case Op("set" | "list" | "and" | "or", items):
            for item in items:
                yield from _bounds(item) if not is_formula(item) else (item,)
        case Op("cup" | "cap" | "minus" | "where", parts):
            for part in parts:
                yield from _bounds(part)
        case Relation():
            yield from _relation_bounds(tree)
        case _:
            yield None


def _relation_bounds(tree: Relation) -> Iterator[Tree | None]:
    if len(names_in(tree)) != 1 or not set(tree.operators) <= {"<", "≤", "≠", "=", "∈", "∉"}:
        yield None
    elif tree.operators[0] in ("∈", "∉"):
        yield from _bounds(tree.sides[1])
    else:
        for left, right in pairwise(tree.sides):
            variable, constant = (left, right) if names_in(left) else (right, left)
            if constant not in (INFINITY, MINUS_INFINITY):
                is_value = not names_in(constant) and not is_op(constant, "list", "tuple")
                roots = _solutions(variable, constant) if is_value else None
                yield from (None,) if roots is None else roots


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
    if isinstance(tree, Op) and not is_formula(tree):
        return {name for arg in tree.args for name in _variables(arg)}
    return names_in(tree) if isinstance(tree, Relation) else set()


def contains(tree: Tree, x: float) -> bool:
    """Return whether a set of real numbers contains a number."""
    match tree:
        case Interval(low_bound, high_bound, closed):
            low, high, near = _float(low_bound), _float(high_bound), _near(x)
            above = low < x - near or (closed[0] and low <= x + near)
            return above and (x < high - near or (closed[1] and x <= high + near))
        case Relation():
            return _holds(tree, x)
        case Op("tuple", (start, end)):
            return contains(Interval(start, end, (False, False)), x)
        case Op("minus", (whole, part)):
            return contains(whole, x) and not contains(part, x)
        case Op(_, args) if not is_formula(tree):
            return (all if _is_joint(tree) else any)(contains(arg, x) for arg in args)
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


def _float(tree: Tree, names: Mapping[str, complex] | None = None) -> float:
    if tree in (INFINITY, MINUS_INFINITY):
        return math.inf if tree == INFINITY else -math.inf
    value = approximate(tree, names or {})
    return math.nan if value is None else value.real


def _holds(tree: Relation, x: float) -> bool:
    if tree.operators[0] in ("∈", "∉"):
        return contains(tree.sides[1], x) is (tree.operators[0] == "∈")
    names = dict.fromkeys(names_in(tree), complex(x))
    values = [_float(side, names) for side in tree.sides]
    for (left, right), operator in zip(pairwise(values), tree.operators, strict=True):
        near = abs(left - right) <= _CLOSE * max(1.0, abs(left)) if math.isfinite(left - right) else False
        if not {"<": left < right and not near, "≤": left <= right or near, "=": near, "≠": not near}[operator]:
            return False
    return True
