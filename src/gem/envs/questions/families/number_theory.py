"""Number theory questions."""

from __future__ import annotations

import math
import random
from itertools import combinations

from gem.envs.questions.families.template import MathQuestion, Methods, listed

PRIMES = [n for n in range(2, 300) if all(n % d for d in range(2, int(n**0.5) + 1))]


def greatest_common_divisor(rng: random.Random, level: int) -> MathQuestion:
    common = rng.randint(2, 12 * level)
    a, b = common * rng.randint(5, 30 * level), common * rng.randint(5, 30 * level)
    return MathQuestion(f"What is the greatest common divisor of ${a}$ and ${b}$?", str(math.gcd(a, b)))


def least_common_multiple(rng: random.Random, level: int) -> MathQuestion:
    numbers = [rng.randint(4, 12 * level + 80) for _ in range(2 + level // 2)]
    return MathQuestion(f"What is the least common multiple of {listed(numbers)}?", str(math.lcm(*numbers)))


def count_of_multiples(rng: random.Random, level: int) -> MathQuestion:
    divisor, low = rng.randint(3, 8 + 5 * level), rng.randint(10, 100 * level)
    high = low + rng.randint(50, 300 * level)
    text = f"How many multiples of ${divisor}$ are there from ${low}$ to ${high}$, inclusive?"
    return MathQuestion(text, str(high // divisor - (low - 1) // divisor))


def number_of_divisors(rng: random.Random, level: int) -> MathQuestion:
    p, q = rng.sample(PRIMES[3 : 18 + level], 2)
    number = 2 ** rng.randint(0, 4) * 3 ** rng.randint(0, 2) * 5 ** rng.randint(0, 1) * p * q
    count = math.prod(exponent + 1 for exponent in _factored(number).values())
    return MathQuestion(f"How many positive divisors does ${number}$ have?", str(count))


def largest_prime_factor(rng: random.Random, level: int) -> MathQuestion:
    factors = [rng.choice(PRIMES[: 10 * level]) for _ in range(3 + level // 3)]
    return MathQuestion(f"What is the largest prime factor of ${math.prod(factors)}$?", str(max(factors)))


def in_another_base(rng: random.Random, level: int) -> MathQuestion:
    number, base = rng.randint(100, 60**level), rng.choice([2, 3, 5, 7, 8])
    digits, left = "", number
    while left:
        left, digit = divmod(left, base)
        digits = str(digit) + digits
    return MathQuestion(f"Write ${number}$ in base ${base}$. Give only the digits.", digits)


def power_modulo(rng: random.Random, level: int) -> MathQuestion:
    base, power, modulus = rng.randint(2, 9 * level), rng.randint(40, 40**level), rng.randint(7, 20 * level)
    text = f"What is the remainder when ${base}^{{{power}}}$ is divided by ${modulus}$?"
    return MathQuestion(text, str(pow(base, power, modulus)))


def sum_of_digits(rng: random.Random, level: int) -> MathQuestion:
    power, less = rng.randint(10, 40 * level), rng.randint(11, 400 * level)
    text = rf"What is the sum of the decimal digits of $10^{{{power}}} - {less}$?"
    return MathQuestion(text, str(sum(map(int, str(10**power - less)))))


def power_in_a_factorial(rng: random.Random, level: int) -> MathQuestion:
    number, prime = rng.randint(20, 200 * level), rng.choice(PRIMES[:9])
    exponent, power = 0, prime
    while power <= number:
        exponent, power = exponent + number // power, power * prime
    text = f"What is the largest integer $k$ such that ${prime}^k$ divides ${number}!$?"
    return MathQuestion(text, str(exponent))


def inverse_modulo(rng: random.Random, level: int) -> MathQuestion:
    modulus = rng.choice([p for p in PRIMES if 7 <= p <= 50 * level])
    number = rng.randint(2, modulus - 1)
    text = f"Find the integer $x$ such that $0 < x < {modulus}$ and ${number}x \\equiv 1 \\pmod{{{modulus}}}$."
    return MathQuestion(text, str(pow(number, -1, modulus)))


def two_congruences(rng: random.Random, level: int) -> MathQuestion:
    p, q = rng.sample([prime for prime in PRIMES if 5 <= prime <= 10 + 12 * level], 2)
    x = rng.randint(1, p * q - 1)
    text = (
        rf"Find the smallest integer $x \ge 0$ such that $x \equiv {x % p} \pmod{{{p}}}$ "
        rf"and $x \equiv {x % q} \pmod{{{q}}}$."
    )
    return MathQuestion(text, str(x))


def totient(rng: random.Random, level: int) -> MathQuestion:
    number = math.prod(p ** rng.randint(1, 2) for p in rng.sample(PRIMES[: 6 + 2 * level], 3))
    text = rf"How many integers from $1$ to ${number}$ are relatively prime to ${number}$?"
    return MathQuestion(text, str(math.prod((p - 1) * p ** (k - 1) for p, k in _factored(number).items())))


def solutions_in_coins(rng: random.Random, level: int) -> MathQuestion:
    a, b = rng.sample(range(2, 6 + 3 * level), 2)
    money = rng.randint(30 * level, 90 * level)
    text = rf"How many pairs of non-negative integers $(x, y)$ satisfy ${a}x + {b}y = {money}$?"
    return MathQuestion(text, str(sum((money - a * x) % b == 0 for x in range(money // a + 1))))


def sum_of_divisors(rng: random.Random, level: int) -> MathQuestion:
    number = math.prod(p ** rng.randint(1, 3) for p in rng.sample(PRIMES[: 4 + 2 * level], 3))
    value = math.prod((p ** (k + 1) - 1) // (p - 1) for p, k in _factored(number).items())
    return MathQuestion(f"What is the sum of all positive divisors of ${number}$, including ${number}$?", str(value))


def divisible_by_none(rng: random.Random, level: int) -> MathQuestion:
    divisors, last = sorted(rng.sample(range(4, 16), 3)), rng.randint(200, 400 * level)
    count = last
    for size in (1, 2, 3):
        count += (-1) ** size * sum(last // math.lcm(*some) for some in combinations(divisors, size))
    *first, final = (f"${d}$" for d in divisors)
    text = f"How many integers from $1$ to ${last}$ are divisible by none of {', '.join(first)} and {final}?"
    return MathQuestion(text, str(count))


def multiplicative_order(rng: random.Random, level: int) -> MathQuestion:
    modulus = rng.choice([p for p in PRIMES if 11 <= p <= 50 * level])
    base = rng.randint(2, modulus - 1)
    order = next(k for k in range(1, modulus) if pow(base, k, modulus) == 1)
    text = rf"What is the smallest integer $k > 0$ such that ${base}^k \equiv 1 \pmod{{{modulus}}}$?"
    return MathQuestion(text, str(order))


def tower_modulo(rng: random.Random, level: int) -> MathQuestion:
    base, middle, top = rng.randint(2, 99), rng.randint(2, 99), rng.randint(5, 20 * level)
    modulus = rng.choice([10, 100, 7, 11, 13, 17, 19])
    text = f"What is the remainder when ${base}^{{{middle}^{{{top}}}}}$ is divided by ${modulus}$?"
    return MathQuestion(text, str(pow(base, middle**top, modulus)))


def _factored(number: int) -> dict[int, int]:
    """Return the exponents of the primes that divide a number."""
    exponents: dict[int, int] = {}
    divisor = 2
    while number > 1:
        while number % divisor == 0:
            number, exponents[divisor] = number // divisor, exponents.get(divisor, 0) + 1
        divisor += 1
    return exponents


METHODS: Methods = {
    1: (greatest_common_divisor, least_common_multiple, count_of_multiples),
    2: (number_of_divisors, largest_prime_factor, in_another_base),
    3: (power_modulo, sum_of_digits, power_in_a_factorial),
    4: (inverse_modulo, two_congruences, totient, solutions_in_coins),
    5: (sum_of_divisors, divisible_by_none, multiplicative_order, tower_modulo),
}
