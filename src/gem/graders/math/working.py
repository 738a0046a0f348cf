r"""Remarks in brackets after a result that are true: its parts, its working, its rounding, another writing of it.

"12 (7 red and 5 green)", "30 percent (15/50)", "18 (for the number 99)" and "\frac{1}{2} (or 50\%)" say what stands
before the bracket. A remark that is false, or that cannot be checked, stays, and the answer is wrong with it.
"""

from __future__ import annotations

import math
import re
from fractions import Fraction

from gem.graders.math.quantities import conversion
from gem.graders.math.question import asks_rounding, counted_things, last_question
from gem.graders.math.read import read
from gem.graders.math.units import is_listed_unit, parse_unit, stem
from gem.graders.math.values import Number, Value, spelled_number

_REMARK = re.compile(r"(?P<said>.*?[\w})%])(?P<space>\s*)\((?P<remark>(?:[^()]|\([^()]*\))+)\)")
_EQUALS = re.compile(
    r"(?:=|\bi\.e\.,?|\bthat is,?"
    r"|\bor(?: equivalently)?,?|\bequivalently,?|\bwhich is|\bequal to)\s*(?P<other>[-\d\\$].*)"
)
_ABOUT = re.compile(r"(?:or |which is )?(?:\\approx|about|approximately|roughly|approx\.)\s*(?P<other>[-\d\\$].*)")
_PART = re.compile(r"(?P<number>\d+(?:\.\d+)?) ?(?P<words>[a-zA-Z ]*)")
_WITNESS = re.compile(r"(?:for|namely|from|the number|attained by|achieved by|e\.g\.,?|by|with| )+ ?(?P<number>\d+)")
_ASKS_DIGITS = re.compile(
    r"\b(?P<kind>sum|product) of (?:the |its |all (?:of )?(?:the |its )?)*digits\b", re.IGNORECASE
)
_ROUNDED = frozenset("to the a an rounded correct approximately rounding answer".split())  # noqa: SIM905


def without_working(text: str, question: str) -> str:
    """Return a normalized answer without such a remark; the answer itself if it has none, or if it may be false."""
    flat = re.sub(r"\s+", " ", re.sub(r"\\text\s*\{([^{}]*)\}", r" \1 ", text)).strip(" .")
    match = _REMARK.fullmatch(flat)
    if match is None or not question:
        return text
    said, remark = match["said"].strip(), match["remark"].strip(" ,;")
    if (equal := _EQUALS.fullmatch(remark)) is not None:
        return f"{said} = {equal['other']}"
    if (about := _ABOUT.fullmatch(remark)) is not None:
        return rf"{said} \approx {about['other']}"
    if _is_same(read(said).value, read(remark).value):
        return said
    if (amount := _amount(said)) is None:
        return text
    words = re.search(r"[a-zA-Z]{2}", re.sub(r"\\[a-z]+", "", remark))
    if not words and re.search(r"%$|[a-zA-Z]{2}$", said) is None:  # 12(7+5) is a product
        return text
    if (working := _working(amount, said, remark, question)) is not None:
        return working
    if _is_rounding(remark, question):
        return said
    if (witness := _WITNESS.fullmatch(remark)) is not None and _has_digits(witness["number"], amount, question):
        return said
    unit = parse_unit(remark) if re.fullmatch("[a-z]+", remark) else None
    things = {stem(word) for word in counted_things(question).split()[:1]}
    named = unit is not None and (is_listed_unit(unit) or stem(remark) in things)
    return f"{said} {remark}" if named and re.fullmatch(r"[\d.,]+", said) else text


def _amount(said: str) -> Fraction | None:
    """Return the number that stands at the start of a result with a unit; None for other text."""
    match = re.fullmatch(r"(\\?[$€£]?[\d.,/]*\d|\\frac\{\d+\}\{\d+\})\s*(?:\\?%|[a-zA-Z ]*)", said)
    value = None if match is None else read(match.group(1)).value
    return value.exact if isinstance(value, Number) else None


def _is_same(value: Value, other: Value) -> bool:
    """Return whether two numbers with different units, or of which one is in percent, are equal."""
    if not isinstance(value, Number) or not isinstance(other, Number) or not other.unit or value.unit == other.unit:
        return False
    factor = conversion(value.unit, other.unit) if value.unit or other.unit == "%" else None
    listed = all(is_listed_unit(each.unit) or each.unit in ("", "%") for each in (value, other))
    return listed and factor is not None and value.exact * factor == other.exact


def _working(amount: Fraction, said: str, remark: str, question: str) -> str | None:
    """Return a result without its working if this adds to the result, or the working and the result as an equation.

    Return None for a remark that is no working, or has words that the question does not have.
    """
    known = {stem(word) for word in re.findall(r"[a-z]+", f"{question} {said}".casefold())} | {"", stem("and")}
    words = re.findall(r"[a-z]+", re.sub(r"\\[a-z]+", " ", remark.casefold()))
    if not all(stem(word) in known and (word == "and" or spelled_number(word) is None) for word in words):
        return None
    parts = [_PART.fullmatch(part.strip()) for part in re.split(r",? and |,|\+|\bplus\b", remark) if part.strip()]
    if len(parts) > 1 and all(part is not None for part in parts):
        return (sum(Fraction(part["number"]) for part in parts if part is not None) == amount and said) or None
    working = re.sub(r"(?<![\\a-zA-Z])[a-zA-Z]+|\\?[$€£]", "", remark)
    if not re.search(r"\d\s*(?:[+*/-]|\\cdot|\\frac)|\\frac", working) or "=" in working:
        return None
    value = read(working.strip()).value
    percent = re.search(r"%|percent$", said) is not None
    if isinstance(value, Number):
        return said if not value.unit and value.exact * (100 if percent else 1) == amount else None
    return f"{working.strip()} = {said}"


def _is_rounding(remark: str, question: str) -> bool:
    """Return whether a remark repeats the rounding that the question asks for."""
    if not asks_rounding(question):
        return False
    known = {_digits(word) for word in re.findall(r"[a-z]+|\d+", question.casefold())}
    return all(_digits(word) in known or word in _ROUNDED for word in re.findall(r"[^\s-]+", remark.casefold()))


def _digits(word: str) -> str:
    number = spelled_number(word)
    return stem(word) if number is None else str(number)


def _has_digits(number: str, amount: Fraction, question: str) -> bool:
    """Return whether the digits of a number have the sum or the product that the question asks for."""
    asked = _ASKS_DIGITS.search(last_question(question))
    if asked is None:
        return False
    digits = [int(digit) for digit in number]
    return (sum(digits) if asked["kind"].lower() == "sum" else math.prod(digits)) == amount
