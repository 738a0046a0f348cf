"""Settings of BM25: constants, stemmer and stop words.

>>> BM25(stop_words=("the",)).terms(["the", "play"])
['play']
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import cast

from gem.errors import BadValue, require

__all__ = [
    "BM25",
    "pyserini",
]

# The stop words of Lucene's EnglishAnalyzer.
_ENGLISH = (
    "a an and are as at be but by for if in into is it no not of on or such that the their then there these they this "
    "to was will with"
)
ENGLISH_STOP_WORDS = tuple(_ENGLISH.split())


@dataclass(frozen=True, kw_only=True)
class BM25:
    """Settings of the ranking. The defaults are those of tantivy, which has no others.

    Args:
        k1: at least 0; how much repeated words count.
        b: 0 to 1; how much longer documents are penalized.
        stemmer: an algorithm of snowballstemmer (extra [search]), such as "porter" or "english"; None for no stemming.
        stop_words: words that are not indexed.

    Raises:
        BadValue: a value is out of range, or there is no such stemmer.
        MissingDependency: a stemmer is named, and snowballstemmer is not installed.
    """

    k1: float = 1.2
    b: float = 0.75
    stemmer: str | None = None
    stop_words: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name, value, most in (("k1", self.k1, float("inf")), ("b", self.b, 1.0)):
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= most:
                limit = "a number of at least 0" if name == "k1" else "a number from 0 to 1"
                raise BadValue(f"{name} must be {limit}, got {value!r}")
        if isinstance(cast(object, self.stop_words), str):
            raise BadValue(f"stop_words must be a list of words, got {self.stop_words!r}")
        object.__setattr__(self, "stop_words", tuple(self.stop_words))
        if self.stemmer is not None:
            _stem_function(self.stemmer)

    def terms(self, words: Iterable[str]) -> list[str]:
        """Return the words to index or to search for, in order: without stop words, and stemmed."""
        if self.stop_words:
            stop_words = frozenset(self.stop_words)
            words = [word for word in words if word not in stop_words]
        return list(words) if self.stemmer is None else [_stem(self.stemmer, word) for word in words]


DEFAULT = BM25()


def pyserini() -> BM25:
    """Return the settings of Pyserini: k1 = 0.9, b = 0.4, Porter's stemmer and Lucene's English stop words."""
    return BM25(k1=0.9, b=0.4, stemmer="porter", stop_words=ENGLISH_STOP_WORDS)


@lru_cache(1 << 18)
def _stem(stemmer: str, word: str) -> str:
    return _stem_function(stemmer)(word)


@lru_cache
def _stem_function(name: str) -> Callable[[str], str]:
    snowball = require("snowballstemmer", extra="search")
    try:
        return cast("Callable[[str], str]", snowball.stemmer(name).stemWord)
    except KeyError:
        known = ", ".join(snowball.algorithms())
        raise BadValue(f"stemmer must be None or one of {known}, got {name!r}") from None
