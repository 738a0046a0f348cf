r"""Heads of operators and functions: how each is computed exactly, approximately and with computer algebra."""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

from gem.errors import BadValue, require

MAX_BITS = 40_000  # size of an exact number; 10^10000 has 33,220
MAX_EXPONENT = 10_000  # of a number
MAX_POWER = 1_000  # of any other base
MAX_FACTORIAL = 3_000  # argument of a factorial or binomial coefficient
MAX_DIGITS = 100_000  # digits of the integers in a formula for computer algebra, in total


@lru_cache(maxsize=1)
def sympy_library() -> Any:
    return require("sympy", extra="math")


class Head(NamedTuple):
    """How to compute the value of a head from the values of its arguments.

    Args:
        exact: computes a fraction, or None if it is too large or irrational; None if no value is rational.
        approximate: computes a complex number; None if that takes computer algebra.
        symbolic: computes a sympy object, or is the name of the function in sympy; None if there is none.
    """

    exact: Callable[..., Fraction | None] | None = None
    approximate: Callable[..., complex] | None = None
    symbolic: Callable[..., Any] | str | None = None


def _of_integers(
    compute: Callable[..., int], fits: Callable[..., bool] = lambda *_: True
) -> Callable[..., Fraction | None]:
    def exact(*values: Fraction) -> Fraction | None:
        known = all(value.denominator == 1 for value in values) and fits(*values)
        return Fraction(compute(*map(int, values))) if known else None

    return exact


def _power(base: Fraction, exponent: Fraction) -> Fraction | None:
    if exponent.denominator != 1:
        root = _root(base, Fraction(exponent.denominator))
        return None if root is None else _power(root, Fraction(exponent.numerator))
    size = max(base.numerator.bit_length(), base.denominator.bit_length())
    if abs(exponent) > MAX_EXPONENT or size * abs(exponent) > MAX_BITS or (base == 0 and exponent <= 0):
        return None
    return base ** int(exponent)


def _root(value: Fraction, index: Fraction) -> Fraction | None:
    if index.denominator != 1 or not 2 <= index <= 64 or (value < 0 and index % 2 == 0):
        return None
    sign, size = (-1 if value < 0 else 1), abs(value)
    parts = [_integer_root(part, int(index)) for part in (size.numerator, size.denominator)]
    return None if None in parts else sign * Fraction(parts[0] or 0, parts[1] or 1)


def _integer_root(value: int, index: int) -> int | None:
    if index == 2:
        root = math.isqrt(value)
    else:
        root = round(value ** (1 / index)) if value < 10**15 else 1 << -(-value.bit_length() // index)
        while root**index > value:
            root = ((index - 1) * root + value // root ** (index - 1)) // index if value >= 10**15 else root - 1
    return root if root**index == value else None


def _symbolic_power(base: Any, exponent: Any) -> Any:
    """Return a power. Raises BadValue if it has too many digits."""
    known = base.is_Rational and exponent.is_Rational
    if known and abs(exponent) * math.log10(max(abs(base.p), base.q, 2)) > MAX_DIGITS:
        raise BadValue(f"a number with more than {MAX_DIGITS} digits")
    return base**exponent


def _symbolic_log(value: Any, base: Any = None) -> Any:
    log = sympy_library().log
    return log(value) if base is None else log(value) / log(base)


def _add(*values: Any) -> Any:
    return sum(values)


def _divide(a: Any, b: Any) -> Any:
    return a / b


def _minus(a: Any) -> Any:
    return 0 - a  # not -a, whose imaginary part would be -0.0


def real(value: complex) -> float:
    if abs(value.imag) > 1e-9 * max(1.0, abs(value)):
        raise ValueError(value)
    return value.real


def _gamma(value: complex) -> complex:
    return math.gamma(real(value))


_FACTORIAL = _of_integers(math.factorial, lambda n: 0 <= n <= MAX_FACTORIAL)
_DOUBLE_FACTORIAL = _of_integers(lambda n: math.prod(range(n, 0, -2)), lambda n: -1 <= n <= MAX_FACTORIAL)
_BINOMIAL = _of_integers(math.comb, lambda n, k: 0 <= k <= MAX_FACTORIAL and 0 <= n <= MAX_EXPONENT)
_PERMUTATIONS = _of_integers(math.perm, lambda n, k: 0 <= k <= n <= MAX_FACTORIAL)
HEADS: dict[str, Head] = {
    "+": Head(_add, _add, "Add"),
    "*": Head(lambda *values: math.prod(values), lambda *values: math.prod(values), "Mul"),
    "/": Head(_divide, _divide, lambda a, b: a / b if b != 0 else sympy_library().nan),
    "ratio": Head(_divide, _divide, _divide),
    "time": Head(_divide, _divide, _divide),
    "neg": Head(_minus, _minus, _minus),
    "mixed": Head(_add, _add, _add),
    "^": Head(_power, lambda a, b: a**b, _symbolic_power),
    "sqrt": Head(
        _root,
        lambda a, n: -((-a.real) ** (1 / n.real)) if a.imag == 0 > a.real and n.real % 2 == 1 else a ** (1 / n),
        lambda a, n: -((-a) ** (1 / n)) if a.is_negative and n.is_odd else a ** (1 / n),
    ),
    "!": Head(_FACTORIAL, lambda a: _gamma(a + 1), "factorial"),
    "!!": Head(_DOUBLE_FACTORIAL, None, "factorial2"),
    "binom": Head(_BINOMIAL, lambda n, k: _gamma(n + 1) / _gamma(k + 1) / _gamma(n - k + 1), "binomial"),
    "permutations": Head(
        _PERMUTATIONS,
        lambda n, k: _gamma(n + 1) / _gamma(n - k + 1),
        lambda n, k: sympy_library().factorial(n) / sympy_library().factorial(n - k),
    ),
    "abs": Head(abs, abs, "Abs"),
    "floor": Head(lambda a: Fraction(math.floor(a)), lambda a: math.floor(real(a) + 1e-9), "floor"),
    "ceil": Head(lambda a: Fraction(math.ceil(a)), lambda a: math.ceil(real(a) - 1e-9), "ceiling"),
    "gcd": Head(_of_integers(math.gcd), None, "gcd"),
    "lcm": Head(_of_integers(math.lcm), None, "lcm"),
    "max": Head(lambda *values: max(values), lambda *values: max(map(real, values)), "Max"),
    "min": Head(lambda *values: min(values), lambda *values: min(map(real, values)), "Min"),
    "cot": Head(None, lambda a: 1 / cmath.tan(a), "cot"),
    "sec": Head(None, lambda a: 1 / cmath.cos(a), "sec"),
    "csc": Head(None, lambda a: 1 / cmath.sin(a), "csc"),
    "log": Head(None, lambda a, base=math.e: cmath.log(a) / cmath.log(base), _symbolic_log),
    "ln": Head(None, cmath.log, "log"),
    "cis": Head(None, lambda a: cmath.exp(1j * a), lambda a: sympy_library().exp(sympy_library().I * a)),
    "conjugate": Head(None, lambda a: a.conjugate(), "conjugate"),
    "Re": Head(None, lambda a: a.real, "re"),
    "Im": Head(None, lambda a: a.imag, "im"),
    "arg": Head(None, cmath.phase, "arg"),
    "sgn": Head(None, None, "sign"),
    "Gamma": Head(None, None, lambda a: sympy_library().factorial(a - 1)),
    "int": Head(None, None, lambda f, x, *limits: sympy_library().Integral(f, (x, *limits))),
    "sum": Head(None, None, lambda f, x, *limits: sympy_library().Sum(f, (x, *limits))),
    "prod": Head(None, None, lambda f, x, *limits: sympy_library().Product(f, (x, *limits))),
    "diff": Head(None, None, "Derivative"),
    **{name: Head(None, getattr(cmath, name), name) for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh", "exp")},
    **{f"arc{name}": Head(None, getattr(cmath, f"a{name}"), f"a{name}") for name in ("sin", "cos", "tan")},
    **{f"arc{name}": Head(None, None, f"a{name}") for name in ("cot", "sec", "csc")},
    **{name: Head(None, None, name) for name in ("coth", "sech", "csch", "erf")},
    **dict.fromkeys(("lim", "call", "det", "dots", "pm", "mp", "lg"), Head()),  # values that the table cannot compute
}
