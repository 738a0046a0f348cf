"""Formulas as sympy objects, and whether their difference vanishes.

A rational difference is computed exactly. Any other is computed with a precision that grows with the size of the
numbers in the formulas, so that e^{-100} is not mistaken for 0.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from gem._internal.text import short_repr
from gem.errors import BadValue
from gem.graders.math.heads import HEADS, MAX_DIGITS, sympy_library
from gem.graders.math.tree import Num, Op, Quantity, Sym, Tree

DIGITS = 40  # decimal digits of numerical evaluation, in addition to twice the size of the formula
AGREEMENT = 30  # decimal digits that must agree, in addition to the size of the formula
MAX_SIZE = 10_000  # size of a formula, in decimal digits, above which its value is undecided
POINTS = 6  # number of random points for expressions with variables; half of the values must be defined
INTEGER_POINTS = 8  # number of integer points, for formulas that have a function in _STEPS
CONFIRMING_DIGITS = 500  # a difference that vanishes is computed again with these digits
MAX_FAR = 2_000  # greatest integer point for formulas with a variable in an exponent or under a factorial
UNDEFINED, UNDECIDED = "undefined", "undecided"  # verdicts of is_zero() besides True and False
_SLOW = ("Integral", "Sum", "Product", "Limit", "Derivative")  # not computed with CONFIRMING_DIGITS
_STEPS = ("floor", "ceiling", "factorial", "binomial")  # functions whose special values are at integers
UNREADABLE = (  # errors of sympy, and of a tree that is no formula
    *(BadValue, ArithmeticError, AssertionError, AttributeError, LookupError, MemoryError),
    *(RuntimeError, TypeError, ValueError),
)


@lru_cache(maxsize=4096)
def to_sympy(tree: Tree) -> Any:
    """Return the sympy expression of a formula. Raises BadValue if the tree is no formula.

    Arithmetic is evaluated exactly; so are integrals, sums, products, limits and derivatives, if possible.
    """
    try:
        expression = _sympy(tree)
        if _digits(expression) > MAX_DIGITS:
            raise BadValue(f"a number with more than {MAX_DIGITS} digits")
        return expression.doit()
    except UNREADABLE as e:
        raise BadValue(f"not a formula: {short_repr(str(tree), 80)} ({type(e).__name__})") from e


def _sympy(tree: Tree) -> Any:
    sympy = sympy_library()
    match tree:
        case Num(exact):
            return sympy.Rational(exact.numerator, exact.denominator)
        case Sym(name):
            return {"e": sympy.E, "i": sympy.I, "\\pi": sympy.pi, "∞": sympy.oo}.get(name) or sympy.Symbol(name)
        case Quantity(value, "degree"):
            return _sympy(value) * (sympy.pi / 180)
        case Quantity(value, "%"):
            return _sympy(value) * sympy.Rational(1, 100)
        case Op("call", (Sym(name), *given)):
            return sympy.Function(name)(*map(_sympy, given))
        case Op("lim", (term, variable, limit, Sym(side))):
            point = _sympy(limit)
            return sympy.Limit(_sympy(term), _sympy(variable), point, side if point.is_finite else "+")
        case Op(head, args) if head in HEADS and (build := HEADS[head].symbolic) is not None:
            return (getattr(sympy, build) if isinstance(build, str) else build)(*map(_sympy, args))
    raise BadValue(f"not a formula: {tree}")


def _digits(expression: Any) -> float:
    """Return an upper estimate of the decimal digits of the integers that doit() computes for an expression."""
    if (
        not isinstance(expression, sympy_library().Basic)
        or expression.is_Symbol
        or not (expression.args or expression.is_Rational)
    ):
        return 0.0
    if expression.is_Rational:
        return math.log10(abs(expression.p) or 1) + math.log10(expression.q)
    total = sum(map(_digits, expression.args))
    if expression.is_Pow and expression.exp.is_number:
        exponent = expression.exp if _digits(expression.exp) < 10 else math.inf
        return _digits(expression.base) * max(1.0, abs(complex(exponent))) + total
    if expression.func.__name__ == "factorial" and expression.args[0].is_number:
        size = abs(complex(expression.args[0])) if total < 10 else math.inf
        return size * math.log10(size + 1)
    return total


def vanishes(difference: Any, integers: str = "", positive: str = "", sides: Sequence[Any] = ()) -> bool:
    """Return whether an expression is zero. An expression with variables is evaluated at random points.

    Points where none of ``sides`` is real, if they have no i, are outside the domain: √(1/n) is 1/√n.
    """
    symbols = symbols_of(difference)
    if not symbols:
        return is_zero(difference) is True
    steps = difference.has(*(getattr(sympy_library(), name) for name in _STEPS))
    whole = all(symbol.name in integers or (steps and symbol.name in "kmn") for symbol in symbols)
    if whole:
        points: list[dict[Any, Any]] = [_integer_point(symbols, point) for point in range(3 * INTEGER_POINTS)]
    else:
        points = [random_point(symbols, point, positive) for point in range(POINTS)]
    known = [verdict for at in points if (verdict := is_zero(difference.subs(at))) is not UNDEFINED]
    if False in known and sides and not any(side.has(sympy_library().I) for side in sides):
        points = [at for at in points if any(sympy_library().N(side.subs(at)).is_real for side in sides)]
        known = [verdict for at in points if (verdict := is_zero(difference.subs(at))) is not UNDEFINED]
    if not known or 2 * len(known) < len(points) + whole or not all(verdict is True for verdict in known):
        return False
    if steps and not whole:
        values = [difference.subs(_integer_point(symbols, point)) for point in range(INTEGER_POINTS)]
        if not all(verdict in (True, UNDEFINED) for verdict in map(is_zero, values)):
            return False
    far = _far_points(difference, symbols, whole, positive)  # |x - 100| is not 100 - x
    return all(is_zero(difference.subs(at)) is not False for at in far)


def is_zero(value: Any) -> bool | str:
    """Return whether a constant is zero; UNDEFINED if it is not a finite number; UNDECIDED if it is too large."""
    if value.is_Rational:
        return bool(value == 0)
    if not value.is_number or value.is_finite is False:
        return UNDEFINED
    size = _size(value)
    if size > MAX_SIZE:
        return UNDECIDED
    try:
        number = sympy_library().N(value, DIGITS + 2 * size)
        if not number.is_number or not number.is_finite:
            return UNDEFINED
        if abs(number) >= sympy_library().Float(10) ** -(AGREEMENT + size):
            return False
        if size > CONFIRMING_DIGITS or value.has(*(getattr(sympy_library(), name) for name in _SLOW)):
            return True
        number = sympy_library().N(value, CONFIRMING_DIGITS)  # cos(10^{-30}) agrees with 1 to 60 digits
        return bool(abs(number) < sympy_library().Float(10) ** -(CONFIRMING_DIGITS - 2 * DIGITS))
    except ValueError:  # a series that diverges at this point
        return UNDEFINED


def _size(value: Any) -> int:
    """Return an upper estimate of the decimal digits that the integers and powers in a constant have in total."""
    sympy, total = sympy_library(), 0.0
    if value.has(sympy.functions.elementary.hyperbolic.HyperbolicFunction):
        value = value.rewrite(sympy.exp)  # 1 - tanh(200) is as small as e^{-400}
    for part in sympy.preorder_traversal(value):
        if part.is_Rational:
            total += math.log10(abs(part.p) or 1) + math.log10(part.q)
        elif part.args and not part.is_Add and not part.is_Mul and part.is_number:
            number = abs(sympy.N(part, 5))
            if number.is_finite and number > 0:
                total += abs(float(sympy.log(number, 10)))
        if total > MAX_SIZE:
            break
    return math.ceil(total)


def symbols_of(expression: Any) -> list[Any]:
    return sorted(expression.free_symbols, key=lambda symbol: symbol.name)


def random_point(symbols: Sequence[Any], point: int, positive: str = "") -> dict[Any, Any]:
    """Return a random rational value of each symbol, seeded by ``point``; a positive one for ``positive`` letters."""
    chance = random.Random(point)
    values = {s: (chance.choice([-1, 1, 1]), chance.randint(101, 2999)) for s in symbols}
    signs = {s: 1 if s.name in positive.split() else sign for s, (sign, _) in values.items()}
    return {s: sympy_library().Rational(signs[s] * size, 997) for s, (_, size) in values.items()}


def _far_points(expression: Any, symbols: Sequence[Any], whole: bool, positive: str) -> list[dict[Any, Any]]:
    """Return points beyond the numbers in an expression, where absolute values, maxima and floors change.

    They are integers if ``whole``. There is none if powers would become too large, or where a root or a logarithm of a
    negative number is taken.
    """
    sympy = sympy_library()
    scale = max((max(abs(n.p), n.q) for n in expression.atoms(sympy.Rational)), default=0) + 1
    powers = [power for power in expression.atoms(sympy.Pow) if power.exp.free_symbols]
    if any(power.exp.atoms(sympy.Pow) for power in powers):
        return []
    if whole and (powers or expression.has(sympy.factorial, sympy.binomial, sympy.gamma)) and scale > MAX_FAR // 2:
        return []
    points = []
    for point in range(POINTS if scale > 3 else 0):
        chance = random.Random(point)
        sizes = {s: scale + chance.randint(1, scale) for s in symbols}
        if not whole:
            signs = {s: 1 if s.name in positive.split() else (-1) ** point for s in symbols}
            sizes = {
                s: sympy.Rational(signs[s] * (997 * size + chance.randint(1, 996)), 997) for s, size in sizes.items()
            }
        points.append(sizes)
    radicands = [power.base for power in expression.atoms(sympy.Pow) if not power.exp.is_integer]
    radicands += [part.args[0] for part in expression.atoms(sympy.log)]
    return [at for at in points if not any(part.subs(at).is_negative for part in radicands)]


def _integer_point(symbols: Sequence[Any], point: int) -> dict[Any, int]:
    """Return a positive integer value of each symbol; ``point + 1`` for the first symbol."""
    chance = random.Random(point)
    return {symbol: point + 1 + chance.randint(0, 6) * (index > 0) for index, symbol in enumerate(symbols)}
