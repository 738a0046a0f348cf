"""Units of measurement, and numbers in words.

A unit is a string such as "m", "cm^2" or "km/h", composed of canonical names in UNITS.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

from gem.graders.math.lexer import Token, spellings

Dimensions = tuple[tuple[str, int], ...]
# canonical name → (dimensions with their exponents, factor to the base unit)
UNITS: dict[str, tuple[dict[str, int], Fraction]] = {}
_SPELLED: dict[str, str] = {}
_MARKED: dict[str, str] = {}  # symbols of units, such as mN, that are products of variables outside of a text command
_CAPITALS = {
    **{"J": "joule", "N": "newton", "W": "watt", "V": "volt", "A": "ampere", "K": "kelvin", "L": "l", "C": "coulomb"},
    **{"T": "tesla", "F": "farad", "H": "henry", "M": "molar"},
}
_TABLE = """
length = 1/1000000000: nm, nanometer, nanometre; 1/1000: mm, millimeter, millimetre; 1/100: cm, centimeter,
  centimetre; 1/10: dm, decimeter, decimetre; 1: m, meter, metre; 1000: km, kilometer, kilometre; 0.0254: in, inch,
  inche; 0.3048: ft, foot, feet; 0.9144: yd, yard; 1609.344: mi, mile; 1/10000000000: angstrom; 149597870700: au;
  9460730472580800: ly, lightyear; 30856775814913673: parsec, pc; 1/1000000: um, micrometer, micrometre, micron
mass = 1/1000: mg, milligram; 1: g, gram; 1000: kg, kilogram; 1000000: t, tonne; 907184.74: ton; 453.59237: lb,
  pound; 28.349523125: oz, ounce; 1/1000000: ug, microgram
time = 1/1000: ms, millisecond; 1: s, second, sec; 60: min, minute; 3600: h, hour, hr; 86400: day; 604800: week;
  1/1000000: us, microsecond; 1/1000000000: ns, nanosecond
months = 1: month; 12: year, yr, annum
length^3 = 1/1000000: ml, milliliter, millilitre; 1/1000: l, liter, litre; 0.003785411784: gal, gallon;
  0.000946352946: quart, qt; 0.000473176473: pint; 0.0002365882365: cup; 0.00001478676478125: tablespoon, tbsp;
  0.00000492892159375: teaspoon, tsp; 1/1000000000: ul, microliter, microlitre
length^2 = 10000: hectare, ha
dollars = 1: $, dollar, usd; 1/100: cent, ¢
euros = 1: €, euro, eur
pounds_sterling = 1: £, gbp
yen = 1: ¥, yen
rupees = 1: ₹, rupee
length time^-1 = 5/18: km/h, kph, kmh; 0.44704: mph
angle = 1: degree, deg; 1/3600: arcsecond, arcsec; 1/60: arcminute, arcmin
angle_in_pi = 1: radian, rad
celsius = 1: celsius, degree celsius
fahrenheit = 1: fahrenheit, degree fahrenheit
temperature = 1: kelvin
mass length^2 time^-2 = 1000: joule; 1000000: kj, kilojoule; 1000000000: MJ, megajoule; 3600000: Wh; 3600000000:
  kWh, kwh; 1.602176634e-16: eV, electronvolt; 1.602176634e-13: keV; 1.602176634e-10: MeV; 1.602176634e-7: GeV;
  1/10000: erg
mass length time^-2 = 1000: newton; 1/100: dyne, dyn
mass length^-1 time^-2 = 1000: pa, pascal; 1000000: kpa, kilopascal; 101325000: atm, atmosphere; 100000000: bar;
  133322.387415: mmhg, torr
mass length^2 time^-3 = 1000: watt; 1000000: kw, kilowatt; 1000000000: MW, megawatt; 1: mW, milliwatt
amount = 1: mol, mole
charge = 1: coulomb
mass length^2 time^-2 charge^-1 = 1000: volt; 1: mV, millivolt; 1000000: kV, kv, kilovolt; 1000000000: MV, megavolt
mass length^2 time^-1 charge^-2 = 1000: ohm
mass time^-1 charge^-1 = 1000: tesla
mass^-1 length^-2 time^2 charge^2 = 1/1000: farad
charge time^-1 = 1: ampere, amp; 1/1000: mA, milliampere, milliamp
time^-1 = 1: hz, hertz; 1000: khz, kilohertz; 1000000: MHz, megahertz; 1000000000: GHz, ghz, gigahertz
level = 1: decibel, db
length^-2 = 1609344000000000/3785411784: mpg
amount length^-3 = 1000: molar; 1/1000: uM
mass length^2 charge^-2 = 1000: henry
"""  # dimensions = factor to the base unit: canonical name, other spellings; …


def _fill() -> None:
    for line in _TABLE.replace("\n  ", " ").strip().splitlines():
        measured, _, rows = line.partition(" = ")
        powers = [part.partition("^") for part in measured.split(" ")]
        dimensions = {name.replace("_", " "): int(power or 1) for name, _, power in powers}
        for row in rows.split("; "):
            factor, _, spellings = row.partition(": ")
            names = spellings.split(", ")
            UNITS[names[0]] = (dimensions, Fraction(factor))
            _SPELLED.update(dict.fromkeys(names, names[0]))


_fill()
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


_WORDS = spellings(  # words of other languages and signs → the canonical unit
    """
cm 厘米; m 米 metros; km 千米; mm 毫米; dm 分米; g 克; kg 千克 公斤; t 吨; s 秒 Sekunden; min 分钟 Minuten minutos 分;
h 小时 horas 時間 Stunden heures; day 天 Tage 日; week 周; month 月; year 年 岁; yen 元 円; degree 度 ° Grad;
cm^2 平方厘米 cmq; m^2 平方米 sqm; cm^3 立方厘米 cc; m^3 立方米; l 升; ml 毫升; % % percent pct; ₹ Rs INR; km/h kmph;
angstrom Å; unit 种 个 人 次 名 件 本 個 通り LE 项 条 只 位 units unit; unit^2 FE; unit^3 VE; € Euro"""
)
_CURRENCIES = {"$": "$", "USD": "$", "US$": "$", "€": "€", "EUR": "€", "£": "£", "GBP": "£", "¥": "¥", "₹": "₹"}
CURRENCY_SIGNS = ("$", "€", "£", "¥", "₹")


def read_currency(text: str) -> str | None:
    """Return the canonical unit of a currency sign; None for other text."""
    name = _CURRENCIES.get(text)
    return None if name is None else _SPELLED.get(name, name)


def read_unit(found: Sequence[Token], at: int, *, marked: bool = False) -> tuple[str, int] | None:
    """Read the unit that begins at a token: factors such as km, square feet and s^{-2}, joined by spaces, *, / and per.

    A letter alone is a unit inside a text command only (or if ``marked``), or as a part of a quotient such as m/s.

    Returns:
        The canonical unit and the index after it; None if there is no unit.
    """
    if at >= len(found):
        return None
    first = found[at]
    if first.text == "frac" and at + 2 < len(found):  # \\frac{\\text{gal}}{\\text{min}}
        parts = [read_unit(token.inner, 0) if token.inner else None for token in found[at + 1 : at + 3]]
        if all(
            part is not None and part[1] == len(token.inner)
            for part, token in zip(parts, found[at + 1 :], strict=False)
        ):
            return "/".join(part[0] for part in parts if part is not None), at + 3
    marked = marked or first.marked
    factors: list[tuple[str, int]] = []
    sign, end = 1, at
    while (read := _factor(found, end, marked or bool(factors))) is not None:
        name, power, end = read
        factors.append((name, power * sign))
        joint = found[end].text if end < len(found) else ""
        if joint in ("/", "per", "*"):
            sign = sign if joint == "*" else -1
            if _factor(found, end + 1, True) is None:
                if sign < 0 and [token.text for token in found[end + 1 : end + 2]] == ["("]:
                    inner = read_unit(found, end + 2)
                    if inner is not None and inner[1] < len(found) and found[inner[1]].text == ")":
                        return f"{_canonical(factors)}/{inner[0].replace('*', '/')}", inner[1] + 1
                break
            end += 1
        elif joint in ("", "in", "has") or not (found[end].spaced or found[end].marked):
            break
    if not factors:
        return None
    plain = not marked and all(
        (token.kind in ("letter", "group", "number") and not token.marked) or token.text in ("^", "*", "/", "-")
        for token in found[at:end]
    )
    is_quotient = len(factors) > 1 and first.spaced and min(power for _, power in factors) < 0
    if plain and not is_quotient and first.text != "%":
        return None  # 5 m and 2 a h are products of variables
    return _canonical(factors), end


def _canonical(factors: Sequence[tuple[str, int]]) -> str:
    if len(factors) == 1 and factors[0] == ("s", -1):
        return "hz"
    ordered = sorted(factors, key=lambda factor: factor[1] < 0)
    text = ""
    for name, power in ordered:
        mark = "/" if power < 0 else "*" if text else ""
        text += ("1" if power < 0 and not text else "") + mark + name + (f"^{abs(power)}" if abs(power) > 1 else "")
    return text


def _factor(found: Sequence[Token], at: int, marked: bool) -> tuple[str, int, int] | None:
    """Read one factor of a unit: (canonical name, power, index after it); None if there is none."""
    texts = [token.text for token in found[at : at + 2]]
    if not texts:
        return None
    lead, following, own = texts[0].casefold(), texts[-1].casefold(), 1
    if len(texts) > 1:
        if (lead, following) == ("per", "cent"):
            return "%", 1, at + 2
        if lead in ("degrees", "degree") and following in _TEMPERATURES:
            return _TEMPERATURES[following], 1, at + 2
        if lead in _POWERS:
            own = _POWERS[lead]
            at += 2 if following == "." and at + 2 < len(found) else 1
    name, end = _name(found, at, marked)
    if name is None:
        return None
    name, _, power = name.partition("^")
    own *= int(power or 1)
    if end + 1 >= len(found) or found[end].text != "^":
        return name, own, end
    raised = found[end + 1]
    digits = "".join(token.text for token in raised.inner) if raised.kind == "group" else raised.text
    if not digits.lstrip("-").isdecimal() or len(digits) > 3:
        return None
    return name, own * int(digits), end + 2


_POWERS = {"square": 2, "sq": 2, "cubic": 3, "cu": 3}
_TEMPERATURES = {"celsius": "celsius", "c": "celsius", "fahrenheit": "fahrenheit", "f": "fahrenheit"}
_MICRO = {"m": "um", "g": "ug", "s": "us", "l": "ul", "L": "ul", "M": "uM"}


def _name(found: Sequence[Token], at: int, marked: bool) -> tuple[str | None, int]:
    token, following = found[at], found[at + 1].text if at + 1 < len(found) else ""
    word, marked = token.text, marked or token.marked
    if token.kind == "sign" and word in ("%", "¢"):
        return _SPELLED.get(word, word), at + 1
    if word == "\\mu" and following:
        return _MICRO.get(following) or _MARKED.get("u" + following), at + 2
    if word == "\\Omega":
        return "ohm", at + 1
    if word in ("k", "M", "m") and following == "\\Omega":
        return f"{word}ohm", at + 2
    if token.kind not in ("word", "letter") and word != "min":
        return None, at
    if token.kind == "letter" and not marked:
        return (word, at + 1) if word in _SPELLED and word.islower() else (_CAPITALS.get(word), at + 1)
    if word in _CAPITALS:
        return _CAPITALS[word], at + 1
    for name in (word, word.lower(), word.lower().removesuffix("s"), word.lower().removesuffix("es")):
        if name in _SPELLED and (len(word) > 1 or word.islower()):
            return _SPELLED[name], at + 1
        if name in _WORDS:
            return _SPELLED.get(_WORDS[name], _WORDS[name]), at + 1
    is_symbol = word in _MARKED and (marked or "u" in word)  # 2GM is a product
    return (_MARKED[word], at + 1) if is_symbol else (None, at)


def unit_named(text: str) -> str | None:
    """Return the canonical unit of a text such as "square metres"; None for other text."""
    from gem.graders.math.lexer import tokens

    found = tokens(text)
    read = read_unit(found, 0, marked=True) if found else None
    return read[0] if read is not None and read[1] == len(found) else None


@lru_cache(maxsize=1024)
def dimensions_of(unit: str) -> tuple[Dimensions, Fraction]:
    """Return the dimensions of a canonical unit and its factor to the base unit."""
    dimensions: Counter[str] = Counter()
    factor = Fraction(1)
    sign = 1
    for part in [unit] if unit in UNITS else unit.replace("/", "|/").replace("*", "|*").split("|"):
        sign = -1 if part[:1] == "/" and unit not in UNITS else 1
        name, _, power = (part if unit in UNITS else part.lstrip("/*")).partition("^")
        if name == "1":
            continue
        exponent = int(power or 1) * sign
        measures, size = UNITS.get(name, ({name: 1}, Fraction(1)))
        for dimension, times in measures.items():
            dimensions[dimension] += times * exponent
        factor *= size**exponent
    return tuple(sorted((name, times) for name, times in dimensions.items() if times)), factor


def conversion(unit: str, gold: str) -> Fraction | None:
    """Return the factor that converts ``unit`` to ``gold``; None if their dimensions differ."""
    if unit == gold:
        return Fraction(1)
    if "%" in (unit, gold):
        other = gold if unit == "%" else unit
        return None if other else Fraction(1, 100) if unit == "%" else Fraction(100)
    if not unit or not gold:
        return Fraction(1)
    (dimensions, factor), (gold_dimensions, gold_factor) = dimensions_of(unit), dimensions_of(gold)
    return factor / gold_factor if dimensions == gold_dimensions else None


_ONES = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
    *("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
)
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_PARTS = ("half", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
_MULTIPLES = {"dozen": 12, "hundred": 100, "thousand": 1000, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_MULTIPLES |= {"lakh": 10**5, "crore": 10**7, "万": 10**4, "亿": 10**8}
SCALES: dict[str, Fraction] = {  # words that multiply the number before them
    **{word: Fraction(size) for word, size in _MULTIPLES.items()},
    **{"halves" if size == 2 else f"{word}s": Fraction(1, size) for size, word in enumerate(_PARTS, 2)},
    **{"quarters": Fraction(1, 4), "hundredths": Fraction(1, 100), "thousandths": Fraction(1, 1000)},
}
_SIZES = {word: Fraction(1, size) for size, word in enumerate(_PARTS, 2)} | {"quarter": Fraction(1, 4)}


def spelled_value(text: str) -> Fraction | None:
    """Return the number that a text spells out in words; None for other text.

    >>> spelled_value("two thousand"), spelled_value("three-quarters"), spelled_value("three and a half")
    (Fraction(2000, 1), Fraction(3, 4), Fraction(7, 2))
    """
    words = text.casefold().replace("-", " ").split()
    if not 1 <= len(words) <= 12:
        return None
    sign = -1 if words[0] in ("minus", "negative") else 1
    words = words[1:] if sign < 0 else words
    total, group, seen, last = Fraction(0), Fraction(0), False, Fraction(10**13)
    for index, word in enumerate(words):
        if word in ("a", "an", "one") and index + 1 < len(words) and words[index + 1] in {*_MULTIPLES, *_SIZES}:
            group += 1
        elif word in _ONES or word.isdecimal():
            value = Fraction(word) if word.isdecimal() else Fraction(_ONES.index(word))
            if (group % 10 and group) or (group % 100 and value > 9) or (seen and value == 0):
                return None
            group += value
        elif word in _TENS:
            if group % 100:
                return None
            group += 10 * (_TENS.index(word) + 2)
        elif word == "hundred" and group and group < 100:
            group *= 100
        elif word in _MULTIPLES and (group or index == 0) and _MULTIPLES[word] < last and word != "hundred":
            last = Fraction(_MULTIPLES[word])
            total, group = total + (group or 1) * last, Fraction(0)
        elif (word in _SIZES or word in SCALES) and (group or index == 0 or words[index - 1] == "and"):
            size = _SIZES.get(word, SCALES.get(word, Fraction(1)))
            if index + 1 != len(words) or size >= 1:
                return None
            before = words[:index]
            split = max((i for i, each in enumerate(before) if each == "and"), default=-1)
            whole = spelled_value(" ".join(before[:split])) if split > 0 else Fraction(0)
            top = before[split + 1 :]
            count = Fraction(1) if top in ([], ["a"], ["an"]) else spelled_value(" ".join(top))
            return None if whole is None or count is None else sign * (whole + count * size)
        elif word == "and" and seen and index + 1 < len(words):
            continue
        else:
            return None
        seen = True
    if (words and words[-1] == "and") or not seen or all(word.isdecimal() for word in words):
        return None
    return sign * (total + group)
