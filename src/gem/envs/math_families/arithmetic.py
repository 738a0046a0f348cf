"""Arithmetic questions with exact answers."""

from __future__ import annotations

import random
from fractions import Fraction

from gem.envs.math_families.template import MathQuestion, Template, fraction, nonzero


def addition(rng: random.Random, level: int) -> MathQuestion:
    numbers = [rng.randint(10**level // 2, 10 ** (level + 1)) for _ in range(level + 1)]
    return MathQuestion(f"Compute ${' + '.join(map(str, numbers))}$.", str(sum(numbers)))


def multiplication(rng: random.Random, level: int) -> MathQuestion:
    a, b = rng.randint(10**level // 3, 10**level), rng.randint(11, 10**level + 10)
    return MathQuestion(rf"Compute ${a} \times {b}$.", str(a * b))


def division_with_remainder(rng: random.Random, level: int) -> MathQuestion:
    divisor = rng.randint(3, 10**level + 5)
    number = divisor * rng.randint(10, 10**level * 10) + rng.randint(1, divisor - 1)
    return MathQuestion(f"What is the remainder when ${number}$ is divided by ${divisor}$?", str(number % divisor))


def order_of_operations(rng: random.Random, level: int) -> MathQuestion:
    a, b, c, d = (rng.randint(2, 8 * level + 4) for _ in range(4))
    e = nonzero(rng, 9 * level)
    text = rf"{a} \times ({b} - {c}) + {d}^2 \div {d} - ({e})"
    return MathQuestion(f"Compute ${text}$.", str(a * (b - c) + d - e))


def fractions(rng: random.Random, level: int) -> MathQuestion:
    parts = [Fraction(nonzero(rng, 7 * level), rng.randint(2, 6 * level + 3)) for _ in range(2 + level // 2)]
    text = " + ".join(rf"\left({fraction(part)}\right)" for part in parts)
    return MathQuestion(
        f"Compute ${text}$. Give the answer as a fraction in lowest terms.", fraction(sum(parts, Fraction(0)))
    )


def quotient_of_fractions(rng: random.Random, level: int) -> MathQuestion:
    a, b = (Fraction(rng.randint(1, 9 * level), rng.randint(2, 9 * level + 2)) for _ in range(2))
    return MathQuestion(
        rf"Compute $\frac{{{fraction(a)}}}{{{fraction(b)}}}$. Give the answer in lowest terms.", fraction(a / b)
    )


def decimals(rng: random.Random, level: int) -> MathQuestion:
    a, b = rng.randint(11, 10 ** (level + 1)), rng.randint(11, 10 ** (level + 1))
    exact = Fraction(a, 100) * Fraction(b, 10)
    return MathQuestion(rf"Compute the exact value of ${a / 100:.2f} \times {b / 10:.1f}$.", _decimal(exact))


def percentage_change(rng: random.Random, level: int) -> MathQuestion:
    price, up, down = 20 * rng.randint(2, 30 * level), 5 * rng.randint(1, 12), 5 * rng.randint(1, 12)
    exact = Fraction(price) * (100 + up) * (100 - down) / 10_000
    text = f"A price of ${price}$ rises by ${up}\\%$ and then falls by ${down}\\%$. What is the final price?"
    return MathQuestion(text, _decimal(exact))


def mean(rng: random.Random, level: int) -> MathQuestion:
    numbers = [rng.randint(1, 40 * level) for _ in range(3 + level)]
    text = f"What is the mean of ${', '.join(map(str, numbers))}$? Give an integer or a fraction in lowest terms."
    return MathQuestion(text, fraction(Fraction(sum(numbers), len(numbers))))


def sharing_in_a_ratio(rng: random.Random, level: int) -> MathQuestion:
    parts = [rng.randint(1, 4 + 2 * level) for _ in range(2 + level // 3)]
    total = sum(parts) * rng.randint(3, 30 * level)
    text = f"${total}$ coins are divided in the ratio ${' : '.join(map(str, parts))}$. How many are in the last share?"
    return MathQuestion(text, str(total * parts[-1] // sum(parts)))


def working_together(rng: random.Random, level: int) -> MathQuestion:
    hours = [rng.randint(2, 6 + 3 * level) for _ in range(2 + level // 3)]
    listed = f"{', '.join(f'${h}$' for h in hours[:-1])} and ${hours[-1]}$"
    text = (
        f"Working alone, ${len(hours)}$ pumps take {listed} hours, respectively, to fill a tank. "
        "How many hours do they take working together?"
    )
    return MathQuestion(text, fraction(1 / sum((Fraction(1, h) for h in hours), Fraction(0))))


def powers(rng: random.Random, level: int) -> MathQuestion:
    base, a, b = rng.randint(2, 3 + level), rng.randint(2, 3 + level), rng.randint(1, 2 + level)
    text = rf"Compute $\frac{{{base}^{{{a + b}}} \cdot {base}^{{{b}}}}}{{{base}^{{{a}}}}}$."
    return MathQuestion(text, str(base ** (2 * b)))


def _decimal(value: Fraction) -> str:
    """Format a terminating decimal without trailing zeros."""
    text = f"{value.numerator * 10**6 // value.denominator:07d}"
    return f"{text[:-6]}.{text[-6:]}".rstrip("0").rstrip(".")


TEMPLATES: tuple[Template, ...] = (
    addition,
    multiplication,
    division_with_remainder,
    order_of_operations,
    fractions,
    quotient_of_fractions,
    decimals,
    percentage_change,
    mean,
    sharing_in_a_ratio,
    working_together,
    powers,
)
