"""Grade short answers: exact match and word-level F1, with gem's normalization or those of SQuAD and HotpotQA.

``squad_em``, ``squad_f1`` and ``hotpotqa_f1`` score as the official scripts do: evaluate-v1.1.py of SQuAD (arXiv
1606.05250, section 6.1) and hotpot_evaluate_v1.py of HotpotQA (arXiv 1809.09600), whose exact match is SQuAD's. They
delete ASCII punctuation and articles, so 1.5 equals 15, and "the" equals "a". Of several gold answers, the best counts.

``exact_match`` and ``f1`` do not make different words equal. Punctuation between words is replaced with a space.
Punctuation that is part of a number or a word is kept: signs, decimal points, slashes and colons (-5, 1.5, 3/4, 3:30),
percent signs, apostrophes ("we're"), C++ and C#. Articles are removed, except for an article at the end ("vitamin A")
and in a text that consists only of articles.

>>> exact_match("The Eiffel Tower.", "eiffel tower").correct, exact_match("the", "a").correct
(True, False)
>>> squad_em("a Ph.D. in the 1990's", "PhD in 1990s").correct, exact_match("1990's", "1990s").correct
(True, False)
"""

from __future__ import annotations

import re
import string
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence

from gem._internal.text import quoted
from gem.graders.base import Grade, gold_answers

__all__ = [
    "exact_match",
    "hotpotqa_f1",
    "squad_em",
    "squad_f1",
]

_ARTICLES = frozenset({"a", "an", "the"})
_SAME = str.maketrans({**dict.fromkeys("‘’ʼ´`", "'"), **dict.fromkeys("‐‑‒–—−", "-"), "&": " and ", "$": " "})
_GROUPED = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_PERCENT = re.compile(r"(?<=\d)\s*(?:%|per ?cent\b)")
_INITIALS = re.compile(r"(?<![^\W_])(?:[^\W\d_]\.)+(?:[^\W\d_](?![^\W_]))?")  # U.S., a.m.
# Punctuation and symbols that are part of a number or a word.
_PART = re.compile(r"(?<![^\s(])[-+](?=\.?\d)|(?<=\d)[.,:/](?=\d)|(?<![\d\w])\.(?=\d)|(?<=\d)%|(?<=[^\W_])'(?=[^\W_])")
_SQUAD_DELETED = str.maketrans("", "", string.punctuation)
_SQUAD_ARTICLE = re.compile(r"\b(?:a|an|the)\b")
_CLOSED = frozenset({"yes", "no", "noanswer"})  # answers that HotpotQA compares as a whole
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


def squad_normalize(text: str) -> str:
    """Normalize a text as SQuAD v1.1: lower case, without ASCII punctuation, articles and extra spaces, in this order.

    >>> squad_normalize("The 1990's: a Ph.D."), squad_normalize("The")
    ('1990s phd', '')
    """
    return " ".join(_SQUAD_ARTICLE.sub(" ", text.lower().translate(_SQUAD_DELETED)).split())


def exact_match(answer: str, gold: str | Sequence[str]) -> Grade:
    """Return reward 1.0 if the normalized answer equals a normalized gold answer, else 0.0.

    Raises:
        BadValue: a gold answer is empty or not a string.
    """
    return _matched(answer, gold, normalize)


def f1(answer: str, gold: str | Sequence[str]) -> Grade:
    """Return the highest word-overlap F1 score over the gold answers as the reward. An F1 score of 1 is correct.

    Raises:
        BadValue: a gold answer is empty or not a string.
    """
    return _overlap(answer, gold, normalize)


def squad_em(answer: str, gold: str | Sequence[str]) -> Grade:
    """Return SQuAD's exact match, which HotpotQA and Search-R1 (arXiv 2503.09516) use as well.

    Raises:
        BadValue: a gold answer is empty or not a string.
    """
    return _matched(answer, gold, squad_normalize)


def squad_f1(answer: str, gold: str | Sequence[str]) -> Grade:
    """Return SQuAD's F1 score as the reward. An F1 score of 1 is correct.

    Raises:
        BadValue: a gold answer is empty or not a string.
    """
    return _overlap(answer, gold, squad_normalize)


def hotpotqa_f1(answer: str, gold: str | Sequence[str]) -> Grade:
    """Return HotpotQA's F1 score: SQuAD's, but 0 if one text is "yes", "no" or "noanswer" and the other differs.

    Raises:
        BadValue: a gold answer is empty or not a string.

    >>> hotpotqa_f1("no, not at all", "no").reward, squad_f1("no, not at all", "no").reward
    (0.0, 0.4)
    """
    return _overlap(answer, gold, squad_normalize, closed=_CLOSED)


def _matched(answer: str, gold: str | Sequence[str], normalized: Callable[[str], str]) -> Grade:
    golds, ours = gold_answers(gold), normalized(answer)
    correct = ours in map(normalized, golds)
    expected = quoted(golds[0], 80)
    reason = f"Correct: the answer is {expected}." if correct else f"Incorrect: the expected answer is {expected}."
    return Grade(reward=float(correct), correct=correct, reason=reason, parsed=ours)


def _overlap(
    answer: str, gold: str | Sequence[str], normalized: Callable[[str], str], closed: frozenset[str] = frozenset()
) -> Grade:
    golds, ours = gold_answers(gold), normalized(answer)
    score = max(_f1(ours, normalized(each), closed) for each in golds)
    reason = f"The word overlap (F1) with the expected answer {quoted(golds[0], 80)} is {score:.3f}."
    return Grade(reward=score, correct=score == 1, reason=reason, parsed=ours)


def _f1(ours: str, theirs: str, closed: frozenset[str]) -> float:
    if ours != theirs and not closed.isdisjoint((ours, theirs)):
        return 0.0
    words, gold_words = ours.split(), theirs.split()
    shared = sum((Counter(words) & Counter(gold_words)).values())
    return 2 * shared / (len(words) + len(gold_words)) if shared else 0.0
