"""Words of passages and queries. Every engine sees these words alone, so that all of them rank alike.

>>> words("Café don't-stop C++ 東京_2024")
['cafe', 'don', 't', 'stop', 'c', '東', '京', '2024']
"""

from __future__ import annotations

import re
import unicodedata

QUERY_CHARACTERS = 20_000  # of a query are read
QUERY_WORDS = 64  # different words of a query count; a model may write any amount

# Scripts that write no space between words: each sign counts as a word.
_SIGNS = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
# Runs of letters and digits. The length is bounded because engines drop words of thousands of bytes.
_WORD = re.compile(f"[{_SIGNS}]|[^\\W_{_SIGNS}]{{1,64}}")
_ASCII_WORD = re.compile("[a-z0-9]{1,64}")  # the same of such texts, in a third of the time
_ACCENTS = re.compile("[\u0300-\u036f]")


def words(text: str) -> list[str]:
    """The words of a text in order: lower case, without accents."""
    if text.isascii():
        return _ASCII_WORD.findall(text.lower())
    text = unicodedata.normalize("NFKC", _ACCENTS.sub("", unicodedata.normalize("NFKD", text)))
    return _WORD.findall(text.casefold())


def query_words(query: str) -> list[str]:
    """The different words of a query, in the order of their first use, so many as count."""
    return list(dict.fromkeys(words(query[:QUERY_CHARACTERS])))[:QUERY_WORDS]
