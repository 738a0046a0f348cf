"""Which units an answer may have whose reference answer has none: the question decides.

24 cm is no area, 40 km no speed and 0.75 hours no probability; 784 cents is not 784 if the question has prices in
dollars only. A question that says its unit, as in "how many minutes", is for `question.asked_unit`.
"""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache

from gem.graders.math.question import last_question
from gem.graders.math.units import UNITS, dimensions_of, parse_unit

_SPEED = {"length": 1, "time": -1}
_KINDS: tuple[tuple[str, dict[str, int] | None], ...] = (  # words after "find the", and the dimensions of the quantity
    (r"areas?", {"length": 2}),
    (r"volumes?", {"length": 3}),
    (
        r"perimeters?|circumference|distance|radius|radii|diameter|heights?|width|altitude|hypotenuse|side",
        {"length": 1},
    ),
    (r"speed|velocity", _SPEED),
    (r"acceleration", {"length": 1, "time": -2}),
    (r"probability|ratio|chance", {}),
    (
        r"angular|rate|fast|how many|how much|number|value|sum|product|difference|energy|force|time|angle|cost"
        r"|price|mass|weight|power|age|work|density|pressure|voltage|length|long|percent\w*|fraction",
        None,
    ),
)
_KIND = re.compile("|".join(rf"\b(?P<k{i}>{words})\b" for i, (words, _) in enumerate(_KINDS)), re.IGNORECASE)
_ASKING = re.compile(r"\b(?:what(?: is| are| was)?|find|compute|calculate|determine|give|how|express)\b", re.IGNORECASE)
_ASKS_NUMBER = re.compile(  # $m+n$, or $0.3\times 0.04$
    r"\b(?:find|compute|calculate|evaluate|what is|determine)(?: the (?:value|limit|sum) of)? \$(?=[^$]*[-+/!^(\\])"
    r"(?:[^$\\]|\\(?:times|cdot|d?frac|sqrt|lim|to|infty|sum|int|log|ln|binom|sin|cos|tan|gcd|left|right|pi|,)(?![a-z]))+\$",
    re.IGNORECASE,
)
_PEOPLE = re.compile(
    r"\b(?:people|persons?|students?|m[ae]n|wom[ae]n|boys?|girls?|child|kids?|friends?|guests?|players?|passengers?|members?"
    r"|workers?|employees?|visitors?|customers?|attend|voters?|fans?|audience|residents?|inhabitants?|population|who)\b",
    re.IGNORECASE,
)
_WAYS = re.compile(
    r"\bways?\b|arrang|permut|combin|select|choos|\bcount\b|paths?\b|possib|outcome|assign|seat|line up|order",
    re.IGNORECASE,
)
_SUPPORT = {  # words of questions about quantities of a kind
    name: re.compile("|".join(rf"\b{word}" if word[0].isalpha() else word for word in words.split()), re.IGNORECASE)
    for name, words in {
        "length": (
            r"length distance far\b tall high height wid(?:e|th) deep depth long\b side radi diamet "
            r"perimeter circumference travel walk r[au]n dr[io]ve swim rope fence position displace lens image "
            r"size dimension triangle circle rectangle square polygon hexagon trapez rhombus segment chord "
            r"sphere cube cylinder cone prism pyramid point unit apart away orbit wavelength shadow move slid jump "
            r"fall climb edge altitude"
        ),
        "area": (
            r"area surface cover region square triangle circle polygon rectangle carpet paint land field hexagon "
            r"bounded"
        ),
        "volume": (
            r"volume lit(?:er|re) water liquid juice milk tank fill drink contain pour pool capacity hold mix "
            r"solution paint gallon sphere cube cylinder cone prism pyramid solid box revol rotat recipe flour "
            r"sugar gas cup bottle bucket"
        ),
        "time": (
            r"long\b time when durat old\b ages?\b period half-li take last late\b later early clock wait "
            r"until after before life finish spen[dt] fill sooner elapse hour work decay hit reach land meet "
            r"catch"
        ),
        "mass": (r"mass weigh heav kilo grams? milli load pound tons?\b much"),
        "dollars": (
            r"dollar cents?\b cost price pay paid earn profit money spen[dt] sale sell sold buy bought salary "
            r"income budget bill worth bank account invest interest loan owe sav(?:e|ing) charge discount tax "
            r"tip rent fees?\b revenue wage fund bets? prize \\\$ \$\d[\d,.]*(?![\d$])(?=[\s,.;?!)]|$)"
        ),
        "angle": (
            r"angle degree circ ° radian rotat arg polar direction phase bearing inclin elevat depress "
            r"hands?\b arc theta turn latitude longitude spin swing tilt incidence refract"
        ),
        "temperature": (r"temperature warm cold cool hot heat gas boil freez melt degrees circ °"),
        "amount": (r"mole mol\b amount concentrat solution reacti gas"),
        "physics": (
            r"energy work heat force power pressure tension friction moment volt current resist capacit field "
            r"frequen densit speed veloc acceler flow rate fast slow torque spring photon electr concentrat pull "
            r"push lift weigh thrust drag emit lumin potential induct flux radiat charge circuit impuls cool "
            r"conduct consum gradient drop per\b / molar constant"
        ),
    }.items()
}
_NAMES = {
    "length": "length", "unit": "length", "time": "time", "months": "time", "mass": "mass", "dollars": "dollars",
    "angle": "angle", "angle in pi": "angle", "temperature": "temperature", "celsius": "temperature",
    "fahrenheit": "temperature", "amount": "amount",
}  # fmt: skip
_PARTS = {"mph": ("mi", "h"), "km/h": ("km", "h")}
_AMBIGUOUS = re.compile("second|foot|yard|pound|molar", re.IGNORECASE)
_MARKED = re.compile(r"(?<=\d)[\s\\,~^]*([a-zA-Z]+(?:\^\{?-?\d\}?)?(?:[ /]+[a-zA-Z]{1,3}\b)*)|/([a-zA-Z]+)")
_CLOCK = re.compile(r"\d ?[ap]\.?m\b|\d:\d\d|o'clock|\b(?:noon|midnight)\b", re.IGNORECASE)


def may_have_unit(unit: str, question: str) -> bool:
    """Return whether the answer to a question that names no unit for it may have a unit.

    A word that is not a listed unit, and %, may always stand here: they are compared by other rules.
    """
    parts = [part.partition("^")[0] for part in re.split("[*/]", unit)] if unit not in UNITS else [unit]
    counted = unit in ("people", "person", "way")
    if len(question) < 12 or unit in ("", "%"):  # "Simplify." says nothing about units
        return True
    if not (counted or all(part in UNITS or part == "unit" for part in parts)):
        times = {part for part in parts[1:] if part in UNITS}  # 6 pages per week
        return times <= units_in(question)
    if counted:
        return (_WAYS if unit == "way" else _PEOPLE).search(question) is not None
    dimensions = {("length" if name == "unit" else name): power for name, power in dimensions_of(unit)[0]}
    kind = _asked_kind(question)
    if kind is not None and dimensions != kind:
        return False
    known = units_in(question)
    return (kind is not None or _is_supported(dimensions, known, question)) and _is_mentioned(unit, parts, known)


@lru_cache(maxsize=1024)
def units_in(question: str) -> frozenset[str]:
    """Return the listed units that a question names, a product or quotient as its parts."""
    plain = re.sub(r"\\(?:text|mathrm|rm)\s*\{([^{}]*)\}|\$|\\[,; ]", lambda m: m[1] or " ", question)
    plain = re.sub(r"\\Omega|Ω", "ohm", re.sub(r"\\mu\s*|μ|µ", "u", plain))
    found = [word for word in re.findall(r"[a-zA-Z]{4,}|day|cup", plain) if not _AMBIGUOUS.fullmatch(word)]
    symbols = [part for groups in _MARKED.findall(plain) for part in re.split(r"[ /]+", "".join(groups)) if part]
    symbols = [re.sub(r"[\^{}\d-]", "", symbol) for symbol in symbols if symbol not in ("in", "at", "a")]
    units = {parse_unit(word) for word in found} | {parse_unit(rf"\text{{{symbol}}}") for symbol in symbols}
    parts = {part for unit in units if unit in UNITS for part in (_PARTS.get(unit) or (unit,))}
    parts |= {"degree"} if re.search(r"\\circ|°", question) else set()
    parts |= {"$"} if _SUPPORT["dollars"].search(question) and "$" in question else set()
    parts |= {sign for sign in "€£¥₹" if sign in question}
    parts |= {"h", "min"} if _CLOCK.search(question) else set()
    return frozenset(parts)


def _asked_kind(question: str) -> dict[str, int] | None:
    """Return the dimensions of the first quantity that the last question asks for; None if they are unknown."""
    asked = last_question(question)
    if _ASKS_NUMBER.search(asked):
        return {}
    verb = list(_ASKING.finditer(asked))
    match = _KIND.search(asked, verb[-1].start()) if verb else None
    if match is None:
        return None
    return _KINDS[int(str(match.lastgroup)[1:])][1]


def _is_supported(dimensions: dict[str, int], known: frozenset[str], question: str) -> bool:
    """Return whether the units of a question have these dimensions, or its words name a quantity that has them."""
    of_units = {name for unit in known for name, _ in dimensions_of(unit)[0]}
    if set(dimensions) <= of_units:
        return True
    if len(dimensions) != 1 or min(dimensions.values()) < 0:
        return _SUPPORT["physics"].search(question) is not None
    name, power = next(iter(dimensions.items()))
    name = {2: "area", 3: "volume"}.get(power, name) if name == "length" else _NAMES.get(name, name)
    return name in _SUPPORT and _SUPPORT[name].search(question) is not None


def _is_mentioned(unit: str, parts: list[str], known: frozenset[str]) -> bool:
    """Return whether a question has the parts of a unit, or no other unit of the same dimensions."""
    for part in {each for name in parts for each in _PARTS.get(name, (name,))} - {"unit", "kelvin"}:
        same = {each for each in known if dimensions_of(each)[0] == dimensions_of(part)[0]}
        if same and part not in same:
            return False
    whole, factor = dimensions_of(unit)
    if len(parts) > 1 or unit in known or unit in _PARTS:
        return True
    coherent = Fraction(1000) ** dict(whole).get("mass", 0)
    prefix = re.fullmatch("10+|1/10+", str(factor / coherent)) is not None
    if len(whole) > 1 and prefix and any(dimensions_of(each) == (whole, coherent) for each in UNITS):
        return False  # 9 kJ for 9, if the question has kg and m/s
    return not any(dimensions_of(each)[0] == whole for each in known)
