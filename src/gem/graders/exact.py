"""Short answers in words: exact match and F1 over words, after the normalisation of SQuAD (arXiv 1606.05250, §6.1).

Unlike the original, an answer of nothing but articles or punctuation keeps them, so that "the" is not "a" and no empty
answer is right.

>>> exact_match("The Eiffel Tower.", "eiffel tower").correct, exact_match("the", "a").correct
(True, False)
"""

from __future__ import annotations

import re
import string
import unicodedata
from collections import Counter
from collections.abc import Sequence

from gem.errors import BadValue
from gem.graders.base import Grade

_ARTICLES = frozenset({"a", "an", "the"})
_PUNCTUATION = re.compile(f"[{re.escape(string.punctuation)}‘’“”…]")


def normalize(text: str) -> str:
    """Lower case, without punctuation, articles and superfluous space, unless nothing else would be left."""
    text = unicodedata.normalize("NFC", text).casefold()
    words = _PUNCTUATION.sub("", text).split()
    kept = [word for word in words if word not in _ARTICLES]
    return " ".join(kept or words) or " ".join(text.split())


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
