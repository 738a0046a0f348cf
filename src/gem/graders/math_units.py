"""Units of measurement, in their usual spellings, and what they measure."""

from __future__ import annotations

import re
from fractions import Fraction

FUNCTIONS = frozenset(
    "sin cos tan cot sec csc arcsin arccos arctan log ln exp lim max min gcd lcm sqrt pi mod".split()  # noqa: SIM905
)
# unit → (dimension, factor to the dimension's own unit)
UNITS: dict[str, tuple[str, Fraction]] = {}
_SPELLED: dict[str, str] = {}


def _unit(dimension: str, factor: str, *spellings: str) -> None:
    UNITS[spellings[0]] = (dimension, Fraction(factor))
    for spelling in spellings:
        _SPELLED[spelling] = spellings[0]


for _row in (
    ("length", "1/1000", "mm", "millimeter", "millimetre"),
    ("length", "1/100", "cm", "centimeter", "centimetre"),
    ("length", "1", "m", "meter", "metre"),
    ("length", "1000", "km", "kilometer", "kilometre"),
    ("length", "0.0254", "in", "inch", "inche"),
    ("length", "0.3048", "ft", "foot", "feet"),
    ("length", "0.9144", "yd", "yard"),
    ("length", "1609.344", "mi", "mile"),
    ("mass", "1/1000", "mg", "milligram"),
    ("mass", "1", "g", "gram"),
    ("mass", "1000", "kg", "kilogram"),
    ("mass", "1000000", "t", "tonne"),
    ("mass", "453.59237", "lb", "pound"),
    ("mass", "28.349523125", "oz", "ounce"),
    ("time", "1", "s", "second", "sec"),
    ("time", "60", "min", "minute"),
    ("time", "3600", "h", "hour", "hr"),
    ("time", "86400", "day"),
    ("time", "604800", "week"),
    ("volume", "1/1000", "ml", "milliliter", "millilitre"),
    ("volume", "1", "l", "liter", "litre"),
    ("money", "1", "$", "dollar", "usd"),
    ("money", "1/100", "cent", "¢"),
    ("speed", "1", "m/s"),
    ("speed", "5/18", "km/h", "kph", "kmh", "km per hour", "kilometers per hour"),
    ("speed", "0.44704", "mph", "miles per hour", "mile per hour"),
    ("angle", "1", "degree", "deg"),
):
    _unit(*_row)


def unit_of(text: str, power: str | None = None) -> str | None:
    """The canonical name of a unit; a word of the question's ("apples") is one too. None where it is none."""
    word = re.sub(r"^\\text\{|\}$", "", text.strip()).strip().rstrip(".").lower()
    if text.startswith(r"^\circ"):
        return "degree"
    if word in ("%", "percent", "percents"):
        return "%"
    if word in FUNCTIONS or (len(word) == 1 and word not in _SPELLED):
        return None
    suffix = {"2": "^2", "3": "^3"}[re.sub(r"\D", "", power)] if power else ""
    for prefix, its_suffix in (("square ", "^2"), ("sq ", "^2"), ("sq. ", "^2"), ("cubic ", "^3")):
        if word.startswith(prefix):
            word, suffix = word.removeprefix(prefix), its_suffix
    word = word if word in _SPELLED else word.removesuffix("s") if len(word) > 2 else word
    return _SPELLED.get(word, word) + suffix
