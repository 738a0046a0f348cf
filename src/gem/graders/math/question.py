"""The text of a question as words and formulas, and the domains that it declares for letters."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache

from gem.graders.math.lexer import Malformed, Token, TooLarge, tokens

_WORD = re.compile(r"\\?[^\W\d_]+(?:'[a-z]+)?|\d+(?:\.\d+)?|\S")
_FAMILY = re.compile(
    r"\bgeneral (?:solution|form|term)|\bdifferential equation|\b(?:ODE|recurrence)\b"
    r"|\\d?dot\s*\{?[a-zA-Z\\]|\\partial\b"
    r"|\\frac\s*\{d|\bd[yxuvwP]/d[xt]\b|\b[yxuvfwzQPT]'+|\\prime|\barbitrary constants?\b"
    r"|\b(?:all|every) (?:[a-z-]+ ){0,3}(?:functions?|polynomials?|solutions?)\b",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"(?:[^.?!]|[.!](?=\d))*\?")


def word_set(text: str) -> frozenset[str]:
    return frozenset(text.split())


# words between "integers" or "positive" and the names that it describes, as in "a and b are positive real numbers"
_BETWEEN = word_set(
    "is are be a an both reals all distinct given fixed real integer integers natural whole number numbers rational "
    "constant constants value values variable variables parameter parameters coefficients solution points relatively "
    "prime coprime positive negative nonnegative non odd even arbitrary some any - "
)
_INTEGER = word_set("integer integers natural whole prime primes")
_POSITIVE = word_set("positive natural prime primes")
_PHYSICAL = word_set(  # quantities that are positive by nature, and the names after them
    "mass masses length lengths radius radii side sides height heights width distance separation gravity "
    "acceleration stiffness density volume area resistance resistances resistor resistors capacitance capacitances "
    "capacitor capacitors inductance inductor frequency wavelength tension thickness diameter period speed speeds "
    "temperature"
)
_LESS, _MORE = ("<", "≤"), (">", "≥")
_CONSTANTS = ("e", "i", "\\pi", "ℕ", "ℤ", "ℝ")


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
        items = self._items
        found = set[str]()
        for at, (kind, text) in enumerate(items):
            if kind == "word" and text in _INTEGER:
                found |= _described(items, at)
            elif text == "∈" and items[at + 1][1] in ("mathbbN", "mathbbZ"):
                found |= _names_before(items, at, ",")
            elif text == "…" and (start := _counts_from(items, at)):
                found |= {items[start - 2][1]}
            elif (
                kind == "name" and (index := text.partition("_")[2])[:1] in ("k", "m", "n") and not index[1:2].isalpha()
            ):
                found |= {index[0]}
        return "".join(sorted(name for name in found if len(name) == 1))

    @cached_property
    def positive(self) -> str:
        """The names that stand for positive numbers, separated by spaces."""
        items = self._items
        found = {"c"} if {"lorentz", "relativistic", "relativity"} & set(self.words) else set()
        for at, (kind, text) in enumerate(items):
            following = items[at + 1][1] if at + 1 < len(items) else ""
            if kind == "word" and text in _POSITIVE:
                found |= _described(items, at)
                if "variables" in self.words:
                    found |= {name for each, name in items if each == "name"}
            elif text in _PHYSICAL or (text == "constant" and items[at - 1][1] in ("spring", "decay", "of", "force")):
                found |= _names_after(items, at + 1 + (following == "of"), "and")
            elif text in _MORE and following.isdecimal() and (text == ">" or following != "0"):
                found |= _names_before(items, at, ",", *_MORE)
            elif text == "0" and following == "<":
                found |= _names_after(items, at + 2, *_LESS)
            elif text == "∈" and [item[1] for item in items[at + 1 : at + 4]] in (
                *(["mathbbR", "^", "+"], ["mathbbN", "^", "*"], ["mathbbZ", "^", "+"], ["(", "0", ","]),
            ):
                found |= _names_before(items, at, ",")
            elif text == "…" and (start := _counts_from(items, at)) and items[start][1] != "0":
                found |= {items[start - 2][1]}
        return " ".join(sorted(found))

    @cached_property
    def _items(self) -> list[tuple[str, str]]:
        """The kind and the text of each token: names with their subscripts, words in lower case and signs."""
        items: list[tuple[str, str]] = []
        parts = self.text.replace("\\$", " ").replace("\\(", "$").replace("\\)", "$").replace("$$", "$").split("$")
        for index, part in enumerate(parts):
            try:
                found = _leaves(tokens(part))
            except (Malformed, TooLarge):
                continue
            for token in found:
                if items and items[-1][1].endswith("_"):
                    items[-1] = items[-1][0], items[-1][1] + ("".join(t.text for t in token.inner) or token.text)
                elif token.text == "_" and items and items[-1][0] == "name":
                    items[-1] = "name", items[-1][1] + "_"
                elif token.kind == "letter" and (index % 2 or token.text not in ("a", "A", "I")):
                    items.append(("name" if token.text not in _CONSTANTS else "sign", token.text))
                else:
                    items.append((token.kind, token.text.casefold() if token.kind == "word" else token.text))
        return items


Items = list[tuple[str, str]]


def _leaves(found: Iterable[Token]) -> Iterator[Token]:
    """Yield the tokens with those in groups; a subscript remains a group."""
    last = ""
    for token in found:
        if token.kind == "group" and last != "_":
            yield from _leaves(token.inner)
        else:
            yield token
        last = token.text


def _described(items: Items, at: int) -> set[str]:
    """Return the names that a word such as "integers" describes: after it, or before it as in "n is an integer"."""
    after = before = at
    while after < len(items) and items[after][0] != "name" and items[after][1] in _BETWEEN:
        after += 1
    while before > 0 and items[before - 1][0] != "name" and items[before - 1][1] in (*_BETWEEN, "of"):
        before -= 1
    return _names_after(items, after, "and", *_LESS) | _names_before(items, before, ",", "and")


def _names_after(items: Items, at: int, *joints: str) -> set[str]:
    """Return the names at an index and those joined to it; none if the last is part of a formula such as n + 1."""
    at += items[at : at + 1] == [("sign", "(")]
    names = list[str]()
    while at < len(items) and items[at][0] == "name":
        names.append(items[at][1])
        at += 1
        next_name = at
        while next_name < len(items) and items[next_name][1] in (",", *joints):
            next_name += 1
        if next_name < len(items) and items[next_name][0] == "name":
            at = next_name
    is_part = at < len(items) and items[at][1] in ("+", "-", "*", "/", "^", "!", "(")
    return set(names[:-1] if is_part else names)


def _names_before(items: Items, end: int, *joints: str) -> set[str]:
    """Return the names that end at an index; none if the first is part of a formula."""
    end -= items[end - 1 : end] == [("sign", ")")]
    names = set[str]()
    while end > 0 and items[end - 1][0] == "name":
        names.add(items[end - 1][1])
        end -= 1
        while end > 0 and items[end - 1][1] in joints:
            end -= 1
    is_part = end > 0 and (items[end - 1][1] in ("+", "-", "*", "/", "^", "=") or items[end - 1][0] == "number")
    return set() if is_part else names


def _counts_from(items: Items, end: int) -> int:
    """Return the index of the first number of n = 1, 2, 3, … that ends at an index; 0 for another sequence."""
    start = end
    while start > 1 and (items[start - 1][1] == "," or items[start - 1][1].isdecimal()):
        start -= 1
    is_index = start > 1 and items[start - 1][1] == "=" and items[start - 2][0] == "name"
    return start if is_index and end > start and "_" not in items[start - 2][1] else 0


def words_in(text: str) -> list[str]:
    """Return the words, numbers and signs of a text."""
    found: list[str] = _WORD.findall(text)
    return found


@lru_cache(maxsize=2048)
def read_question(text: str) -> Question:
    return Question(text)
