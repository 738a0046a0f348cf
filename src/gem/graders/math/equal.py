"""Compare two parsed values by rules, in one file because the rules for each kind of value call those for the others.

They decide every comparison that does not require computer algebra. Any other comparison returns a Condition on
formulas, which `gem.graders.math.engine` evaluates.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from fractions import Fraction

from gem.graders.math.conditions import (
    AllOf,
    AnyOf,
    Condition,
    Matching,
    Rounded,
    SameCases,
    SameEquation,
    SameFormula,
    SameSet,
)
from gem.graders.math.quantities import as_radians, capital_as_unit, conversion, unit_as_variable
from gem.graders.math.read import read
from gem.graders.math.sets import formulas_in, is_composed, is_piecewise, is_real_set, same_real_set
from gem.graders.math.values import (
    Chain,
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
    latex_of,
    normalize_word,
)

ROUNDING = Fraction(1, 10**12)
HALF_DAY = 12 * 3600  # seconds
Verdict = bool | Condition
_ORDERED = ("tuple", "matrix", "ratio", "difference")
_ALONE = ("union", "cases")  # kinds that equal their own kind only
_POINT = re.compile(r"[A-Z](?:_\{?\w\}?)?'*(\(.*,.*\))")
_ANGLE = re.compile(r"m?\\angle\s*\{?([A-Z]+)\}?")  # its letters are points, not factors
_CALL = re.compile(r"([a-zA-Z](?:\^\{-1\})?)\(([a-zA-Z])\)")


def same_values(a: Value, g: Value) -> Verdict:
    """Compare two values of any kind."""
    if isinstance(g, Chain):
        return any_of(same_values(a, value) for value in g.values)
    if isinstance(a, Chain):
        return all_of((*(same_step(*step) for step in a.steps), any_of(same_values(value, g) for value in a.values)))
    if is_real_set(a) and is_real_set(g) and any(map(is_composed, (a, g))):
        return SameSet(a, g) if formulas_in(a) or formulas_in(g) else same_real_set(a, g)
    if isinstance(a, (Named, Relation)) and isinstance(g, (Named, Relation)):
        return _equations(a, g)
    if isinstance(a, Relation) or isinstance(g, Relation):
        a, g = _as_relation(a), _as_relation(g)
        if isinstance(a, Relation) and isinstance(g, Relation):
            return _equations(a, g)
    if _has_relations(a) and isinstance(g, Named):
        g = _named_apart(g)
    if _has_relations(g) and isinstance(a, Named):
        a = _named_apart(a)
    if _has_other_name(a, g) or _has_other_name(g, a):
        return False
    if isinstance(a, Congruence) and re.search(r"(?<![\\a-z])[a-z]{3}", a.name):
        return False  # perhaps n = 1 (mod 3)
    if isinstance(a, (Named, Congruence)) and not isinstance(g, (Named, Congruence)):
        return not _names_itself(a) and same_values(a.value, g)
    if isinstance(g, (Named, Congruence)) and not isinstance(a, (Named, Congruence)):
        return same_values(a, g.value)
    if isinstance(a, Congruence) and isinstance(g, Congruence):
        return _congruences(a, g)
    if isinstance(a, Clock) or isinstance(g, Clock):
        return _clocks(a, g)
    if isinstance(a, InBase) or isinstance(g, InBase):
        return _in_bases(a, g)
    if isinstance(a, Word) or isinstance(g, Word):
        return _words(a, g)
    if isinstance(a, (Number, Formula)) and isinstance(g, (Number, Formula)):
        return _quantities(a, g)
    return _collections(a, g)


def same_step(left: Value, right: Value, tolerance: Fraction) -> Verdict:
    """Compare two successive members of a chain of equalities."""
    if not tolerance or not isinstance(left, (Number, Formula)) or not isinstance(right, (Number, Formula)):
        return same_values(left, right)
    factor = conversion(left.unit, right.unit)
    if factor is None:
        return False
    if isinstance(left, Number) and isinstance(right, Number):
        return abs(left.exact * factor - right.exact) <= tolerance
    return Rounded(rf"({latex_of(left)})\cdot{latex_of(Number(factor))}-({latex_of(right)})", tolerance)


def _collections(a: Value, g: Value) -> Verdict:
    if any(map(is_piecewise, (a, g))) and all(is_piecewise(each) or isinstance(each, Formula) for each in (a, g)):
        return SameCases(a, g)
    if _is_singleton(a) and not _is_singleton(g) and isinstance(a, Group):
        return same_values(a.items[0], g)
    if _is_singleton(g) and not _is_singleton(a) and isinstance(g, Group):
        return same_values(a, g.items[0])
    a, g = _point_as_tuple(a, g), _point_as_tuple(g, a)
    if isinstance(a, Interval) and isinstance(g, Interval):
        return _intervals(a, g)
    if isinstance(a, Group) and isinstance(g, Interval):
        return _pair_as_interval(a, g)
    if isinstance(a, Interval) and isinstance(g, Group):
        return _pair_as_interval(g, a)
    if isinstance(a, Group) and isinstance(g, Group):
        return _groups(_assignments_as_tuple(a, g), _assignments_as_tuple(g, a))
    return False


def _quantities(a: Number | Formula, g: Number | Formula) -> Verdict:
    a, g = unit_as_variable(capital_as_unit(a, g), g), unit_as_variable(capital_as_unit(g, a), a)
    factor = conversion(a.unit, g.unit)
    if factor is None:
        return _angles(a, g)
    if isinstance(a, Number) and isinstance(g, Number):
        ours, theirs = a.exact * factor, g.exact
        return ours == theirs or (a.decimal and g.decimal and abs(ours - theirs) <= ROUNDING * abs(theirs))
    ours_latex, theirs_latex = latex_of(a), latex_of(g)
    if factor != 1:
        ours_latex = rf"\frac{{{factor.numerator}}}{{{factor.denominator}}}\cdot({ours_latex})"
    if {a.unit, g.unit} == {"", "degree"} and "\\pi" in (theirs_latex if a.unit else ours_latex):
        return _angles(a, g)
    return _formulas(ours_latex, theirs_latex)


def _angles(a: Number | Formula, g: Number | Formula) -> Verdict:
    """Compare two angles, of which at least one is in degrees. An angle without a unit is in radians.

    Return False for other units.
    """
    units = {a.unit, g.unit}
    if "degree" not in units or not units <= {"degree", "radian", ""}:
        return False
    return _formulas(as_radians(a), as_radians(g))


def _formulas(a: str, g: str) -> Verdict:
    angles = _ANGLE.fullmatch(a), _ANGLE.fullmatch(g)
    if angles[0] is not None and angles[1] is not None:
        return angles[0].group(1) in (angles[1].group(1), angles[1].group(1)[::-1])
    return a == g or SameFormula(a, g)


def _equations(a: Named | Relation, g: Named | Relation) -> Verdict:
    if isinstance(a, Named) and isinstance(g, Named) and _renamed(a, g.name).name == g.name:
        a = _renamed(a, g.name)
        return same_values(a.value, g.value)
    sides, gold_sides = _sides(a), _sides(g)
    if sides is None or gold_sides is None:
        return False
    (left, operator, right), (gold_left, gold_operator, gold_right) = sides, gold_sides
    if operator != gold_operator:
        return False
    if operator == r"\ne":
        return all_of((_formulas(left, gold_left), _formulas(right, gold_right)))
    if operator != "=":
        return SameEquation((left, right), (gold_left, gold_right), positive=True)
    return SameEquation((left, right), (gold_left, gold_right))


def _as_relation(value: Value) -> Value:
    """Convert a range with one bound, such as y > 2x + 1, to a Relation; return any other value unchanged."""
    if not isinstance(value, Interval) or not value.variable or (value.low is None) is (value.high is None):
        return value
    name, closed = Formula(value.variable), value.closed[value.low is None]
    operator = r"\le" if closed else "<"
    if value.low is not None:
        return Relation(value.low, operator, name)
    return value if value.high is None else Relation(name, operator, value.high)


def _has_relations(value: Value) -> bool:
    return isinstance(value, Group) and any(isinstance(item, Relation) for item in value.items)


def _named_apart(value: Named) -> Value:
    """Convert y = 1, 2 to the list y = 1, y = 2; return any other assignment unchanged."""
    if not isinstance(value.value, Group) or value.value.kind != "list":
        return value
    return Group("list", tuple(Named(value.name, item) for item in value.value.items))


def _names_itself(a: Named | Congruence) -> bool:
    """Return whether a name is part of its value, as in x = x + 1, which does not say that the value is x + 1."""
    if not isinstance(a, Named) or not isinstance(a.value, Formula):
        return False
    latex = re.sub(r"(?<=[\d}]) [A-Z]$", "", a.value.latex)  # V = 12 V
    return re.search(rf"(?<![\\a-zA-Z]){re.escape(a.name)}(?![a-zA-Z_'(])", latex) is not None


def _renamed(a: Named, name: str) -> Named:
    """Rename the variable of a function: f(t) = 2t is f(x) = 2x. Return any other assignment unchanged."""
    ours, theirs = _CALL.fullmatch(a.name), _CALL.fullmatch(name)
    if (theirs is not None and a.name in (theirs.group(1), "y")) or (ours is not None and name in (ours.group(1), "y")):
        return replace(a, name=name)  # f = 0 and y = 0 are f(x) = 0
    if ours is None or theirs is None or ours.group(1) != theirs.group(1) or not isinstance(a.value, (Formula, Number)):
        return a
    letters = re.findall(r"\\[a-zA-Z]+|[a-zA-Z]", latex_of(a.value))
    if ours.group(2) == theirs.group(2) or theirs.group(2) in letters or a.value.unit:
        return a
    if isinstance(a.value, Number):
        return Named(name, a.value)
    renamed = {ours.group(2): theirs.group(2)}
    latex = re.sub(r"\\[a-zA-Z]+|[a-zA-Z]", lambda m: renamed.get(m.group(), m.group()), a.value.latex)
    return Named(name, Formula(latex))


def _intervals(a: Interval, g: Interval) -> Verdict:
    if a.closed != g.closed or (a.variable and g.variable and a.variable != g.variable):
        return False
    return all_of(
        same_values(x, y) if x is not None and y is not None else x is y for x, y in ((a.low, g.low), (a.high, g.high))
    )


def _pair_as_interval(pair: Group, interval: Interval) -> Verdict:
    if pair.kind != "tuple" or len(pair.items) != 2:
        return False
    return _intervals(Interval(*pair.items, (False, False)), interval)


def _groups(a: Group, g: Group) -> Verdict:
    if {a.kind, g.kind} == {"list", "tuple"}:  # the brackets may be missing, as in 1, 2 for (1, 2)
        a, g = replace(a, kind="tuple"), replace(g, kind="tuple")
    if a.kind != g.kind and (a.kind in _ORDERED or g.kind in _ORDERED or {a.kind, g.kind} & set(_ALONE)):
        return False
    if "set" in (a.kind, g.kind) and (_count_names(a) > 1 or _count_names(g) > 1):
        return False
    if a.kind == g.kind == "set":
        return all_of(_has_all(*sides) for sides in ((a.items, g.items), (g.items, a.items)))
    if len(a.items) != len(g.items):
        return False
    if a.kind == "ratio":
        first, gold_first = a.items[0], g.items[0]
        pairs = zip(a.items, g.items, strict=True)
        return all_of(same_values(_product(x, gold_first), _product(y, first)) for x, y in pairs)
    if a.kind in _ORDERED:
        return all_of(same_values(x, y) for x, y in zip(a.items, g.items, strict=True))
    return _same_items(a.items, g.items)


def _has_all(items: Sequence[Value], others: Sequence[Value]) -> Verdict:
    """Return whether each value in ``others`` equals a value in ``items``."""
    return all_of(any_of(same_values(item, other) for item in items) for other in others)


def _same_items(items: Sequence[Value], golds: Sequence[Value]) -> Verdict:
    """Compare two sequences of equal length, ignoring the order. Each reference item is matched only once."""
    left = list(golds)
    for position, item in enumerate(items):
        index, verdict = next(
            ((i, verdict) for i, other in enumerate(left) if (verdict := same_values(item, other)) is not False),
            (0, False),
        )
        if verdict is False:
            return False
        if verdict is not True:
            return Matching(tuple(tuple(same_values(later, other) for other in left) for later in items[position:]))
        del left[index]
    return True


def _congruences(a: Congruence, g: Congruence) -> Verdict:
    names = not (a.name and g.name) or _formulas(a.name, g.name)
    return all_of((names, same_values(a.modulus, g.modulus), _residues(a.value, g.value, g.modulus)))


def _residues(a: Value, g: Value, modulus: Value) -> Verdict:
    if isinstance(a, Number) and isinstance(g, Number) and isinstance(modulus, Number):
        return modulus.exact != 0 and ((a.exact - g.exact) / modulus.exact).denominator == 1
    return same_values(a, g)


def _clocks(a: Value, g: Value) -> Verdict:
    if not isinstance(a, Clock) or not isinstance(g, Clock):
        clock, other = (a, g) if isinstance(a, Clock) else (g, a)
        ratio = clock.ratio if isinstance(clock, Clock) else None
        return ratio is not None and same_values(ratio, other)
    apart = a.seconds - g.seconds
    return apart == 0 or (apart % HALF_DAY == 0 and not (a.half and g.half))


def _has_other_name(value: Value, group: Value) -> bool:
    """Return whether ``value`` is an assignment and ``group`` contains an assignment to a different name."""
    if not isinstance(value, Named) or not isinstance(group, Group):
        return False
    return any(isinstance(item, Named) and item.name != value.name for item in group.items)


def _count_names(group: Group) -> int:
    """Count the different names to which a group assigns values; x_1 and x_2 are two values of x."""
    return len({re.sub(r"_\{?\d\}?$", "", item.name) for item in group.items if isinstance(item, Named)})


def _is_singleton(value: Value) -> bool:
    """Return whether a value is a set whose only item is a tuple or not a Group. Such a set also equals its item."""
    if not isinstance(value, Group) or value.kind != "set" or len(value.items) != 1:
        return False
    return not isinstance(value.items[0], Group) or value.items[0].kind == "tuple"


def _point_as_tuple(value: Value, other: Value) -> Value:
    """Convert a named point such as P(1, 2) to a tuple if the other value is a tuple; else return it unchanged."""
    if not isinstance(value, Formula) or not isinstance(other, Group) or other.kind != "tuple":
        return value
    named = _POINT.fullmatch(value.latex)
    return value if named is None else read(named.group(1)).value


def _assignments_as_tuple(group: Group, other: Group) -> Group:
    """Convert "x = 1, y = 2" to the tuple (1, 2), sorted by name, if the other group is a tuple.

    Return any other group unchanged.
    """
    named = [item for item in group.items if isinstance(item, Named)]
    if other.kind != "tuple" or group.kind != "list" or len({item.name for item in named}) < max(len(group.items), 2):
        return group
    return Group("tuple", tuple(item.value for item in sorted(named, key=lambda item: item.name.lstrip("\\"))))


def _product(x: Value, y: Value) -> Value:
    if isinstance(x, Number) and isinstance(y, Number):
        return Number(x.exact * y.exact)
    return Formula(rf"({latex_of(x)})\cdot({latex_of(y)})")


def _sides(value: Named | Relation) -> tuple[str, str, str] | None:
    if isinstance(value, Named):
        right = latex_of(value.value)
        return (value.name, "=", right) if right else None
    left, right = latex_of(value.left), latex_of(value.right)
    return (left, value.operator, right) if left and right else None


def _in_bases(a: Value, g: Value) -> bool:
    if isinstance(a, InBase) and isinstance(g, InBase):
        return int(a.digits, a.base) == int(g.digits, g.base)
    written, other = (a, g) if isinstance(a, InBase) else (g, a)
    if not isinstance(written, InBase) or not isinstance(other, Number) or other.unit:
        return False
    return str(other.exact) == written.digits or other.exact == int(written.digits, written.base)


def _words(a: Value, g: Value) -> bool:
    """Compare two words. A word such as DNE may have been parsed as a Formula, a product of variables."""
    texts = [
        normalize_word(value.latex) if isinstance(value, Formula) else value.text
        for value in (a, g)
        if isinstance(value, (Word, Formula))
    ]
    return (
        len(texts) == 2 and texts[0].casefold() == texts[1].casefold() and (len(texts[0]) > 1 or texts[0] == texts[1])
    )


def all_of(verdicts: Iterable[Verdict]) -> Verdict:
    """Return False if any verdict is False, True if all are True, else the conjunction of the undecided verdicts."""
    undecided = []
    for verdict in verdicts:
        if verdict is False:
            return False
        if not isinstance(verdict, bool):
            undecided.append(verdict)
    if len(undecided) == 1:
        return undecided[0]
    return AllOf(tuple(undecided)) if undecided else True


def any_of(verdicts: Iterable[Verdict]) -> Verdict:
    """Return True if any verdict is True, False if all are False, else the disjunction of the undecided verdicts."""
    undecided = []
    for verdict in verdicts:
        if verdict is True:
            return True
        if not isinstance(verdict, bool):
            undecided.append(verdict)
    if len(undecided) == 1:
        return undecided[0]
    return AnyOf(tuple(undecided)) if undecided else False
