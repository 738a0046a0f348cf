r"""The form in which a question asks for its answer: factored, expanded, simplified, a decimal, a fraction.

An answer with the value of the reference answer is wrong if the question asks for a form that the reference answer has
and the answer does not: \sqrt{12} for 2\sqrt{3} in simplest radical form, x^2-1 for (x-1)(x+1) if it is to be factored.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable

_SUM = re.compile(r"(?<=[\w})\]|!'])\s*[+-]")
_FRACTION = re.compile(r"\\frac\{(-?\d+)\}\{(-?\d+)\}|(?<![\d.])(\d+)\s*/\s*(\d+)(?![\d.])")
_ROOT = re.compile(r"\\sqrt(?:\[(\d)\])?\{(\d{1,12}|\\frac.*?|\d+/\d+)\}")
_ROOT_BELOW = re.compile(r"\\frac\{(?:[^{}]|\{[^{}]*\})*\}\{(?:[^{}]|\{[^{}]*\})*\\sqrt|/\s*\(?[^+]*\\sqrt")
_GROUP = re.compile(r"\(([^()]*)\)")
_POWER = re.compile(r"\^(?:\{(\d{1,3})\}|(\d))")
_MIXED = re.compile(r"-?\d+\s*(?:(?:\\text\{\s*)?and\s*\}?\s*)?(?:\\frac\{\d+\}\{\d+\}|\s\d+/\d+)")
_SCIENTIFIC = re.compile(r"-?[1-9](?:\.\d+)?\s*(?:\\cdot\s*10\s*\^|[eE][+-]?\d)")
_OPTIONAL = re.compile(r"[^.?!]*\byou (?:may|can|need not|don't have to)\b[^.?!]*[.?!]?", re.IGNORECASE)
_COMPLEX_PRODUCT = re.compile(r"\([^()]*i[^()]*\)|e\^|\\frac\{.*\}\{[^{}]*i[^{}]*\}|\\c(?:os|is)")


def has_asked_form(answer: str, gold: str, question: str) -> bool:
    """Return whether an answer has each form that the question asks for and the reference answer has.

    Args:
        answer, gold: normalized texts.
    """
    question = _OPTIONAL.sub("", question)
    asked = [has_form for pattern, has_form in _FORMS if question and pattern.search(question)]
    if any(has_form(gold) and not has_form(answer) for has_form in asked):
        return False
    if _ASKS_LESS.search(question) and _repeats(answer, question) and not _repeats(gold, question):
        return False
    if _ASKS_FACTORS.search(question) and not _is_sum(gold) and count_factors(answer) < count_factors(gold):
        return False
    return not _ASKS_EQUATION.search(question) or _letters_by_side(answer, gold)


def count_factors(text: str) -> int:
    r"""Count the factors of a product with their multiplicities; 1 for a sum.

    >>> count_factors("3x^2(x-1)"), count_factors("x^2-1"), count_factors(r"2^2\cdot 3")
    (4, 1, 3)
    """
    text = _last_member(text)
    if _is_sum(text):
        return 1
    count, end = 0, 0
    for factor in re.finditer(r"\(((?:[^()]|\([^()]*\))*)\)|\\[a-zA-Z]+|\d+(?:\.\d+)?|[a-zA-Z]", text):
        if factor.start() < end or factor.group() in (r"\cdot", "1"):
            continue
        power = _POWER.match(text, factor.end())
        end = power.end() if power else factor.end()
        inner = 1 if factor.group(1) is None else count_factors(factor.group(1))
        count += inner * int((power.group(1) or power.group(2)) if power else 1)
    return max(count, 1)


def _repeats(text: str, question: str) -> bool:
    """Return whether a text with an operation is part of the question, as the formula that is to be simplified is."""
    asked, short = (re.sub(r"[\s{}]|\\left|\\right|(?<=\\)d(?=frac)", "", each) for each in (question, text))
    return re.search(r"[-+^*/]|\\(?:sqrt|frac)", short) is not None and short in asked


def _last_member(text: str) -> str:
    return text.rpartition("=")[2].strip()


def _is_sum(text: str) -> bool:
    """Return whether a text has a plus or minus outside of brackets, other than its sign."""
    depth, outside = 0, ""
    for character in _last_member(text):
        depth += (character in "({[") - (character in ")}]")
        outside += character if depth == 0 or (depth == 1 and character in "({[") else ""
    return re.search(r"(?<!^)(?<![\^({])[+-]|\\pm", outside.strip()) is not None


def _is_expanded(text: str) -> bool:
    """Return whether no bracket has a sum, other than the argument of a function."""
    return not any(
        _SUM.search(match[1]) and not re.search(r"(?:\\[a-z]+|[fgh])$", text[: match.start()])
        for match in _GROUP.finditer(text)
    )


def _is_reduced(text: str) -> bool:
    r"""Return whether no fraction of integers can be reduced and no root has a factor that can be taken out of it."""
    for top, bottom, plain_top, plain_bottom in _FRACTION.findall(text):
        above, below = int(top or plain_top), int(bottom or plain_bottom)
        if math.gcd(above, below) != 1 or abs(below) == 1:
            return False
    return all(_is_simple_root(int(index or 2), inner) for index, inner in _ROOT.findall(text)) and not _like_terms(
        text
    )


def _is_simple_root(index: int, inner: str) -> bool:
    if not inner.isdigit():
        return False
    limit = round(int(inner) ** (1 / index)) + 1
    return all(int(inner) % k**index for k in range(2, min(limit, 10_000) + 1))


def _like_terms(text: str) -> bool:
    """Return whether two terms of a sum differ in their numeric factors only, as in 3x + 2x."""
    if not _is_sum(text) or re.search(r"[()=,]|\\pm", text):
        return False
    terms = [re.sub(r"^[\d.]+", "", term.strip()) for term in re.split(r"[+-](?![^{]*\})", text) if term.strip()]
    return len(set(terms)) < len(terms)


def _is_rationalized(text: str) -> bool:
    return _is_reduced(text) and _ROOT_BELOW.search(text) is None


def _is_decimal(text: str) -> bool:
    return re.search(r"\d", text) is not None and re.search(r"\\frac|\\sqrt|\\pi|\d\s*/\s*\d|%", text) is None


def _is_fraction(text: str) -> bool:
    return re.search(r"\\frac|/", text) is not None and re.search(r"\d\.\d|%", text) is None


def _is_improper(text: str) -> bool:
    return _is_fraction(text) and _MIXED.match(text) is None


def _is_mixed(text: str) -> bool:
    return _MIXED.match(_last_member(text)) is not None


def _is_scientific(text: str) -> bool:
    return _SCIENTIFIC.match(_last_member(text)) is not None


def _is_term(text: str) -> bool:
    return not _is_sum(text)


def _is_power(text: str) -> bool:
    return "^" in text


def _has_square(text: str) -> bool:
    return re.search(r"\)\^2", text) is not None


def _is_rectangular(text: str) -> bool:
    return _COMPLEX_PRODUCT.search(text) is None


def _is_polar(text: str) -> bool:
    return re.search(r"e\^|\\exp|\\c(?:os|is)|cis|\\angle", text) is not None


def _has_positive_exponents(text: str) -> bool:
    return re.search(r"\^\{?\s*-", text) is None


def _letters_by_side(answer: str, gold: str) -> bool:
    """Return whether the same letters are on each side of two equations; True if either is not one equation."""
    sides = [
        [frozenset(re.findall(r"(?<![\\a-zA-Z])[a-zA-Z]", side)) for side in text.split("=")] for text in (answer, gold)
    ]
    return any(len(each) != 2 for each in sides) or sides[0] in (sides[1], sides[1][::-1])


_FORMS: tuple[tuple[re.Pattern[str], Callable[[str], bool]], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), has_form)
    for pattern, has_form in (
        (r"\bexpand(?:ed)?\b|\bmultiply out\b", _is_expanded),
        (r"\bsimplif|\bsimplest\b|\blowest terms\b|\breduced (?:form|fraction)", _is_reduced),
        (r"\brationali[sz]|\bsimplest radical\b|\bsimplified radical\b", _is_rationalized),
        (
            r"\b(?:as|in|into|to) (?:a |an )?(?:terminating |exact |repeating )?decimal\b(?! place)|\bdecimal form\b",
            _is_decimal,
        ),
        (r"\b(?:as|into|to) (?:a |an )?(?:common |simplified |reduced |single |exact )*fraction\b", _is_fraction),
        (r"\bimproper fraction\b", _is_improper),
        (r"\b(?:as|into|to) a mixed (?:number|fraction)\b", _is_mixed),
        (r"\bscientific notation\b|\bstandard (?:scientific|index) form\b", _is_scientific),
        (r"\bas (?:a|one) single\b", _is_term),
        (r"\bas a power of\b|\bexponential (?:form|notation)\b|\bindex form\b", _is_power),
        (r"\bpositive exponents?\b|\bnegative exponents?\b", _has_positive_exponents),
        (r"\bvertex form\b|\bcomplet(?:e|ing) the square\b", _has_square),
        (r"\brectangular form\b|\bform \$?a ?\+ ?bi\b", _is_rectangular),
        (r"\b(?:polar|trigonometric|exponential) form\b", _is_polar),
    )
)
_ASKS_FACTORS = re.compile(
    r"(?<!common )(?<!\ba )(?<!\bthe )(?<!each )(?<!one )(?<!scale )(?<!integrating )\bfactor\b(?! of\b)"
    r"|\bfactor(?:i[sz](?:e|ed|ing)|e|ed|ing)\b(?! of\b)"
    r"|\bfactori[sz]ation\b|\bproduct of (?:\w+ )?(?:factors|primes)\b",
    re.IGNORECASE,
)
_ASKS_LESS = re.compile(r"\bsimplify\b|\bsimplest\b|\bexpand\b", re.IGNORECASE)
_ASKS_EQUATION = re.compile(
    r"\bslope[- ]intercept\b|\bin (?:the |standard )?form\b[^.?]*=|\bstandard form\b", re.IGNORECASE
)
