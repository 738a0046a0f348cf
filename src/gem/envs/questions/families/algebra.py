"""Algebra questions: equations, systems, inequalities, polynomials and sequences."""

from __future__ import annotations

import math
import random
from fractions import Fraction

from gem.envs.questions.families.template import (
    EXACT,
    MathQuestion,
    Methods,
    fraction,
    listed,
    nonzero,
    polynomial,
    split_square,
    times,
    total,
)


def linear_equation(rng: random.Random, level: int) -> MathQuestion:
    a, c = rng.sample([n for n in range(-4 * level - 4, 4 * level + 5) if n], 2)
    b, d = nonzero(rng, 9 * level), nonzero(rng, 9 * level)
    text = f"Solve ${polynomial([a, b])} = {polynomial([c, d])}$ for $x$. {EXACT}"
    return MathQuestion(text, fraction(Fraction(d - b, a - c)))


def expansion(rng: random.Random, level: int) -> MathQuestion:
    a, b, c, d = (nonzero(rng, 5 + 2 * level) for _ in range(4))
    text = f"Expand $({polynomial([a, b])})({polynomial([c, d])})$ and collect like terms."
    return MathQuestion(text, polynomial([a * c, a * d + b * c, b * d]))


def evaluation(rng: random.Random, level: int) -> MathQuestion:
    coefficients, x = [nonzero(rng, 5 * level) for _ in range(3)], nonzero(rng, 4 + level)
    text = f"Let $f(x) = {polynomial(coefficients)}$. What is $f({x})$?"
    return MathQuestion(text, str(_value(coefficients, x)))


def linear_system(rng: random.Random, level: int) -> MathQuestion:
    x, y = nonzero(rng, 5 * level), nonzero(rng, 5 * level)
    while True:
        a, b, c, d = (nonzero(rng, 3 + 2 * level) for _ in range(4))
        if a * d != b * c:
            break
    equations = [f"{total([times(p, 'x'), times(q, 'y')])} = {p * x + q * y}" for p, q in [(a, b), (c, d)]]
    text = f"Solve the system {listed(equations)}. Give the answer as a pair $(x, y)$."
    return MathQuestion(text, f"({x}, {y})")


def quadratic_equation(rng: random.Random, level: int) -> MathQuestion:
    while True:
        a, c = rng.randint(1, 1 + level // 2), rng.randint(1, 2 + level)
        p, q = nonzero(rng, 5 * level + 3), nonzero(rng, 5 * level + 3)
        low, high = sorted([Fraction(p, a), Fraction(q, c)])
        if low != high:
            break
    text = f"Find all solutions of ${polynomial([a * c, -a * q - c * p, p * q])} = 0$. Separate them by commas."
    return MathQuestion(text, f"{fraction(low)}, {fraction(high)}")


def inequality(rng: random.Random, level: int) -> MathQuestion:
    a, b, c = nonzero(rng, 3 + 2 * level), nonzero(rng, 9 * level), nonzero(rng, 9 * level)
    bound = fraction(Fraction(c - b, a))
    text = f"Solve ${polynomial([a, b])} \\le {c}$. Give the solution set as an interval."
    return MathQuestion(text, rf"(-\infty, {bound}]" if a > 0 else rf"[{bound}, \infty)")


def absolute_value(rng: random.Random, level: int) -> MathQuestion:
    a, b, c = rng.randint(1, 3 + level), nonzero(rng, 9 * level), rng.randint(1, 20 * level)
    low, high = sorted([Fraction(-c - b, a), Fraction(c - b, a)])
    text = f"Find all solutions of $|{polynomial([a, b])}| = {c}$. Separate them by commas."
    return MathQuestion(text, f"{fraction(low)}, {fraction(high)}")


def irrational_roots(rng: random.Random, level: int) -> MathQuestion:
    while True:
        a, b, c = rng.randint(1, 1 + level), nonzero(rng, 6 * level), nonzero(rng, 6 * level)
        square = b * b - 4 * a * c
        if square > 0 and math.isqrt(square) ** 2 != square:
            break
    text = f"What is the larger root of ${polynomial([a, b, c])} = 0$? Give the exact value."
    return MathQuestion(text, _surd(-b, square, 2 * a))


def composition(rng: random.Random, level: int) -> MathQuestion:
    a, b, c, d = (nonzero(rng, 3 + level) for _ in range(4))
    x = nonzero(rng, 3 * level)
    inner = c * x + d
    text = f"Let $f(x) = {polynomial([a, 0, b])}$ and $g(x) = {polynomial([c, d])}$. What is $f(g({x}))$?"
    return MathQuestion(text, str(a * inner * inner + b))


def arithmetic_series(rng: random.Random, level: int) -> MathQuestion:
    first, step, count = nonzero(rng, 9 * level), nonzero(rng, 4 * level), rng.randint(8, 20 * level)
    terms = ", ".join(str(first + i * step) for i in range(3))
    text = rf"What is the sum of the first ${count}$ terms of the arithmetic sequence ${terms}, \ldots$?"
    return MathQuestion(text, str(count * (2 * first + (count - 1) * step) // 2))


def remainder_of_a_polynomial(rng: random.Random, level: int) -> MathQuestion:
    coefficients, root = [nonzero(rng, 2 + 2 * level) for _ in range(3 + level // 2)], nonzero(rng, 2 + level // 2)
    text = f"What is the remainder when ${polynomial(coefficients)}$ is divided by ${polynomial([1, -root])}$?"
    return MathQuestion(text, str(_value(coefficients, root)))


def exponential_equation(rng: random.Random, level: int) -> MathQuestion:
    base, power, other = rng.choice([(2, 2, 3), (2, 3, 5), (3, 2, 3), (5, 2, 3), (2, 4, 3), (3, 3, 4)])
    a, b = nonzero(rng, 3 * level), nonzero(rng, 3 * level)
    while True:
        factor, slope = rng.randint(1, 1 + level), rng.randint(1, 1 + level)
        if power * factor != other * slope:
            break
    left, right = f"{base**power}^{{{polynomial([factor, a])}}}", f"{base**other}^{{{polynomial([slope, b])}}}"
    solution = Fraction(other * b - power * a, power * factor - other * slope)
    return MathQuestion(f"Solve ${left} = {right}$ for $x$. {EXACT}", fraction(solution))


def logarithmic_equation(rng: random.Random, level: int) -> MathQuestion:
    base, power, factor, shift = (
        rng.randint(2, 3 + level),
        rng.randint(1, 3),
        rng.randint(2, 9),
        nonzero(rng, 9 * level),
    )
    text = rf"Solve $\log_{{{base}}}({polynomial([factor, shift])}) = {power}$ for $x$. {EXACT}"
    return MathQuestion(text, fraction(Fraction(base**power - shift, factor)))


def geometric_series(rng: random.Random, level: int) -> MathQuestion:
    first, bottom = rng.randint(1, 15 * level), rng.randint(2, 5 + level)
    ratio = Fraction(nonzero(rng, bottom - 1), bottom)
    terms = total([fraction(first * ratio**i) for i in range(3)])
    text = rf"What is the sum of the infinite geometric series ${terms}{'+' if ratio > 0 else '-'}\cdots$? {EXACT}"
    return MathQuestion(text, fraction(first / (1 - ratio)))


def complex_product(rng: random.Random, level: int) -> MathQuestion:
    a, b, c, d = (nonzero(rng, 3 * level + 2) for _ in range(4))
    text = f"Compute $({_complex(a, b)})({_complex(c, d)})$. Give the answer in the form $a+bi$."
    return MathQuestion(text, _complex(a * c - b * d, a * d + b * c))


def complex_quotient(rng: random.Random, level: int) -> MathQuestion:
    a, b, c, d = (nonzero(rng, 2 * level + 2) for _ in range(4))
    size = c * c + d * d
    text = rf"Write $\frac{{{_complex(a, b)}}}{{{_complex(c, d)}}}$ in the form $a+bi$."
    return MathQuestion(text, _complex(Fraction(a * c + b * d, size), Fraction(b * c - a * d, size)))


def three_unknowns(rng: random.Random, level: int) -> MathQuestion:
    solution = [nonzero(rng, 2 * level) for _ in "xyz"]
    while True:
        rows = [[nonzero(rng, 4) for _ in "xyz"] for _ in "xyz"]
        (a, b, c), (d, e, f), (g, h, i) = rows
        if a * (e * i - f * h) - b * (d * i - f * g) + c * (d * h - e * g):
            break
    equations = [
        f"{total(list(map(times, row, 'xyz')))} = {sum(p * q for p, q in zip(row, solution, strict=True))}"
        for row in rows
    ]
    text = f"Solve the system {listed(equations)}. Give the answer as a triple $(x, y, z)$."
    return MathQuestion(text, f"({', '.join(map(str, solution))})")


def symmetric_functions(rng: random.Random, level: int) -> MathQuestion:
    while True:
        b, c = nonzero(rng, 6 * level), nonzero(rng, 9 * level)
        if b * b > 4 * c:
            break
    asked, value = rng.choice(
        [("r^{2}+s^{2}", b * b - 2 * c), ("r^{3}+s^{3}", -b * (b * b - 3 * c)), ("(r-s)^{2}", b * b - 4 * c)]
    )
    return MathQuestion(
        f"Let $r$ and $s$ be the roots of ${polynomial([1, b, c])} = 0$. What is ${asked}$?", str(value)
    )


def quadratic_inequality(rng: random.Random, level: int) -> MathQuestion:
    a, low = rng.randint(1, 3), nonzero(rng, 6 * level)
    high, bottom = low + rng.randint(1, 6 * level), rng.randint(1, 3)
    p, q = Fraction(low, bottom), Fraction(high, bottom)
    left = polynomial([a * bottom * bottom, -a * bottom * (low + high), a * low * high])
    if rng.random() < 0.5:
        answer = f"({fraction(p)}, {fraction(q)})"
        return MathQuestion(f"Solve ${left} < 0$. Give the solution set as an interval.", answer)
    answer = rf"(-\infty, {fraction(p)}) \cup ({fraction(q)}, \infty)"
    return MathQuestion(f"Solve ${left} > 0$. Give the solution set as a union of intervals.", answer)


def _value(coefficients: list[int], x: int) -> int:
    value = 0
    for coefficient in coefficients:
        value = value * x + coefficient
    return value


def _surd(rational: int, square: int, bottom: int) -> str:
    r"""Format (rational + √square) / bottom in lowest terms, where square is not a square number."""
    outside, inside = split_square(square)
    common = math.gcd(rational, outside, bottom)
    top = total([str(rational // common), times(outside // common, rf"\sqrt{{{inside}}}")])
    return top if bottom == common else rf"\frac{{{top}}}{{{bottom // common}}}"


def _complex(real: int | Fraction, imaginary: int | Fraction) -> str:
    return total([fraction(Fraction(real)), times(imaginary, "i")])


METHODS: Methods = {
    1: (linear_equation, expansion, evaluation),
    2: (linear_system, quadratic_equation, inequality, absolute_value),
    3: (irrational_roots, composition, arithmetic_series, remainder_of_a_polynomial),
    4: (exponential_equation, logarithmic_equation, geometric_series, complex_product),
    5: (complex_quotient, three_unknowns, symmetric_functions, quadratic_inequality),
}
