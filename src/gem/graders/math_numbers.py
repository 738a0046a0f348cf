"""Numbers as they are written: digits, fractions, mixed, scientific, repeating decimals; each an exact fraction."""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction

_DIGITS = r"\d+(?:\.\d*)?|\.\d+"
_PLAIN = re.compile(rf"([+-]?)\s*({_DIGITS})")
_SCIENTIFIC = re.compile(
    rf"([+-]?)\s*({_DIGITS})(?:\s*\\cdot\s*10\s*\^\s*(?:\{{\s*([+-]?\d+)\s*\}}|(\d))|[eE]([+-]?\d+))"
)
_POWER_OF_TEN = re.compile(r"([+-]?)10\^(?:\{\s*([+-]?\d+)\s*\}|(\d))")
_FRACTION = re.compile(
    rf"([+-]?)\s*(?:\\frac\{{\s*([+-]?)\s*({_DIGITS})\s*\}}\{{\s*([+-]?)\s*({_DIGITS})\s*\}}|({_DIGITS})\s*/\s*({_DIGITS}))"
)
_BASE = re.compile(r"([0-9A-Fa-f]+|\([0-9A-Fa-f]+\))_(?:\{?\s*(?:\\text\{)?\s*(\w+)\s*\}*)")
_BASES = {
    "two": 2,
    "three": 3,
    "four": 4,
    "five": 5,
    "six": 6,
    "seven": 7,
    "eight": 8,
    "nine": 9,
    "ten": 10,
    "sixteen": 16,
}
_AND = r"(?:(?:\\text\{\s*and\s*\}|and(?=[ \\]))\s*)?"
_MIXED = re.compile(
    rf"([+-]?)\s*(\d+)\s*{_AND}(?:\\frac\{{\s*(\d+)\s*\}}\{{\s*(\d+)\s*\}}|(?:\s|\s+and\s+)(\d+)/(\d+))"
)
_REPEATING = re.compile(r"([+-]?)(\d*)\.(\d*)(?:\\overline\{(\d+)\}|\\(?:bar|dot)\{(\d+)\}|\((\d+)\))")
_SPACED = re.compile(r"([+-]?)(\d{1,3}(?:[ ']\d{3})+(?:\.\d+)?|\d{1,3}(?:\.\d{3}){2,}|\d{1,3}(?:_\d{3})+)")
_DOTS = re.compile(r"([+-]?)(\d*)\.(\d*?)(\d{1,6}?)\4{2,}\.\.\.")


def number_of(text: str) -> Fraction | None:
    """The exact value of a text that is a number and nothing else."""
    text = text.strip().removeprefix("+")
    for pattern, value in _NUMBERS:
        if match := pattern.fullmatch(text):
            return value(*match.groups())
    return None


def in_base(text: str) -> tuple[str, int] | None:
    """Digits, and the base that is written below them; None for other text, and for digits that the base does not have.

    >>> in_base("ff_{16}"), in_base("12_2")
    (('FF', 16), None)
    """
    match = _BASE.fullmatch(text)
    if match is None:
        return None
    digits, word = match.group(1).strip("()").upper(), match.group(2)
    base = _BASES.get(word, int(word) if word.isdigit() else 0)
    return (digits, base) if 2 <= base <= 36 and all(int(d, 36) < base for d in digits) else None


def _plain(sign: str, digits: str) -> Fraction:
    return _signed(sign, Fraction("0" + digits.rstrip(".")))


def _spaced(sign: str, digits: str) -> Fraction:
    grouped = digits.replace(".", "") if digits.count(".") > 1 else digits
    return _signed(sign, Fraction(re.sub(r"[ '_]", "", grouped)))


def _mixed(sign: str, whole: str, *parts: str | None) -> Fraction | None:
    top, bottom = [int(part) for part in parts if part is not None]
    return _signed(sign, int(whole) + Fraction(top, bottom)) if bottom else None


def _ratio(sign: str, top_sign: str, top: str, bottom_sign: str, bottom: str, *plain: str) -> Fraction | None:
    above, below = Fraction(top or plain[0]), Fraction(bottom or plain[1])
    negative = ((sign == "-") + (top_sign == "-") + (bottom_sign == "-")) % 2
    return (-1 if negative else 1) * above / below if below else None


def _scientific(sign: str, digits: str, *powers: str | None) -> Fraction | None:
    return _scaled(sign, Fraction(digits), *powers)


def _power_of_ten(sign: str, *powers: str | None) -> Fraction | None:
    return _scaled(sign, Fraction(1), *powers)


def _scaled(sign: str, value: Fraction, *powers: str | None) -> Fraction | None:
    power = next(int(power) for power in powers if power is not None)
    return _signed(sign, value * Fraction(10) ** power) if abs(power) <= 1000 else None


def _with_period(sign: str, whole: str, fixed: str, *periods: str | None) -> Fraction:
    return _repeating(sign, whole, fixed, next(period for period in periods if period is not None))


def _signed(sign: str, value: Fraction) -> Fraction:
    return -value if sign == "-" else value


def _repeating(sign: str, whole: str, fixed: str, period: str) -> Fraction:
    head = Fraction(int(whole + fixed or "0"), 10 ** len(fixed))
    return _signed(sign, head + Fraction(int(period), (10 ** len(period) - 1) * 10 ** len(fixed)))


_NUMBERS: tuple[tuple[re.Pattern[str], Callable[..., Fraction | None]], ...] = (
    (_PLAIN, _plain),
    (_MIXED, _mixed),
    (_FRACTION, _ratio),
    (_SCIENTIFIC, _scientific),
    (_POWER_OF_TEN, _power_of_ten),
    (_REPEATING, _with_period),
    (_DOTS, _repeating),
    (_SPACED, _spaced),
)
