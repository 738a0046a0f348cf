"""The nouns of product titles: from spaCy where it and its small English model are installed, else from a word rule."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Literal

from gem._internal.imports import is_installed
from gem.errors import BadValue, require

NounRule = Literal["spacy", "words"]
MODEL = "en_core_web_sm"
_WORD = re.compile(r"[a-z][a-z']+")
# Words of titles that are rarely nouns. The rule takes every other word of at least three letters without digits.
_NOT_NOUNS = frozenset(
    _WORD.findall("""
    about adjustable all and any are available best big breathable casual cheap classic comfortable compatible
    cool cute deep double durable easy elastic elegant extra fashionable fit for free from funny good great
    handmade have heavy high including into its large lightweight long loose low made makes medium mini more
    multi natural new non not off one onto organic original our out over perfect plus portable premium pure
    resistant round set short simple single slim small soft solid stylish super that the their these this thick
    thin three tight two ultra under universal use used vintage warm washable waterproof wide wireless with
    without you your
    """)
)


def noun_rule(wanted: Literal["auto"] | NounRule) -> NounRule:
    """Return the rule to use; "auto" is spaCy if it and its model are installed.

    Raises:
        MissingDependency: "spacy" is asked for and not installed.
        BadValue: no such rule.
    """
    if wanted not in ("auto", "spacy", "words"):
        raise BadValue(f"nouns must be 'auto', 'spacy' or 'words', got {wanted!r}")
    if wanted == "auto":
        return "spacy" if is_installed("spacy") and is_installed(MODEL) else "words"
    if wanted == "spacy":
        require("spacy", extra="webshop")
        require(MODEL, extra="webshop")
    return wanted


def nouns_by(rule: NounRule) -> Callable[[str], Sequence[str]]:
    """Return a function from a title to its nouns, in lower case, with repetitions."""
    return _spacy_nouns if rule == "spacy" else word_nouns


def word_nouns(title: str) -> list[str]:
    """Return the words of a title that are probably nouns.

    >>> word_nouns("Soft Cotton Socks for Women, 2 Pairs")
    ['cotton', 'socks', 'women', 'pairs']
    """
    words = (
        word for token in title.lower().split() if not any(c.isdigit() for c in token) for word in _WORD.findall(token)
    )
    return [word for word in words if len(word) > 2 and word not in _NOT_NOUNS]


def _spacy_nouns(title: str) -> list[str]:
    return [token.text.lower() for token in _spacy_model()(title) if token.pos_ in ("NOUN", "PROPN")]


@cache
def _spacy_model() -> Any:
    return require(MODEL, extra="webshop").load()
