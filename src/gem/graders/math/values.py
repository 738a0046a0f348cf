r"""Exact values of trees without computer algebra, and their approximate values at random points.

A number is an exact fraction, however it is written. Two formulas with different values at a random point differ.
"""

from __future__ import annotations

import cmath
import math
import random
from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache

from gem.graders.math.heads import HEADS, MAX_BITS, MAX_EXPONENT, MAX_FACTORIAL, MAX_POWER, Head
from gem.graders.math.tree import Num, Op, Quantity, Sym, Tree, children, is_op, names_in, walk

MAX_TOWER = 5  # stacked exponents
_CLOSE = 1e-9  # relative difference of two approximate values that may be equal


@lru_cache(maxsize=4096)
def fraction_of(tree: Tree) -> Fraction | None:
    """Return the exact value of rational arithmetic; None for any other tree, or a result that is too large."""
    if isinstance(tree, Num):
        return tree.exact
    if not isinstance(tree, Op) or (compute := HEADS.get(tree.head, Head()).exact) is None:
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
    if isinstance(tree, Op) and (compute := HEADS[tree.head].approximate) is not None:
        return complex(compute(*(_approximate(arg, names) for arg in tree.args)))
    raise TypeError(tree)


_CONSTANTS: dict[str, complex] = {"e": math.e, "i": 1j, "\\pi": math.pi}


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
        or (isinstance(part, Op) and part.head in HEADS)
        or (isinstance(part, Quantity) and part.unit == "degree")
        for part in walk(tree)
    )
