"""Algebra questions: equations, systems, inequalities, polynomials and sequences."""

from __future__ import annotations

import random
from fractions import Fraction

from gem.envs.math_families.template import MathQuestion, Template, fraction, nonzero, polynomial, radical, signed


def linear_equation(rng: random.Random, level: int) -> MathQuestion:
    a, c = rng.sample([n for n in range(-4 * level - 4, 4 * level + 5) if n], 2)
    b, d = nonzero(rng, 9 * level), nonzero(rng, 9 * level)
    text = f"Solve ${polynomial([a, b])} = {polynomial([c, d])}$ for $x$."
    return MathQuestion(text, fraction(Fraction(d - b, a - c)))


def linear_system(rng: random.Random, level: int) -> MathQuestion:
    x, y = nonzero(rng, 5 * level), nonzero(rng, 5 * level)
    while True:
        a, b, c, d = (nonzero(rng, 3 + 2 * level) for _ in range(4))
        if a * d != b * c:
            break
    first, second = (
        f"{_term(a, 'x')}{_next(b, 'y')} = {a * x + b * y}",
        f"{_term(c, 'x')}{_next(d, 'y')} = {c * x + d * y}",
    )
    return MathQuestion(f"Solve the system ${first}$, ${second}$. Give the answer as a pair $(x, y)$.", f"({x}, {y})")


def quadratic_equation(rng: random.Random, level: int) -> MathQuestion:
    p, q = rng.sample(range(-5 * level - 3, 5 * level + 4), 2)
    a = rng.randint(1, level)
    text = f"Find all solutions of ${polynomial([a, -a * (p + q), a * p * q])} = 0$, separated by commas."
    return MathQuestion(text, f"{min(p, q)}, {max(p, q)}")


def irrational_roots(rng: random.Random, level: int) -> MathQuestion:
    half, square = nonzero(rng, 4 * level), rng.choice([n for n in range(2, 20 * level) if int(n**0.5) ** 2 != n])
    text = f"What is the larger root of ${polynomial([1, -2 * half, half * half - square])} = 0$?"
    return MathQuestion(text, f"{half}+{radical(square)}")


def expansion(rng: random.Random, level: int) -> MathQuestion:
    a, b, c, d = (nonzero(rng, 4 + 2 * level) for _ in range(4))
    text = f"Expand $({polynomial([a, b])})({polynomial([c, d])})$."
    return MathQuestion(text, polynomial([a * c, a * d + b * c, b * d]))


def composition(rng: random.Random, level: int) -> MathQuestion:
    a, b, c, d = (nonzero(rng, 3 + level) for _ in range(4))
    x = nonzero(rng, 3 * level)
    inner = c * x + d
    text = f"Let $f(x) = {polynomial([a, 0, b])}$ and $g(x) = {polynomial([c, d])}$. What is $f(g({x}))$?"
    return MathQuestion(text, str(a * inner * inner + b))


def inequality(rng: random.Random, level: int) -> MathQuestion:
    a, b, c = nonzero(rng, 3 + 2 * level), nonzero(rng, 9 * level), nonzero(rng, 9 * level)
    bound = fraction(Fraction(c - b, a))
    text = f"Solve ${polynomial([a, b])} \\le {c}$. Give the solution set as an interval."
    return MathQuestion(text, rf"(-\infty, {bound}]" if a > 0 else rf"[{bound}, \infty)")


def absolute_value(rng: random.Random, level: int) -> MathQuestion:
    a, b, c = rng.randint(1, 2 + level), nonzero(rng, 6 * level), rng.randint(1, 9 * level)
    low, high = sorted([Fraction(-c - b, a), Fraction(c - b, a)])
    text = f"Find all solutions of $|{polynomial([a, b])}| = {c}$, separated by commas."
    return MathQuestion(text, f"{fraction(low)}, {fraction(high)}")


def exponential_equation(rng: random.Random, level: int) -> MathQuestion:
    base, shift, power = rng.randint(2, 3 + level), nonzero(rng, 3 * level), rng.randint(2, 3 + level)
    factor = rng.randint(1, 1 + level)
    text = f"Solve ${base}^{{{polynomial([factor, shift])}}} = {base**power}$ for $x$."
    return MathQuestion(text, fraction(Fraction(power - shift, factor)))


def logarithmic_equation(rng: random.Random, level: int) -> MathQuestion:
    base, power, shift = rng.randint(2, 3 + level), rng.randint(1, 3), nonzero(rng, 9 * level)
    text = rf"Solve $\log_{{{base}}}(x{signed(shift)}) = {power}$ for $x$."
    return MathQuestion(text, str(base**power - shift))


def arithmetic_series(rng: random.Random, level: int) -> MathQuestion:
    first, step, count = nonzero(rng, 9 * level), nonzero(rng, 4 * level), rng.randint(8, 20 * level)
    terms = ", ".join(str(first + i * step) for i in range(3))
    text = rf"What is the sum of the first ${count}$ terms of the arithmetic sequence ${terms}, \ldots$?"
    return MathQuestion(text, str(count * (2 * first + (count - 1) * step) // 2))


def geometric_series(rng: random.Random, level: int) -> MathQuestion:
    first, ratio = rng.randint(1, 6 * level), Fraction(1, rng.randint(2, 3 + level)) * rng.choice([1, -1])
    terms = ", ".join(fraction(first * ratio**i) for i in range(3))
    return MathQuestion(
        rf"What is the sum of the infinite geometric series with terms ${terms}, \ldots$?",
        fraction(first / (1 - ratio)),
    )


def complex_product(rng: random.Random, level: int) -> MathQuestion:
    a, b, c, d = (nonzero(rng, 3 * level + 2) for _ in range(4))
    real, imaginary = a * c - b * d, a * d + b * c
    text = f"Compute $({a}{signed(b)}i)({c}{signed(d)}i)$. Give the answer in the form $a+bi$."
    return MathQuestion(text, f"{real}{signed(imaginary)}i")


def remainder_of_a_polynomial(rng: random.Random, level: int) -> MathQuestion:
    coefficients = [nonzero(rng, 2 + 2 * level) for _ in range(3 + level // 2)]
    root = nonzero(rng, 2 + level // 2)
    value = 0
    for coefficient in coefficients:
        value = value * root + coefficient
    text = f"What is the remainder when ${polynomial(coefficients)}$ is divided by $x{signed(-root)}$?"
    return MathQuestion(text, str(value))


def _term(factor: int, name: str) -> str:
    return f"{'-' if factor < 0 else ''}{'' if abs(factor) == 1 else abs(factor)}{name}"


def _next(factor: int, name: str) -> str:
    return ("+" if factor > 0 else "") + _term(factor, name)


TEMPLATES: tuple[Template, ...] = (
    linear_equation,
    linear_system,
    quadratic_equation,
    irrational_roots,
    expansion,
    composition,
    inequality,
    absolute_value,
    exponential_equation,
    logarithmic_equation,
    arithmetic_series,
    geometric_series,
    complex_product,
    remainder_of_a_polynomial,
)
