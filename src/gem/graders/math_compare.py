"""Whether two answers in mathematics are equal: rules over values. What they cannot decide goes to the engine."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from gem.errors import BadValue
from gem.graders.math_read import read
from gem.graders.math_text import clean
from gem.graders.math_units import capital_unit, measured, unit_as_letter
from gem.graders.math_values import (
    Clock,
    Congruence,
    Formula,
    Group,
    InBase,
    Interval,
    Named,
    Number,
    Relation,
    Value,
    Word,
)
from gem.graders.math_words import choice_of, word_of

ROUNDING = Fraction(1, 10**12)
HALF_DAY = 12 * 3600
SameFormula = Callable[[str, str], bool]
SameEquation = Callable[[tuple[str, str], tuple[str, str]], bool]
_ORDERED = ("tuple", "matrix", "ratio")
_LETTER = re.compile(r"(?<![\\a-zA-Z])[a-zA-Z](?![a-zA-Z])")
_POINT = re.compile(r"[A-Z]'*(\(.*,.*\))")


@dataclass(frozen=True)
class Comparison:
    """Compares answers with gold ones.

    formula, equation: whether two formulas, or two equations by their sides, are equal; BadValue for what is none.
    """

    formula: SameFormula
    equation: SameEquation

    def texts(self, answer: str, gold: str) -> bool:
        """Whether an answer is equal to the gold one, both as they are written."""
        ours, theirs = read(answer), read(gold)
        if (wanted := choice_of(clean(gold))) is not None:
            if (chosen := choice_of(clean(answer))) is not None:
                return chosen[0] == wanted[0]
            if wanted[1]:
                return self.values(ours, read(wanted[1]))
        if self.values(ours, theirs):
            return True
        comma = _decimal_comma(answer, theirs) or _decimal_comma(gold, ours)
        return comma is not None and self.values(comma, theirs if _decimal_comma(answer, theirs) else ours)

    def values(self, a: Value, g: Value) -> bool:
        """Whether two values are equal, whatever they are."""
        if isinstance(a, (Named, Relation)) and isinstance(g, (Named, Relation)):
            return self._equations(a, g)
        if _named_otherwise(a, g) or _named_otherwise(g, a):
            return False
        if isinstance(a, (Named, Congruence)) and not isinstance(g, (Named, Congruence)):
            return self.values(a.value, g)
        if isinstance(g, (Named, Congruence)) and not isinstance(a, (Named, Congruence)):
            return self.values(a, g.value)
        if isinstance(a, Congruence) and isinstance(g, Congruence):
            return self._congruences(a, g)
        if isinstance(a, Clock) or isinstance(g, Clock):
            return self._clocks(a, g)
        if isinstance(a, InBase) or isinstance(g, InBase):
            return _in_bases(a, g)
        if isinstance(a, Word) or isinstance(g, Word):
            return _words(a, g)
        if isinstance(a, (Number, Formula)) and isinstance(g, (Number, Formula)):
            return self._quantities(a, g)
        return self._collections(a, g)

    def _collections(self, a: Value, g: Value) -> bool:
        if _holds_one(a) and not _holds_one(g) and isinstance(a, Group):
            return self.values(a.items[0], g)
        if _holds_one(g) and not _holds_one(a) and isinstance(g, Group):
            return self.values(a, g.items[0])
        a, g = _point(a, g), _point(g, a)
        if isinstance(a, Interval) and isinstance(g, Interval):
            return self._intervals(a, g)
        if isinstance(a, Group) and isinstance(g, Interval):
            return self._pair_as_interval(a, g)
        if isinstance(a, Interval) and isinstance(g, Group):
            return self._pair_as_interval(g, a)
        if isinstance(a, Group) and isinstance(g, Group):
            return self._groups(_in_order(a, g), _in_order(g, a))
        return False

    def _quantities(self, a: Number | Formula, g: Number | Formula) -> bool:
        a, g = _lettered(_capital(a, g), g), _lettered(_capital(g, a), a)
        factor = _conversion(a.unit, g.unit)
        if factor is None:
            return self._angles(a, g)
        if isinstance(a, Number) and isinstance(g, Number):
            ours, theirs = a.exact * factor, g.exact
            return ours == theirs or (a.decimal and g.decimal and abs(ours - theirs) <= ROUNDING * abs(theirs))
        ours_latex, theirs_latex = _latex(a), _latex(g)
        if factor != 1:
            ours_latex = rf"\frac{{{factor.numerator}}}{{{factor.denominator}}}\cdot({ours_latex})"
        if {a.unit, g.unit} == {"", "degree"} and "\\pi" in (theirs_latex if a.unit else ours_latex):
            return self._angles(a, g)
        return self._formulas(ours_latex, theirs_latex)

    def _angles(self, a: Number | Formula, g: Number | Formula) -> bool:
        """Degrees against radians, named or not."""
        units = {a.unit, g.unit}
        if "degree" not in units or not units <= {"degree", "radian", ""}:
            return False
        ours, theirs = _in_radians(a), _in_radians(g)
        return self._formulas(ours, theirs)

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
        if a.kind != g.kind and (a.kind in _ORDERED or g.kind in _ORDERED or "union" in (a.kind, g.kind)):
            return False
        if "set" in (a.kind, g.kind) and (_names(a) > 1 or _names(g) > 1):
            return False
        if a.kind == g.kind == "set":
            return self._has_all(a.items, g.items) and self._has_all(g.items, a.items)
        if len(a.items) != len(g.items):
            return False
        if a.kind == "ratio":
            first, gold_first = a.items[0], g.items[0]
            pairs = zip(a.items, g.items, strict=True)
            return all(self.values(_product(x, gold_first), _product(y, first)) for x, y in pairs)
        if a.kind in _ORDERED:
            return all(self.values(x, y) for x, y in zip(a.items, g.items, strict=True))
        return self._same_items(a.items, g.items)

    def _has_all(self, items: Sequence[Value], others: Sequence[Value]) -> bool:
        return all(any(self.values(item, other) for item in items) for other in others)

    def _same_items(self, items: Sequence[Value], golds: Sequence[Value]) -> bool:
        """Each as often, in whatever order."""
        left = list(golds)
        for item in items:
            match = next((other for other in left if self.values(item, other)), None)
            if match is None:
                return False
            left.remove(match)
        return True

    def _congruences(self, a: Congruence, g: Congruence) -> bool:
        if a.name and g.name and a.name != g.name and not self._formulas(a.name, g.name):
            return False
        if not self.values(a.modulus, g.modulus):
            return False
        if isinstance(a.value, Number) and isinstance(g.value, Number) and isinstance(g.modulus, Number):
            modulus = g.modulus.exact
            return modulus != 0 and ((a.value.exact - g.value.exact) / modulus).denominator == 1
        return self.values(a.value, g.value)

    def _clocks(self, a: Value, g: Value) -> bool:
        if not isinstance(a, Clock) or not isinstance(g, Clock):
            clock, other = (a, g) if isinstance(a, Clock) else (g, a)
            ratio = clock.ratio if isinstance(clock, Clock) else None
            return ratio is not None and self.values(ratio, other)
        apart = a.seconds - g.seconds
        return apart == 0 or (apart % HALF_DAY == 0 and not (a.half and g.half))


def _named_otherwise(value: Value, group: Value) -> bool:
    """Whether a group's values belong to other names than the one that the value has."""
    if not isinstance(value, Named) or not isinstance(group, Group):
        return False
    return any(isinstance(item, Named) and item.name != value.name for item in group.items)


def _names(group: Group) -> int:
    """How many different names the values of a group have."""
    return len({item.name for item in group.items if isinstance(item, Named)})


def _holds_one(value: Value) -> bool:
    """Whether it is a set of one value that is no set: what it holds is as good as the set."""
    if not isinstance(value, Group) or value.kind != "set" or len(value.items) != 1:
        return False
    return not isinstance(value.items[0], Group) or value.items[0].kind == "tuple"


def _point(value: Value, other: Value) -> Value:
    """P(1, 2) as the tuple that it is where the other side is one."""
    if not isinstance(value, Formula) or not isinstance(other, Group) or other.kind != "tuple":
        return value
    named = _POINT.fullmatch(value.latex)
    return value if named is None else read(named.group(1))


def _in_order(group: Group, other: Group) -> Group:
    """X = 1, y = 2 as the tuple (1, 2), where the other side is one: by the names' order in the alphabet."""
    named = [item for item in group.items if isinstance(item, Named)]
    if other.kind != "tuple" or group.kind != "list" or len({item.name for item in named}) < max(len(group.items), 2):
        return group
    return Group("tuple", tuple(item.value for item in sorted(named, key=lambda item: item.name)))


def _capital(value: Number | Formula, other: Number | Formula) -> Number | Formula:
    """3 N as three newtons, where the other side has such a unit."""
    if not isinstance(value, Formula) or value.unit or not other.unit:
        return value
    match = re.fullmatch(r"(.*\S) ([A-Z])", value.latex)
    unit = None if match is None else capital_unit(match.group(2))
    if match is None or unit is None:
        return value
    number = read(match.group(1))
    if isinstance(number, Number):
        return Number(number.exact, unit, number.decimal)
    return Formula(match.group(1), unit)


def _lettered(value: Number | Formula, other: Number | Formula) -> Number | Formula:
    """3 t as three times t, where the other side is a formula of letters."""
    letter = unit_as_letter(value.unit)
    if letter is None or not isinstance(other, Formula) or other.unit or not re.search(_LETTER, other.latex):
        return value
    return Formula(rf"({_latex(value)})\cdot {letter}")


def _conversion(unit: str, gold: str) -> Fraction | None:
    """What a number in one unit is multiplied by to be in the other; None where they do not measure the same."""
    if unit == gold:
        return Fraction(1)
    if "%" in (unit, gold):
        other = gold if unit == "%" else unit
        return None if other else Fraction(1, 100) if unit == "%" else Fraction(100)
    if not unit or not gold:
        return Fraction(1)
    (dimensions, factor), (gold_dimensions, gold_factor) = measured(unit), measured(gold)
    return factor / gold_factor if dimensions == gold_dimensions else None


def _in_radians(value: Number | Formula) -> str:
    return rf"({_latex(value)})\cdot\frac{{\pi}}{{180}}" if value.unit == "degree" else _latex(value)


def _latex(value: Value) -> str:
    if isinstance(value, Number):
        return rf"\frac{{{value.exact.numerator}}}{{{value.exact.denominator}}}"
    return value.latex if isinstance(value, Formula) else ""


def _product(x: Value, y: Value) -> Value:
    if isinstance(x, Number) and isinstance(y, Number):
        return Number(x.exact * y.exact)
    return Formula(rf"({_latex(x)})\cdot({_latex(y)})")


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
    if not isinstance(written, InBase) or not isinstance(other, Number) or other.unit:
        return False
    return str(other.exact) == written.digits or other.exact == int(written.digits, written.base)


def _words(a: Value, g: Value) -> bool:
    """Words, of which one may look like a product of letters: DNE, odd."""
    texts = [
        word_of(value.latex) if isinstance(value, Formula) else value.text
        for value in (a, g)
        if isinstance(value, (Word, Formula))
    ]
    return (
        len(texts) == 2 and texts[0].casefold() == texts[1].casefold() and (len(texts[0]) > 1 or texts[0] == texts[1])
    )


def _decimal_comma(text: str, other: Value) -> Number | None:
    """3,14 as a number, where the other side is a single number that is not whole."""
    if re.search(r",\s", text):
        return None
    match = re.fullmatch(r"([+-]?\d+),(\d{1,2}|\d{4,})", clean(text).replace(" ", ""))
    if match is None or not isinstance(other, Number) or other.exact.denominator == 1:
        return None
    return Number(Fraction(f"{match.group(1)}.{match.group(2)}"), decimal=True)
