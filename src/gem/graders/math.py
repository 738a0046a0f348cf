r"""Answers in mathematics: is this one the gold one?

Numbers are compared exactly: 0.5 is 1/2, and 1.414 is not the square root of 2. Two decimals that differ by a rounding
error of floating point (1e-12, relative) are equal. A percentage is its hundredth: 50% is 0.5, and is not 50. Units
have to agree where both sides have one (5 km is 5000 m, and is not 5 miles); a side without one is taken to be in the
other's. A name stands for its value (x = 5 is 5), but x = 5 is not y = 5. Tuples are ordered, sets and lists are not,
(1, 2) is both a pair and an open interval. Formulas are compared by value, equations up to a factor.

>>> grade_math(r"\frac{2}{4}", "0.5").correct, grade_math("10 miles", "10 km").correct
(True, False)
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

from gem.errors import BadValue, GraderError, MissingDependency, require
from gem.graders.base import Grade
from gem.graders.math_text import clean, over_caps
from gem.graders.math_units import UNITS
from gem.graders.math_values import (
    Formula,
    Group,
    InBase,
    Interval,
    Named,
    Number,
    Relation,
    Value,
    Word,
    read,
)
from gem.graders.pool import GraderPool

ROUNDING = Fraction(1, 10**12)
SameFormula = Callable[[str, str], bool]
SameEquation = Callable[[tuple[str, str], tuple[str, str]], bool]


class _NeedsEngine(Exception):
    """The comparison takes computer algebra."""


def grade_math(answer: str, gold: str | Sequence[str]) -> Grade:
    """Judge an answer, here and now, with no limit on the time: see MathGrader for one that can be stopped.

    Args:
        answer: LaTeX or plain text, with or without a box or dollar signs.
        gold: the right answer, or several of which one suffices.

    An answer beyond the caps of gem.graders.math_text is wrong, with that reason, without being evaluated. Raises
    MissingDependency where formulas have to be compared and the extra [math] is not installed.
    """
    from gem.graders.math_engine import same_equation, same_formula

    return _grade(answer, gold, same_formula, same_equation)


@dataclass(frozen=True)
class MathGrader:
    """Judges answers in mathematics; what takes computer algebra is done by a pool of workers that can be killed.

    Args:
        pool: None uses one that all graders of the process share.
        timeout: seconds for one answer; None is the pool's.
    """

    pool: GraderPool | None = None
    timeout: float | None = None

    def grade(self, answer: str, gold: str | Sequence[str]) -> Grade:
        """grade_math, bounded. Raises GraderError when it took too long: then nobody knows whether it is right.

        Raises MissingDependency where formulas have to be compared and the extra [math] is not installed.
        """
        if (quick := quick_grade(answer, gold)) is not None:
            return quick
        pool = _engine_pool(self.pool)
        grade: Grade = pool.run("gem.graders.math:grade_math", answer, gold, timeout=self.timeout)
        return grade

    async def agrade(self, answer: str, gold: str | Sequence[str]) -> Grade:
        """grade(), for event loops."""
        if (quick := quick_grade(answer, gold)) is not None:
            return quick
        pool = _engine_pool(self.pool)
        grade: Grade = await pool.arun("gem.graders.math:grade_math", answer, gold, timeout=self.timeout)
        return grade


def quick_grade(answer: str, gold: str | Sequence[str]) -> Grade | None:
    """The grade where it takes no computer algebra, in microseconds; None where it does."""
    try:
        return _grade(answer, gold, _unknown, _unknown)
    except _NeedsEngine:
        return None


def _unknown(answer: object, gold: object) -> bool:
    raise _NeedsEngine


def _engine_pool(pool: GraderPool | None) -> GraderPool:
    """Raises MissingDependency where the engine is not installed."""
    if importlib.util.find_spec("latex2sympy2_extended") is None:
        require("latex2sympy2_extended", extra="math")
    return pool or shared_pool()


_pool: list[GraderPool] = []


def shared_pool() -> GraderPool:
    """The pool of all graders of this process, with the libraries for formulas loaded."""
    if not _pool:
        _pool.append(GraderPool(modules=["gem.graders.math_warm"]))
    return _pool[0]


def _grade(answer: str, gold: str | Sequence[str], formula: SameFormula, equation: SameEquation) -> Grade:
    golds = [gold] if isinstance(gold, str) else list(gold or ())
    if not golds or not all(isinstance(g, str) and g.strip() for g in golds):
        raise BadValue(f"need a gold answer, got {gold!r:.80}")
    if not isinstance(answer, str):
        raise BadValue(f"an answer is text, got {type(answer).__name__}")
    if (reason := over_caps(answer)) is not None:
        return _wrong(reason)
    if not answer.strip():
        return _wrong("no answer")
    same = _Comparison(formula, equation)
    cleaned, waiting = clean(answer), None
    for each in golds:
        try:
            if cleaned == clean(each) or same.texts(answer, each):
                return Grade(reward=1.0, correct=True, reason=f"equal to {each!r:.80}", parsed=cleaned)
        except _NeedsEngine as e:
            waiting = e  # another gold may settle it
    if waiting is not None:
        raise waiting
    return replace(_wrong(f"not equal to {golds[0]!r:.80}"), parsed=cleaned)


def _wrong(reason: str) -> Grade:
    return Grade(reward=0.0, correct=False, reason=reason)


@dataclass(frozen=True)
class _Comparison:
    """Rules over values; what they cannot decide goes to the engine."""

    formula: SameFormula
    equation: SameEquation
    _memo: dict[tuple[str, str], bool] = field(default_factory=dict)

    def texts(self, answer: str, gold: str) -> bool:
        ours, theirs = read(answer), read(gold)
        if self.values(ours, theirs):
            return True
        comma = _decimal_comma(answer, theirs) or _decimal_comma(gold, ours)
        return comma is not None and self.values(comma, theirs if _decimal_comma(answer, theirs) else ours)

    def values(self, a: Value, g: Value) -> bool:
        if isinstance(a, (Named, Relation)) and isinstance(g, (Named, Relation)):
            return self._equations(a, g)
        if isinstance(a, Named):
            return self.values(a.value, g)
        if isinstance(g, Named):
            return self.values(a, g.value)
        if isinstance(a, (Number, Formula)) and isinstance(g, (Number, Formula)):
            return self._quantities(a, g)
        if isinstance(a, Interval) and isinstance(g, Interval):
            return self._intervals(a, g)
        if isinstance(a, Group) and isinstance(g, Group):
            return self._groups(a, g)
        if isinstance(a, Group) and isinstance(g, Interval):
            return self._pair_as_interval(a, g)
        if isinstance(a, Interval) and isinstance(g, Group):
            return self._pair_as_interval(g, a)
        if isinstance(a, InBase) or isinstance(g, InBase):
            return _in_bases(a, g)
        if isinstance(a, Word) and isinstance(g, Word):
            return a.text == g.text
        return False

    def _quantities(self, a: Number | Formula, g: Number | Formula) -> bool:
        factor = _conversion(a.unit, g.unit)
        if factor is None:
            return False
        if isinstance(a, Number) and isinstance(g, Number):
            ours, theirs = a.exact * factor, g.exact
            return ours == theirs or (a.decimal and g.decimal and abs(ours - theirs) <= ROUNDING * abs(theirs))
        ours_latex, theirs_latex = _latex(a), _latex(g)
        if factor != 1:
            ours_latex = rf"\frac{{{factor.numerator}}}{{{factor.denominator}}}\cdot({ours_latex})"
        if {a.unit, g.unit} == {"", "degree"} and "\\pi" in (theirs_latex if a.unit else ours_latex):
            if a.unit:
                ours_latex = rf"({ours_latex})\cdot\frac{{\pi}}{{180}}"
            else:
                theirs_latex = rf"({theirs_latex})\cdot\frac{{\pi}}{{180}}"
        return self._formulas(ours_latex, theirs_latex)

    def _formulas(self, a: str, g: str) -> bool:
        try:
            return a == g or self.formula(a, g)
        except BadValue:
            return False

    def _equations(self, a: Named | Relation, g: Named | Relation) -> bool:
        if isinstance(a, Named) and isinstance(g, Named) and a.name == g.name:
            return self.values(a.value, g.value)
        sides, gold_sides = _sides(a), _sides(g)
        if sides is None or gold_sides is None:
            return False
        (left, operator, right), (gold_left, gold_operator, gold_right) = sides, gold_sides
        if operator != gold_operator:
            return False
        if operator != "=":
            return self._formulas(left, gold_left) and self._formulas(right, gold_right)
        try:
            return self.equation((left, right), (gold_left, gold_right))
        except BadValue:
            return False

    def _intervals(self, a: Interval, g: Interval) -> bool:
        if a.closed != g.closed or (a.variable and g.variable and a.variable != g.variable):
            return False
        return all(
            (x is None and y is None) or (x is not None and y is not None and self.values(x, y))
            for x, y in ((a.low, g.low), (a.high, g.high))
        )

    def _pair_as_interval(self, pair: Group, interval: Interval) -> bool:
        if pair.kind != "tuple" or len(pair.items) != 2:
            return False
        return self._intervals(Interval(*pair.items, (False, False)), interval)

    def _groups(self, a: Group, g: Group) -> bool:
        ordered = {"tuple", "matrix"}
        if (a.kind != g.kind and (a.kind in ordered or g.kind in ordered or "union" in (a.kind, g.kind))) or len(
            a.items
        ) != len(g.items):
            return False
        if a.kind in ordered:
            return all(self.values(x, y) for x, y in zip(a.items, g.items, strict=True))
        left = list(g.items)
        for item in a.items:
            match = next((other for other in left if self.values(item, other)), None)
            if match is None:
                return False
            left.remove(match)
        return True


def _conversion(unit: str, gold: str) -> Fraction | None:
    """What a number in one unit is multiplied by to be in the other; None where they do not measure the same."""
    if unit == gold:
        return Fraction(1)
    if "%" in (unit, gold):
        other = gold if unit == "%" else unit
        return None if other else Fraction(1, 100) if unit == "%" else Fraction(100)
    if not unit or not gold:
        return Fraction(1)
    (name, _, power), (gold_name, _, gold_power) = unit.partition("^"), gold.partition("^")
    if name not in UNITS or gold_name not in UNITS or power != gold_power:
        return None
    (dimension, factor), (gold_dimension, gold_factor) = UNITS[name], UNITS[gold_name]
    return (factor / gold_factor) ** int(power or 1) if dimension == gold_dimension else None


def _latex(value: Value) -> str:
    if isinstance(value, Number):
        return rf"\frac{{{value.exact.numerator}}}{{{value.exact.denominator}}}"
    return value.latex if isinstance(value, Formula) else ""


def _sides(value: Named | Relation) -> tuple[str, str, str] | None:
    if isinstance(value, Named):
        right = _latex(value.value)
        return (value.name, "=", right) if right else None
    left, right = _latex(value.left), _latex(value.right)
    return (left, value.operator, right) if left and right else None


def _in_bases(a: Value, g: Value) -> bool:
    if isinstance(a, InBase) and isinstance(g, InBase):
        return int(a.digits, a.base) == int(g.digits, g.base)
    written, other = (a, g) if isinstance(a, InBase) else (g, a)
    return isinstance(written, InBase) and isinstance(other, Number) and str(other.exact) == written.digits


def _decimal_comma(text: str, other: Value) -> Number | None:
    """3,14 as a number, where the other side is a single number that is not whole."""
    match = re.fullmatch(r"([+-]?\d+),(\d{1,2}|\d{4,})", clean(text).replace(" ", ""))
    if match is None or not isinstance(other, Number) or other.exact.denominator == 1:
        return None
    return Number(Fraction(f"{match.group(1)}.{match.group(2)}"), decimal=True)


__all__ = ["GraderError", "MathGrader", "MissingDependency", "grade_math", "quick_grade", "shared_pool"]
