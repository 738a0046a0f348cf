"""Conditions on formulas, under which an answer equals a reference answer. `gem.graders.math.engine` evaluates them."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from gem.graders.math.values import Value


@dataclass(frozen=True)
class SameFormula:
    """The condition that two LaTeX expressions are equal wherever both are defined.

    Args:
        integers: letters that stand for positive integers, as k, m and n always do in floors and factorials; all others
            stand for complex numbers.
        positive: letters that stand for positive numbers.
        up_to_constant: whether the expressions may differ by a constant.
    """

    answer: str
    gold: str
    integers: str = ""
    positive: str = ""
    up_to_constant: bool = False


@dataclass(frozen=True)
class SameEquation:
    """The condition that two equations, each given as (left, right), are equal up to a constant factor.

    Args:
        positive: whether the factor must be positive, because the two are inequalities.
    """

    answer: tuple[str, str]
    gold: tuple[str, str]
    positive: bool = False


@dataclass(frozen=True)
class SameFamily:
    """The condition that two formulas with the arbitrary constants q_1, q_2 and so on have the same members."""

    answer: str
    gold: str


@dataclass(frozen=True)
class SameProgressions:
    """The condition that two unions of progressions base + step q_1, over all integers q_1, are equal."""

    answer: tuple[str, ...]
    gold: tuple[str, ...]


@dataclass(frozen=True)
class Rounded:
    """The condition that the absolute value of a difference is at most a tolerance."""

    difference: str
    tolerance: Fraction


@dataclass(frozen=True)
class SameSet:
    """The condition that two sets of real numbers are equal. Their bounds are numbers or formulas."""

    answer: Value
    gold: Value


@dataclass(frozen=True)
class SameCases:
    """The condition that two functions are equal at the bounds of cases and between them. One is piecewise, or both."""

    answer: Value
    gold: Value


@dataclass(frozen=True)
class AllOf:
    conditions: tuple[Condition, ...]


@dataclass(frozen=True)
class AnyOf:
    conditions: tuple[Condition, ...]


@dataclass(frozen=True)
class Matching:
    """The condition that each item can be paired with a different, equal reference item.

    Args:
        rows: one row per item, with the verdict of comparing the item with each reference item.
    """

    rows: tuple[tuple[bool | Condition, ...], ...]


Condition = (
    SameFormula
    | SameEquation
    | SameFamily
    | SameProgressions
    | SameSet
    | SameCases
    | Rounded
    | AllOf
    | AnyOf
    | Matching
)
