"""Grade short answers: exact match and word-level F1 after SQuAD normalization (arXiv 1606.05250, section 6.1).

Unlike the original normalization, this one does not make different words equal. Punctuation between words is replaced
with a space. Punctuation that is part of a number or a word is kept: signs, decimal points, slashes and colons (-5,
1.5, 3/4, 3:30), percent signs, apostrophes ("we're"), C++ and C#. Articles are removed, except for an article at the
end ("vitamin A") and in a text that consists only of articles.

>>> exact_match("The Eiffel Tower.", "eiffel tower").correct, exact_match("the", "a").correct
(True, False)
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence

from gem._internal.text import short_repr
from gem.graders.base import Grade, gold_answers

__all__ = [
    "exact_match",
]

_ARTICLES = frozenset({"a", "an", "the"})
_SAME = str.maketrans({**dict.fromkeys("‘’ʼ´`", "'"), **dict.fromkeys("‐‑‒–—−", "-"), "&": " and ", "$": " "})
_GROUPED = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_PERCENT = re.compile(r"(?<=\d)\s*(?:%|per ?cent\b)")
_INITIALS = re.compile(r"(?<![^\W_])(?:[^\W\d_]\.)+(?:[^\W\d_](?![^\W_]))?")  # U.S., a.m.
# Punctuation and symbols that are part of a number or a word.
_PART = re.compile(r"(?<![^\s(])[-+](?=\.?\d)|(?<=\d)[.,:/](?=\d)|(?<![\d\w])\.(?=\d)|(?<=\d)%|(?<=[^\W_])'(?=[^\W_])")
_NAMED = re.compile(r"\b[^\W\d_][+#]+(?=[^\w+#]|$)")  # C++, F#


def normalize(text: str) -> str:
    """Convert a text to lower case and remove punctuation, articles and extra spaces (see the module docstring).

    >>> normalize("The U.S. (in 1,000s): -2.5 %!"), normalize("Vitamin A")
    ('us in 1000s -2.5%', 'vitamin a')
    """
    text = unicodedata.normalize("NFC", text).casefold().translate(_SAME)
    text = _INITIALS.sub(lambda m: m.group().replace(".", ""), _PERCENT.sub("%", _GROUPED.sub("", text)))
    kept = {i for pattern in (_PART, _NAMED) for match in pattern.finditer(text) for i in range(*match.span())}
    words = "".join(
        c if i in kept or unicodedata.category(c)[0] in "LMNC" else _gap(c) for i, c in enumerate(text)
    ).split()
    if _ARTICLES.issuperset(words):
        return " ".join(words) or " ".join(text.split())
    return " ".join([*(word for word in words[:-1] if word not in _ARTICLES), words[-1]])


def _gap(character: str) -> str:
    """Return a currency sign or other symbol (Unicode Sc and So) unchanged, and a space for any other character."""
    return character if unicodedata.category(character) in ("Sc", "So") else " "


def exact_match(answer: str, gold: str | Sequence[str]) -> Grade:
    """Return reward 1.0 if the normalized answer equals a normalized gold answer, else 0.0.

    Raises:
        BadValue: a gold answer is empty or not a string.
    """
    golds, ours = gold_answers(gold), normalize(answer)
    correct = bool(ours) and ours in map(normalize, golds)
    expected = short_repr(golds[0], 80)
    reason = f"Correct: the answer is {expected}." if correct else f"Incorrect: the expected answer is {expected}."
    return Grade(reward=float(correct), correct=correct, reason=reason, parsed=ours)


def f1(answer: str, gold: str | Sequence[str]) -> Grade:
    """Return the highest word-overlap F1 score over the gold answers as the reward. An F1 score of 1 is correct.

    Raises:
        BadValue: a gold answer is empty or not a string.
    """
    golds, ours = gold_answers(gold), normalize(answer)
    score = max(_f1(ours.split(), normalize(each).split()) for each in golds)
    reason = f"The word overlap (F1) with the expected answer {short_repr(golds[0], 80)} is {score:.3f}."
    return Grade(reward=score, correct=score == 1, reason=reason, parsed=ours)


def _f1(ours: list[str], theirs: list[str]) -> float:
    shared = sum((Counter(ours) & Counter(theirs)).values())
    return 2 * shared / (len(ours) + len(theirs)) if shared else 0.0
