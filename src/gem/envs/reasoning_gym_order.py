"""Four generators of reasoning-gym go through sets of strings, and one through a set of formulas.

The order of a set differs from process to process (PYTHONHASHSEED), so the same seed would not be the same question.
Here they are given sets whose order is theirs alone.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from collections.abc import Set as AbstractSet
from functools import wraps
from typing import Any


class SortedSet(frozenset[str]):
    """A set that is gone through in the order of its strings.

    >>> [*(SortedSet("cab") - {"b"})]
    ['a', 'c']
    """

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(super().__iter__()))

    def __sub__(self, other: AbstractSet[Any]) -> SortedSet:
        return SortedSet(super().__sub__(other))


def settle(name: str, dataset: Any) -> None:
    """Give a data set of one of the five generators an order; leave the others as they are."""
    if name in ("isomorphic_strings", "ransom_note"):
        dataset.letters = SortedSet(dataset.letters)
    elif name == "word_ladder":
        dataset._get_neighbors = _ordered(dataset._get_neighbors)
    elif name == "knight_swap":
        # It makes its sets as it goes: the name in its module is another class, which orders and does nothing else.
        vars(sys.modules[type(dataset).__module__])["frozenset"] = SortedSet
    elif name == "polynomial_multiplication":
        dataset._get_monomials = _ordered(dataset._get_monomials)


def _ordered(function: Callable[..., Iterable[Any]]) -> Callable[..., list[Any]]:
    @wraps(function)
    def ordered(*args: Any, **kwargs: Any) -> list[Any]:
        return sorted(function(*args, **kwargs), key=str)

    return ordered
