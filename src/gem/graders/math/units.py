"""Units of measurement: spellings, dimensions and conversion factors.

A unit is a string such as "m", "cm^2" or "km/h", composed of canonical names in UNITS. Any other word ("apple") is
parsed as a unit with a separate dimension. It counts as one only if is_known_unit() knows it.
"""

from __future__ import annotations

import re
from collections import Counter
from fractions import Fraction
from functools import lru_cache

from gem.graders.math.values import FUNCTIONS, spelled_number

Dimensions = tuple[tuple[str, int], ...]
# canonical name → (dimensions with their exponents, factor to the base unit)
UNITS: dict[str, tuple[dict[str, int], Fraction]] = {}
_SPELLED: dict[str, str] = {}
_MARKED: dict[str, str] = {}  # symbols of units, such as mN, that are products of variables outside of a text command
_CAPITALS = {
    "J": "joule",
    "N": "newton",
    "W": "watt",
    "V": "volt",
    "A": "ampere",
    "K": "kelvin",
    "L": "l",
    "C": "coulomb",
    "T": "tesla",
    "F": "farad",
    "H": "henry",
    "M": "molar",
}
_COUNTED = frozenset({"unit", "people", "person", "way", "year old", "years old"})  # units without a conversion
_NOT_COUNTED = re.compile(  # words that are not units, even if the question has them
    "an?|the|and|or|is|are|be|not?|more|less|about|of|to|in|at|by|from|with|for|if|then|but|plus|minus|over|per|wrong"
    "|false|incorrect|approximately|negative"
)
_NAMES_THINGS = re.compile(r"^(?=.*[aeiouy])...|\s")  # matches "apple", but not "xy", a product of variables
_SPEED, _VOLUME = {"length": 1, "time": -1}, {"length": 3}
_FORCE, _ENERGY = {"mass": 1, "length": 1, "time": -2}, {"mass": 1, "length": 2, "time": -2}
_POWER, _PRESSURE = {"mass": 1, "length": 2, "time": -3}, {"mass": 1, "length": -1, "time": -2}
_VOLTAGE, _CURRENT = {"mass": 1, "length": 2, "time": -2, "charge": -1}, {"charge": 1, "time": -1}
_FACTOR = re.compile(r"([a-zA-Z]+) ?(?:\^(-?[1-9])|([23]))?")


def _unit(dimensions: str | dict[str, int], factor: str, *spellings: str) -> None:
    measured = {dimensions: 1} if isinstance(dimensions, str) else dimensions
    UNITS[spellings[0]] = (measured, Fraction(factor))
    for spelling in spellings:
        _SPELLED[spelling] = spellings[0]


for _row in (
    ("length", "1/1000000000", "nm", "nanometer", "nanometre"),
    ("length", "1/1000", "mm", "millimeter", "millimetre"),
    ("length", "1/100", "cm", "centimeter", "centimetre"),
    ("length", "1/10", "dm", "decimeter", "decimetre"),
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
    ("time", "1/1000", "ms", "millisecond"),
    ("time", "1", "s", "second", "sec"),
    ("time", "60", "min", "minute"),
    ("time", "3600", "h", "hour", "hr"),
    ("time", "86400", "day"),
    ("time", "604800", "week"),
    ("months", "1", "month"),
    ("months", "12", "year", "yr"),
    (_VOLUME, "1/1000000", "ml", "milliliter", "millilitre"),
    (_VOLUME, "1/1000", "l", "liter", "litre"),
    (_VOLUME, "0.003785411784", "gal", "gallon"),
    (_VOLUME, "0.000946352946", "quart", "qt"),
    (_VOLUME, "0.000473176473", "pint"),
    (_VOLUME, "0.0002365882365", "cup"),
    (_VOLUME, "0.00001478676478125", "tablespoon", "tbsp"),
    (_VOLUME, "0.00000492892159375", "teaspoon", "tsp"),
    ({"length": 2}, "10000", "hectare", "ha"),
    ("dollars", "1", "$", "dollar", "usd"),
    ("dollars", "1/100", "cent", "¢"),
    ("euros", "1", "€", "euro", "eur"),
    ("pounds sterling", "1", "£", "gbp"),
    ("yen", "1", "¥", "yen"),
    ("rupees", "1", "₹", "rupee"),
    (_SPEED, "5/18", "km/h", "kph", "kmh"),
    (_SPEED, "0.44704", "mph"),
    ("angle", "1", "degree", "deg"),
    ("angle in pi", "1", "radian", "rad"),
    ("celsius", "1", "celsius", "degree celsius"),
    ("fahrenheit", "1", "fahrenheit", "degree fahrenheit"),
    ("temperature", "1", "kelvin"),
    (_ENERGY, "1000", "joule"),  # the base unit of mass is the gram
    (_ENERGY, "1000000", "kj", "kilojoule"),
    (_ENERGY, "1000000000", "MJ", "megajoule"),
    (_ENERGY, "3600000", "Wh"),
    (_ENERGY, "3600000000", "kWh", "kwh"),
    (_ENERGY, "1.602176634e-16", "eV", "electronvolt"),
    (_ENERGY, "1.602176634e-13", "keV"),
    (_ENERGY, "1.602176634e-10", "MeV"),
    (_ENERGY, "1.602176634e-7", "GeV"),
    (_FORCE, "1000", "newton"),
    (_PRESSURE, "1000", "pa", "pascal"),
    (_PRESSURE, "1000000", "kpa", "kilopascal"),
    (_POWER, "1000", "watt"),
    (_POWER, "1000000", "kw", "kilowatt"),
    (_POWER, "1000000000", "MW", "megawatt"),
    (_POWER, "1", "mW", "milliwatt"),
    ("amount", "1", "mol", "mole"),
    ("charge", "1", "coulomb"),
    (_VOLTAGE, "1000", "volt"),
    (_VOLTAGE, "1", "mV", "millivolt"),
    (_VOLTAGE, "1000000", "kV", "kv", "kilovolt"),
    (_VOLTAGE, "1000000000", "MV", "megavolt"),
    ({"mass": 1, "length": 2, "time": -1, "charge": -2}, "1000", "ohm"),
    ({"mass": 1, "time": -1, "charge": -1}, "1000", "tesla"),
    ({"mass": -1, "length": -2, "time": 2, "charge": 2}, "1/1000", "farad"),
    (_CURRENT, "1", "ampere", "amp"),
    (_CURRENT, "1/1000", "mA", "milliampere", "milliamp"),
    ({"time": -1}, "1", "hz", "hertz"),
    ({"time": -1}, "1000", "khz", "kilohertz"),
    ({"time": -1}, "1000000", "MHz", "megahertz"),
    ({"time": -1}, "1000000000", "GHz", "ghz", "gigahertz"),
    ("length", "1/10000000000", "angstrom"),
    ("length", "1/1000000", "um", "micrometer", "micrometre", "micron"),
    ("mass", "1/1000000", "ug", "microgram"),
    ("time", "1/1000000", "us", "microsecond"),
    ("time", "1/1000000000", "ns", "nanosecond"),
    (_VOLUME, "1/1000000000", "ul", "microliter", "microlitre"),
    (_ENERGY, "1/10000", "erg"),
    (_FORCE, "1/100", "dyne", "dyn"),
    (_PRESSURE, "101325000", "atm", "atmosphere"),
    (_PRESSURE, "100000000", "bar"),
    (_PRESSURE, "133322.387415", "mmhg", "torr"),
    ({"amount": 1, "length": -3}, "1000", "molar"),
    ({"mass": 1, "length": 2, "charge": -2}, "1000", "henry"),
):
    _unit(*_row)


for _base, _letter in (
    *(("newton", "N"), ("coulomb", "C"), ("farad", "F"), ("ampere", "A"), ("volt", "V"), ("watt", "W"), ("joule", "J")),
    *(("tesla", "T"), ("mol", "mol"), ("ohm", "ohm"), ("eV", "eV"), ("pa", "Pa"), ("hz", "Hz"), ("henry", "H")),
    *(("molar", "M"), ("kelvin", "K")),
):
    for _prefix, _power in (("p", -12), ("n", -9), ("u", -6), ("m", -3), ("k", 3), ("M", 6), ("G", 9), ("T", 12)):
        if (_symbol := _prefix + _letter) not in _SPELLED and _symbol.lower() not in _SPELLED:
            _measured, _size = UNITS[_base]
            UNITS[_symbol] = (_measured, _size * Fraction(10) ** _power)
            _MARKED[_symbol] = _symbol


def parse_unit(text: str, power: str | None = None, *, apart: bool = True) -> str | None:
    r"""Return the canonical form of a unit, or None if the text is not a unit.

    Args:
        power: an exponent written after the unit, such as "^{2}".
        apart: whether a space separates the unit from its number. If True, any word ("apples") is a unit. If False,
            only units in UNITS and units inside \text{…} are recognized.
    """
    marked = text.lstrip().startswith(r"\text")
    if re.match(r"(?:\s*\\text\{\s*)?\^\\circ", text):
        return "degree"
    words = re.sub(r"\\text\{|[{}]", "", text).strip().rstrip(".") + re.sub(r"[{}]", "", power or "")
    if words.lower() in ("%", "percent", "percents", "per cent"):
        return "%"
    parts = re.split(r"\s*/\s*|\s+per\s+", words)
    names = [_part(part, marked) for part in parts]
    if not apart and not marked and any(name is not None and name.partition("^")[0] not in UNITS for name in names):
        return None
    return None if None in names else "/".join(name for name in names if name is not None)


def parse_product(text: str) -> str | None:
    r"""Return the canonical form of a product of listed units, such as "kg*m/s^2"; None for other text.

    >>> parse_product(r"\text{g cm}^{-3}"), parse_product(r"N\cdot m"), parse_product("x y")
    ('g/cm^3', 'newton*m', None)
    """
    marked = r"\text" in text
    flat = re.sub(r"(?:\\cdot|\\text|[{}\s])+", " ", re.sub(r"\s*\^\s*\{?\s*", "^", text)).strip()
    over, _, under = flat.partition("/")
    over = "" if marked and over.strip() == "1" else over
    under = under.strip().removeprefix("(").removesuffix(")").strip()
    found: list[tuple[str, int]] = []
    for side, sign in ((over, 1), (under, -1)):
        if re.sub(rf"{_FACTOR.pattern}| ", "", side):
            return None
        for word, raised, digit in _FACTOR.findall(side):
            name = _CAPITALS.get(word) or _part(word, marked)
            if name is None or (name not in UNITS and not (marked and "^-" in flat)):
                return None
            found.append((name, sign * int(raised or digit or 1)))
    if not (marked or under or any(power < 0 for _, power in found) or re.search("[A-Z]|[a-z]{2}", over)):
        return None  # 2 g h is a product of variables
    ordered = sorted(found, key=lambda factor: factor[1] < 0)
    if marked and found == [("s", -1)]:
        return "hz"
    if len(found) < 2 or ordered[0][1] < 0:
        return None
    parts = [
        ("/" if power < 0 else "*") + name + (f"^{abs(power)}" if abs(power) > 1 else "") for name, power in ordered
    ]
    return "".join(parts)[1:]


def is_listed_unit(unit: str) -> bool:
    """Return whether every part of a canonical unit is in UNITS."""
    return unit in UNITS or all(part.partition("^")[0] in UNITS for part in re.split("[*/]", unit))


def is_known_unit(unit: str, context: str) -> bool:
    """Return whether every part of a canonical unit is in a list of units, or consists of words of a text.

    Args:
        context: the reference answer and the question, which name the things that are counted.
    """
    if unit in UNITS or unit in ("", "%"):
        return True
    stems: set[str] | None = None
    for part in re.split("[*/]", unit):
        name = part.partition("^")[0]
        if name in UNITS or name in _COUNTED:
            continue
        stems = stems if stems is not None else {stem(word) for word in re.findall(r"[^\W\d_]+", context.casefold())}
        for word in re.split(r"[^\w]+", name.casefold()):
            if _NOT_COUNTED.fullmatch(word) or spelled_number(word) is not None or stem(word) not in stems:
                return False
    return True


def stem(word: str) -> str:
    return re.sub(r"(?:ie|[eiy])?s?$", "", word).rstrip("s")  # cities and city, boys and boy, glasses and glass


def capital_unit(text: str) -> str | None:
    """Return the unit that a capital letter abbreviates ("newton" for "N"); None if the text is not such a letter."""
    return _CAPITALS.get(text)


def unit_as_letter(unit: str) -> str | None:
    """Return a unit's symbol if it is a single letter, which could also be a variable; else None."""
    return unit if len(unit) == 1 and unit.isalpha() else None


@lru_cache(maxsize=1024)
def dimensions_of(unit: str) -> tuple[Dimensions, Fraction]:
    """Return the dimensions of a canonical unit and its factor to the base unit."""
    dimensions: Counter[str] = Counter()
    factor = Fraction(1)
    factors = [("", unit)] if unit in UNITS else re.findall(r"(^|[*/])([^*/]+)", unit)
    for operator, part in factors:
        name, _, power = part.partition("^")
        exponent = int(power or 1) * (-1 if operator == "/" else 1)
        measures, size = UNITS.get(name, ({name: 1}, Fraction(1)))
        for dimension, times in measures.items():
            dimensions[dimension] += times * exponent
        factor *= size**exponent
    return tuple(sorted((name, times) for name, times in dimensions.items() if times)), factor


def _part(text: str, marked: bool) -> str | None:
    r"""Return the canonical form of one factor of a unit (ft^2 for "square feet"); None if the text is not a unit.

    Args:
        marked: whether the text was written inside \text{…}, where a capital letter is a unit and not a variable.
    """
    match = re.fullmatch(r"([^^]*?)\s*(?:\^?([23])|\s(squared|cubed))?", text.strip(" ."))
    if match is None:
        return None  # m^2^2
    word, digit, spelled = match.groups()
    power = digit or {"squared": "2", "cubed": "3", None: ""}[spelled]
    if marked and word in _CAPITALS:
        return _CAPITALS[word] + (power and f"^{power}")
    if (len(word) == 1 and word.isupper() and word != "L") or re.fullmatch(r"[a-zA-Z](?: [a-zA-Z])+", word):
        return None  # 2 a h is a product of variables
    if word in _MARKED and (marked or "u" in word):
        return _MARKED[word] + (power and f"^{power}")
    if word in _SPELLED:  # MJ, mW: the prefix is not lower-cased
        return _SPELLED[word] + (power and f"^{power}")
    word = word.lower().strip(" .")
    for prefix, its in (("square ", "2"), ("sq ", "2"), ("sq. ", "2"), ("cubic ", "3"), ("cu ", "3")):
        if word.startswith(prefix):
            word, power = word.removeprefix(prefix).strip(), its
    word = re.sub(r"^degrees\b", "degree", word)
    word = word if word in _SPELLED else word.removesuffix("s") if len(word) > 2 else word
    if word not in _SPELLED and (
        (spelled and word != "unit") or word in FUNCTIONS or len(word) < 2 or not (marked or _NAMES_THINGS.search(word))
    ):
        return None
    return _SPELLED.get(word, word) + (power and f"^{power}")
