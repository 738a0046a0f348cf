"""Tasks about whole numbers."""

from __future__ import annotations

import math
import random

from gem.envs.code_mini.task import Function, Script, Task, lines


def climbing_numbers(low: int, high: int) -> int:
    """A number climbs when each of its decimal digits is at least as large as the one before: 7, 38 and 1229 climb,
    321 does not.

    climbing_numbers(low, high) takes two integers, 0 <= low <= high <= 1000000000, and returns how many numbers from
    low to high, both included, climb.
    """
    found, numbers = 0, list(range(1, 10))
    if low == 0:
        found += 1
    while numbers:
        found += sum(low <= number <= high for number in numbers)
        numbers = [10 * n + digit for n in numbers for digit in range(n % 10, 10) if 10 * n + digit <= high]
    return found


def draw_range(rng: random.Random, size: int) -> list[int]:
    return sorted([rng.randint(0, size**4), rng.randint(0, size**4)])


def balanced_scale(text: str) -> str:
    """A merchant has one weight each of 1, 3, 9, 27, ... grams and weighs goods by putting weights on both pans. Write
    an integer as he does: with one sign for each weight, from the heaviest one needed down to that of 1 gram; + where
    the weight is added, - where it is taken away, 0 where it is not used. 5 is +--, for 9 - 3 - 1; 0 is written 0.

    Each of the lines holds an integer from -10**18 to 10**18; there are 1 to 100 lines.

    Print one line for each, with its signs.
    """
    answers = []
    for number in map(int, text.split()):
        signs, left = "", number
        while left:
            sign = "0+-"[left % 3]
            left = (left + 1) // 3
            signs = sign + signs
        answers.append(signs or "0")
    return "\n".join(answers)


def draw_weights(rng: random.Random, size: int) -> str:
    return lines(*(rng.randint(-(3 ** min(size, 37)), 3 ** min(size, 37)) for _ in range(2 + size // 8)))


def greedy_shares(numerator: int, denominator: int) -> list[int]:
    """Old scribes wrote a fraction below 1 as a sum of different fractions with numerator 1: they took the largest such
    fraction that was not more than what was left, then went on with the rest. 5/6 became 1/2 + 1/3.

    greedy_shares(numerator, denominator) takes two integers, 1 <= numerator < denominator <= 100, and returns the
    denominators in the order in which they are taken. The later ones can be very large.
    """
    shares = []
    while numerator:
        share = -(-denominator // numerator)
        shares.append(share)
        numerator, denominator = numerator * share - denominator, denominator * share
        common = math.gcd(numerator, denominator)
        numerator, denominator = numerator // common, denominator // common
    return shares


def draw_fraction(rng: random.Random, size: int) -> list[int]:
    return sorted(rng.sample(range(1, min(size, 90) + 5), 2))


def lighthouses(text: str) -> str:
    """Lighthouses flash, each in a rhythm of its own: one with the offset a and the period p flashes in the seconds
    a, a + p, a + 2p and so on. Find the first second in which all of them flash together.

    The first line holds the number of lighthouses n (1 to 12). Each of the n lines that follow holds two integers, the
    offset (0 to 2000) and the period (1 to 1000) of one.

    Print the second, or "never".
    """
    second, step, first = 0, 1, 0
    numbers = [int(token) for token in text.split()][1:]
    for offset, period in zip(numbers[::2], numbers[1::2], strict=True):
        first = max(first, offset)
        for _ in range(period):
            if second % period == offset % period:
                break
            second += step
        else:
            return "never"
        step = math.lcm(step, period)
    while second < first:
        second += step
    return str(second)


def draw_lighthouses(rng: random.Random, size: int) -> str:
    count = 2 + size // 20
    together, periods = rng.randint(0, 900), [rng.randint(2, 10 + size * 5) for _ in range(count)]
    offsets = [together % period + period * rng.randint(0, 1) for period in periods]
    if size in (5, 20):
        offsets[0] += 1
    return lines(count, *zip(offsets, periods, strict=True))


def cubes_of_digits(start: int) -> int:
    """Replace a number by the sum of the cubes of its decimal digits, and that one again, and so on. Sooner or later a
    number comes back.

    cubes_of_digits(start) takes an integer from 0 to 10**15 and returns how many different numbers come up, start
    being one of them.
    """
    seen = set()
    while start not in seen:
        seen.add(start)
        start = sum(int(digit) ** 3 for digit in str(start))
    return len(seen)


def prime_powers(text: str) -> str:
    """Write a number as the product of powers of primes.

    One line holds the number, from 2 to 10**11.

    Print the primes in increasing order, joined by " * ", each followed by ^ and its power where that is above 1: 360
    is 2^3 * 3^2 * 5.
    """
    left, divisor, parts = int(text), 2, []
    while left > 1:
        if divisor * divisor > left:
            divisor = left
        power = 0
        while left % divisor == 0:
            left, power = left // divisor, power + 1
        if power:
            parts.append(f"{divisor}^{power}" if power > 1 else f"{divisor}")
        divisor += 1
    return " * ".join(parts)


def draw_product(rng: random.Random, size: int) -> str:
    number = 1
    while number < 10 ** (size.bit_length() - 1):
        number *= rng.randint(2, 9)
    return lines(number * rng.randint(1, 4 * size))


def repeating_decimal(text: str) -> str:
    """Write a fraction as an exact decimal number. Digits that come again and again without end stand once, between
    brackets: 1/6 is 0.1(6), 1/7 is 0.(142857), 3/8 is 0.375 and 4/2 is 2.

    One line holds the numerator (0 to 10000) and the denominator (1 to 3000).

    Print the number, without zeros that it does not need.
    """
    numerator, denominator = map(int, text.split())
    whole, rest = divmod(numerator, denominator)
    digits, seen = "", {}
    while rest and rest not in seen:
        seen[rest] = len(digits)
        digit, rest = divmod(10 * rest, denominator)
        digits += str(digit)
    if rest:
        digits = f"{digits[: seen[rest]]}({digits[seen[rest] :]})"
    return f"{whole}.{digits}" if digits else str(whole)


TASKS: tuple[Task, ...] = (
    Function(climbing_numbers, draw_range, ([10, 30], 17), edges=[[0, 0], [0, 10], [0, 10**9], [99, 99]], difficulty=3),
    Script(
        balanced_scale,
        draw_weights,
        ("5\n0\n-7\n", "+--\n0\n-+-"),
        edges=["1\n", "-1\n2\n-2\n3\n", f"{10**18}\n{-(10**18)}\n"],
        difficulty=2,
    ),
    Function(greedy_shares, draw_fraction, ([4, 5], [2, 4, 20]), edges=[[1, 2], [99, 100], [2, 6]], difficulty=2),
    Script(
        lighthouses,
        draw_lighthouses,
        ("2\n1 4\n3 5\n", "13"),
        edges=["1\n9 4\n", "2\n0 4\n1 6\n", "3\n1000 2\n0 3\n1 7\n", "2\n0 999\n0 1000\n"],
        difficulty=3,
    ),
    Function(
        cubes_of_digits,
        lambda rng, size: [rng.randint(0, 10 ** min(15, size // 2))],
        ([3], 4),
        edges=[[0], [1], [10**15]],
    ),
    Script(
        prime_powers,
        draw_product,
        ("360\n", "2^3 * 3^2 * 5"),
        edges=["2\n", "9\n", "9999999967\n", "9999800001\n", "1024\n"],
        difficulty=2,
    ),
    Script(
        repeating_decimal,
        lambda rng, size: lines([rng.randint(1, 40 * size), rng.randint(2, 15 * size)]),
        ("7 12\n", "0.58(3)"),
        edges=["0 5\n", "6 3\n", "1 2999\n", "10000 1\n", "1 8\n"],
        difficulty=2,
    ),
)
