"""Whether two formulas are equal: read by math-verify's LaTeX parser, compared exactly or at random points by sympy.

This may take for ever on a hostile formula: call it in a worker that can be killed (gem.graders.pool).
"""

from __future__ import annotations

import random
import re
from functools import lru_cache
from typing import Any

from gem.errors import BadValue, require

DIGITS = 40  # of the numbers compared
AGREEMENT = 30  # digits that have to agree
POINTS = 6  # at which expressions with variables are compared; at half of them they must have a value
_ODD_ROOT = re.compile(r"\\sqrt\[(\d*[13579])\]\{-(\d+(?:\.\d+)?)\}")  # of a negative number: the real one
_DEGREES = re.compile(r"\{?(\d+(?:\.\d+)?)\}?\s*\^\\circ")


def same_formula(answer: str, gold: str) -> bool:
    """Whether two clean LaTeX expressions are equal wherever they are defined. Raises BadValue for no formula."""
    ours, theirs = parse(answer), parse(gold)
    if bool(ours == theirs):
        return True
    return _is_number_like(ours) and _is_number_like(theirs) and _vanishes(ours - theirs)


def same_equation(answer: tuple[str, str], gold: tuple[str, str]) -> bool:
    """Whether two equations, given by their sides, hold for the same values: their differences are proportional."""
    ours = parse(answer[0]) - parse(answer[1])
    theirs = parse(gold[0]) - parse(gold[1])
    if ours.free_symbols != theirs.free_symbols:
        return False
    if ours == 0 or theirs == 0:
        return bool(ours == theirs)
    ratio = ours / theirs
    values = [value for value in map(_value, [ratio] * POINTS, range(POINTS)) if value is not None]
    return len(values) >= POINTS // 2 and all(_near(value, values[0]) for value in values) and values[0] != 0


def _is_number_like(value: Any) -> bool:
    """Whether it can be subtracted: not an equation, a set or a truth value."""
    return isinstance(value, require("sympy", extra="math").Expr)


@lru_cache(maxsize=4096)
def parse(latex: str) -> Any:
    """The sympy expression of clean LaTeX, unevaluated; BadValue where it is none."""
    sympy = require("sympy", extra="math")
    latex2sympy = require("latex2sympy2_extended", extra="math").latex2sympy
    text = re.sub(r"\\(?:text|mathrm)\{([^{}]*)\}", r"\1", latex)
    text = _ODD_ROOT.sub(r"(-\\sqrt[\1]{\2})", text)
    text = _DEGREES.sub(r"{\1\\cdot\\frac{\\pi}{180}}", text)
    try:
        expression = latex2sympy(text, normalization_config=None)  # which would drop units and open boxes
        imaginary = [symbol for symbol in expression.free_symbols if symbol.name == "i"]
        expression = expression.subs({symbol: sympy.I for symbol in imaginary})
        expression = expression.subs({s: sympy.Symbol(s.name) for s in expression.free_symbols})  # without assumptions
        unfinished = (sympy.Integral, sympy.Sum, sympy.Product, sympy.Limit, sympy.Derivative, sympy.UnevaluatedExpr)
        return expression.doit() if expression.has(*unfinished) else expression
    except RecursionError as e:
        raise BadValue(f"not a formula: {latex!r:.80}") from e
    except Exception as e:  # the parser raises whatever it stumbles over
        raise BadValue(f"not a formula: {latex!r:.80} ({type(e).__name__})") from e


def _vanishes(difference: Any) -> bool:
    if not difference.free_symbols:
        value = _value(difference, 0)
        return value is not None and abs(value) < 10.0**-AGREEMENT
    values = [_value(difference, point) for point in range(POINTS)]
    known = [value for value in values if value is not None]
    return len(known) >= POINTS // 2 and all(abs(value) < 10.0**-AGREEMENT for value in known)


def _value(expression: Any, point: int) -> Any:
    """An expression's value at one of the random points; None where it has none there."""
    sympy = require("sympy", extra="math")
    symbols = sorted(expression.free_symbols, key=lambda symbol: symbol.name)
    chance = random.Random(point)
    at = {s: sympy.Rational(chance.choice([-1, 1, 1]) * chance.randint(101, 2999), 997) for s in symbols}
    value = sympy.N(expression.subs(at), DIGITS)
    return value if value.is_number and value.is_finite else None


def _near(a: Any, b: Any) -> bool:
    return bool(abs(a - b) <= abs(b) * 10.0**-AGREEMENT)
