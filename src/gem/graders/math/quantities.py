"""Units of two quantities that are compared: conversion, and letters that are a unit or a variable."""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction

from gem.graders.math.dimensions import may_have_unit
from gem.graders.math.question import asked_scale, asked_unit
from gem.graders.math.read import read
from gem.graders.math.units import (
    capital_unit,
    dimensions_of,
    is_known_unit,
    is_listed_unit,
    parse_unit,
    unit_as_letter,
)
from gem.graders.math.values import (
    Chain,
    Clock,
    Formula,
    Group,
    Interval,
    Named,
    Number,
    Relation,
    Value,
    Word,
    latex_of,
)

_HOURS = re.compile(r"\d[\s}]*(?:\\text\s*\{)?\s*(?:h|hrs?|hours?)\b")
_LETTER = re.compile(r"(?<![\\a-zA-Z])[a-zA-Z](?![a-zA-Z])")


def as_durations(a: Value, g: Value, answer: str, gold: str, question: str) -> tuple[Value, Value]:
    """Read 2:30 as hours and minutes if the other value has hours, or as minutes and seconds if the question does."""
    seconds = re.search(r"\bminutes and seconds\b", question, re.IGNORECASE) and not re.search(r"\bhours?\b", question)

    def duration(value: Value, other: Value, text: str) -> Value:
        if not isinstance(value, Clock) or value.half or not isinstance(other, Number) or not other.unit:
            return value
        if seconds:
            return Number(Fraction(value.seconds, 60), "s")
        return (
            Number(Fraction(value.seconds), "s")
            if re.search(r"\d[\s}]*(?:\\text\s*\{)?\s*(?:h|hrs?|hours?)\b", text)
            else value
        )

    return duration(a, g, gold), duration(g, a, answer)


def capital_as_unit(value: Number | Formula, other: Number | Formula) -> Number | Formula:
    """Convert a trailing capital letter to a unit (3 N is three newtons) if the other value has a unit.

    Return any other value unchanged.
    """
    if not isinstance(value, Formula) or value.unit or not other.unit:
        return value
    match = re.fullmatch(r"(.*\S)(?: |(?<=\}))([A-Z])", value.latex)
    unit = None if match is None else capital_unit(match.group(2))
    if match is None or unit is None:
        return value
    number = read(match.group(1)).value
    if isinstance(number, Number):
        return Number(number.exact, unit, number.decimal)
    return Formula(match.group(1), unit)


def unit_as_variable(value: Number | Formula, other: Number | Formula) -> Number | Formula:
    """Convert a one-letter unit to a variable (3 t is 3 times t) if the other value is a formula with variables.

    Return any other value unchanged.
    """
    letter = unit_as_letter(value.unit)
    if letter is None or not isinstance(other, Formula) or other.unit or not re.search(_LETTER, other.latex):
        return value
    return Formula(rf"({latex_of(value)})\cdot {letter}")


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


def as_radians(value: Number | Formula) -> str:
    return rf"({latex_of(value)})\cdot\frac{{\pi}}{{180}}" if value.unit == "degree" else latex_of(value)


def in_asked_unit(a: Value, g: Value, question: str) -> Value:
    """Return ``g`` with the unit that the question asks for, if it has none and the other value has a listed unit."""
    unit, scale = asked_unit(question), asked_scale(question)
    a = a.value if isinstance(a, Named) else a
    if isinstance(a, Chain):
        a = next((value for value in a.values if has_unit(value)), a)
        a = a.value if isinstance(a, Named) else a
    if isinstance(g, Named):
        return replace(g, value=in_asked_unit(a, g.value, question))
    if isinstance(a, Formula) and unit is not None:
        a = capital_as_unit(a, Number(Fraction(1), unit))
    if not isinstance(a, (Number, Formula)) or not isinstance(g, (Number, Formula)) or g.unit or not a.unit:
        return g
    if scale != 1 and is_listed_unit(a.unit) and isinstance(g, Number):
        return replace(g, exact=g.exact * scale)  # 5 thousand dollars for 5, in thousands of dollars
    if unit is None or not is_listed_unit(a.unit) or (a.unit == "degree" and unit in ("celsius", "fahrenheit")):
        return g
    return g if unit == "degree" and a.unit != "radian" and "length" not in unit else replace(g, unit=unit)


def is_measured(value: Value) -> bool:
    value = value.value if isinstance(value, Named) else value
    return isinstance(value, (Number, Formula)) and value.unit not in ("", "%") and is_listed_unit(value.unit)


def has_unit(value: Value) -> bool:
    """Return whether a value, or a part of it, has a unit."""
    return any(_units_of(value))


def has_possible_units(value: Value, question: str) -> bool:
    """Return whether the answer to a question may have the units of a value, if the reference answer has none."""
    if asked_unit(question) is not None:  # a listed unit is converted, a noun such as rolls is none
        first = [re.split(r"[ */^]", unit)[0] for unit in _units_of(value)]
        return all(
            each in ("", "%") or is_listed_unit(each) or is_listed_unit(parse_unit(each) or each) for each in first
        )
    return all(may_have_unit(unit, question) for unit in _units_of(value))


def with_known_units(value: Value, context: str) -> Value:
    """Convert each quantity in a value whose unit is neither listed nor a word of the context to a Word."""
    if isinstance(value, (Number, Formula)):
        return value if is_known_unit(value.unit, context) else Word(f"{latex_of(value)} {value.unit}")
    if isinstance(value, Group):
        return replace(value, items=tuple(with_known_units(item, context) for item in value.items))
    if isinstance(value, Chain):
        return replace(value, values=tuple(with_known_units(each, context) for each in value.values))
    if isinstance(value, Named):
        return replace(value, value=with_known_units(value.value, context))
    if isinstance(value, Interval):
        low, high = (None if bound is None else with_known_units(bound, context) for bound in (value.low, value.high))
        return replace(value, low=low, high=high)
    if isinstance(value, Relation):
        return replace(value, left=with_known_units(value.left, context), right=with_known_units(value.right, context))
    return value


def _units_of(value: Value) -> list[str]:
    if isinstance(value, (Number, Formula)):
        return [capital_as_unit(value, Number(Fraction(1), "m")).unit]  # 6\cdot 10^4 J is a formula
    if isinstance(value, Named):
        return _units_of(value.value)
    if isinstance(value, Relation):
        return _units_of(value.right)
    parts = value.items if isinstance(value, Group) else value.values if isinstance(value, Chain) else ()
    return [unit for part in parts for unit in _units_of(part)]
