"""Sets of real numbers bounded by constants: intervals, unions, differences, x != 2, |x| < 2; piecewise functions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

from gem.graders.math.values import Formula, Group, Interval, Named, Number, Relation, Value, Word

_LETTER, _ABSOLUTE = re.compile("([a-zA-Z])"), re.compile(r"\|([a-zA-Z])([+-]\d+(?:/\d+|\.\d+)?)?\|")
_CONSTANT = re.compile(r"(?:\\(?:sqrt|frac|cdot|pi|ln|log)(?![a-zA-Z])|(?<![a-zA-Z\\])e(?![a-zA-Z])|[^a-zA-Z\\])+")


def is_real_set(value: Value) -> bool:
    """Return whether a value is a set of real numbers bounded by constants, or conditions on one variable."""
    if isinstance(value, Named):
        return is_composed(value) and is_real_set(value.value)
    if isinstance(value, Interval):
        return all(bound is None or _is_constant(bound) for bound in (value.low, value.high))
    if isinstance(value, Relation):
        return _bound_of(value) is not None
    if not isinstance(value, Group) or not value.items:
        return False
    if value.kind in ("set", "tuple"):
        size = len(value.items)
        return all(map(_is_constant, value.items)) and (value.kind == "set" or size == 2)
    if value.kind == "list":  # conditions such as 0 < x < 36, x != 9
        return all(isinstance(item, (Interval, Relation)) and is_real_set(item) for item in value.items)
    return value.kind in ("union", "difference") and all(map(is_real_set, value.items))


def is_composed(value: Value) -> bool:
    """Return whether a set of real numbers is neither a pair nor an interval nor listed by its elements."""
    if isinstance(value, Named):
        return is_composed(value.value)
    return isinstance(value, Relation) or (isinstance(value, Group) and value.kind in ("list", "union", "difference"))


def _is_constant(value: Value) -> bool:
    if isinstance(value, Formula) and not value.unit:
        return _CONSTANT.fullmatch(value.latex) is not None
    return isinstance(value, Number) and not value.unit


def _bound_of(value: Relation) -> tuple[str, str, Value, Fraction] | None:
    """Return the variable, the operator, the bound and the center of x != 2, |x - 1| < 2 or 2 < |x|.

    Return None for other relations. The center of |x - 1| is 1.
    """
    for left, right, swapped in ((value.left, value.right, ""), (value.right, value.left, "swapped ")):
        if isinstance(left, Formula) and not left.unit and _is_constant(right):
            name = (_LETTER if value.operator == r"\ne" else _ABSOLUTE).fullmatch(left.latex)
            if name is not None and value.operator != "=":
                center = -Fraction(name.group(2) or 0) if name.re is _ABSOLUTE else Fraction(0)
                return name.group(1), swapped + value.operator, right, center
    return None


def formulas_in(value: Value) -> list[str]:
    """Return the bounds of a set of real numbers that are formulas."""
    found: list[str] = []

    def note(latex: str) -> Fraction:
        found.append(latex)
        return Fraction(0)

    with_bounds(value, note)
    return found


def with_bounds(value: Value, number: Callable[[str], Fraction]) -> Value:
    """Replace the bounds of a set of real numbers that are formulas by numbers."""

    def replaced(bound: Value) -> Value:
        return Number(number(bound.latex)) if isinstance(bound, Formula) and _is_constant(bound) else bound

    if isinstance(value, Named):
        return replace(value, value=with_bounds(value.value, number))
    if isinstance(value, Interval):
        low, high = (None if bound is None else replaced(bound) for bound in (value.low, value.high))
        return replace(value, low=low, high=high)
    if isinstance(value, Relation):
        return replace(value, left=replaced(value.left), right=replaced(value.right))
    if isinstance(value, Group):
        return replace(value, items=tuple(with_bounds(item, number) for item in value.items))
    return replaced(value)


def same_real_set(a: Value, g: Value) -> bool:
    """Compare two sets of real numbers at their bounds and between them. The bounds must be numbers."""
    names, gold_names = _variables(a), _variables(g)
    if len(names | gold_names) > 1:
        return False
    bounds = sorted({*_bounds(a), *_bounds(g)}) or [Fraction(0)]
    middles = [(low + high) / 2 for low, high in pairwise(bounds)]
    return all(_has(a, x) is _has(g, x) for x in (*bounds, *middles, bounds[0] - 1, bounds[-1] + 1))


def is_piecewise(value: Value) -> bool:
    """Return whether a value has cases whose conditions are sets of numbers bounded by numbers, or "otherwise"."""
    return (
        isinstance(value, Group)
        and value.kind == "cases"
        and all(
            _is_rest(condition) or (is_real_set(condition) and not formulas_in(condition))
            for _, condition in _rows(value)
        )
        and len({name for _, condition in _rows(value) for name in _variables(condition)}) == 1
    )


def case_points(values: tuple[Value, ...]) -> tuple[str, list[Fraction]]:
    """Return the variable of piecewise functions, and numbers at the bounds of their cases and between them."""
    conditions = [condition for value in values if is_piecewise(value) for _, condition in _rows(value)]
    name = next(name for condition in conditions for name in _variables(condition))
    bounds = sorted({bound for condition in conditions for bound in _bounds(condition)})
    outside = [bounds[0] - 1, bounds[0] - Fraction(7, 3), bounds[-1] + 1, bounds[-1] + Fraction(7, 3)]
    between = [low + (high - low) * part for low, high in pairwise(bounds) for part in (Fraction(1, 2), Fraction(1, 3))]
    return name, [*bounds, *between, *outside]


def case_at(value: Value, x: Fraction) -> Value | None:
    """Return the case of a piecewise function that holds at a number, or any other value; None if no case holds."""
    if not is_piecewise(value):
        return value
    return next((case for case, condition in _rows(value) if _is_rest(condition) or _has(condition, x)), None)


def _rows(cases: Value) -> list[tuple[Value, Value]]:
    items = cases.items if isinstance(cases, Group) else ()
    return [(item.items[0], item.items[1]) for item in items if isinstance(item, Group)]


def _is_rest(condition: Value) -> bool:
    return condition in (Word("otherwise"), Word("else"))


def _variables(value: Value) -> set[str]:
    if isinstance(value, Named):
        return {value.name} | _variables(value.value)
    if isinstance(value, Relation):
        bound = _bound_of(value)
        return set() if bound is None else {bound[0]}
    if isinstance(value, Interval):
        return {value.variable} - {""}
    return {name for item in value.items for name in _variables(item)} if isinstance(value, Group) else set()


def _bounds(value: Value) -> Iterator[Fraction]:
    if isinstance(value, Named):
        yield from _bounds(value.value)
    elif isinstance(value, Number):
        yield value.exact
    elif isinstance(value, Relation) and (bound := _bound_of(value)) is not None:
        yield from (bound[3] + _exact(bound[2]), bound[3] - _exact(bound[2]))
    for item in value.items if isinstance(value, Group) else ():
        yield from _bounds(item)
    for end in (value.low, value.high) if isinstance(value, Interval) else ():
        if end is not None:
            yield from _bounds(end)


def _has(value: Value, x: Fraction) -> bool:
    """Return whether a set of real numbers contains a number."""
    if isinstance(value, Named):
        return _has(value.value, x)
    if isinstance(value, Number):
        return value.exact == x
    if isinstance(value, Relation):
        _, operator, limit, center = _bound_of(value) or ("", "", Number(x), Fraction(0))
        bound, size = _exact(limit), abs(x - center)
        verdicts = {r"\ne": x != bound, "<": size < bound, r"\le": size <= bound}
        return (verdicts | {"swapped <": bound < size, r"swapped \le": bound <= size}).get(operator, x != bound)
    if isinstance(value, Interval):
        low, high = (end.exact if isinstance(end, Number) else None for end in (value.low, value.high))
        above = low is None or low < x or (low == x and value.closed[0])
        return above and (high is None or x < high or (x == high and value.closed[1]))
    if not isinstance(value, Group):
        return False
    if value.kind == "tuple":
        return _has(Interval(value.items[0], value.items[1], (False, False)), x)
    if value.kind == "difference":
        return _has(value.items[0], x) and not _has(value.items[1], x)
    return (all if value.kind == "list" else any)(_has(item, x) for item in value.items)


def _exact(value: Value) -> Fraction:
    if not isinstance(value, Number):
        raise TypeError(f"not a number: {value}")
    return value.exact
