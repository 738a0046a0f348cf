r"""Compare families of formulas: general solutions with arbitrary constants, and progressions of an integer.

The constants of a family are named q_1, q_2 and so on. C_1 e^x + C_2 e^{-x} and A e^{-x} + B e^x are one family, and so
are \pi/4 + k\pi/2 and the two families \pi/4 + k\pi and 3\pi/4 + k\pi.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import permutations
from math import lcm
from typing import Any

from gem.graders.math.parse import parse, sympy_library

DIGITS = 40  # decimal digits of numerical evaluation
TINY = Fraction(1, 10**25)  # a number below it counts as zero
MAX_CONSTANTS = 4
MAX_RESIDUES = 200  # members of a progression within the common period


def same_family(answer: str, gold: str, vanishes: Callable[[Any], bool]) -> bool:
    """Return whether two formulas with the same number of arbitrary constants have the same members.

    Families that are linear in their constants are equal if their functions span the same space, and their difference
    is in it. Others must be equal after renaming the constants.

    Args:
        vanishes: whether a formula is zero wherever it is defined.
    """
    ours, theirs = parse(answer), parse(gold)
    constants, gold_constants = _constants(ours), _constants(theirs)
    size = len(constants)
    if not 1 <= size <= MAX_CONSTANTS or size != len(gold_constants):
        return False
    variables = sorted(ours.free_symbols - set(constants), key=str)
    if set(variables) != theirs.free_symbols - set(gold_constants):
        return False
    spans, gold_spans = _linear(ours, constants), _linear(theirs, gold_constants)
    if spans is None or gold_spans is None:
        return any(
            vanishes(ours.subs(dict(zip(constants, order, strict=True)), simultaneous=True) - theirs)
            for order in permutations(gold_constants)
        )
    rows = [_values(each, variables, size) for each in (*spans, *gold_spans)]
    ours_rows, gold_rows, apart = rows[1 : size + 1], rows[size + 2 :], _minus(rows[0], rows[size + 1])
    return (
        None not in rows
        and _rank(ours_rows) == _rank(gold_rows) == size
        and _rank([*ours_rows, *gold_rows, apart]) == size
    )


def same_progressions(answers: Sequence[str], golds: Sequence[str]) -> bool:
    """Return whether two unions of arithmetic progressions base + step q_1, over all integers q_1, are equal."""
    families = [_progression(latex) for latex in (*answers, *golds)]
    known = [family for family in families if family is not None]
    ratios = [_near_fraction(step / known[0][1]) for _, step in known]
    exact = [ratio for ratio in ratios if ratio]
    if not len(families) == len(known) == len(exact):
        return False
    parts = lcm(*(ratio.denominator for ratio in exact))
    sizes, unit = [abs(int(ratio * parts)) for ratio in exact], known[0][1] / parts
    period = lcm(*sizes)
    if any(period // size > MAX_RESIDUES for size in sizes):
        return False
    residues = [
        [base / unit + j * size for j in range(period // size)] for (base, _), size in zip(known, sizes, strict=True)
    ]
    ours, theirs = residues[: len(answers)], residues[len(answers) :]
    return all(
        any(_is_small((x - y + Fraction(period, 2)) % period - Fraction(period, 2)) for each in others for y in each)
        for some, others in ((ours, theirs), (theirs, ours))
        for each in some
        for x in each
    )


def _constants(expression: Any) -> list[Any]:
    return sorted((s for s in expression.free_symbols if s.name.startswith("q_")), key=lambda s: str(s.name))


def _linear(expression: Any, constants: Sequence[Any]) -> list[Any] | None:
    """Return the formula for zero constants and the factor of each constant; None if it is not linear in them."""
    factors = [sympy_library().expand(expression).diff(constant) for constant in constants]
    if any(factor.has(*constants) for factor in factors):
        return None
    return [expression.subs(dict.fromkeys(constants, 0)), *factors]


def _values(expression: Any, variables: Sequence[Any], size: int) -> list[Any] | None:
    """Return the values of a formula at random positive points; None if it is undefined at one."""
    sympy, chance, values = sympy_library(), random.Random(7), []
    for _ in range(2 * size + 3):
        point = {variable: sympy.Rational(chance.randint(101, 1999), 997) for variable in variables}
        value = sympy.N(expression.subs(point), DIGITS)
        if not value.is_number or not value.is_finite:
            return None
        values.append(value)
    return values


def _minus(a: list[Any] | None, g: list[Any] | None) -> list[Any] | None:
    return None if a is None or g is None else [x - y for x, y in zip(a, g, strict=True)]


def _rank(rows: Sequence[list[Any] | None]) -> int:
    """Return the rank of a matrix of floating-point numbers, by elimination with pivots."""
    left = [list(row) for row in rows if row is not None]
    rank = 0
    while left:
        sizes = [max(map(abs, row)) for row in left]
        pivot = left.pop(max(range(len(left)), key=lambda i: sizes[i]))
        column = max(range(len(pivot)), key=lambda j: abs(pivot[j]))
        if abs(pivot[column]) < TINY:
            break
        rank += 1
        left = [[x - row[column] / pivot[column] * p for x, p in zip(row, pivot, strict=True)] for row in left]
    return rank


def _progression(latex: str) -> tuple[Fraction, Fraction] | None:
    """Return the base and the step of a progression, to DIGITS digits; None for other formulas."""
    sympy, expression = sympy_library(), parse(latex)
    if len(constants := _constants(expression)) != 1 or len(expression.free_symbols) != 1:
        return None
    parts = _linear(expression, constants)
    numbers = [sympy.N(part, DIGITS) for part in parts or ()]
    if not numbers or not all(number.is_Float or number.is_Rational for number in numbers):
        return None
    base, step = (Fraction(str(number)) for number in numbers)
    return (base, step) if step else None


def _near_fraction(value: Fraction) -> Fraction | None:
    near = value.limit_denominator(1000)
    return near if _is_small(value - near) else None


def _is_small(value: Fraction) -> bool:
    return -TINY < value < TINY
