"""Word lists of the word games, and parsing of a boxed word.

The lists are files under data/, read on first use and cached. The comments at the top of each file name its
source and license.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from importlib.resources import files

from gem.parsing import last_boxed

COMMON_LENGTHS = range(3, 9)
ACCEPTED_LENGTHS = range(3, 6)

_WORD = re.compile(r"[\s,]*[A-Za-z](?:[\s,]*[A-Za-z]){0,31}[\s,]*", re.ASCII)
_BETWEEN = re.compile(r"[\s,]+", re.ASCII)


def common(length: int) -> tuple[str, ...]:
    """Return the common words of this length, sorted, or an empty tuple if length is not in COMMON_LENGTHS."""
    return _read("common.txt").get(length, ())


@cache
def accepted(length: int) -> frozenset[str]:
    """Return all valid guesses of this length. Outside ACCEPTED_LENGTHS, only the common words are valid."""
    return frozenset(common(length) + _read("accepted.txt").get(length, ()))


def boxed(action: str) -> str | None:
    r"""Return the last boxed word of at most 32 letters, in lower case; None if no box contains a word.

    Spaces and commas between letters are ignored.

    >>> boxed(r"\boxed{CRANE}, no: \boxed{S l a t e}"), boxed("crane")
    ('slate', None)
    """
    box = last_boxed(action, _WORD)
    return None if box is None else _BETWEEN.sub("", box).lower()


@cache
def letters(length: int) -> tuple[str, ...]:
    """Return the letters of the common words of this length, those that occur in the most words first."""
    counts = Counter(letter for word in common(length) for letter in sorted(set(word)))
    return tuple(letter for letter, _ in counts.most_common())


@cache
def by_letters(length: int) -> tuple[str, ...]:
    """Return the common words of this length, those with the most frequent letters first."""
    rank = {letter: -place for place, letter in enumerate(letters(length))}
    return tuple(sorted(common(length), key=lambda word: -sum(rank[letter] + len(rank) for letter in set(word))))


@cache
def _read(name: str) -> dict[int, tuple[str, ...]]:
    """Read a word list and return its words by length."""
    found: dict[int, list[str]] = {}
    for line in (files("gem.envs.games") / "data" / name).read_text(encoding="ascii").splitlines():
        if not line.startswith("#"):
            found.setdefault(len(line), []).append(line)
    return {length: tuple(words) for length, words in found.items()}
