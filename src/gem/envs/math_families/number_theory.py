"""Number theory questions."""

from __future__ import annotations

import math
import random

from gem.envs.math_families.template import MathQuestion, Template

PRIMES = [n for n in range(2, 300) if all(n % d for d in range(2, int(n**0.5) + 1))]


def greatest_common_divisor(rng: random.Random, level: int) -> MathQuestion:
    common = rng.randint(2, 12 * level)
    a, b = common * rng.randint(5, 30 * level), common * rng.randint(5, 30 * level)
    return MathQuestion(f"What is the greatest common divisor of ${a}$ and ${b}$?", str(math.gcd(a, b)))


def least_common_multiple(rng: random.Random, level: int) -> MathQuestion:
    numbers = [rng.randint(4, 12 * level + 6) for _ in range(2 + level // 2)]
    listed = f"{', '.join(f'${n}$' for n in numbers[:-1])} and ${numbers[-1]}$"
    return MathQuestion(f"What is the least common multiple of {listed}?", str(math.lcm(*numbers)))


def power_modulo(rng: random.Random, level: int) -> MathQuestion:
    base, power, modulus = rng.randint(2, 9 * level), rng.randint(10, 40**level), rng.randint(5, 20 * level)
    text = f"What is the remainder when ${base}^{{{power}}}$ is divided by ${modulus}$?"
    return MathQuestion(text, str(pow(base, power, modulus)))


def inverse_modulo(rng: random.Random, level: int) -> MathQuestion:
    modulus = rng.choice([p for p in PRIMES if 7 <= p <= 50 * level])
    number = rng.randint(2, modulus - 1)
    text = f"Find the integer $x$ such that $0 < x < {modulus}$ and ${number}x \\equiv 1 \\pmod{{{modulus}}}$."
    return MathQuestion(text, str(pow(number, -1, modulus)))


def two_congruences(rng: random.Random, level: int) -> MathQuestion:
    p, q = rng.sample([prime for prime in PRIMES if 3 <= prime <= 10 + 12 * level], 2)
    x = rng.randint(1, p * q - 1)
    text = (
        rf"Find the smallest integer $x \ge 0$ such that $x \equiv {x % p} \pmod{{{p}}}$ "
        rf"and $x \equiv {x % q} \pmod{{{q}}}$."
    )
    return MathQuestion(text, str(x))


def number_of_divisors(rng: random.Random, level: int) -> MathQuestion:
    powers = {p: rng.randint(1, 3) for p in rng.sample(PRIMES[: 3 + level], min(2 + level // 2, 4))}
    number = math.prod(p**k for p, k in powers.items())
    return MathQuestion(
        f"How many positive divisors does ${number}$ have?", str(math.prod(k + 1 for k in powers.values()))
    )


def largest_prime_factor(rng: random.Random, level: int) -> MathQuestion:
    factors = [rng.choice(PRIMES[: 8 * level]) for _ in range(2 + level // 2)]
    return MathQuestion(f"What is the largest prime factor of ${math.prod(factors)}$?", str(max(factors)))


def in_another_base(rng: random.Random, level: int) -> MathQuestion:
    number, base = rng.randint(20, 60**level), rng.choice([2, 3, 5, 7, 8])
    digits, left = "", number
    while left:
        left, digit = divmod(left, base)
        digits = str(digit) + digits
    return MathQuestion(
        f"Convert ${number}$ from base $10$ to base ${base}$. Give the answer with a subscript, as in $10_{{{base}}}$.",
        f"{digits}_{{{base}}}",
    )


def sum_of_digits(rng: random.Random, level: int) -> MathQuestion:
    power = rng.randint(5, 9 * level + 5)
    return MathQuestion(f"What is the sum of the decimal digits of $2^{{{power}}}$?", str(sum(map(int, str(2**power)))))


def zeros_of_a_factorial(rng: random.Random, level: int) -> MathQuestion:
    number, zeros, five = rng.randint(20, 60 * level * level), 0, 5
    while five <= number:
        zeros, five = zeros + number // five, five * 5
    return MathQuestion(f"How many trailing zeros does ${number}!$ have?", str(zeros))


def totient(rng: random.Random, level: int) -> MathQuestion:
    powers = {p: rng.randint(1, 2) for p in rng.sample(PRIMES[: 2 + 2 * level], 2)}
    number = math.prod(p**k for p, k in powers.items())
    text = rf"How many integers from $1$ to ${number}$ are relatively prime to ${number}$?"
    return MathQuestion(text, str(math.prod((p - 1) * p ** (k - 1) for p, k in powers.items())))


def solutions_in_coins(rng: random.Random, level: int) -> MathQuestion:
    a, b = rng.sample(range(2, 6 + 3 * level), 2)
    total = rng.randint(20, 60 * level)
    text = rf"How many pairs of non-negative integers $(x, y)$ satisfy ${a}x + {b}y = {total}$?"
    return MathQuestion(text, str(sum((total - a * x) % b == 0 for x in range(total // a + 1))))


TEMPLATES: tuple[Template, ...] = (
    greatest_common_divisor,
    least_common_multiple,
    power_modulo,
    inverse_modulo,
    two_congruences,
    number_of_divisors,
    largest_prime_factor,
    in_another_base,
    sum_of_digits,
    zeros_of_a_factorial,
    totient,
    solutions_in_coins,
)
