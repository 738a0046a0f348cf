"""Evaluate conditions on formulas with computer algebra (latex2sympy2_extended and sympy).

Formulas are compared structurally, then numerically (at random points if they have variables). A comparison may not
terminate on a malicious formula, so MathGrader runs this code in a worker process that can be killed.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from gem._internal.text import short_repr
from gem.errors import BadValue, require

DIGITS = 40  # decimal digits of numerical evaluation
AGREEMENT = 30  # decimal digits that must agree
POINTS = 6  # number of random points for expressions with variables; half of the values must be defined
_ODD_ROOT = re.compile(r"\\sqrt\[(\d*[13579])\]\{-(\d+(?:\.\d+)?)\}")  # real root of a negative number
_DEGREES = re.compile(r"\{?(\d+(?:\.\d+)?)\}?\s*\^\\circ")


@dataclass(frozen=True)
class SameFormula:
    """The condition that two LaTeX expressions are equal wherever both are defined."""

    answer: str
    gold: str


@dataclass(frozen=True)
class SameEquation:
    """The condition that two equations, each given as (left, right), are equal up to a constant factor."""

    answer: tuple[str, str]
    gold: tuple[str, str]


@dataclass(frozen=True)
class AllOf:
    conditions: tuple[Condition, ...]


@dataclass(frozen=True)
class AnyOf:
    conditions: tuple[Condition, ...]


@dataclass(frozen=True)
class Matching:
    """The condition that each item can be paired with a different, equal reference item.

    Args:
        rows: one row per item, with the verdict of comparing the item with each reference item.
    """

    rows: tuple[tuple[bool | Condition, ...], ...]


Condition = SameFormula | SameEquation | AllOf | AnyOf | Matching


def first_true(conditions: Sequence[Condition]) -> int | None:
    """Return the index of the first condition that holds; None if no condition holds."""
    return next((i for i, condition in enumerate(conditions) if holds(condition)), None)


def first_error(formulas: Sequence[str]) -> str | None:
    """Return the error of the first formula that cannot be parsed; None if all formulas can be parsed."""
    for latex in formulas:
        try:
            parse(latex)
        except BadValue as e:
            return str(e)
    return None


def holds(condition: bool | Condition) -> bool:
    """Evaluate a condition. A formula that cannot be parsed is not equal to any formula."""
    if isinstance(condition, bool):
        return condition
    if isinstance(condition, AllOf):
        return all(map(holds, condition.conditions))
    if isinstance(condition, AnyOf):
        return any(map(holds, condition.conditions))
    if isinstance(condition, Matching):
        return _match(condition.rows)
    try:
        if isinstance(condition, SameEquation):
            return _same_equation(condition.answer, condition.gold)
        return _same_formula(condition.answer, condition.gold)
    except BadValue:
        return False


def _match(rows: Sequence[Sequence[bool | Condition]]) -> bool:
    """Return whether each row can be assigned a different column whose condition holds.

    Equality is transitive, so it is sufficient to assign the first free column to each row.
    """
    free = list(range(len(rows)))
    for row in rows:
        column = next((column for column in free if holds(row[column])), None)
        if column is None:
            return False
        free.remove(column)
    return True


def _same_formula(answer: str, gold: str) -> bool:
    ours, theirs = parse(answer), parse(gold)
    if bool(ours == theirs):
        return True
    return _is_expression(ours) and _is_expression(theirs) and _vanishes(ours - theirs)


def _same_equation(answer: tuple[str, str], gold: tuple[str, str]) -> bool:
    ours = parse(answer[0]) - parse(answer[1])
    theirs = parse(gold[0]) - parse(gold[1])
    if ours.free_symbols != theirs.free_symbols:
        return False
    if ours == 0 or theirs == 0:
        return bool(ours == theirs)
    ratio = ours / theirs
    values = [value for value in map(_value, [ratio] * POINTS, range(POINTS)) if value is not None]
    return len(values) >= POINTS // 2 and all(_near(value, values[0]) for value in values) and values[0] != 0


def _is_expression(value: Any) -> bool:
    """Return whether a sympy object is an expression, in contrast to an equation, a set or a truth value."""
    return isinstance(value, _sympy().Expr)


@lru_cache(maxsize=4096)
def parse(latex: str) -> Any:
    """Parse normalized LaTeX into a sympy object. Raises BadValue if the text is not a formula.

    Integrals, sums, products, limits and derivatives are evaluated.
    """
    sympy = _sympy()
    latex2sympy = require("latex2sympy2_extended", extra="math").latex2sympy
    text = re.sub(r"\\(?:text|mathrm)\{([^{}]*)\}", r"\1", latex)
    text = _ODD_ROOT.sub(r"(-\\sqrt[\1]{\2})", text)
    text = _DEGREES.sub(r"{\1\\cdot\\frac{\\pi}{180}}", text)
    try:
        expression = latex2sympy(text, normalization_config=None)  # the default removes units and boxes
        imaginary = [symbol for symbol in expression.free_symbols if symbol.name == "i"]
        expression = expression.subs({symbol: sympy.I for symbol in imaginary})
        expression = expression.subs({s: sympy.Symbol(s.name) for s in expression.free_symbols})  # drop assumptions
        unfinished = (sympy.Integral, sympy.Sum, sympy.Product, sympy.Limit, sympy.Derivative, sympy.UnevaluatedExpr)
        return expression.doit() if expression.has(*unfinished) else expression
    except RecursionError as e:
        raise BadValue(f"not a formula: {short_repr(latex, 80)}") from e
    except Exception as e:  # the parser raises many types on malformed text
        raise BadValue(f"not a formula: {short_repr(latex, 80)} ({type(e).__name__})") from e


@lru_cache(maxsize=1)
def _sympy() -> Any:
    return require("sympy", extra="math")


def _vanishes(difference: Any) -> bool:
    """Return whether an expression is numerically zero. An expression with variables is evaluated at random points."""
    points = POINTS if difference.free_symbols else 1
    known = [value for value in (_value(difference, point) for point in range(points)) if value is not None]
    return len(known) >= (points + 1) // 2 and all(abs(value) < 10.0**-AGREEMENT for value in known)


def _value(expression: Any, point: int) -> Any:
    """Evaluate an expression at a random point seeded by ``point``; return None if it is undefined or infinite."""
    sympy = _sympy()
    symbols = sorted(expression.free_symbols, key=lambda symbol: symbol.name)
    chance = random.Random(point)
    at = {s: sympy.Rational(chance.choice([-1, 1, 1]) * chance.randint(101, 2999), 997) for s in symbols}
    value = sympy.N(expression.subs(at), DIGITS)
    return value if value.is_number and value.is_finite else None


def _near(a: Any, b: Any) -> bool:
    return bool(abs(a - b) <= abs(b) * 10.0**-AGREEMENT)
