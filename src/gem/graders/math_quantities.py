"""Units of two quantities that are compared: conversion, and letters that are a unit or a variable."""

from __future__ import annotations

import re
from fractions import Fraction

from gem.graders.math_read import read
from gem.graders.math_units import capital_unit, dimensions_of, unit_as_letter
from gem.graders.math_values import Clock, Formula, Number, Value, latex_of

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
