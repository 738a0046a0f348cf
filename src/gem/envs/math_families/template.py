"""Building blocks of generated math questions: the question type and LaTeX formatting."""

from __future__ import annotations

import random
from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple


class MathQuestion(NamedTuple):
    """A generated question.

    Args:
        text: the question, with LaTeX between dollar signs.
        answer: the exact answer, as LaTeX without dollar signs.
    """

    text: str
    answer: str


Template = Callable[[random.Random, int], MathQuestion]
"""Function that draws a question of a level from 1 (small numbers, one step) to 5."""

MAX_LEVEL = 5


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


def polynomial(coefficients: list[int], variable: str = "x") -> str:
    """Format a polynomial as LaTeX, highest power first.

    >>> polynomial([1, -2, 0, 3])
    'x^{3}-2x^{2}+3'
    """
    terms = []
    degree = len(coefficients) - 1
    for power, factor in zip(range(degree, -1, -1), coefficients, strict=True):
        if factor:
            number = "" if abs(factor) == 1 and power else str(abs(factor))
            power_text = "" if power == 0 else variable if power == 1 else f"{variable}^{{{power}}}"
            terms.append(("-" if factor < 0 else "+") + number + power_text)
    return "".join(terms).removeprefix("+") or "0"


def signed(value: int) -> str:
    """Format a number with its sign, so that it can be appended to another term."""
    return f"+{value}" if value >= 0 else str(value)


def radical(square: int) -> str:
    r"""Format the simplified square root of a number >= 0 as LaTeX.

    >>> radical(72), radical(9)
    ('6\\sqrt{2}', '3')
    """
    outside, inside = 1, square
    for factor in range(2, int(square**0.5) + 1):
        while inside % (factor * factor) == 0:
            inside //= factor * factor
            outside *= factor
    if inside == 1:
        return str(outside)
    return rf"{'' if outside == 1 else outside}\sqrt{{{inside}}}" if square else "0"
