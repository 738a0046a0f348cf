"""Derive independent random streams from one seed.

Each stream is identified by its purpose, so that drawing from one stream does not affect another. For example, the
environment of episode 3 and the random actions sampled in that episode use different streams of the same seed.
"""

from __future__ import annotations

import hashlib
import operator
import random
import secrets

from gem.errors import BadValue


def derive(*parts: int | str) -> int:
    """Derive a 63-bit seed from all parts and their order. The result is the same on all platforms.

    >>> derive(0, "world", 1) == derive(0, "world", 1), derive(0, "world", 1) == derive(0, "world", 2)
    (True, False)
    """
    # The separator \x1f is doubled inside parts, so that different lists of parts never produce the same text.
    text = "\x1f".join(f"{type(p).__name__[0]}{p}".replace("\x1f", "\x1f\x1f") for p in parts)
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") >> 1


def stream(*parts: int | str) -> random.Random:
    """Return the random stream identified by these parts."""
    return random.Random(derive(*parts))


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
