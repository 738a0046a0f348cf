"""What an answer in mathematics can be: a number with its unit, a tuple, a set, an interval, an equation, a word, …"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class Number:
    """exact: its value. unit: canonical, "" for none, "%" for percent. decimal: written with a decimal point."""

    exact: Fraction
    unit: str = ""
    decimal: bool = False


@dataclass(frozen=True)
class Formula:
    """An expression that is more than a number; latex is clean."""

    latex: str
    unit: str = ""


@dataclass(frozen=True)
class Word:
    """Text that is no mathematics: a name, yes, a letter of a multiple choice; in lower case but for single letters."""

    text: str


@dataclass(frozen=True)
class Group:
    """Several values.

    kind: "tuple" (ordered), "set" and "list" (unordered), "matrix" (of rows), "union", "ratio".

    """

    kind: str
    items: tuple[Value, ...]


@dataclass(frozen=True)
class Interval:
    """low, high: None where it is not bounded. variable: "" where none is named."""

    low: Value | None
    high: Value | None
    closed: tuple[bool, bool]
    variable: str = ""


@dataclass(frozen=True)
class Relation:
    """left = right, left ≠ right: an equation in which no side is a plain name."""

    left: Value
    operator: str
    right: Value


@dataclass(frozen=True)
class Named:
    """name = value. name may stand alone on its side: x, f(x), A_1, Area."""

    name: str
    value: Value


@dataclass(frozen=True)
class InBase:
    """digits in a base that is written with it."""

    digits: str
    base: int


@dataclass(frozen=True)
class Clock:
    """A time of day. seconds: since midnight, or since noon or midnight where ``half`` (am or pm) is not known.

    ratio: what it is when it is no time; None where it can be nothing else.
    """

    seconds: int
    half: bool
    ratio: Value | None


@dataclass(frozen=True)
class Congruence:
    """value modulo modulus. name: of what is congruent to it, "" where nothing is named."""

    name: str
    value: Value
    modulus: Value


Value = Number | Formula | Word | Group | Interval | Relation | Named | InBase | Clock | Congruence
