"""Words of the generated catalogue: ten departments with six kinds of product each, and names of brands.

No two kinds share a word, and no attribute contains another one, so that a text mentions an attribute only if the
product has it (tests/envs/web/webshop/test_mini.py).
"""

from __future__ import annotations

from importlib.resources import files

import msgspec


class Department(msgspec.Struct, frozen=True):
    """A department.

    Args:
        name: first level of the category.
        kinds: six kinds of product; neighbours (0 and 1, 2 and 3, …) have products that differ only in their kind.
        makes, uses, extras: attributes, six each. A product has one of the first two groups and two extras.
        options: two names of options with their values.
    """

    name: str
    kinds: tuple[str, ...]
    makes: tuple[str, ...]
    uses: tuple[str, ...]
    extras: tuple[str, ...]
    options: dict[str, tuple[str, ...]]


class _Words(msgspec.Struct, frozen=True):
    """The departments, and beginnings and endings of the names of brands; each kind has brands of its own."""

    departments: tuple[Department, ...]
    syllables: tuple[tuple[str, ...], tuple[str, ...]]


SOURCE = (files("gem.envs") / "data" / "webshop" / "vocabulary.json").read_bytes()
_words = msgspec.json.decode(SOURCE, type=_Words)
DEPARTMENTS, SYLLABLES = _words.departments, _words.syllables
