r"""Exact values of trees without computer algebra, and their approximate values at random points.

A number is an exact fraction, however it is written. Two formulas with different values at a random point differ.
"""

from __future__ import annotations

import cmath
import math
import random
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import lru_cache

from gem.graders.math.lexer import words
from gem.graders.math.tree import Num, Op, Quantity, Sym, Tree, children, is_op, names_in, walk

MAX_BITS = 40_000  # size of an exact number; 10^10000 has 33,220
MAX_EXPONENT = 10_000  # of a number
MAX_POWER = 1_000  # of any other base
MAX_FACTORIAL = 3_000  # argument of a factorial or binomial coefficient
MAX_TOWER = 5  # stacked exponents
_CLOSE = 1e-9  # relative difference of two approximate values that may be equal


@lru_cache(maxsize=4096)
def fraction_of(tree: Tree) -> Fraction | None:
    """Return the exact value of rational arithmetic; None for any other tree, or a result that is too large."""
    if isinstance(tree, Num):
        return tree.exact
    if not isinstance(tree, Op):
        return None
    compute = _ARITHMETIC.get(tree.head)
    if compute is None:
        return None
    values = [fraction_of(arg) for arg in tree.args]
    if any(value is None for value in values):
        return None
    try:
        result = compute(*values)
    except (ZeroDivisionError, OverflowError, ValueError, TypeError):
        return None
    if result is None or result.numerator.bit_length() + result.denominator.bit_length() > MAX_BITS:
        return None
    return result


def _add(*values: Fraction) -> Fraction:
    return sum(values, Fraction(0))


def _multiply(*values: Fraction) -> Fraction:
    return math.prod(values, start=Fraction(1))


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


def _factorial(value: Fraction) -> Fraction | None:
    if value.denominator != 1 or not 0 <= value <= MAX_FACTORIAL:
        return None
    return Fraction(math.factorial(int(value)))


def _double_factorial(value: Fraction) -> Fraction | None:
    if value.denominator != 1 or not -1 <= value <= MAX_FACTORIAL:
        return None
    return Fraction(math.prod(range(int(value), 0, -2)))


def _binomial(n: Fraction, k: Fraction) -> Fraction | None:
    if n.denominator != 1 or k.denominator != 1 or not (0 <= k <= MAX_FACTORIAL and 0 <= n <= MAX_EXPONENT):
        return None
    return Fraction(math.comb(int(n), int(k)))


def _permutations(n: Fraction, k: Fraction) -> Fraction | None:
    if n.denominator != 1 or k.denominator != 1 or not (0 <= k <= n <= MAX_FACTORIAL):
        return None
    return Fraction(math.perm(int(n), int(k)))


def _gcd(*values: Fraction) -> Fraction | None:
    return Fraction(math.gcd(*map(int, values))) if all(value.denominator == 1 for value in values) else None


def _lcm(*values: Fraction) -> Fraction | None:
    return Fraction(math.lcm(*map(int, values))) if all(value.denominator == 1 for value in values) else None


_ARITHMETIC: dict[str, Callable[..., Fraction | None]] = {
    "+": _add,
    "*": _multiply,
    "/": lambda a, b: a / b,
    "neg": lambda a: -a,
    "^": _power,
    "mixed": lambda a, b: a + b,
    "!": _factorial,
    "!!": _double_factorial,
    "binom": _binomial,
    "permutations": _permutations,
    "sqrt": _root,
    "abs": abs,
    "floor": lambda a: Fraction(math.floor(a)),
    "ceil": lambda a: Fraction(math.ceil(a)),
    "ratio": lambda a, b: a / b,
    "time": lambda a, b: a / b,
    "gcd": _gcd,
    "lcm": _lcm,
    "max": lambda *values: max(values),
    "min": lambda *values: min(values),
}


def too_large(tree: Tree, height: int = 0) -> str | None:
    """Return which limit an exponent or a factorial in a tree exceeds; None if none does."""
    for part in walk(tree):
        if not isinstance(part, Op):
            continue
        if part.head == "^":
            base, exponent = part.args
            limit = MAX_EXPONENT if not names_in(base) else MAX_POWER
            if _magnitude(exponent) > limit:
                return f"an exponent above {limit}"
            height, above = 1, exponent
            while is_op(above, "^"):
                height, above = height + 1, above.args[1]
            if height > MAX_TOWER:
                return f"a tower of more than {MAX_TOWER} exponents"
        elif part.head in ("!", "!!", "binom", "permutations"):
            if any(_magnitude(arg) > MAX_FACTORIAL for arg in part.args):
                return f"a factorial or binomial above {MAX_FACTORIAL}"
            if part.head[0] == "!" and any(isinstance(each, Op) and each.head[0] == "!" for each in walk(part.args[0])):
                return "a factorial of a factorial"
    return None


def _magnitude(tree: Tree) -> float:
    """Return a rough upper estimate of the absolute value of a tree without names; 0 for others."""
    if (exact := fraction_of(tree)) is not None:
        return float(abs(exact)) if exact.numerator.bit_length() < 1000 else math.inf
    if is_op(tree, "+", "*", "^", "/", "neg", "!"):
        sizes = [_magnitude(arg) for arg in tree.args]
        try:
            if tree.head == "^":
                return math.inf if math.inf in sizes else sizes[0] ** sizes[1]
            return sum(sizes) if tree.head == "+" else math.prod(max(size, 1.0) for size in sizes)
        except OverflowError:
            return math.inf
    return max((_magnitude(child) for child in children(tree)), default=0.0)


# --- approximate values ---


def approximate(tree: Tree, names: Mapping[str, complex]) -> complex | None:
    """Return the floating-point value of a tree; None if it is undefined there, or unknown without computer algebra."""
    try:
        value = _approximate(tree, names)
    except (ArithmeticError, ValueError, KeyError, TypeError, RecursionError):
        return None
    return value if cmath.isfinite(value) else None


def _approximate(tree: Tree, names: Mapping[str, complex]) -> complex:
    if isinstance(tree, Num):
        return complex(float(tree.exact))
    if isinstance(tree, Sym):
        return _CONSTANTS[tree.name] if tree.name in _CONSTANTS else names[tree.name]
    if isinstance(tree, Quantity) and tree.unit in ("degree", "%"):
        return _approximate(tree.value, names) * (math.pi / 180 if tree.unit == "degree" else 0.01)
    if isinstance(tree, Op):
        return complex(_FUNCTIONS[tree.head](*(_approximate(arg, names) for arg in tree.args)))
    raise TypeError(tree)


def _real(value: complex) -> float:
    if abs(value.imag) > 1e-9 * max(1.0, abs(value)):
        raise ValueError(value)
    return value.real


def _gamma(value: complex) -> complex:
    return math.gamma(_real(value))


_CONSTANTS: dict[str, complex] = {"e": math.e, "i": 1j, "\\pi": math.pi}
_FUNCTIONS: dict[str, Callable[..., complex]] = {
    "+": lambda *values: sum(values),
    "*": lambda *values: math.prod(values, start=1 + 0j),
    "/": lambda a, b: a / b,
    "ratio": lambda a, b: a / b,
    "time": lambda a, b: a / b,
    "neg": lambda a: 0 - a,  # not -a, whose imaginary part would be -0.0
    "mixed": lambda a, b: a + b,
    "^": lambda a, b: a**b,
    "sqrt": lambda a, n: -((-a.real) ** (1 / n.real)) if a.imag == 0 > a.real and n.real % 2 == 1 else a ** (1 / n),
    "!": lambda a: _gamma(a + 1),
    "binom": lambda n, k: _gamma(n + 1) / _gamma(k + 1) / _gamma(n - k + 1),
    "permutations": lambda n, k: _gamma(n + 1) / _gamma(n - k + 1),
    "abs": abs,
    "floor": lambda a: math.floor(_real(a) + 1e-9),
    "ceil": lambda a: math.ceil(_real(a) - 1e-9),
    "sin": cmath.sin,
    "cos": cmath.cos,
    "tan": cmath.tan,
    "cot": lambda a: 1 / cmath.tan(a),
    "sec": lambda a: 1 / cmath.cos(a),
    "csc": lambda a: 1 / cmath.sin(a),
    "arcsin": cmath.asin,
    "arccos": cmath.acos,
    "arctan": cmath.atan,
    "sinh": cmath.sinh,
    "cosh": cmath.cosh,
    "tanh": cmath.tanh,
    "log": lambda a, base=math.e: cmath.log(a) / cmath.log(base),
    "ln": cmath.log,
    "exp": cmath.exp,
    "cis": lambda a: cmath.exp(1j * a),
    "max": lambda *values: max(map(_real, values)),
    "min": lambda *values: min(map(_real, values)),
    "conjugate": lambda a: a.conjugate(),
    "Re": lambda a: a.real,
    "Im": lambda a: a.imag,
    "arg": cmath.phase,
}


def differ(a: Tree, g: Tree, integers: str = "", positive: str = "") -> bool:
    """Return whether two formulas certainly differ: their values at a random point do.

    Names stand for positive numbers, at which roots and logarithms have no branches to choose from; the letters of
    ``integers`` stand for integers.
    """
    names = sorted(names_in(a) | names_in(g))
    whole = [name for name in names if name in integers or (name in "kmn" and _has_steps(a, g))]
    for point in range(3):
        chance = random.Random(point)
        at: dict[str, complex] = {name: complex(chance.uniform(0.3, 2.9)) for name in names}
        at |= {name: complex(chance.randint(2, 9)) for name in whole}
        values = approximate(a, at), approximate(g, at)
        if values[0] is None or values[1] is None:
            continue
        scale = max(abs(values[0]), abs(values[1]), _scale(a, at), _scale(g, at))
        if abs(values[0] - values[1]) > _CLOSE * scale:
            return True
        if not names:
            return False
    return False


def _has_steps(*trees: Tree) -> bool:
    return any(is_op(part, "floor", "ceil", "!", "binom") for tree in trees for part in walk(tree))


def _scale(tree: Tree, names: Mapping[str, complex]) -> float:
    """Return the size of the largest term of a sum, below which its value is lost to cancellation."""
    sizes = [0.0]
    for part in walk(tree):
        if is_op(part, "+"):
            sizes += [abs(value) for arg in part.args if (value := approximate(arg, names)) is not None]
    return max(sizes)


def is_formula(tree: Tree) -> bool:
    """Return whether a tree is one value: no collection, relation or words."""
    return all(
        isinstance(part, (Num, Sym))
        or (isinstance(part, Op) and part.head in FORMULA_HEADS)
        or (isinstance(part, Quantity) and part.unit == "degree")
        for part in walk(tree)
    )


FORMULA_HEADS = (
    frozenset(_FUNCTIONS)
    | frozenset(_ARITHMETIC)
    | words("!! int sum prod lim diff call coth sech csch arccot arcsec arccsc sgn erf Gamma det dots det pm mp lg")
)
