"""Decide on values: numbers, quantities, assignments, chains of equalities, equations and formulas."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

from gem.graders.math.engine import Rounded, SameEquation, SameFormula
from gem.graders.math.equal.collections import as_sets
from gem.graders.math.equal.core import Verdict, all_of, any_of, same, same_with
from gem.graders.math.equal.normal import difference, named, split_unit
from gem.graders.math.question import Question
from gem.graders.math.tree import (
    INFINITY,
    MINUS_INFINITY,
    ONE,
    Num,
    Op,
    Quantity,
    Relation,
    Sym,
    Tree,
    is_collection,
    is_op,
    mapped,
    names_in,
    substituted,
    walk,
)
from gem.graders.math.units import conversion
from gem.graders.math.values import differ, fraction_of, is_formula

ROUNDING = Fraction(1, 10**12)


def numbers(a: Tree, g: Tree, q: Question) -> Verdict | None:
    x, y = fraction_of(a), fraction_of(g)
    if x is None or y is None or (is_op(a, "time") and is_op(g, "time")):
        return None
    decimal = isinstance(a, Num) and isinstance(g, Num) and None not in (a.places, g.places)
    return x == y or (decimal and abs(x - y) <= ROUNDING * abs(y))


def assignments(a: Tree, g: Tree, q: Question) -> Verdict | None:
    """Compare the values of x = 5 and 5; assignments to different names differ."""
    (name, value), (gold_name, gold_value) = named(a), named(g)
    if not name and not gold_name:
        return None
    if name and gold_name:
        if same_name(name, gold_name):
            return same(value, gold_value, q)
        renamed = _renamed(name, value, gold_name)
        return equations(a, g, q) if renamed is None else same(renamed, gold_value, q)
    if any(isinstance(tree, Op) and _has_other_names(tree, name or gold_name) for tree in (a, g)):
        return False
    tree, other = (a, g) if name else (g, a)
    (name, value) = named(tree)
    equals = is_op(other, "list", "and", "or") and all(
        isinstance(item, Relation) and not named(item)[0] for item in other.args
    )
    if equals and is_op(value, "list"):  # y = 1 or y = 2x against a list of equations
        lines = tuple(Relation((Sym(name), each), ("=",)) for each in value.args)
        return same_with(tree, Op("list", lines), a, g, q)
    if isinstance(other, Relation):
        if other.operators == ("=",):
            return equations(a, g, q)
        return same_with(tree, value, a, g, q) if is_collection(value) else as_sets(a, g, q)
    return name not in names_in(value) and same_with(tree, value, a, g, q)


def _has_other_names(tree: Op, name: str) -> bool:
    return tree.head in ("list", "and", "or") and any(
        n and name not in (n, n.partition("_")[0]) for n, _ in map(named, tree.args)
    )


def same_name(name: str, gold: str) -> bool:
    return _bare(name) == _bare(gold)


def _bare(name: str) -> str:
    for command in ("vec", "overline", "hat"):
        if name.startswith(f"\\{command}{{"):
            return name[len(command) + 2 :].replace("}", "", 1)
    if name[0] == "d" and name[2:4] == "/d" and len(name) == 5:  # dy/dx
        return f"{name[1]}'"
    if name.startswith("∠") and len(name) == 4:
        return f"∠{min(name[1:], name[:0:-1])}"
    return name


def _renamed(name: str, value: Tree, gold: str) -> Tree | None:
    """Return the value of f(t) = 2t for f(x) = …, whose variable has another name; None for other names."""
    function, _, variable = name.removesuffix(")").partition("(")
    gold_function, _, gold_variable = gold.removesuffix(")").partition("(")
    if not variable or not gold_variable:
        bare = function if variable else gold_function
        return value if (variable or gold_variable) and bare and {function, gold_function} <= {bare, "y"} else None
    if function != gold_function or "," in variable + gold_variable or gold_variable in names_in(value):
        return None
    return substituted(value, {variable: Sym(gold_variable)})


def chains(a: Tree, g: Tree, q: Question) -> Verdict | None:
    r"""Compare the result of a chain such as 6 \cdot 7 = 42 or x = \sqrt{2} ≈ 1.41, whose steps must be true."""
    for tree, other in ((a, g), (g, a)):
        if not isinstance(tree, Relation) or not set(tree.operators) <= {"=", "≈"}:
            continue
        name = tree.sides[0].name if isinstance(tree.sides[0], Sym) and names_in(tree.sides[0]) else ""
        other_name, value = named(other)
        is_equation = tree.operators == ("=",) and names_in(tree)
        if is_equation and is_formula(other) and all(map(is_formula, tree.sides)) and not named(tree)[0]:
            left, right = tree.sides  # sin² x + cos² x = 1
            return all_of((same(left, right, q), same(right, g, q) if tree is a else same(a, right, q)))
        if is_equation or (
            isinstance(other, Relation) and (not other_name or (name and not same_name(name, other_name)))
        ):
            continue
        first = 1 if name or (names_in(tree.sides[0]) and len(tree.sides) > 2) else 0
        sides = tree.sides[first:]
        known = [(i, side) for i, side in enumerate(sides) if not names_in(side)]
        steps = [_step(x, y, tree.operators[first + i : first + j], q) for (i, x), (j, y) in pairwise(known)]
        ends = [sides[-1], *(side for i, side in enumerate(sides[:-1]) if "≈" in tree.operators[first + i :])]
        ends = [end for end in ends if not names_in(end)] or ends
        return all_of((*steps, any_of(same(end, value, q) if tree is a else same(value, end, q) for end in ends)))
    return None


def _step(x: Tree, y: Tree, operators: Sequence[str], q: Question) -> Verdict:
    if "≈" not in operators:
        return same(x, y, q)
    rounded = y if half_digit(y) else x
    return rounded_equal(x if rounded is y else y, rounded, half_digit(rounded) or Fraction(0))


def half_digit(tree: Tree) -> Fraction:
    """Return half a unit of the last digit of a decimal number; 0 for other trees."""
    match tree:
        case Num(exact, None):
            return Fraction(1, 2) if exact.denominator == 1 else Fraction(0)
        case Num(_, int(places)):
            return Fraction(1, 2) * Fraction(10) ** -places
        case Quantity(value, unit):
            return half_digit(value) / (100 if unit == "%" else 1)
        case Op("neg", (value,)):
            return half_digit(value)
        case Op("*", (Num() as value, power)):
            return half_digit(value) * (fraction_of(power) or 0)
    return Fraction(0)


def rounded_equal(x: Tree, rounded: Tree, half: Fraction) -> Verdict:
    """Return whether a value rounds to a number."""
    if isinstance(x, Quantity) and isinstance(rounded, Quantity) and "%" not in (x.unit, rounded.unit):
        if (factor := conversion(x.unit, rounded.unit)) is None:
            return False
        x = _times(x.value, factor)
    x, rounded = _without_unit(x), _without_unit(rounded)
    exact, target = fraction_of(x), fraction_of(rounded)
    if exact is not None and target is not None:
        return abs(exact - target) <= half
    if not is_formula(x) or not is_formula(rounded):
        return False
    return Rounded(Op("+", (x, Op("neg", (rounded,)))), half)


def _without_unit(tree: Tree) -> Tree:
    if isinstance(tree, Quantity):
        return Op("/", (tree.value, Num(Fraction(100)))) if tree.unit == "%" else tree.value
    return tree


def quantities(a: Tree, g: Tree, q: Question) -> Verdict | None:
    """Convert the units of two quantities; a quantity without a unit has that of the other."""
    if isinstance(a, Quantity) or isinstance(g, Quantity):
        (x, unit), (y, gold_unit) = split_unit(a, g), split_unit(g, a)
    elif is_op(a, "*") and is_op(g, "*") and names_in(a) != names_in(g):
        one = Quantity(ONE, "unit")  # 5 J and 5 N m
        (x, unit), (y, gold_unit) = split_unit(a, one), split_unit(g, one)
        if not unit or not gold_unit:
            return None
    else:
        return None
    if not is_formula(x) or not is_formula(y):
        is_same_unit = unit == gold_unit or not (unit and gold_unit)
        return is_same_unit and (is_collection(x) or is_collection(y)) and same(x, y, q)
    if "degree" in (unit, gold_unit) and {unit, gold_unit} <= {"degree", "radian", ""}:
        return _angles(x, unit, y, gold_unit, q)
    factor = conversion(unit, gold_unit)
    return factor is not None and same(_times(x, factor), y, q)


def _times(tree: Tree, factor: Fraction) -> Tree:
    if factor == 1:
        return tree
    if isinstance(tree, Num):
        return Num(tree.exact * factor, tree.places)
    return Op("*", (Num(factor), tree))


def _angles(x: Tree, unit: str, y: Tree, gold_unit: str, q: Question) -> Verdict:
    """Compare two angles; one without a unit is in radians if it has a π, and in degrees otherwise."""
    units = [unit or ("radian" if _has_pi(x) else ""), gold_unit or ("radian" if _has_pi(y) else "")]
    if set(units) <= {"degree", ""}:
        return same(x, y, q)
    radians = [
        Op("/", (Op("*", (v, Sym("\\pi"))), Num(Fraction(180)))) if u == "degree" else v
        for v, u in zip((x, y), units, strict=True)
    ]
    return same(radians[0], radians[1], q)


def _has_pi(tree: Tree) -> bool:
    return any(part == Sym("\\pi") for part in walk(tree))


def equations(a: Tree, g: Tree, q: Question) -> Verdict | None:
    """Compare two equations, which are equal if they differ by a constant factor."""
    if not isinstance(a, Relation) or not isinstance(g, Relation) or a.operators != ("=",) or g.operators != ("=",):
        return None
    if not all(map(is_formula, (*a.sides, *g.sides))) or names_in(a) != names_in(g):
        return False
    sides = [all_of(formulas(x, y, q) or False for x, y in zip(a.sides, g.sides, strict=True))] if names_in(a) else []
    return any_of((*sides, SameEquation(difference(a), difference(g))))


def formulas(a: Tree, g: Tree, q: Question) -> Verdict | None:
    """Compare two formulas: certainly different values at a random point, or a condition for the engine."""
    if not is_formula(a) or not is_formula(g):
        return None
    if all(tree in (INFINITY, MINUS_INFINITY) for tree in (a, g)):
        return False
    if isinstance(a, Sym) and isinstance(g, Sym):
        return _bare(a.name) == _bare(g.name)
    found = [{part.name for part in walk(tree) if isinstance(part, Sym)} for tree in (a, g)]
    is_electric = not q.text or any(word in q.text for word in ("complex", "impedance", "circuit"))
    for other in ("I", "j") if is_electric else ("I",):
        if any(other in names and "i" not in names for names in found) and any("i" in names for names in found):
            a, g = (substituted(tree, {other: Sym("i")}) for tree in (a, g))
    readings = [(a, g)]
    if _has_plain_log(a) or _has_plain_log(g):  # the base is e or 10
        readings.append((mapped(a, _decimal_log), mapped(g, _decimal_log)))
    return any_of(
        False if differ(x, y, q.integers, q.positive) else SameFormula(x, y, q.integers, q.positive)
        for x, y in readings
    )


def _has_plain_log(tree: Tree) -> bool:
    return any(is_op(part, "log") and len(part.args) == 1 for part in walk(tree))


def _decimal_log(tree: Tree) -> Tree:
    is_plain = is_op(tree, "log") and len(tree.args) == 1
    return Op("log", (*tree.args, Num(Fraction(10)))) if is_plain else tree  # type: ignore[union-attr]
