"""What word games share: the word lists shipped under data/, and a word read from an action.

The lists are read when first asked for and then kept. Each names its source and licence at its head.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

from gem.parsing import last_boxed

COMMON_LENGTHS = range(3, 9)
ACCEPTED_LENGTHS = range(3, 6)

_WORD = re.compile(r"[\s,]*[A-Za-z](?:[\s,]*[A-Za-z]){0,31}[\s,]*", re.ASCII)
_BETWEEN = re.compile(r"[\s,]+", re.ASCII)


def common(length: int) -> tuple[str, ...]:
    """The common words of so many letters, sorted; none outside COMMON_LENGTHS. Good for secrets."""
    return _read("common.txt").get(length, ())


@cache
def accepted(length: int) -> frozenset[str]:
    """Every word of so many letters that may be guessed, the common ones included; see ACCEPTED_LENGTHS."""
    return frozenset(common(length) + _read("accepted.txt").get(length, ()))


def boxed(action: str) -> str | None:
    r"""The last boxed word of at most 32 letters, in lower case; its letters may stand apart. None without one.

    >>> boxed(r"\boxed{CRANE}, no: \boxed{S l a t e}"), boxed("crane")
    ('slate', None)
    """
    box = last_boxed(action, _WORD)
    return None if box is None else _BETWEEN.sub("", box).lower()


@cache
def _read(name: str) -> dict[int, tuple[str, ...]]:
    """Words by length."""
    found: dict[int, list[str]] = {}
    for line in (files(__package__) / "data" / name).read_text(encoding="ascii").splitlines():
        if not line.startswith("#"):
            found.setdefault(len(line), []).append(line)
    return {length: tuple(words) for length, words in found.items()}
