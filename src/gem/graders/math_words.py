"""What stands around an answer in mathematics, and answers that are words: prose, boxes, choices, spelled numbers."""

from __future__ import annotations

import re

from gem.graders.math_units import FUNCTIONS
from gem.parsing import boxes

_PROSE = re.compile(
    r"(?:(?:so|thus|hence|therefore|finally)\b,?\s*)?(?:the|my|our)?\s*(?:final|correct|right)?\s*(?<![a-z])answer"
    r"\s*(?:is|[:=])\s*:?\s*",
    re.IGNORECASE,
)
_SHORT_WORDS = frozenset({"yes", "no", "true", "false", "all", "both", "none"})
_PAIRS = (("**", "**"), ("__", "__"), ("`", "`"), ('"', '"'), ("“", "”"), ("‘", "’"))
_BOX_ALONE = re.compile(r"(?P<before>[$\s]*(?:\\?[a-zA-Z]\w{0,3}(?:\([a-z]\))?\s*=\s*)?)\\(?:boxed|fbox)\s*\{")
_UNIT_AFTER = re.compile(
    r"[$\s.]*(?:\\?%|\^.{0,8}|(?:\\[ ,;~])?\s*(?:\\(?:text|mathrm)\s*\{[^{}]{0,30}\}|[a-zA-Z/]{1,12}).{0,6})?[$\s.]*"
)
_LABEL = re.compile(
    r"(?:\\text\s*\{)?\s*(?P<said>(?i:option|choice|answer)\s+)?"
    r"(?:\((?P<round>[A-Z]|[a-e](?=\)\s*\}?$))\)(?=[\s\\}:\d$-]|$)|(?P<dot>[A-Z])[).:](?=[\s\\}]|$)|(?P<alone>[A-Z])(?=\s*\}?$))"
    r"\s*\}?[.:]?\s*(?P<rest>.*)",
    re.DOTALL,
)
_ONES = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
    *("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
)
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
SCALES = {"hundred": 100, "thousand": 1000, "million": 10**6, "billion": 10**9, "trillion": 10**12}


def bare(text: str) -> str:
    r"""An answer without what stands around it.

    Of several boxes the last one counts. A box with a name before it or a unit behind it keeps those.

    >>> bare(r"The answer is **12**."), bare(r"x = \boxed{3}\text{ cm}"), bare(r"not \boxed{3} but \boxed{4}")
    ('12', 'x = 3\\text{ cm}', '4')
    """
    text = _opened(re.sub(r"\\(boxed|fbox)\s+([^\s{])", r"\\\1{\2}", text).strip())
    if (prose := _PROSE.match(text)) is not None:
        text = text[prose.end() :]
    while True:
        text = text.strip()
        for opening, closing in _PAIRS:
            end = re.fullmatch(rf"{re.escape(opening)}(.+?){re.escape(closing)}[.,]?", text, re.DOTALL)
            if end is not None and opening not in end.group(1):
                text = end.group(1)
                break
        else:
            return text


def _opened(text: str) -> str:
    found = boxes(text.replace(r"\fbox", r"\boxed"))
    if not found:
        return text
    if len(found) == 1 and (start := _BOX_ALONE.match(text)) is not None:
        after = text[start.end() + len(found[0]) + 1 :]
        if len(after) <= 40 and _UNIT_AFTER.fullmatch(after):
            return f"{start.group('before')}{found[0]}{after}"
    return _opened(found[-1])


def choice_of(text: str) -> tuple[str, str] | None:
    """The letter of a multiple choice that an answer names, and what else it says; None where it names none.

    >>> choice_of("(C) 12"), choice_of("Option B"), choice_of("12")
    (('C', '12'), ('B', ''), None)
    """
    match = _LABEL.fullmatch(text.strip())
    if match is None:
        return None
    letter = match["round"] or match["dot"] or match["alone"]
    return letter.upper(), match["rest"].strip().rstrip("}")


def spelled_number(text: str) -> int | None:
    """The whole number that words stand for, below a thousand.

    >>> spelled_number("twenty-one"), spelled_number("one hundred and five"), spelled_number("none")
    (21, 105, None)
    """
    words = re.sub(r"\band\b|-", " ", text.lower()).split()
    if not 1 <= len(words) <= 5:
        return None
    if "hundred" in words:
        i = words.index("hundred")
        hundreds, rest = spelled_number(" ".join(words[:i])) if i else None, words[i + 1 :]
        below = spelled_number(" ".join(rest)) if rest else 0
        return None if hundreds is None or below is None else 100 * hundreds + below
    if words[0] in _ONES:
        return _ONES.index(words[0]) if len(words) == 1 else None
    if words[0] in _TENS and len(words) <= 2:
        ones = _ONES.index(words[1]) if len(words) == 2 and words[1] in _ONES[1:10] else 0 if len(words) == 1 else None
        return None if ones is None else 10 * (_TENS.index(words[0]) + 2) + ones
    return None


def is_word(text: str) -> bool:
    """Whether clean text is a word and no product of letters."""
    if re.fullmatch(r"\(?\s*\\?text\{[^{}]*\}\s*\)?", text) or re.fullmatch(r"\(?[A-Z]\)?", text):
        return True
    letters = re.sub(r"\\text\{|\}|[ .,'’-]", "", text)
    if text.lower() in _SHORT_WORDS or re.fullmatch(r"[A-Z][a-z]{2,}", text):
        return True
    return len(letters) > 3 and letters.isalpha() and letters.lower() not in FUNCTIONS


def word_of(text: str) -> str:
    """A word as Word has it."""
    word = re.sub(r"\\text\{|[{}().$]", "", text).strip()
    return word if len(word) == 1 else re.sub(r"\s+", " ", word).casefold()
