"""Units, percentages, counted things and rounding that a question asks for."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

from gem.graders.math.equal import ROUNDING, half_digit, named, split_unit
from gem.graders.math.lexer import Malformed, Token, TooLarge, tokens
from gem.graders.math.question import Question, word_set
from gem.graders.math.tree import Num, Op, Phrase, Quantity, Relation, Tree, names_in, walk
from gem.graders.math.units import (
    SCALES,
    conversion,
    dimensions_of,
    read_currency,
    read_unit,
    spelled_value,
)
from gem.graders.math.values import fraction_of, is_formula


def _stem(word: str) -> str:
    for ending in ("ies", "es", "s", "y", "e"):
        if word.endswith(ending) and len(word) > len(ending) + 1:
            return word[: -len(ending)].rstrip("s")
    return word


_COUNTED = re.compile(
    r".*\b(?:how many|number of|in(?= [a-z]+ per )|(?P<part>fraction|percent|percentage) of) (?P<things>[a-z0-9 -]*)"
)
_VERB = re.compile(
    r"\b(is|are|was|were|do|does|did|can|could|will|would|should|must|has|have|had|that|which|in|on|at|with|than)\b"
)
_DOLLARS = re.compile(r"\\\$|\$\d[\d,.]*(?= [a-z(]|[,.;?!)](?: |$)|$)")
_ROUNDING = re.compile(
    r"\bnearest (?:\w+ )?(?:whole|integer|ten|hundred|thousand|cent|dollar|degree|percent|\$?\d)|\bdecimals?\b(?! form)"
    r"|\bsignificant\b|\brounded\b|\bround (?:your|off|to|up|down|the (?:answer|result)|it)\b",
    re.IGNORECASE,
)
_IS_ROUNDING = re.compile(r"\b(?:round|approximate) (?:off )?(?:the number )?[$\\]*-?\d", re.IGNORECASE)
_SIGNIFICANT = re.compile(r"(\w+) significant", re.IGNORECASE)
_ASKING = word_set("what which how find compute calculate determine give express convert state write answer when")
_AFTER_UNIT = word_set("across by exerted needed of on released required through does did is are was and at for in")
_AFTER_NOUN = word_set("with if that where when across through given after before until")
_MORE = word_set("more total full whole")
_NO_UNIT = word_set("in a an second has")  # seldom units in a question
_FILLING = word_set(
    "of the in all altogether together total left remaining there are is such different distinct possible a an each "
    "per / every for whole full now old long tall wide high away"
)
_JOINTS = word_set("for per of in on to from each every a an /")  # the words after one describe the noun before it
_CHANGES = word_set(
    "not no never or but than more less fewer least most about over under except only twice half double minus plus "
    "negative wrong unless another other increase decrease loss gain profit dozen dozens pair pairs up down rest none"
)
_TOTAL = word_set("all total altogether together")
_PER = {"annual": "year", "yearly": "year", "monthly": "month", "weekly": "week", "daily": "day", "hourly": "h"}
_NAMES = {
    "per cent": "percent",
    "electron volt": "electronvolt",
    "light-year": "lightyear",
    "light year": "lightyear",
    "astronomical unit": "au",
} | {f"^\\circ${letter}": f"\\text{{{name}}}$" for letter, name in (("C", "celsius"), ("F", "fahrenheit"))}
Dimensions = tuple[tuple[str, int], ...]
_CURRENCIES = word_set("$ € £ ¥ ₹")
_KINDS: dict[str, frozenset[Dimensions] | None] = {  # nouns in a question → dimensions that the answer may have
    word: frozenset(dimensions_of(unit)[0] for unit in units.split())
    for units, words in {
        "m": "perimeter circumference distance radius diameter height width altitude hypotenuse side far length",
        "m^2": "area areas",
        "m^3": "volume volumes",
        "m/s": "speed velocity fast",
        "m/s^2": "acceleration",
        "joule": "energy heat",
        "newton": "force tension",
        "watt": "power",
        "volt": "voltage",
        "pa": "pressure",
        "g": "mass weigh weighs heavy",
        "molar": "molarity concentration",
        " ".join(_CURRENCIES): "cost costs price pay paid earn earns profit spend spent money owe owed revenue",
        "s year m": "long",
        "s year": "when old age",
        "degree radian": "angle angles rotation ∠",
        "": "probability ratio chance fraction remainder digit ph factor many number",
    }.items()
    for word in words.split()
} | dict.fromkeys(("rate", "angular", "density", "value"))
_IMPLIED = {"factor": "times", "population": "people", "arrangement": "ways", "arranged": "ways"}  # nouns of answers
_PHYSICS = word_set(
    "mol mole atom electron proton photon wavelength orbit orbital life radioactive au light parsec joule newton volt "
    "pascal kelvin nucleus nuclear capacitor resistor resistance telescope luminosity redshift ph molarity pendulum "
    "projectile blackbody ev mev kev gev kj mpa nm magnetic electric"
)
_IRRATIONAL = word_set(
    "circle circular circumference orbit orbital sphere pendulum life radioactive angle degree ph period sqrt"
)
_NOTATION = word_set("notation form write express convert exact exactly")  # of 3.2·10^5, which is not rounded then
_EVERYDAY = word_set("length mass time months dollars euros angle yen rupees unit")


@dataclass(frozen=True)
class Asked:
    """What a question says about the unit of its answer.

    Args:
        is_counted: whether it asks how many of a unit are as much as another quantity.
        unit: in which the answer is counted, "%" for a percentage; "" if the question does not say it.
        scale: 1000 for "in thousands of dollars".
        things: the stems of the words after "how many".
        others: the stems of all its words.
        last: the words from the last sentence that asks something.
        kind: the dimensions of the quantity that it asks for, none for a number; None if they are unknown.
        known: the units in it.
        per: the unit after "per", as in "per hour"; "" if there are several.
    """

    is_counted: bool
    unit: str
    scale: Fraction
    things: frozenset[str]
    others: frozenset[str]
    last: frozenset[str]
    kind: frozenset[Dimensions] | None
    known: frozenset[str]
    per: str


def in_asked_units(answer: Tree, gold: Tree, question: Question) -> tuple[Tree, Tree] | None:
    """Return both values without nouns, in the unit that the question asks for.

    Returns:
        None if the answer has a unit that no answer to this question has.
    """
    if isinstance(answer, Num) and isinstance(gold, Num):
        return answer, gold
    if len(question.text) < 12:  # "Simplify." says nothing
        noun, nothing = frozenset(map(_stem, (*_noun(gold), "people", "ways"))), asked(Question(""))
        bare = _without_noun(answer, nothing, noun), _without_noun(gold, nothing, noun)
        return bare if isinstance(bare[0], Quantity) is isinstance(bare[1], Quantity) else (answer, gold)
    return _measured(answer, gold, question, asked(question))


def _measured(a: Tree, g: Tree, q: Question, ask: Asked) -> tuple[Tree, Tree] | None:
    if isinstance(g, Relation) and g.operators == ("=",) and named(g)[0]:
        pair = _measured(a, g.sides[-1], q, ask)
        return pair and (pair[0], replace(g, sides=(*g.sides[:-1], pair[1])))
    parts: list[tuple[Tree, Tree]] = []
    if isinstance(a, Relation) and a.operators[-1] in ("=", "≈"):
        parts = [(x, g) for x in a.sides if isinstance(x, (Quantity, Phrase)) or x is a.sides[-1]]
    elif isinstance(a, Op) and isinstance(g, Op) and {a.head, g.head} <= _LISTS and len(a.args) == len(g.args):
        parts = list(zip(a.args, g.args, strict=True)) if len(set(map(_noun, a.args))) == 1 else []
    if parts:
        found = [_measured(x, y, q, ask) for x, y in parts]
        pairs = [pair for pair in found if pair is not None]
        if len(pairs) < len(found):
            return None
        items = tuple(x for x, _ in pairs)
        if isinstance(a, Op) and isinstance(g, Op):
            return Op(a.head, items), Op(g.head, tuple(y for _, y in pairs))
        return (replace(a, sides=(*a.sides[: -len(items)], *items)) if isinstance(a, Relation) else a), pairs[-1][1]
    noun = frozenset(_stem(word) for word in _noun(g) if word not in _CHANGES)
    a, g = _without_noun(a, ask, noun), _without_noun(g, ask, noun)
    if noun and isinstance(a, Quantity) and not isinstance(g, Quantity):
        return None  # 7 minutes for 7 people
    return _with_units(_as_duration(a, g, q), _as_duration(g, a, q), ask)


_LISTS = frozenset({"list", "and", "or", "tuple", "set"})


def _with_units(a: Tree, g: Tree, ask: Asked) -> tuple[Tree, Tree] | None:
    if names_in(g):
        return a, g
    if isinstance(a, Op) and (split := split_unit(a, Quantity(a, ask.unit or "unit")))[1]:  # 3 N
        a = Quantity(*split)
    unit, gold_unit = (tree.unit if isinstance(tree, Quantity) else "" for tree in (a, g))
    if isinstance(a, Quantity) and ask.per and unit in (f"%/{ask.per}", f"{ask.unit}/{ask.per}"):
        unit = unit.partition("/")[0]
        a = Quantity(a.value, unit)
    if ask.unit == "%":
        return _percentages(a, g) if {unit, gold_unit} <= {"", "%"} else None
    if unit == "%" or not (is_formula(_value(a)) and is_formula(_value(g))):
        return a, g
    if ask.is_counted and unit and gold_unit == ask.unit != unit:
        return None  # 1.75 h if it asks how many minutes
    if isinstance(g, Quantity) or not isinstance(a, Quantity):
        return (Quantity(a, ask.unit) if isinstance(g, Quantity) and not unit and ask.unit else a), g
    if {name for name, _ in dimensions_of(unit)[0]} == {"unit"}:
        kinds = frozenset({dimensions_of(ask.unit)[0]}) if ask.unit else ask.kind
        length = (("length", dict(dimensions_of(unit)[0])["unit"]),)
        return (a.value, g) if kinds is None or unit == ask.unit or length in kinds else None
    if not ask.unit:
        return (a, g) if _may_have(unit, ask) else None
    if (unit, ask.unit) in (("degree", "celsius"), ("degree", "fahrenheit")):
        return a.value, g
    if {unit, ask.unit} == {"degree", "radian"}:
        return a, Quantity(g, ask.unit)
    factor = conversion(unit, ask.unit)
    if factor is None:
        return None
    exact = fraction_of(a.value)
    if factor == ask.scale:
        return a.value, g
    return (Num(exact * factor / ask.scale) if exact is not None else Op("*", (Num(factor / ask.scale), a.value))), g


def _value(tree: Tree) -> Tree:
    return tree.value if isinstance(tree, Quantity) else tree


def _percentages(a: Tree, g: Tree) -> tuple[Tree, Tree]:
    """Return two percentages without their signs; a number up to one beside a percentage may be a part, as in 0.85."""
    x, y = _value(a), _value(g)
    bare = fraction_of(y if isinstance(a, Quantity) else x)
    mixed = isinstance(a, Quantity) is not isinstance(g, Quantity)
    is_part = mixed and bare is not None and abs(bare) <= 1 and fraction_of(x) != fraction_of(y)
    return (a, g) if is_part else (x, y)


def _as_duration(tree: Tree, other: Tree, q: Question) -> Tree:
    """Read 2:30 as hours and minutes beside a span of time, or as minutes and seconds if these are asked for."""
    is_time = isinstance(tree, Op) and tree.head == "time" and len(tree.args) == 2
    is_span = isinstance(other, Quantity) and dimensions_of(other.unit)[0] == (("time", 1),)
    if not is_time or not is_span or {"ratio", "when"} & set(q.words) or "what time" in " ".join(q.words):
        return tree
    seconds = "seconds" in q.words and "hours" not in q.words
    first, second = tree.args  # type: ignore[union-attr]
    return Quantity(Op("+", (Op("*", (Num(Fraction(60)), first)), second)), "s" if seconds else "min")


def _noun(tree: Tree) -> tuple[str, ...]:
    """Return the words after the number of a phrase such as "18 green apples"; () for other trees."""
    parts = (isinstance(tree, Phrase) and tree.parts) or ("",)
    words = tuple(part for part in parts[1:] if isinstance(part, str))
    return words if not isinstance(parts[0], str) and len(words) + 1 == len(parts) else ()


def _without_noun(tree: Tree, ask: Asked, noun: frozenset[str]) -> Tree:
    """Return the number of a phrase if its words are the things that the question or the reference answer counts."""
    if isinstance(tree, Phrase) and len(tree.parts) == 2 and isinstance(tree.parts[0], str):
        currency = read_currency(tree.parts[0].upper())  # USD 64
        return Quantity(tree.parts[1], currency) if currency and not isinstance(tree.parts[1], str) else tree
    words = list(_noun(tree))
    if not isinstance(tree, Phrase) or not words:
        return tree
    value = tree.parts[0]
    assert not isinstance(value, str)
    joint = next((i for i, word in enumerate(words) if word in _JOINTS), len(words))
    counted = noun | (frozenset() if "%" in ask.things else ask.things)
    things = _FILLING | (counted or (ask.others if "many" in ask.last and not ask.unit else frozenset()))
    things |= {_stem(noun) for word, noun in _IMPLIED.items() if word in ask.others}
    others = _FILLING | noun | (ask.things if "of" in ask.things else ask.others)
    stems = [word if word in _FILLING else _stem(word) for word in words]
    changes = any(word in _CHANGES and stem not in counted for word, stem in zip(words, stems, strict=True))
    totals = [bool(_TOTAL & set(each)) for each in (words, ask.last)]
    contradicts = ("each" in words and totals[1]) or (totals == [True, False] and "each" in ask.last)
    fits = things.issuperset(stems[:joint]) and others.issuperset(stems[joint:])
    return value if fits and not changes and not contradicts else tree


def _may_have(unit: str, ask: Asked) -> bool:
    """Return whether the answer to a question that names no unit for it may have a unit."""
    unit = {"mph": "mi/h"}.get(unit, unit)
    dimensions, parts = dimensions_of(unit)[0], unit.replace("/", "*").split("*")
    known = {dimensions_of(each)[0] for each in ask.known}
    names = {name for each in known for name, _ in each}
    if ask.kind is not None:
        top, _, bottom = unit.partition("/")
        fits = dimensions in ask.kind or (bottom and bottom == ask.per and dimensions_of(top)[0] in ask.kind)
    else:
        fits = dimensions in known or (len(dimensions) > 1 and {name for name, _ in dimensions} <= names)
    if not fits or (unit in _CURRENCIES and _CURRENCIES & ask.known and unit not in ask.known):
        return False
    for part in (part.partition("^")[0] for part in parts):
        rivals = {each for each in ask.known if dimensions_of(each)[0] == dimensions_of(part)[0]}
        if rivals and part not in rivals and unit not in ask.known:
            return False
    coherent = unit == "molar" or dimensions_of(unit)[1] == Fraction(1000) ** dict(dimensions).get("mass", 0)
    alone = unit != "cent" and not {name for name, _ in dimensions} & names
    return len(parts) > 1 or unit.partition("^")[0] in ask.known or coherent or alone


# --- the question ---


@lru_cache(maxsize=2048)
def asked(q: Question) -> Asked:
    """Return what a question says about the unit of its answer."""
    text = q.text
    for name, spelling in _NAMES.items():
        text = text.replace(name, spelling)
    try:
        found = tokens(text[-2500:])
    except (Malformed, TooLarge):
        found = ()
    words = [token.text.casefold() for token in found]
    starts = [0, *(i + 1 for i, word in enumerate(words) if word in (".", "?", "!"))]
    asking = [
        start for start, end in zip(starts, [*starts[1:], len(words)], strict=True) if _ASKING & set(words[start:end])
    ]
    end, unit, things = len(found), "", list[str]()
    for start in reversed(asking or [0]):
        units, things = set(_asked_units(found[start:end])), things or _things(" ".join(words[start:end]))
        if (
            units
            or (things and "many" in words[start:end])
            or (_KINDS.keys() - {"many", "number"}) & set(words[start:end])
        ):
            unit = units.pop() if len(units) == 1 else ""
            break
        end = start
    last = words[asking[-1] if asking else 0 :]
    if not unit and "how old" in " ".join(last) and not {"months", "weeks"} & set(words):
        unit = "year"
    scale = Fraction(1)
    for at in range(1, len(words) - 2):
        if words[at - 1] == "in" and words[at][:-1] in SCALES and (read := read_unit(found, at + 2, marked=True)):
            unit, scale = read[0], SCALES[words[at][:-1]]  # in thousands of dollars
    per = {_PER[word] for word in words if word in _PER}
    for at, word in list(enumerate(words[:-1]))[len(words) - len(last) :]:
        if word in ("per", "each", "every", "an", "a") and (read := read_unit(found, at + 1, marked=True)):
            per.add(read[0])
    first = next((i for i, word in enumerate(last) if word in _ASKING), 0)
    stop = next((i for i in range(first + 2, len(last)) if last[i] in _AFTER_NOUN), len(last))
    return Asked(
        is_counted=any(last[i] == "many" and last[i + 2 : i + 3] in (["is"], ["are"]) for i in range(len(last))),
        unit=unit,
        scale=scale,
        things=frozenset(map(_stem, things)),
        others=frozenset(map(_stem, words)) | frozenset(words),
        last=frozenset(last),
        kind=next((_KINDS[word] for word in last[first:stop] if word in _KINDS), None),
        known=_units_in(q.text, found),
        per=per.pop() if len(per) == 1 else "",
    )


def _asked_units(found: Sequence[Token]) -> Iterator[str]:
    """Yield the units after "how many", "in" and similar words, and those in parentheses."""
    texts = ["", "", *(token.text.casefold() for token in found), ""]
    for at, token in enumerate(found):
        before, last, text = texts[at : at + 3]
        if text in ("percent", "percentage", "%") and not (at and found[at - 1].kind == "number"):
            yield "%"
        many = (before, last) in (("how", "many"), ("number", "of")) or (before == "many" and last in _MORE)
        into = last in ("to", "into", "as") and {"convert", "express", "change"} & set(texts[: at + 2])
        bracket = last == "(" and before != "/" and token.text not in ("A", "B", "C", "D", "E")
        if not (many or into or bracket or last == "in") or text in _NO_UNIT:
            continue
        if (read := read_unit(found, at, marked=True)) is not None and read[0] != "%":
            after = texts[read[1] + 2]
            word = token.kind != "letter" or read[1] > at + 1 or after in _AFTER_UNIT or not after[:1].isalnum()
            if after == ")" if bracket else word:
                yield read[0]


def _things(text: str) -> list[str]:
    """Return the words after the last "how many" or "number of", and the one after "are" (how many are girls)."""
    found = _COUNTED.match(text)
    if found is None:
        return []
    things, verb, rest = [*_VERB.split(found["things"], maxsplit=1), "", ""][:3]
    predicate = rest.split()[:1] if things.strip() and verb in ("is", "are", "was", "were") else []
    return [*(("%", "of") if found["part"] else ()), *things.split(), *predicate]


def _units_in(text: str, found: Sequence[Token]) -> frozenset[str]:
    """Return the units in a question, and the parts of its products and quotients."""
    units = {"degree"} if "\\circ" in text or "°" in text else set()
    units |= {"$"} if _DOLLARS.search(text) else set()
    units |= {read_currency(token.text) or "" for token in found if token.kind == "sign"}
    for at, token in enumerate(found):
        is_word = token.kind == "word" and (len(token.text) > 3 or token.text in ("day", "cup"))
        after = at > 0 and (found[at - 1].kind == "number" or found[at - 1].text in ("/", ")", "in"))
        if (is_word or after) and token.text not in _NO_UNIT and (read := read_unit(found, at, marked=True)):
            units |= {read[0], *(part.partition("^")[0] for part in read[0].replace("/", "*").split("*"))}
    return frozenset(units - {"", "1"})


# --- rounding ---


def tolerance(gold: Tree, question: Question) -> Fraction:
    """Return by how much an answer may differ from a reference answer that is rounded; 0 if it is exact."""
    gold = named(gold)[1]
    number, half = _value(gold), half_digit(gold)
    written = next((part for part in walk(number) if isinstance(part, Num)), None)
    if not half or written is None or _IS_ROUNDING.search(question.text):
        return Fraction(0)
    digits = len(str(abs(int(written.exact * Fraction(10) ** (written.places or 0)))))
    if written.places is None:
        return Fraction(1, 4) if _significant(question.text) == digits and isinstance(number, Num) else Fraction(0)
    others = asked(question).others
    unit = gold.unit if isinstance(gold, Quantity) else asked(question).unit
    powered = unit and digits > 1 and not _NOTATION & others and (number != written or written.places < 0)
    dimensions = dict(dimensions_of(unit)[0]) if unit not in ("", "%") else {}
    everyday = len(dimensions) < 2 and set(dimensions) <= _EVERYDAY and -1 not in dimensions.values()
    if _PHYSICS & others:
        physical = digits > 2 or (digits == 2 and bool(_IRRATIONAL & others))
    else:
        physical = digits > 2 and not everyday
    return half * (1 - ROUNDING) if powered or physical or _ROUNDING.search(question.text) else Fraction(0)


def _significant(text: str) -> int:
    found = _SIGNIFICANT.search(text)
    return 0 if found is None else int(found[1]) if found[1].isdecimal() else int(spelled_value(found[1]) or 0)
