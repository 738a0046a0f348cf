"""The text of a question as words and formulas, and the domains that it declares for letters."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property, lru_cache

_WORD = re.compile(r"\\?[a-zA-Z]+(?:'[a-z]+)?|\d+(?:\.\d+)?|\S")
_FAMILY = re.compile(
    r"\bgeneral (?:solution|form|term)|\bdifferential equation|\b(?:ODE|recurrence)\b|\\d?dot\b|\\partial\b|\\frac\s*\{d"
    r"|\bd[yxuvwP]/d[xt]\b|\b[yxuvfwzQPT]'+|\\prime|\barbitrary constants?\b|\b(?:all|every) (?:[a-z-]+ ){0,3}(?:functions?|polynomials?|solutions?)\b",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"(?:[^.?!]|[.!](?=\d))*\?")


@dataclass(frozen=True)
class Question:
    """The text of a question; "" if it is unknown, which contributes nothing."""

    text: str = ""

    @cached_property
    def asked(self) -> str:
        """The last sentence with a question mark, or the whole text if it has none."""
        sentences: list[str] = _SENTENCE.findall(self.text)
        return sentences[-1] if sentences else self.text

    @cached_property
    def words(self) -> tuple[str, ...]:
        """The words of the text in lower case."""
        return tuple(word.casefold() for word in _WORD.findall(self.text))

    @cached_property
    def letters(self) -> frozenset[str]:
        """The letters in the formulas of the text."""
        formulas = self.text.split("$")[1::2] if "$" in self.text else [self.text]
        return frozenset(word for formula in formulas for word in _WORD.findall(formula) if word.lstrip("\\").isalpha())

    @cached_property
    def has_family(self) -> bool:
        """Whether the answer is a family with arbitrary constants."""
        return _FAMILY.search(self.text) is not None

    @cached_property
    def integers(self) -> str:
        """The letters that stand for integers."""
        return ""

    @cached_property
    def positive(self) -> str:
        """The names that stand for positive numbers, separated by spaces."""
        return ""


def words_in(text: str) -> list[str]:
    """Return the words, numbers and signs of a text."""
    found: list[str] = _WORD.findall(text)
    return found


@lru_cache(maxsize=2048)
def read_question(text: str) -> Question:
    return Question(text)
