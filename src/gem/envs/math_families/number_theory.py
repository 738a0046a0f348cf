"""Questions about whole numbers."""

from __future__ import annotations

import math
import random

from gem.envs.math_families.template import Question, Template

PRIMES = [n for n in range(2, 300) if all(n % d for d in range(2, int(n**0.5) + 1))]


def greatest_common_divisor(rng: random.Random, level: int) -> Question:
    common = rng.randint(2, 12 * level)
    a, b = common * rng.randint(5, 30 * level), common * rng.randint(5, 30 * level)
    return Question(f"What is the greatest common divisor of ${a}$ and ${b}$?", str(math.gcd(a, b)))


def least_common_multiple(rng: random.Random, level: int) -> Question:
    numbers = [rng.randint(4, 12 * level + 6) for _ in range(2 + level // 2)]
    return Question(f"What is the least common multiple of ${', '.join(map(str, numbers))}$?", str(math.lcm(*numbers)))


def power_modulo(rng: random.Random, level: int) -> Question:
    base, power, modulus = rng.randint(2, 9 * level), rng.randint(10, 40**level), rng.randint(5, 20 * level)
    text = f"What is the remainder when ${base}^{{{power}}}$ is divided by ${modulus}$?"
    return Question(text, str(pow(base, power, modulus)))


def inverse_modulo(rng: random.Random, level: int) -> Question:
    modulus = rng.choice([p for p in PRIMES if 7 <= p <= 50 * level])
    number = rng.randint(2, modulus - 1)
    text = f"Find the integer $x$ with $0 < x < {modulus}$ and ${number}x \\equiv 1 \\pmod{{{modulus}}}$."
    return Question(text, str(pow(number, -1, modulus)))


def two_congruences(rng: random.Random, level: int) -> Question:
    p, q = rng.sample([prime for prime in PRIMES if 3 <= prime <= 10 + 12 * level], 2)
    x = rng.randint(1, p * q - 1)
    text = rf"Find the least $x \ge 0$ that leaves the remainder ${x % p}$ modulo ${p}$ and ${x % q}$ modulo ${q}$."
    return Question(text, str(x))


def number_of_divisors(rng: random.Random, level: int) -> Question:
    powers = {p: rng.randint(1, 3) for p in rng.sample(PRIMES[: 3 + level], min(2 + level // 2, 4))}
    number = math.prod(p**k for p, k in powers.items())
    return Question(f"How many positive divisors has ${number}$?", str(math.prod(k + 1 for k in powers.values())))


def largest_prime_factor(rng: random.Random, level: int) -> Question:
    factors = [rng.choice(PRIMES[: 8 * level]) for _ in range(2 + level // 2)]
    return Question(f"What is the largest prime factor of ${math.prod(factors)}$?", str(max(factors)))


def in_another_base(rng: random.Random, level: int) -> Question:
    number, base = rng.randint(20, 60**level), rng.choice([2, 3, 5, 7, 8])
    digits, left = "", number
    while left:
        left, digit = divmod(left, base)
        digits = str(digit) + digits
    return Question(
        f"Write ${number}$ (in base ten) in base ${base}$, as $d_{{{base}}}$ with digits $d$.", f"{digits}_{{{base}}}"
    )


def sum_of_digits(rng: random.Random, level: int) -> Question:
    power = rng.randint(5, 9 * level + 5)
    return Question(f"What is the sum of the decimal digits of $2^{{{power}}}$?", str(sum(map(int, str(2**power)))))


def zeros_of_a_factorial(rng: random.Random, level: int) -> Question:
    number, zeros, five = rng.randint(20, 60 * level * level), 0, 5
    while five <= number:
        zeros, five = zeros + number // five, five * 5
    return Question(f"In how many zeros does ${number}!$ end?", str(zeros))


def totient(rng: random.Random, level: int) -> Question:
    powers = {p: rng.randint(1, 2) for p in rng.sample(PRIMES[: 2 + 2 * level], 2)}
    number = math.prod(p**k for p, k in powers.items())
    text = rf"How many of the integers from $1$ to ${number}$ have no common factor with ${number}$?"
    return Question(text, str(math.prod((p - 1) * p ** (k - 1) for p, k in powers.items())))


def solutions_in_coins(rng: random.Random, level: int) -> Question:
    a, b = rng.sample(range(2, 6 + 3 * level), 2)
    total = rng.randint(20, 60 * level)
    text = rf"How many pairs of integers $x, y \ge 0$ satisfy ${a}x + {b}y = {total}$?"
    return Question(text, str(sum((total - a * x) % b == 0 for x in range(total // a + 1))))


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
