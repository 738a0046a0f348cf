"""Arithmetic questions with exact answers."""

from __future__ import annotations

import random
from fractions import Fraction

from gem.envs.questions.families.template import EXACT, MathQuestion, Methods, decimal, fraction, listed, nonzero, total


def addition(rng: random.Random, level: int) -> MathQuestion:
    numbers = [rng.randint(11, 10 ** (level + 2)) for _ in range(level + 1)]
    return MathQuestion(f"Compute ${' + '.join(map(str, numbers))}$.", str(sum(numbers)))


def subtraction(rng: random.Random, level: int) -> MathQuestion:
    a, b = rng.randint(11, 10 ** (level + 2)), rng.randint(11, 10 ** (level + 2))
    return MathQuestion(f"Compute ${a} - {b}$.", str(a - b))


def multiplication(rng: random.Random, level: int) -> MathQuestion:
    a, b = rng.randint(11, 10 ** (level + 1)), rng.randint(11, 10**level + 90)
    return MathQuestion(rf"Compute ${a} \times {b}$.", str(a * b))


def division_with_remainder(rng: random.Random, level: int) -> MathQuestion:
    divisor = rng.randint(6, 10**level + 9)
    number = divisor * rng.randint(10, 10**level * 20) + rng.randint(1, divisor - 1)
    return MathQuestion(f"What is the remainder when ${number}$ is divided by ${divisor}$?", str(number % divisor))


def order_of_operations(rng: random.Random, level: int) -> MathQuestion:
    a, b, c, d = (rng.randint(2, 8 * level + 4) for _ in range(4))
    divisor, e = rng.randint(2, 9), rng.randint(2, 9 * level)
    text = rf"{a} \times ({b} - {c}) + {d}^2 - {divisor * e} \div {divisor}"
    return MathQuestion(f"Compute ${text}$.", str(a * (b - c) + d * d - e))


def decimals(rng: random.Random, level: int) -> MathQuestion:
    a, b = rng.randint(11, 10 ** (level + 1)), rng.randint(11, 10 ** (level + 1))
    exact = Fraction(a, 100) * Fraction(b, 10)
    return MathQuestion(rf"Compute the exact value of ${a / 100:.2f} \times {b / 10:.1f}$.", decimal(exact))


def percentage_change(rng: random.Random, level: int) -> MathQuestion:
    price, up, down = 20 * rng.randint(2, 30 * level), 5 * rng.randint(1, 12), 5 * rng.randint(1, 12)
    exact = Fraction(price) * (100 + up) * (100 - down) / 10_000
    text = (
        f"A bicycle costs ${price}$ dollars. Its price rises by ${up}\\%$ and then falls by ${down}\\%$. "
        "What is the final price in dollars?"
    )
    return MathQuestion(text, decimal(exact))


def mean(rng: random.Random, level: int) -> MathQuestion:
    numbers = [rng.randint(1, 40 * level) for _ in range(3 + level)]
    return MathQuestion(
        f"What is the mean of {listed(numbers)}? {EXACT}", fraction(Fraction(sum(numbers), len(numbers)))
    )


def fractions(rng: random.Random, level: int) -> MathQuestion:
    count = 2 + level // 2
    parts: list[Fraction] = []
    while len(parts) < count:
        part = Fraction(nonzero(rng, 7 * level), rng.randint(2, 6 * level + 3))
        if part.denominator > 1:
            parts.append(part)
    return MathQuestion(
        f"Compute ${total([fraction(part) for part in parts])}$. {EXACT}", fraction(sum(parts, Fraction(0)))
    )


def quotient_of_fractions(rng: random.Random, level: int) -> MathQuestion:
    numbers = rng.sample(range(2, 9 * level + 3), 4)
    a, b = Fraction(*numbers[:2]), Fraction(*numbers[2:])
    return MathQuestion(rf"Compute ${fraction(a)} \div {fraction(b)}$. {EXACT}", fraction(a / b))


def sharing_in_a_ratio(rng: random.Random, level: int) -> MathQuestion:
    parts = [rng.randint(2, 4 + 2 * level) for _ in range(2 + level // 3)]
    coins = sum(parts) * rng.randint(3, 30 * level)
    text = (
        f"${coins}$ coins are divided in the ratio ${' : '.join(map(str, parts))}$. "
        "How many coins are in the last share?"
    )
    return MathQuestion(text, str(coins * parts[-1] // sum(parts)))


def powers(rng: random.Random, level: int) -> MathQuestion:
    base, rest, outer = rng.randint(2, 3 + level), rng.randint(2, 4), rng.randint(2, 9)
    a, b = rng.randint(10, 20 * level), rng.randint(10, 20 * level)
    text = rf"Compute $\frac{{{base}^{{{a}}} \cdot {base}^{{{b}}}}}{{{base}^{{{a + b - rest}}}}} + {outer}^{{{rest}}}$."
    return MathQuestion(text, str(base**rest + outer**rest))


def working_together(rng: random.Random, level: int) -> MathQuestion:
    hours = rng.sample(range(2, 6 + 4 * level), 3)
    text = (
        f"Working alone, three pumps take {listed(hours)} hours, respectively, to fill a tank. "
        f"How many hours do they take to fill it together? {EXACT}"
    )
    return MathQuestion(text, fraction(1 / sum((Fraction(1, h) for h in hours), Fraction(0))))


def reverse_percentage(rng: random.Random, level: int) -> MathQuestion:
    price, change = 20 * rng.randint(2, 60 * level), 5 * rng.randint(1, 15)
    rise = rng.random() < 0.5
    after = price * (100 + change if rise else 100 - change) // 100
    text = (
        f"After {'a rise' if rise else 'a discount'} of ${change}\\%$, a bicycle costs ${after}$ dollars. "
        f"How many dollars did it cost before the {'rise' if rise else 'discount'}?"
    )
    return MathQuestion(text, str(price))


def average_speed(rng: random.Random, level: int) -> MathQuestion:
    (a, b), (c, d) = ([rng.randint(3, 12 * level), rng.randint(8, 30)] for _ in range(2))
    text = (
        f"A cyclist rides ${a}$ km at ${b}$ km/h and then ${c}$ km at ${d}$ km/h. "
        f"What is her average speed in km/h over the whole ride? {EXACT}"
    )
    return MathQuestion(text, fraction((a + c) / (Fraction(a, b) + Fraction(c, d))))


def mixture(rng: random.Random, level: int) -> MathQuestion:
    (a, p), (b, q) = ([rng.randint(2, 6 * level), rng.randint(1, 40)] for _ in range(2))
    text = (
        f"You mix ${a}$ liters of salt water that is ${p}\\%$ salt and ${b}$ liters that are ${q}\\%$ salt. "
        f"What percentage of the mixture is salt? {EXACT}"
    )
    return MathQuestion(text, fraction(Fraction(a * p + b * q, a + b)))


def digit_of_a_quotient(rng: random.Random, level: int) -> MathQuestion:
    bottom, place = rng.choice([7, 13, 17, 19, 23, 29, 37, 41]), rng.randint(50, 400 * level)
    top = rng.randint(1, bottom - 1)
    text = (
        rf"The number $\frac{{{top}}}{{{bottom}}}$ is written as a decimal. "
        f"Which digit stands at position ${place}$ after the decimal point?"
    )
    return MathQuestion(text, str(10**place * top // bottom % 10))


def compound_interest(rng: random.Random, level: int) -> MathQuestion:
    amount, rate, years = 10_000 * rng.randint(1, 60 * level), rng.randint(2, 20), rng.randint(2, 3)
    text = (
        f"You invest ${amount}$ dollars at ${rate}\\%$ interest per year. The interest is added to the investment "
        f"at the end of each year. How many dollars is it worth after ${years}$ years? Give the exact value."
    )
    return MathQuestion(text, decimal(Fraction(amount * (100 + rate) ** years, 100**years)))


def sum_of_a_range(rng: random.Random, level: int) -> MathQuestion:
    step, first, count = rng.randint(2, 4 + level), rng.randint(1, 20 * level), rng.randint(20, 60 * level)
    last = first + step * (count - 1)
    text = (
        rf"Compute ${first} + {first + step} + {first + 2 * step} + \cdots + {last}$, where each term is ${step}$ more "
        "than the one before."
    )
    return MathQuestion(text, str(count * (first + last) // 2))


def continued_fraction(rng: random.Random, level: int) -> MathQuestion:
    a, b, c, d = (rng.randint(2, 4 * level) for _ in range(4))
    value = a + 1 / (b + 1 / (c + Fraction(1, d)))
    text = rf"Compute ${a} + \cfrac{{1}}{{{b} + \cfrac{{1}}{{{c} + \cfrac{{1}}{{{d}}}}}}}$. {EXACT}"
    return MathQuestion(text, fraction(value))


METHODS: Methods = {
    1: (addition, subtraction, multiplication, division_with_remainder),
    2: (order_of_operations, decimals, percentage_change, mean),
    3: (fractions, quotient_of_fractions, sharing_in_a_ratio, powers),
    4: (working_together, reverse_percentage, average_speed, mixture),
    5: (digit_of_a_quotient, compound_interest, sum_of_a_range, continued_fraction),
}
