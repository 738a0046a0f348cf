"""Building blocks of generated math questions: the question type, levels and LaTeX formatting."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

MAX_LEVEL = 5
EXACT = "Give the exact value, as an integer or a fraction."


class MathQuestion(NamedTuple):
    """A generated question.

    Args:
        text: the question, with LaTeX between dollar signs.
        answer: the exact answer, as LaTeX without dollar signs.
    """

    text: str
    answer: str


Template = Callable[[random.Random, int], MathQuestion]
"""Function that draws a question. The level, 1 to 5, determines only the size of the numbers."""

Methods = Mapping[int, Sequence[Callable[[random.Random, int], Any]]]
"""Templates by the level at which a family introduces them. Each template needs a different method of solution."""


def nonzero(rng: random.Random, most: int) -> int:
    """Draw a nonzero integer between -most and most, inclusive."""
    return rng.choice([-1, 1]) * rng.randint(1, most)


def fraction(value: Fraction) -> str:
    r"""Format a fraction as LaTeX; integers have no denominator.

    >>> fraction(Fraction(-3, 4)), fraction(Fraction(6, 3))
    ('-\\frac{3}{4}', '2')
    """
    if value.denominator == 1:
        return str(value.numerator)
    sign = "-" if value < 0 else ""
    return rf"{sign}\frac{{{abs(value.numerator)}}}{{{value.denominator}}}"


def decimal(value: Fraction) -> str:
    """Format a non-negative decimal of at most six digits after the point, without trailing zeros."""
    text = f"{value.numerator * 10**6 // value.denominator:07d}"
    return f"{text[:-6]}.{text[-6:]}".rstrip("0").rstrip(".")


def listed(items: Sequence[object]) -> str:
    """Format numbers as a list in a sentence.

    >>> listed([3, 4, 5])
    '$3$, $4$ and $5$'
    """
    *most, last = (f"${item}$" for item in items)
    return f"{', '.join(most)} and {last}"


def total(terms: Sequence[str]) -> str:
    """Join terms with their signs; terms that are zero are left out.

    >>> total(["3x", "-y", "0", "2"])
    '3x-y+2'
    """
    signed = [term if term.startswith("-") else f"+{term}" for term in terms if term != "0"]
    return "".join(signed).removeprefix("+") or "0"


def times(factor: int | Fraction, symbol: str) -> str:
    r"""Format the product of a number and a symbol.

    >>> times(-1, "x"), times(Fraction(3, 2), r"\pi"), times(0, "i")
    ('-x', '\\frac{3\\pi}{2}', '0')
    """
    size = abs(Fraction(factor))
    top = symbol if size.numerator == 1 else f"{size.numerator}{symbol}"
    if factor == 0:
        return "0"
    text = top if size.denominator == 1 else rf"\frac{{{top}}}{{{size.denominator}}}"
    return f"-{text}" if factor < 0 else text


def polynomial(coefficients: Sequence[int], variable: str = "x") -> str:
    """Format a polynomial as LaTeX, highest power first.

    >>> polynomial([1, -2, 0, 3])
    'x^{3}-2x^{2}+3'
    """
    degree = len(coefficients) - 1
    powers = [variable if power == 1 else f"{variable}^{{{power}}}" for power in range(degree, 0, -1)]
    return total([*map(times, coefficients, powers), str(coefficients[-1])])


def radical(square: int) -> str:
    r"""Format the simplified square root of a number >= 0 as LaTeX.

    >>> radical(72), radical(9)
    ('6\\sqrt{2}', '3')
    """
    outside, inside = split_square(square)
    if inside == 1:
        return str(outside)
    return times(outside, rf"\sqrt{{{inside}}}") if square else "0"


def split_square(number: int) -> tuple[int, int]:
    """Return (a, b) such that number = a²b and b has no square factor; (1, 0) for 0."""
    outside, inside = 1, number
    for factor in range(2, int(number**0.5) + 1):
        while inside % (factor * factor) == 0:
            inside //= factor * factor
            outside *= factor
    return outside, inside
