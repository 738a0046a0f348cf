"""Random number helpers under their published names. The environments use gem.seeding, and no global stream."""

from __future__ import annotations

import random

import numpy as np

from gem.seeding import check_seed, fresh_seed

RNG = RandomNumberGenerator = np.random.Generator


def np_random(seed: int | None = None) -> tuple[np.random.Generator, int]:
    """Return a numpy generator and its seed, which is drawn from the operating system if it is None.

    Raises:
        BadValue: the seed is not an integer >= 0.
    """
    number = fresh_seed() if seed is None else check_seed(seed)
    return np.random.default_rng(number), number


def set_seed(seed: int | None = None) -> None:
    """Seed the global streams of random and numpy, from the operating system if the seed is None.

    Raises:
        BadValue: the seed is not an integer >= 0.
    """
    number = fresh_seed() if seed is None else check_seed(seed)
    random.seed(number)
    np.random.seed(number % 2**32)
