"""Parse an answer that is one value: a number, a quantity, a time of day, a ratio, a phrase or a formula."""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction

from gem.graders.math.split import split
from gem.graders.math.units import UNITS, dimensions_of, is_listed_unit, parse_product, parse_unit
from gem.graders.math.values import (
    SCALES,
    Clock,
    Formula,
    Group,
    InBase,
    Interval,
    Number,
    Value,
    Word,
    is_word,
    normalize_word,
    parse_in_base,
    parse_number,
    spelled_number,
    spelled_value,
)

_TO = r":|\\text\{\s*to\s*\}|(?<=[\d}])\s+to\s+(?=[\d\\])"
_ARITHMETIC = re.compile(
    r"\\(?:frac|sqrt|cdot|pi|binom|log|ln|sin|cos|tan|circ)(?![a-zA-Z])|\\text\{[^{}]*\}| [a-z]{2,}$"
)
_ROUNDED = re.compile(
    r"[+-]?\s*(?:\\?[$€£¥₹])?(?:\d+|(?=\.\d))(?:\.(?P<places>\d*))?"
    r"(?:\s*\\cdot\s*10\^(?:\{(?P<power>[+-]?\d+)\}|(?P<digit>\d))|[eE](?P<e>[+-]?\d+))?(?:[^\d^\\]*|\s*\\text\{[^{}\d]*\}|\s*\^\\circ)\s*"
)
_COMPOUND = re.compile(r"(\d+) ?([a-z]+)(?:,? and|,)? (\d+(?:\.\d+)?) ?([a-z]+)")
_FEET = re.compile(r"^(\d{1,2}) ?' ?(\d{1,2}(?:\.\d+)?) ?(?:''|\")$")
_UNIT_TAIL = re.compile(
    r"^(?P<number>.*?[\d}\])]|.*\\pi)\s*"
    r"(?P<unit>\^\\circ|%|[¢€£]|\\text\{\s*[^{}]*\}|(?<=\s)[a-zA-Z$/](?:[a-zA-Z/ .]|\^\{?\d\}?(?=\s*/))*?"
    r"|[a-zA-Z]{2,}[a-zA-Z/ .]*?)(?P<power>\^\{?[23]\}?)?\s*$"
)
_MARKED_TAIL = re.compile(r"(?P<number>.*(?<![\\a-zA-Z])[a-zA-Z](?![a-zA-Z]).*)(?P<unit>\\text\{\s*[a-zA-Z/^0-9 ]+\})")
_PRODUCT_TAIL = re.compile(r"(?P<number>.*?[\d}\])])(?:\s|\\cdot(?![a-z]))*(?P<unit>(?:\\text\s*\{|[a-zA-Z]).*)")
_SPELLED_QUANTITY = re.compile(r"([a-z]+(?:[- ][a-z]+)?) (?!solution)([a-z]{3,})")  # twenty-five apples
_SCALED = re.compile(
    rf"(?P<number>.*?[\d}}])\s*(?:\\text\{{)?\s*(?P<scale>{'|'.join(SCALES)})(?![a-z])\s*\}}?(?P<rest>.*)"
)
_RAISED = re.compile(r"(?P<number>.*?[\d})])\s*(?:\\text\{)?\s*(?P<power>squared|cubed)\s*\}?")
_ANGLE_OF = re.compile(r"\\(?:sin|cos|tan|cot|sec|csc)")  # degrees after such a function belong to its argument
_CALCULUS = re.compile(r"\\(?:int|lim|sum|prod)(?![a-z])")  # in these formulas, letters after numbers are variables
_CLOCK = re.compile(r"(\d{1,2})(?::([0-5]\d)(?::([0-5]\d))?)?\s*(?:\\text\{\s*)?([ap])?(?(4)\.?\s*m\b\.?)\s*\}?", re.I)
LONGEST_SCALED = 60  # maximum number of characters of a number such as "1.5 million"
_ZERO = Number(Fraction(0))
EVERYTHING = Interval(None, None, (False, False))
_DIVERGES = r"(?:(?:it|the \w+) )?(?:diverges|tends|goes|grows) to "
_PHRASES: tuple[tuple[re.Pattern[str], Value], ...] = tuple(
    (re.compile(pattern), value)
    for pattern, value in (
        (
            r"(?:there (?:are|is) )?no (?:such |real )?(?:solutions?|roots?|numbers?|values?|[xyn])(?: exists?)?"
            r"|(?:the )?empty set",
            Group("set", ()),
        ),
        (r"(?:all|the|all of the)? ?real(?: numbers)?|(?:all|the) reals", EVERYTHING),
        (
            r"(?:all )?non-?zero real(?: number)?s",
            Group("difference", (EVERYTHING, Group("set", (_ZERO,)))),
        ),
        (r"(?:all )?positive real(?: number)?s", Interval(_ZERO, None, (False, False))),
        (r"(?:all )?negative real(?: number)?s", Interval(None, _ZERO, (False, False))),
        (r"(?:all )?non-?negative real(?: number)?s", Interval(_ZERO, None, (True, False))),
        (r"infinite(?:ly many(?: solutions)?)?", Formula(r"\infty")),
        (rf"(?:{_DIVERGES})?(?:positive |\+)?(?:infinity|\\infty)", Formula(r"\infty")),
        (rf"(?:{_DIVERGES})?(?:negative |minus |-)(?:infinity|\\infty)", Formula(r"-\infty")),
    )
)


def read_words(text: str) -> Value | None:
    """Return the value of a phrase or a spelled-out number; None for anything else."""
    phrase = re.sub(r"\s+", " ", re.sub(r"\\text\{([^{}]*)\}", r"\1 ", text)).strip(" .").casefold()
    for pattern, value in _PHRASES:
        if pattern.fullmatch(phrase):
            return value
    if (number := spelled_value(phrase)) is not None:
        return Number(number)
    counted = _SPELLED_QUANTITY.fullmatch(phrase)
    count = None if counted is None else spelled_number(counted.group(1))
    return None if counted is None or count is None else read_scalar(f"{count} {counted.group(2)}")


def read_number(text: str) -> Number | None:
    number = parse_number(text)
    return None if number is None else Number(number, decimal="." in text)


def read_compound(text: str) -> Value | None:
    """Parse a quantity in two units, such as 2 hours and 30 minutes; return None for other text."""
    text = _FEET.sub(r"\1 feet \2 inches", text)
    match = _COMPOUND.fullmatch(re.sub(r"\s+", " ", re.sub(r"\\text\{([^{}]*)\}", r" \1 ", text)).strip())
    units = [parse_unit(match.group(i)) for i in (2, 4)] if match is not None else []
    if match is None or any(unit not in UNITS for unit in units):
        return None
    (dimensions, factor), (small_dimensions, small_factor) = (dimensions_of(unit or "") for unit in units)
    if dimensions != small_dimensions or factor <= small_factor:
        return None
    return Number(Fraction(match.group(1)) * factor / small_factor + Fraction(match.group(3)), units[1] or "")


def is_constant(text: str) -> bool:
    """Return whether a text has numbers and no variables."""
    return re.search(r"\d|\\pi", text) is not None and re.search(r"[a-zA-Z]", _ARITHMETIC.sub("", text)) is None


def half_digit(text: str) -> Fraction:
    r"""Return half a unit of the last digit of a decimal number; 0 for other text.

    The number may have a sign, a currency, a power of ten and a unit: -\$1.50, 1.4\cdot 10^5, 33.3%, 1.2\text{ cm}.
    """
    match = _ROUNDED.fullmatch(text)
    if match is None:
        return Fraction(0)
    power = int(match["power"] or match["digit"] or match["e"] or 0)
    return Fraction(10) ** (power - len(match["places"] or "")) / 2 if abs(power) <= 1000 else Fraction(0)


def read_base(text: str) -> Value | None:
    written = parse_in_base(text)
    return None if written is None else InBase(*written)


def read_clock(text: str) -> Value | None:
    spelled = {"noon": "12 pm", "midnight": "12 am"}.get(re.sub(r"^(?:12 |at )", "", text.casefold()), text)
    match = _CLOCK.fullmatch(spelled)
    if match is None or (match.group(2) is None and match.group(4) is None):
        return None
    hours, minutes, seconds = (int(part or 0) for part in match.groups()[:3])
    half = (match.group(4) or "").lower()
    if hours > (12 if half else 24):
        return None
    hours = hours % 12 + 12 * (half == "p") if half else hours
    ratio = None if half or match.group(3) else read_ratio(text)
    return Clock(3600 * hours + 60 * minutes + seconds, bool(half) or hours > 12, ratio)


def read_ratio(text: str) -> Value | None:
    """Parse a ratio such as 3:4, 3 to 4 or 1:2:3; return None for other text.

    The value of a ratio of two parts is their quotient. The value of a longer ratio is a Group.
    """
    parts = split(text, _TO)
    if len(parts) < 2 or not all(parts):
        return None
    values = [read_scalar(part) for part in parts]
    if not all(isinstance(value, (Number, Formula)) and not value.unit for value in values):
        return None
    if len(values) > 2:
        return Group("ratio", tuple(values))
    top, bottom = values
    if isinstance(top, Number) and isinstance(bottom, Number):
        return Number(top.exact / bottom.exact) if bottom.exact else None
    return Formula(rf"\frac{{{parts[0]}}}{{{parts[1]}}}")


def read_scalar(text: str) -> Value:
    if (
        currency := re.fullmatch(r"([+-]?)\s*(?:\\?([$€£¥₹])|(USD|EUR|GBP)\b)\s*([+-]?)\s*([^\s\\$€£¥₹].*)", text)
    ) is not None:
        said = re.sub(r"\\text\s*\{([^{}]*)\}", r" \1 ", currency.group(5)).strip()
        amount, _, rate = re.sub(r"(?<=\d)\s*(?:/|per )\s*(?=[a-z]+$)", "|", said).partition("|")
        amount = amount if rate else currency.group(5)
        value = read_scalar(currency.group(1) + currency.group(4) + amount)
        unit = currency.group(2) or parse_unit(currency.group(3)) or ""
        unit = parse_unit(f"{unit}/{rate}") or unit if rate else unit
        return replace(value, unit=unit) if isinstance(value, (Number, Formula)) and not value.unit else value
    if (number := read_number(text)) is not None:
        return number
    if (known := read_words(text)) is not None:
        return known
    if len(text) <= LONGEST_SCALED and (many := _SCALED.fullmatch(text)) is not None:
        value = read_scalar(f"{many.group('number')} {many.group('rest').strip()}".strip())
        if isinstance(value, Number):
            return replace(value, exact=value.exact * SCALES[many.group("scale")])
    if len(text) <= LONGEST_SCALED and (raised := _RAISED.fullmatch(text)) is not None:
        value = read_scalar(raised.group("number"))
        if isinstance(value, Number) and not value.unit:
            return replace(value, exact=value.exact ** (2 if raised.group("power") == "squared" else 3))
    if (quantity := _read_quantity(text)) is not None:
        return quantity
    if (marked := _MARKED_TAIL.fullmatch(text)) is not None and not _CALCULUS.search(text):
        unit = parse_unit(marked["unit"])
        if unit is not None and is_listed_unit(unit) and marked["number"].count("{") == marked["number"].count("}"):
            return Formula(marked["number"].strip(), unit)
    match = _UNIT_TAIL.fullmatch(text)
    if match is not None and _is_quantity(match.group("number")) and not _CALCULUS.search(text):
        apart = text[match.start("unit") - 1].isspace()
        unit = parse_unit(match.group("unit"), match.group("power"), apart=apart)
        if unit is not None and not (unit == "degree" and _ANGLE_OF.search(text)):
            value = read_scalar(match.group("number").strip())
            if isinstance(value, (Number, Formula)) and not value.unit:
                return replace(value, unit=unit)
    return Word(normalize_word(text)) if is_word(text) else Formula(text)


def _read_quantity(text: str) -> Value | None:
    """Parse a number with a product of units, such as 5 kg m s^{-2}; return None for other text."""
    match = _PRODUCT_TAIL.fullmatch(text)
    unit = None if match is None or not _is_quantity(match["number"]) else parse_product(match["unit"])
    if match is None or unit is None:
        return None
    value = read_scalar(match["number"].strip())
    return replace(value, unit=unit) if isinstance(value, (Number, Formula)) and not value.unit else None


def _is_quantity(number: str) -> bool:
    """Return whether a text may precede a unit: its braces are balanced and all letters belong to LaTeX commands."""
    return number.count("{") == number.count("}") and not re.search(r"[a-zA-Z]", re.sub(r"\\[a-zA-Z]+", "", number))
