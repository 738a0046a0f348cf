"""Short answers in words: exact match and F1 over words, after the normalisation of SQuAD (arXiv 1606.05250, §6.1).

Unlike the original it makes no two words equal that are not. Punctuation between words counts as a space, and what
belongs to a word stays: the sign, point or stroke of a number (-5, 1.5, 3/4, 3:30), a percent sign, the apostrophe of
"we're", C++ and C#. Articles go, but not at the end ("vitamin A") and not where nothing else would be left.

>>> exact_match("The Eiffel Tower.", "eiffel tower").correct, exact_match("the", "a").correct
(True, False)
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence

from gem.errors import BadValue
from gem.graders.base import Grade

_ARTICLES = frozenset({"a", "an", "the"})
_SAME = str.maketrans({**dict.fromkeys("‘’ʼ´`", "'"), **dict.fromkeys("‐‑‒–—−", "-"), "&": " and ", "$": " "})
_GROUPED = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_PERCENT = re.compile(r"(?<=\d)\s*(?:%|per ?cent\b)")
_INITIALS = re.compile(r"(?<![^\W_])(?:[^\W\d_]\.)+(?:[^\W\d_](?![^\W_]))?")  # U.S., a.m.
# What is part of a word though it is punctuation or a symbol.
_PART = re.compile(r"(?<![^\s(])[-+](?=\.?\d)|(?<=\d)[.,:/](?=\d)|(?<![\d\w])\.(?=\d)|(?<=\d)%|(?<=[^\W_])'(?=[^\W_])")
_NAMED = re.compile(r"\b[^\W\d_][+#]+(?=[^\w+#]|$)")  # C++, F#


def normalize(text: str) -> str:
    """Lower case, without punctuation, articles and superfluous space; see the module docstring for what stays.

    >>> normalize("The U.S. (in 1,000s): -2.5 %!"), normalize("Vitamin A")
    ('us in 1000s -2.5%', 'vitamin a')
    """
    text = unicodedata.normalize("NFC", text).casefold().translate(_SAME)
    text = _INITIALS.sub(lambda m: m.group().replace(".", ""), _PERCENT.sub("%", _GROUPED.sub("", text)))
    stays = {i for pattern in (_PART, _NAMED) for match in pattern.finditer(text) for i in range(*match.span())}
    words = "".join(
        c if i in stays or unicodedata.category(c)[0] in "LMNC" else _gap(c) for i, c in enumerate(text)
    ).split()
    if _ARTICLES.issuperset(words):
        return " ".join(words) or " ".join(text.split())
    return " ".join([*(word for word in words[:-1] if word not in _ARTICLES), words[-1]])


def _gap(character: str) -> str:
    """What stands for a character that is no part of a word: a space, or itself where it says something by itself."""
    return character if unicodedata.category(character) in ("Sc", "So") else " "


def exact_match(answer: str, gold: str | Sequence[str]) -> Grade:
    """1.0 where the normalised answer is one of the golds. Raises BadValue for a gold that is no text or empty."""
    golds, ours = _golds(gold), normalize(answer)
    correct = bool(ours) and ours in map(normalize, golds)
    reason = "is" if correct else "is not"
    return Grade(reward=float(correct), correct=correct, reason=f"{reason} {golds[0]!r:.80}", parsed=ours)


def f1(answer: str, gold: str | Sequence[str]) -> Grade:
    """The harmonic mean of precision and recall over words, of the gold that it is best for; correct at 1."""
    golds, ours = _golds(gold), normalize(answer)
    score = max(_f1(ours.split(), normalize(each).split()) for each in golds)
    return Grade(reward=score, correct=score == 1, reason=f"F1 {score:.3f} with {golds[0]!r:.80}", parsed=ours)


def _f1(ours: list[str], theirs: list[str]) -> float:
    shared = sum((Counter(ours) & Counter(theirs)).values())
    return 2 * shared / (len(ours) + len(theirs)) if shared else 0.0


def _golds(gold: str | Sequence[str]) -> list[str]:
    golds = [gold] if isinstance(gold, str) else list(gold or ())
    if not golds or not all(isinstance(each, str) and each.strip() for each in golds):
        raise BadValue(f"need a gold answer, got {gold!r:.80}")
    return golds
