"""The types of parsed math answers, and parsers for numbers and words.

Numbers are exact fractions, whether written as digits, fractions, mixed numbers, repeating decimals or words.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class Number:
    """An exact number.

    Args:
        unit: canonical name; "" for none, "%" for percent.
        decimal: whether the number was written with a decimal point.
    """

    exact: Fraction
    unit: str = ""
    decimal: bool = False


@dataclass(frozen=True)
class Formula:
    """An expression that is not a single number, as normalized LaTeX."""

    latex: str
    unit: str = ""


@dataclass(frozen=True)
class Word:
    """Non-mathematical text such as a name, "yes" or a multiple-choice letter. Lower case unless it is one letter."""

    text: str


@dataclass(frozen=True)
class Group:
    """A collection of values.

    Args:
        kind: "tuple", "ratio", "matrix" (a tuple of rows) and "difference" (of two sets) are ordered; "set", "list",
            "union" and "cases" (pairs of a value and its condition) are not.
    """

    kind: str
    items: tuple[Value, ...]


@dataclass(frozen=True)
class Interval:
    """An interval of real numbers.

    Args:
        low, high: the bounds; None if the interval is unbounded on that side.
        closed: whether each bound belongs to the interval.
        variable: the name of the bounded variable; "" if no variable is named.
    """

    low: Value | None
    high: Value | None
    closed: tuple[bool, bool]
    variable: str = ""


@dataclass(frozen=True)
class Relation:
    """An equation or inequality that is neither an assignment (Named) nor a range of a variable (Interval)."""

    left: Value
    operator: str
    right: Value


@dataclass(frozen=True)
class Named:
    """A value assigned to a name such as x, f(x), A_1 or Area."""

    name: str
    value: Value


@dataclass(frozen=True)
class Chain:
    r"""A chain of equalities, such as 6 \cdot 7 = 42 or x = \sqrt{2} \approx 1.41.

    Args:
        values: the results of the chain: its last member, and the members before and after each \approx.
        steps: pairs of successive constants in the chain, with the tolerance if they are joined by \approx, else 0.
    """

    values: tuple[Value, ...]
    steps: tuple[tuple[Value, Value, Fraction], ...]


@dataclass(frozen=True)
class InBase:
    """A number written with its base as a subscript."""

    digits: str
    base: int


@dataclass(frozen=True)
class Clock:
    """A time of day.

    Args:
        seconds: seconds since midnight, or since the last noon or midnight if ``half`` is False.
        half: whether the half of the day (am or pm) is known.
        ratio: the value if the text is read as a ratio (3:30 is 3/30); None if the text can only be a time.
    """

    seconds: int
    half: bool
    ratio: Value | None


@dataclass(frozen=True)
class Congruence:
    """The congruence name ≡ value (mod modulus). ``name`` is "" if the answer has no left side."""

    name: str
    value: Value
    modulus: Value


Value = Number | Formula | Word | Group | Interval | Relation | Named | Chain | InBase | Clock | Congruence

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
_AND = r"(?:(?:\\text\{\s*and\s*\}|and(?=[ \\]))\s*)?"
_MIXED = re.compile(
    rf"([+-]?)\s*(\d+)\s*{_AND}(?:\\frac\{{\s*(\d+)\s*\}}\{{\s*(\d+)\s*\}}|(?:\s|\s+and\s+)(\d+)/(\d+))"
)
_REPEATING = re.compile(r"([+-]?)(\d*)\.(\d*)(?:\\overline\{(\d+)\}|\\(?:bar|dot)\{(\d+)\}|\((\d+)\))")
_SPACED = re.compile(r"([+-]?)(\d{1,3}(?:[ ']\d{3})+(?:\.\d+)?|\d{1,3}(?:\.\d{3}){2,}|\d{1,3}(?:_\d{3})+)")
_DOTS = re.compile(r"([+-]?)(\d*)\.(\d*?)(\d{1,6}?)\4{2,}\.\.\.")

_DAYS = {
    short: day
    for day in ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
    for short in (day[:3], day[:4], day[:5] if day[0] == "t" else day[:3])
}
_SHORT_WORDS = frozenset({"yes", "no", "true", "false", "all", "both", "none"})
_ONES = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
    *("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
)
_BASES = {"sixteen": 16, **{_ONES[base]: base for base in range(2, 11)}}
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_PARTS = ("halves", "thirds", "fourths", "fifths", "sixths", "sevenths", "eighths", "ninths", "tenths")
_MULTIPLES = {"dozen": 12, "hundred": 100, "thousand": 1000, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_SIZES = {name: size for size, word in enumerate(_PARTS, 2) for name in (word, word.removesuffix("s"))}
_LARGE = re.compile(
    r"(?P<above>[a-z ]+?) (?P<size>dozen|thousand|million|billion|trillion)(?:,? (?:and )?(?P<below>[a-z ]+))?"
)
_PART = re.compile(r"(?:(?P<whole>[a-z ]+|\d+) and )?(?:(?P<top>[a-z]+) )?(?P<part>half|quarters?|[a-z]+)")
SCALES: dict[str, Fraction] = {  # words that multiply the number before them
    **{word: Fraction(size) for word, size in _MULTIPLES.items()},
    **{word: Fraction(1, size) for size, word in enumerate(_PARTS, 2)},
    **{"hundredths": Fraction(1, 100), "thousandths": Fraction(1, 1000)},
}

FUNCTIONS = frozenset(
    "sin cos tan cot sec csc arcsin arccos arctan log ln exp lim max min gcd lcm sqrt pi mod".split()  # noqa: SIM905
)


def parse_number(text: str) -> Fraction | None:
    """Return the exact value of a text if the whole text is a number, else None."""
    text = text.strip().removeprefix("+")
    for pattern, value in _NUMBERS:
        if match := pattern.fullmatch(text):
            return value(*match.groups())
    return None


def parse_in_base(text: str) -> tuple[str, int] | None:
    """Return the digits and the subscript base of a number; None for other text and for digits invalid in the base.

    >>> parse_in_base("ff_{16}"), parse_in_base("12_2")
    (('FF', 16), None)
    """
    match = _BASE.fullmatch(text)
    if match is None:
        return None
    digits, word = match.group(1).strip("()").upper(), match.group(2)
    base = _BASES.get(word, int(word) if word.isdigit() else 0)
    return (digits, base) if 2 <= base <= 36 and all(int(d, 36) < base for d in digits) else None


def spelled_number(text: str) -> int | None:
    """Return the integer that a text spells out in words, without thousands; None for other text.

    >>> spelled_number("twenty-one"), spelled_number("one hundred and five"), spelled_number("none")
    (21, 105, None)
    """
    words = re.sub(r"\band\b|-", " ", text.lower()).split()
    words = ["one", *words[1:]] if len(words) > 1 and words[0] == "a" else words
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


def spelled_value(text: str) -> Fraction | None:
    """Return the number that a text spells out in words, with thousands and fractions; None for other text.

    >>> spelled_value("two thousand"), spelled_value("three-quarters"), spelled_value("3 and a half")
    (Fraction(2000, 1), Fraction(3, 4), Fraction(7, 2))
    """
    if len(text) > 60 or not re.search("[a-z]{3}", text):
        return None
    words = " ".join(text.lower().replace("-", " ").split())
    if (count := spelled_number(words)) is not None:
        return Fraction(count)
    if words.startswith(("minus ", "negative ")):
        below = spelled_value(words.partition(" ")[2])
        return None if below is None else -below
    if words in ("a dozen", "half a dozen"):
        return Fraction(6 if words[0] == "h" else 12)
    if (large := _LARGE.fullmatch(words)) is not None:
        above, below = spelled_value(large["above"]), spelled_value(large["below"]) if large["below"] else Fraction(0)
        return None if above is None or below is None else above * _MULTIPLES[large["size"]] + below
    if (part := _PART.fullmatch(words)) is None:
        return None
    whole = Fraction(0) if part["whole"] is None else spelled_value(part["whole"])
    if part["whole"] is not None and part["whole"].isdigit():
        whole = Fraction(part["whole"])
    top = 1 if part["top"] in (None, "a", "an") else spelled_number(part["top"])
    size = {"half": 2, "quarter": 4, "quarters": 4}.get(part["part"]) or _SIZES.get(part["part"])
    return None if whole is None or top is None or size is None else whole + Fraction(top, size)


def latex_of(value: Value) -> str:
    """Return a number or a formula as LaTeX, without its unit; "" for any other value."""
    if isinstance(value, Number):
        return rf"\frac{{{value.exact.numerator}}}{{{value.exact.denominator}}}"
    return value.latex if isinstance(value, Formula) else ""


def is_word(text: str) -> bool:
    """Return whether a normalized text is a word rather than a product of variables."""
    if re.fullmatch(r"\(?\s*\\?text\{[^{}]*\}\s*\)?", text) or re.fullmatch(r"\(?[A-Z]\)?", text):
        return True
    if re.fullmatch(r"[a-zA-Z]{1,2}(?:-[a-zA-Z]{1,2})+", text):
        return False  # ad-bc
    letters = re.sub(r"\\text\{|\}|[ .,'’-]", "", text)
    if text.lower() in _SHORT_WORDS or re.fullmatch(r"[A-Z][a-z]{2,}", text):
        return True
    return len(letters) > 3 and letters.isalpha() and letters.lower() not in FUNCTIONS


def normalize_word(text: str) -> str:
    """Convert a word to the form of Word.text."""
    word = re.sub(r"\\text\{|[{}().$]", "", text).strip()
    word = word if len(word) == 1 else re.sub(r"\s+", " ", word).casefold()
    word = re.sub(r"^(?:an?|the|on) (?=[a-z])", "", word)
    word = _DAYS.get(word.rstrip("."), word)
    word = {"converges": "convergent", "diverges": "divergent"}.get(word, word)
    return "dne" if re.fullmatch("(?:(?:it|limit) )?(?:does ?(?:not|n['’]t) exist|doesn['’]t exist)", word) else word


def _plain(sign: str, digits: str) -> Fraction:
    return _signed(sign, Fraction("0" + digits.rstrip(".")))


def _spaced(sign: str, digits: str) -> Fraction:
    grouped = digits.replace(".", "") if digits.count(".") > 1 else digits
    return _signed(sign, Fraction(re.sub(r"[ '_]", "", grouped)))


def _mixed(sign: str, integer: str, *parts: str | None) -> Fraction | None:
    top, bottom = [int(part) for part in parts if part is not None]
    return _signed(sign, int(integer) + Fraction(top, bottom)) if bottom else None


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


def _with_period(sign: str, integer: str, fixed: str, *periods: str | None) -> Fraction:
    return _repeating(sign, integer, fixed, next(period for period in periods if period is not None))


def _signed(sign: str, value: Fraction) -> Fraction:
    return -value if sign == "-" else value


def _repeating(sign: str, integer: str, fixed: str, period: str) -> Fraction:
    head = Fraction(int(integer + fixed or "0"), 10 ** len(fixed))
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
