"""Derive independent random streams from one seed.

Each stream is identified by its purpose, so that drawing from one stream does not affect another. For example, the
environment of episode 3 and the random actions sampled in that episode use different streams of the same seed.
"""

from __future__ import annotations

import math
import operator
import random
import secrets
from hashlib import blake2b

from gem.errors import BadValue


def derive(*parts: int | str) -> int:
    """Derive a 63-bit seed from all parts and their order. The result is the same on all platforms.

    >>> derive(0, "world", 1) == derive(0, "world", 1), derive(0, "world", 1) == derive(0, "world", 2)
    (True, False)
    """
    # The separator \x1f is doubled inside parts, so that different lists of parts never produce the same text.
    text = "\x1f".join([f"{type(p).__name__[0]}{p}".replace("\x1f", "\x1f\x1f") for p in parts])
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big") >> 1


def stream(*parts: int | str) -> random.Random:
    """Return the random stream identified by these parts."""
    return random.Random(derive(*parts))


def permuted(position: int, count: int, *name: int | str) -> int:
    """Return the image of ``position`` under a pseudorandom permutation of range(count) that depends on ``name``.

    The cost does not depend on count: a Feistel network permutes the smallest square domain that contains the range,
    and is applied again to results outside the range (cycle walking).

    >>> sorted(permuted(position, 5, "tasks", 0) for position in range(5))
    [0, 1, 2, 3, 4]
    """
    side = math.isqrt(count - 1) + 1
    while True:
        left, right = divmod(position, side)
        for feistel_round in range(4):
            left, right = right, (left + derive(*name, feistel_round, right)) % side
        position = left * side + right
        if position < count:
            return position


def fresh_seed() -> int:
    """Return a random 63-bit seed from the operating system."""
    return secrets.randbits(63)


def check_seed(seed: object) -> int:
    """Convert a seed, possibly a numpy integer, to an int. Raises BadValue unless the seed is an integer >= 0."""
    try:
        number = operator.index(seed)  # type: ignore[arg-type]
    except TypeError:
        raise BadValue(f"seed must be an integer >= 0 or None, got {seed!r}") from None
    if number < 0:
        raise BadValue(f"seed must be an integer >= 0 or None, got {number}")
    return number
