"""Decide whether two trees are equal, by a table of deciders; what they leave open is a Condition for the engine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

from gem.graders.math2.engine import (
    AllOf,
    AnyOf,
    Condition,
    Matching,
    Rounded,
    SameEquation,
    SameFormula,
    SameProgressions,
)
from gem.graders.math2.question.read import Question
from gem.graders.math2.sets import bounds_of, contains, same_real_sets
from gem.graders.math2.tree import (
    EMPTY,
    INFINITY,
    MINUS_INFINITY,
    ONE,
    REALS,
    InBase,
    Interval,
    Num,
    Op,
    Phrase,
    Quantity,
    Relation,
    Sym,
    Tree,
    is_collection,
    mapped,
    names_in,
    substituted,
    walk,
)
from gem.graders.math2.units import conversion, unit_named
from gem.graders.math2.words import date_of, meaning
from gem.graders.math2.values import differ, fraction_of, is_formula

ROUNDING = Fraction(1, 10**12)
Verdict = bool | Condition
Decider = Callable[[Tree, Tree, Question], "Verdict | None"]


def same(a: Tree, g: Tree, q: Question) -> Verdict:
    """Return whether an answer equals a reference answer, or the condition under which it does."""
    if a == g:
        return True
    for decide in DECIDERS.values():
        if (verdict := decide(a, g, q)) is not None:
            return verdict
    return False


def all_of(verdicts: Iterable[Verdict]) -> Verdict:
    """Return False if any verdict is False, True if all are True, else the conjunction of the undecided verdicts."""
    undecided: list[Condition] = []
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
    undecided: list[Condition] = []
    for verdict in verdicts:
        if verdict is True:
            return True
        if not isinstance(verdict, bool):
            undecided.append(verdict)
    if len(undecided) == 1:
        return undecided[0]
    return AnyOf(tuple(undecided)) if undecided else False


# --- forms of one thing ---


def normal(tree: Tree) -> Tree:
    """Return a tree in which one thing has one form: lists of named values, solutions with ±, sets with conditions."""
    tree = _flat(tree)
    if isinstance(tree, Phrase):
        return meaning(tree)
    if isinstance(tree, Op) and tree.head == "det" and isinstance(tree.args[0], Op):
        return _determinant([row.args for row in tree.args[0].args if isinstance(row, Op)]) or tree
    if isinstance(tree, Op) and tree.head == "builder":
        element, condition = tree.args
        if isinstance(element, Relation) and element.operators == ("∈",):
            element, universe = element.sides
            if universe not in (REALS, Sym("ℝ")):
                return Op("builder", (element, condition))
        if isinstance(element, Sym):
            return normal(condition)
        return Op("builder", (normal(element), condition))
    if isinstance(tree, Op) and tree.head in ("list", "and", "or"):
        items = [each for item in tree.args for each in _signs(item)]
        last = items[-1]
        if (
            isinstance(last, Op)
            and last.head == "mod"
            and not any(isinstance(i, Op) and i.head == "mod" for i in items[:-1])
        ):
            items = [*(Op("mod", (item, last.args[1])) for item in items[:-1]), last]  # x ≡ 1, 3 (mod 8)
        return _named_list(tree.head, [normal(item) for item in items])
    if isinstance(tree, Op) and tree.head in ("set", "tuple"):
        signed = [each for item in tree.args for each in (_signs(item) if tree.head == "set" else [item])]
        return Op(tree.head, tuple(map(normal, signed)))
    if isinstance(tree, Op) and tree.head == "matrix":
        return _column(tree)
    if isinstance(tree, Op) and tree.head == "transpose" and isinstance(tree.args[0], Op):
        inner = normal(tree.args[0])
        if isinstance(inner, Op) and inner.head == "matrix":
            rows = [row.args for row in inner.args if isinstance(row, Op)]
            return _column(Op("matrix", tuple(Op("tuple", cells) for cells in zip(*rows, strict=False))))
        return inner
    if isinstance(tree, Op) and tree.head == "mod" and isinstance(tree.args[0], Relation):
        name = tree.args[0].sides[0]
        value = normal(tree.args[0].sides[-1])
        if isinstance(value, Op) and value.head == "list":
            return Op("list", tuple(Op("mod", (Relation((name, v), ("≡",)), tree.args[1])) for v in value.args))
        return tree
    if isinstance(tree, Op) and tree.head in ("cup", "cap", "minus", "where"):
        return Op(tree.head, tuple(map(normal, tree.args)))
    if isinstance(tree, Relation) and tree.operators == ("≡",):
        return normal(Relation(tree.sides, ("=",)))
    if isinstance(tree, Relation):
        signed = _signs(tree)
        return Op("list", tuple(map(normal, signed))) if len(signed) > 1 else _assignment(tree)
    if isinstance(tree, Op) and tree.head == "*":
        return _scaled(tree)
    if isinstance(tree, Op):
        signed = _signs(tree)
        return Op("list", tuple(signed)) if len(signed) > 1 else tree
    return tree


def _flat(tree: Tree) -> Tree:
    """Return a list in a list, as "x = 1, 2 or 3" is, as one list."""
    if isinstance(tree, Op) and tree.head in ("list", "and", "or") and len(tree.args) == 1:
        return _flat(tree.args[0])
    return tree


def _signs(tree: Tree) -> list[Tree]:
    """Return both values of a tree with one ±; a ∓ has the other sign. Any other tree is returned alone."""
    found = [part for part in walk(tree) if isinstance(part, Op) and part.head in ("pm", "mp")]
    if not found or len(found) > 2 or (len(found) == 2 and found[0].head == found[1].head) or is_collection(tree):
        return [tree]

    def signed(first: bool) -> Callable[[Tree], Tree]:
        def change(part: Tree) -> Tree:
            if not isinstance(part, Op) or part.head not in ("pm", "mp"):
                return part
            plus = (part.head == found[0].head) is first
            last = part.args[-1] if plus else Op("neg", (part.args[-1],))
            return last if len(part.args) == 1 else Op("+", (part.args[0], last))

        return change

    return [mapped(tree, signed(first)) for first in (True, False)]


def _named_list(head: str, items: list[Tree]) -> Tree:
    """Return "x = 1, 2" and "x = 1 or x = 2" as x = (the list 1, 2)."""
    flat: list[Tree] = []
    for item in items:
        flat += item.args if isinstance(item, Op) and item.head == "list" else [item]
    names = [named(item) for item in flat]
    name = next((n for n, _ in names if n), "")
    if name and all(
        n == name or (not n and not isinstance(item, Relation)) for (n, _), item in zip(names, flat, strict=True)
    ):
        if all(
            isinstance(item, Relation) and item.operators == ("=",) or not isinstance(item, Relation) for item in flat
        ):
            values: list[Tree] = []
            for _, value in names:
                values += value.args if isinstance(value, Op) and value.head == "list" else [value]
            return Relation((Sym(name), Op("list", tuple(values))), ("=",))
    if len({n for n, _ in names if n}) > 1 and head == "or":
        return Op("or", tuple(flat))
    return Op(head if any(isinstance(item, Relation) for item in flat) else "list", tuple(flat))


def named(tree: Tree) -> tuple[str, Tree]:
    """Return the name and the value of an assignment such as x = 5 or x ∈ (1, 2); "" and the tree for any other."""
    if (
        isinstance(tree, Relation)
        and len(tree.operators) == 1
        and tree.operators[0] in ("=", "∈")
        and isinstance(tree.sides[0], (Sym, Op))
    ):
        left, right = tree.sides
        if isinstance(left, Sym) and left.name not in ("e", "i", "\\pi", "∞"):
            return left.name, right
        if (
            isinstance(left, Op)
            and left.head == "call"
            and isinstance(left.args[0], Sym)
            and all(isinstance(arg, Sym) for arg in left.args[1:])
        ):
            return f"{left.args[0].name}({','.join(arg.name for arg in left.args[1:] if isinstance(arg, Sym))})", right
        if isinstance(left, Op) and left.head == "call":
            return repr(left), right
    return "", tree


def _assignment(tree: Relation) -> Tree:
    """Return (x, y) = (1, 2) as the tuple, and 5 = x as x = 5."""
    if len(tree.sides) == 2 and tree.operators == ("=",):
        left, right = tree.sides
        if isinstance(left, Op) and left.head in ("tuple", "list") and all(isinstance(arg, Sym) for arg in left.args):
            return normal(right)
        if isinstance(right, Sym) and not isinstance(left, Sym) and not names_in(left):
            left, right = right, left
        return Relation((left, normal(right) if isinstance(left, Sym) else right), ("=",))
    if len(tree.sides) == 2 and tree.operators == ("∈",):
        left, right = tree.sides
        if isinstance(left, Op) and left.head == "tuple":
            return normal(right)
        return Relation((left, normal(right)), ("∈",))
    if len(set(tree.operators)) == 1 and tree.operators[0] in (">", "≥"):
        flipped = {">": "<", "≥": "≤"}
        return Relation(tree.sides[::-1], tuple(flipped[o] for o in tree.operators[::-1]))
    if set(tree.operators) <= {">", "≥"}:
        return Relation(tree.sides[::-1], tuple({">": "<", "≥": "≤"}[o] for o in tree.operators[::-1]))
    return tree


def _column(tree: Op) -> Tree:
    """Return a matrix of one column as a tuple."""
    rows = [row.args if isinstance(row, Op) else (row,) for row in tree.args]
    if all(len(row) == 1 for row in rows):
        return Op("tuple", tuple(normal(row[0]) for row in rows))
    return Op("matrix", tuple(Op("tuple", tuple(map(normal, row))) for row in rows))


def _determinant(rows: Sequence[Sequence[Tree]]) -> Tree | None:
    """Return the determinant of a small square matrix as a formula."""
    if not 1 <= len(rows) <= 4 or any(len(row) != len(rows) for row in rows):
        return None
    if len(rows) == 1:
        return rows[0][0]
    terms: list[Tree] = []
    for column, cell in enumerate(rows[0]):
        minor = _determinant([[*row[:column], *row[column + 1 :]] for row in rows[1:]])
        term = Op("*", (cell, minor or ONE))
        terms.append(Op("neg", (term,)) if column % 2 else term)
    return Op("+", tuple(terms))


def _scaled(tree: Op) -> Tree:
    """Multiply a vector or matrix by its factor."""
    last = normal(tree.args[-1]) if isinstance(tree.args[-1], Op) else tree.args[-1]
    factors = tree.args[:-1]
    if not isinstance(last, Op) or last.head not in ("tuple", "matrix") or not all(map(is_formula, factors)):
        signed = _signs(tree)
        return Op("list", tuple(signed)) if len(signed) > 1 else tree

    def times(item: Tree) -> Tree:
        if isinstance(item, Op) and item.head == "tuple":
            return Op("tuple", tuple(map(times, item.args)))
        return Op("*", (*factors, item))

    return Op(last.head, tuple(map(times, last.args)))


# --- deciders ---


def _numbers(a: Tree, g: Tree, q: Question) -> Verdict | None:
    x, y = fraction_of(a), fraction_of(g)
    if x is None or y is None or _is_clock(a, g):
        return None
    decimal = isinstance(a, Num) and isinstance(g, Num) and None not in (a.places, g.places)
    return x == y or (decimal and abs(x - y) <= ROUNDING * abs(y))


def _is_clock(*trees: Tree) -> bool:
    return all(isinstance(tree, Op) and tree.head in ("time", "clock") for tree in trees)


def _assignments(a: Tree, g: Tree, q: Question) -> Verdict | None:
    """Compare the values of x = 5 and 5; assignments to different names differ."""
    (name, value), (gold_name, gold_value) = named(a), named(g)
    if not name and not gold_name:
        return None
    if name and gold_name:
        if not _same_name(name, gold_name):
            renamed = _renamed(name, value, gold_name)
            return _equations(a, g, q) if renamed is None else same(renamed, gold_value, q)
        if isinstance(value, Sym) or isinstance(gold_value, Sym):
            return same(value, gold_value, q)
        return same(value, gold_value, q)
    if any(isinstance(tree, Op) and _has_other_names(tree, name or gold_name) for tree in (a, g)):
        return _as_sets(a, g, q) or False
    if name:
        if isinstance(g, (Relation,)) or (isinstance(g, Op) and _has_other_names(g, name)):
            return (
                _equations(a, g, q)
                if isinstance(g, Relation) and g.operators == ("=",)
                else same(value, g, q)
                if is_collection(value)
                else _as_sets(a, g, q)
            )
        return name not in names_in(value) and same(value, g, q)
    if isinstance(a, Relation) or (isinstance(a, Op) and _has_other_names(a, gold_name)):
        return (
            _equations(a, g, q)
            if isinstance(a, Relation) and a.operators == ("=",)
            else same(a, gold_value, q)
            if is_collection(gold_value)
            else _as_sets(a, g, q)
        )
    return gold_name not in names_in(gold_value) and same(a, gold_value, q)


def _has_other_names(tree: Op, name: str) -> bool:
    return tree.head in ("list", "and", "or") and any(n and n != name for n, _ in map(named, tree.args))


def _same_name(name: str, gold: str) -> bool:
    return _bare(name) == _bare(gold)


def _bare(name: str) -> str:
    for command in ("vec", "overline", "hat"):
        if name.startswith(f"\\{command}{{"):
            return name[len(command) + 2 :].replace("}", "", 1)
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


def _chains(a: Tree, g: Tree, q: Question) -> Verdict | None:
    r"""Compare the result of a chain such as 6 \cdot 7 = 42 or x = \sqrt{2} ≈ 1.41; its steps have to be true."""
    for tree, other, swap in ((a, g, False), (g, a, True)):
        if not isinstance(tree, Relation) or not set(tree.operators) <= {"=", "≈"}:
            continue
        sides = tree.sides
        if tree.operators == ("=",) and names_in(sides[0]):
            continue
        first = (
            1
            if (isinstance(sides[0], Sym) and names_in(sides[0])) or (names_in(sides[0]) and not names_in(sides[-1]))
            else 0
        )
        if isinstance(other, Relation) and len(other.sides) == len(sides):
            continue
        if first == 0 and isinstance(other, Relation):
            continue
        constants = list(zip(sides[first:], ("", *tree.operators[first:]), strict=False))
        steps = [_step(x, y, operator, q) for (x, _), (y, operator) in pairwise(constants)]
        if names_in(Op("list", sides[first:])) and "≈" not in tree.operators:
            if isinstance(other, Relation):
                continue
        ends = [sides[-1]] + [
            side
            for i, side in enumerate(sides[first:-1], first)
            if "≈" in tree.operators[i:] or "≈" in tree.operators[first:i]
        ]
        value = named(other)[1] if first else other
        if (
            first
            and isinstance(other, Relation)
            and (not isinstance(sides[0], Sym) or not _same_name(sides[0].name, named(other)[0] or "?"))
        ):
            continue
        matches = [same(value, end, q) if swap else same(end, value, q) for end in ends]
        return all_of((*steps, any_of(matches)))
    return None


def _step(x: Tree, y: Tree, operator: str, q: Question) -> Verdict:
    if operator != "≈":
        return same(x, y, q)
    rounded = y if half_digit(y) else x
    return rounded_equal(x if rounded is y else y, rounded, half_digit(rounded) or Fraction(0))


def half_digit(tree: Tree) -> Fraction:
    """Return half a unit of the last digit of a decimal number; 0 for other trees."""
    while isinstance(tree, (Quantity, Op)):
        if isinstance(tree, Quantity):
            if tree.unit == "%":
                return half_digit(tree.value) / 100
            tree = tree.value
        elif tree.head == "neg":
            tree = tree.args[0]
        elif tree.head == "*" and len(tree.args) == 2 and isinstance(tree.args[0], Num):
            power = fraction_of(tree.args[1])
            return half_digit(tree.args[0]) * power if power is not None else Fraction(0)
        else:
            return Fraction(0)
    if not isinstance(tree, Num):
        return Fraction(0)
    if tree.places is None:
        return Fraction(1, 2) if tree.exact.denominator == 1 else Fraction(0)
    return Fraction(1, 2) * Fraction(10) ** -tree.places


def rounded_equal(x: Tree, rounded: Tree, half: Fraction) -> Verdict:
    """Return whether a value rounds to a number."""
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


def _quantities(a: Tree, g: Tree, q: Question) -> Verdict | None:
    """Convert the units of two quantities; a quantity without a unit has that of the other."""
    if not isinstance(a, Quantity) and not isinstance(g, Quantity):
        return None
    (x, unit), (y, gold_unit) = _split_unit(a, g), _split_unit(g, a)
    if not is_formula(x) or not is_formula(y):
        if is_collection(x) or is_collection(y):
            return same(x, y, q) if unit == gold_unit or not (unit and gold_unit) else False
        return False
    if "degree" in (unit, gold_unit) and {unit, gold_unit} <= {"degree", "radian", ""}:
        return _angles(x, unit, y, gold_unit, q)
    factor = conversion(unit, gold_unit)
    if factor is None:
        return False
    return same(_times(x, factor), y, q)


def _times(tree: Tree, factor: Fraction) -> Tree:
    if factor == 1:
        return tree
    if isinstance(tree, Num):
        return Num(tree.exact * factor, tree.places)
    return Op("*", (Num(factor), tree))


def _split_unit(tree: Tree, other: Tree) -> tuple[Tree, str]:
    """Return a value and its unit; a letter after a number, as in 3 N, is a unit if the other value has one."""
    if isinstance(tree, Quantity):
        return tree.value, tree.unit
    if isinstance(tree, Op) and tree.head == "*" and isinstance(other, Quantity) and other.unit != "%":
        numbers = tuple(arg for arg in tree.args if not names_in(arg))
        letters = tree.args[len(numbers) :]
        if numbers and letters and tree.args[: len(numbers)] == numbers:
            unit = unit_named(" ".join(map(_letter, letters)))
            if unit is not None:
                return (numbers[0] if len(numbers) == 1 else Op("*", numbers)), unit
    return tree, ""


def _letter(tree: Tree) -> str:
    """Return a name or its power as text; ? for other trees."""
    if isinstance(tree, Sym):
        return tree.name
    if isinstance(tree, Op) and tree.head == "^" and isinstance(tree.args[0], Sym) and isinstance(tree.args[1], Num):
        return f"{tree.args[0].name}^{tree.args[1].exact}"
    return "?"


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


def _bases(a: Tree, g: Tree, q: Question) -> Verdict | None:
    if isinstance(a, InBase) and isinstance(g, InBase):
        return int(a.digits, a.base) == int(g.digits, g.base)
    for written, other in ((a, g), (g, a)):
        if isinstance(written, InBase):
            exact = fraction_of(other)
            return exact is not None and (str(exact) == written.digits or exact == int(written.digits, written.base))
    return None


def _congruences(a: Tree, g: Tree, q: Question) -> Verdict | None:
    pair = [tree if isinstance(tree, Op) and tree.head == "mod" else None for tree in (a, g)]
    if pair == [None, None]:
        return None
    parts = [
        _congruence(tree) if tree is not None else ("", named(other)[1], None)
        for tree, other in zip(pair, (a, g), strict=True)
    ]
    (name, value, modulus), (gold_name, gold_value, gold_modulus) = parts
    if name and gold_name and name != gold_name and "ℤ" not in (name, gold_name):
        return False
    if "ℤ" in (name, gold_name) and None in (modulus, gold_modulus):
        return False  # odd is not 1
    if modulus is None or gold_modulus is None:
        return same(value, gold_value, q)
    x, y, m = fraction_of(value), fraction_of(gold_value), fraction_of(gold_modulus)
    if None in (x, y, m):
        return all_of((same(modulus, gold_modulus, q), same(value, gold_value, q)))
    return all_of((same(modulus, gold_modulus, q), bool(m) and ((x - y) / m).denominator == 1))  # type: ignore[operator]


def _congruence(tree: Op) -> tuple[str, Tree, Tree]:
    left, modulus = tree.args
    if isinstance(left, Relation) and left.operators[-1] in ("≡", "="):
        name = left.sides[-2]
        return (
            (name.name if isinstance(name, Sym) else "" if not names_in(name) else repr(name)),
            left.sides[-1],
            modulus,
        )
    return "", left, modulus


def _clocks(a: Tree, g: Tree, q: Question) -> Verdict | None:
    """Compare times of day; one without am or pm may be either."""
    clocks = [_seconds(tree) for tree in (a, g)]
    if None in clocks:
        return False if any(isinstance(tree, Op) and tree.head == "clock" for tree in (a, g)) else None
    (x, half), (y, gold_half) = clocks  # type: ignore[misc]
    return bool(x == y or ((x - y) % 43200 == 0 and not (half and gold_half)))


def _seconds(tree: Tree) -> tuple[int, bool] | None:
    """Return the seconds of a time of day since midnight, and whether its half of the day is known."""
    if isinstance(tree, Op) and tree.head == "clock" and isinstance(tree.args[0], Num):
        return int(tree.args[0].exact), True
    if isinstance(tree, Op) and tree.head == "time":
        parts = [
            part.exact if isinstance(part, Num) and part.exact.denominator == 1 else Fraction(-1) for part in tree.args
        ]
        if 0 <= parts[0] <= 24 and all(0 <= part < 60 for part in parts[1:]):
            return int(sum(part * 60 ** (2 - i) for i, part in enumerate(parts))), parts[0] > 12
    return None


def _dates(a: Tree, g: Tree, q: Question) -> Verdict | None:
    dates = [date_of(tree) if isinstance(tree, Phrase) else None for tree in (a, g)]
    return None if dates == [None, None] else dates[0] == dates[1]


def _vectors(a: Tree, g: Tree, q: Question) -> Verdict | None:
    """Compare 2i - 3j with (2, -3), and a point P(1, 2) with (1, 2)."""
    for tree, other in ((a, g), (g, a)):
        if (
            isinstance(tree, Op)
            and tree.head == "call"
            and len(tree.args) > 2
            and isinstance(other, Op)
            and other.head == "tuple"
        ):
            point = Op("tuple", tree.args[1:])
            return same(point, g, q) if tree is a else same(a, point, q)
    size = max((len(tree.args) for tree in (a, g) if isinstance(tree, Op) and tree.head == "tuple"), default=0)
    vectors = [_components(tree, size) for tree in (a, g)]
    if vectors == [None, None] or not (size or None not in vectors):
        return None
    ours, theirs = (tree if vector is None else vector for tree, vector in zip((a, g), vectors, strict=True))
    return same(ours, theirs, q)


def _components(tree: Tree, size: int) -> Tree | None:
    r"""Return the tuple of a sum of multiples of \hat{i}, j and k; None for other trees."""
    terms = tree.args if isinstance(tree, Op) and tree.head == "+" else (tree,)
    found: dict[str, Tree] = {}
    marked = False
    for term in terms:
        negative = isinstance(term, Op) and term.head == "neg"
        inner = term.args[0] if isinstance(term, Op) and negative else term
        over: tuple[Tree, ...] = ()
        if isinstance(inner, Op) and inner.head == "/":
            inner, over = inner.args[0], inner.args[1:]
        factors = list(inner.args) if isinstance(inner, Op) and inner.head == "*" else [inner]
        axes = [f for f in factors if isinstance(f, Sym) and _axis(f.name)]
        if len(axes) != 1 or (axis := _axis(axes[0].name)) in found:
            return None
        marked = marked or "{" in axes[0].name
        factors.remove(axes[0])
        factor: Tree = factors[0] if len(factors) == 1 else Op("*", tuple(factors)) if factors else ONE
        factor = Op("/", (factor, *over)) if over else factor
        found[axis] = Op("neg", (factor,)) if negative else factor
    if not marked and len(found) < 2:
        return None
    size = size or max("ijk".index(axis) for axis in found) + 1
    if size > 3 or any("ijk".index(axis) >= size for axis in found):
        return None
    return Op("tuple", tuple(found.get(axis, Num(Fraction(0))) for axis in "ijk"[: max(size, 2)]))


def _axis(name: str) -> str:
    for command in ("\\hat{", "\\vec{"):
        if name.startswith(command):
            name = name[len(command) : -1]
            name = {"x": "i", "y": "j", "z": "k"}.get(name, name)
    return name if name in ("i", "j", "k") else ""


def _integrals(a: Tree, g: Tree, q: Question) -> Verdict | None:
    """Compare two antiderivatives with an arbitrary constant at the end, whatever its letter."""
    bare = [_without_constant(named(tree)[1]) for tree in (a, g)]
    if None in bare:
        return None
    ours, theirs = (tree for tree in bare if tree is not None)
    if not is_formula(ours) or not is_formula(theirs):
        return None
    return SameFormula(ours, theirs, up_to_constant=True)


def _without_constant(tree: Tree) -> Tree | None:
    while isinstance(tree, Op) and tree.head == "where":
        tree = tree.args[0]
    if not isinstance(tree, Op) or tree.head != "+":
        return None
    constants = [
        arg for arg in tree.args if isinstance(arg, Sym) and arg.name.partition("_")[0] in ("C", "c", "K", "k")
    ]
    rest = tuple(arg for arg in tree.args if arg not in constants)
    if len(constants) != 1 or not rest or constants[0].name in names_in(Op("+", rest)):
        return None
    return rest[0] if len(rest) == 1 else Op("+", rest)


def _progressions(a: Tree, g: Tree, q: Question) -> Verdict | None:
    """Compare the integers n = 3k + 1 with n ≡ 1 (mod 3)."""
    if not any(isinstance(tree, Op) and tree.head == "mod" for tree in (a, g)):
        return None
    pairs = [_residue(named(tree)[1]) for tree in (a, g)]
    if None in pairs or all(isinstance(tree, Op) and tree.head == "mod" for tree in (a, g)):
        return None
    (x, m), (y, n) = pairs  # type: ignore[misc]
    return bool(abs(m) == abs(n) and (x - y) % m == 0)


def _residue(tree: Tree) -> tuple[Fraction, Fraction] | None:
    """Return the residue and the modulus of a congruence, or of a linear formula of one letter."""
    while isinstance(tree, Op) and tree.head == "where":
        tree = named(tree.args[0])[1]
    if isinstance(tree, Op) and tree.head == "mod":
        _, value, modulus = _congruence(tree)
        pair = fraction_of(value), fraction_of(modulus)
    else:
        letters = names_in(tree)
        if len(letters) != 1 or not is_formula(tree):
            return None
        (letter,) = letters
        at = [fraction_of(substituted(tree, {letter: Num(Fraction(x))})) for x in (0, 1, 2)]
        if None in at or at[2] - at[1] != at[1] - at[0]:  # type: ignore[operator]
            return None
        pair = at[0], at[1] - at[0]  # type: ignore[operator]
    if pair[0] is None or not pair[1] or pair[1].denominator != 1:
        return None
    return pair[0], pair[1]


def _choices(a: Tree, g: Tree, q: Question) -> Verdict | None:
    """Compare choices by their letters; the text of a choice may be the other answer."""
    labels = [tree if isinstance(tree, Op) and tree.head == "label" else None for tree in (a, g)]
    if labels == [None, None]:
        return None
    letters = [tree.args[0] if isinstance(tree, Op) and tree.head == "label" else tree for tree in (a, g)]
    if all(isinstance(letter, Sym) for letter in letters):
        return letters[0].name.upper() == letters[1].name.upper()  # type: ignore[union-attr]
    labelled = next(label for label in labels if label is not None)
    if len(labelled.args) < 2:
        return False
    return same(labelled.args[1], g, q) if labels[0] is not None else same(a, labelled.args[1], q)


def _piecewise(a: Tree, g: Tree, q: Question) -> Verdict | None:
    """Compare functions of which one has cases, at the bounds of the cases and between them."""
    values = [named(tree)[1] for tree in (a, g)]
    cases = [tree for tree in values if isinstance(tree, Op) and tree.head == "cases"]
    conditions = [
        row.args[1] for tree in cases for row in tree.args if isinstance(row, Op) and not _is_rest(row.args[1])
    ]
    names = {name for condition in conditions for name in names_in(condition)}
    if not cases or len(names) != 1:
        return None
    found = [bounds_of(normal(condition)) for condition in conditions]
    bounds = sorted({exact for each in found for _, bound in each or () if (exact := fraction_of(bound)) is not None})
    if None in found or not bounds:
        return None
    between = [low + (high - low) * part for low, high in pairwise(bounds) for part in (Fraction(1, 2), Fraction(1, 3))]
    outside = [bounds[0] - 1, bounds[0] - Fraction(7, 3), bounds[-1] + 1, bounds[-1] + Fraction(7, 3)]
    (name,) = names
    verdicts: list[Verdict] = []
    for x in (*bounds, *between, *outside):
        at = [_case_at(value, name, x) for value in values]
        if at != [None, None]:
            verdicts.append(False if at[0] is None or at[1] is None else same(at[0], at[1], q))
    return all_of(verdicts)


def _is_rest(condition: Tree) -> bool:
    return isinstance(condition, Phrase) and condition.text in ("otherwise", "else")


def _case_at(tree: Tree, name: str, x: Fraction) -> Tree | None:
    """Return the value of a function, piecewise or not, at a number; None if no case holds there."""
    at: dict[str, Tree] = {name: Num(x)}
    if not isinstance(tree, Op) or tree.head != "cases":
        return substituted(tree, at)
    for row in tree.args:
        if isinstance(row, Op) and (_is_rest(row.args[1]) or contains(normal(row.args[1]), float(x))):
            return substituted(row.args[0], at)
    return None


def _wheres(a: Tree, g: Tree, q: Question) -> Verdict | None:
    """Compare values with conditions; a condition that only one of the two has says nothing if it is a domain."""
    trees = [tree if isinstance(tree, Op) and tree.head == "where" else None for tree in (a, g)]
    if trees == [None, None]:
        return None
    if _is_set_like(a) or _is_set_like(g):
        if (verdict := _as_sets(a, g, q)) is not None:
            return verdict
    bare = [tree.args[0] if tree is not None else other for tree, other in zip(trees, (a, g), strict=True)]
    conditions = [tree.args[1:] if tree is not None else () for tree in trees]
    verdict = same(bare[0], bare[1], q)
    if conditions[0] and conditions[1]:
        return verdict
    return verdict if all(_is_declaration(each) for side in conditions for each in side) else False


def _is_declaration(tree: Tree) -> bool:
    return isinstance(tree, Sym) or (isinstance(tree, Relation) and tree.operators == ("∈",))


def _ratios(a: Tree, g: Tree, q: Question) -> Verdict | None:
    trees = [tree for tree in (a, g) if isinstance(tree, Op) and tree.head == "ratio"]
    if len(trees) < 2 or len(trees[0].args) < 3 and len(trees[1].args) < 3:
        return None
    if len(trees[0].args) != len(trees[1].args):
        return False
    first, gold_first = trees[0].args[0], trees[1].args[0]
    pairs = zip(trees[0].args, trees[1].args, strict=True)
    return all_of(same(Op("*", (x, gold_first)), Op("*", (y, first)), q) for x, y in pairs)


def _real_sets(a: Tree, g: Tree, q: Question) -> Verdict | None:
    return _as_sets(a, g, q) if _is_set_like(a) or _is_set_like(g) else None


def _is_set_like(tree: Tree) -> bool:
    return (
        isinstance(tree, Interval)
        or (isinstance(tree, Op) and tree.head in ("cup", "cap", "minus"))
        or (isinstance(tree, Relation) and bool(set(tree.operators) & {"<", "≤", "≠", "∉"}))
        or (isinstance(tree, Op) and tree.head in ("and", "or", "list", "where") and any(map(_is_set_like, tree.args)))
    )


def _as_sets(a: Tree, g: Tree, q: Question) -> Verdict | None:
    pairs = same_real_sets(a, g)
    if pairs is None:
        if isinstance(a, Relation) and isinstance(g, Relation):
            return _inequalities(a, g, q)
        ours, theirs = _intervals(a), _intervals(g)
        if ours is None or theirs is None or len(ours) != len(theirs):
            return None
        return _same_items(ours, theirs, q) if len(ours) > 1 else _same_interval(ours[0], theirs[0], q)
    return pairs if isinstance(pairs, bool) else all_of(same(x, y, q) for x, y in pairs)


def _same_interval(a: Interval, g: Interval, q: Question) -> Verdict:
    return a.closed == g.closed and all_of((same(a.low, g.low, q), same(a.high, g.high, q)))


def _intervals(tree: Tree) -> list[Interval] | None:
    """Return the intervals of a union whose bounds may have letters; None if a part is no interval."""
    if isinstance(tree, Interval):
        return [tree]
    if isinstance(tree, Op) and tree.head in ("cup", "or"):
        parts = [_intervals(arg) for arg in tree.args]
        return None if None in parts else [each for part in parts for each in part or ()]
    if not isinstance(tree, Relation) or not set(tree.operators) <= {"<", "≤"}:
        return None
    closed = tuple(operator == "≤" for operator in tree.operators)
    if len(tree.sides) == 3 and isinstance(tree.sides[1], Sym):
        return [Interval(tree.sides[0], tree.sides[2], (closed[0], closed[1]))]
    low, high = tree.sides[0], tree.sides[-1]
    if len(tree.sides) == 2 and isinstance(low, Sym) and low.name not in names_in(high):
        return [Interval(MINUS_INFINITY, high, (False, closed[0]))]
    return [Interval(low, INFINITY, (closed[0], False))] if len(tree.sides) == 2 and isinstance(high, Sym) else None


def _inequalities(a: Relation, g: Relation, q: Question) -> Verdict:
    if a.operators != g.operators:
        return False
    if len(a.sides) > 2 or a.operators[0] not in ("<", "≤"):
        return all_of(same(x, y, q) for x, y in zip(a.sides, g.sides, strict=True))
    return SameEquation(_difference(a), _difference(g), positive=True)


def _difference(tree: Relation) -> Tree:
    return Op("+", (tree.sides[0], Op("neg", (tree.sides[-1],))))


def _equations(a: Tree, g: Tree, q: Question) -> Verdict | None:
    """Compare two equations, which are equal if they differ by a constant factor."""
    if not isinstance(a, Relation) or not isinstance(g, Relation) or a.operators != ("=",) or g.operators != ("=",):
        return None
    if not all(map(is_formula, (*a.sides, *g.sides))):
        return all_of(same(x, y, q) for x, y in zip(a.sides, g.sides, strict=True))
    if names_in(a) != names_in(g):
        return False
    return SameEquation(_difference(a), _difference(g))


def _collections(a: Tree, g: Tree, q: Question) -> Verdict | None:
    """Compare tuples in their order, and sets and lists in any order."""
    kinds = [tree.head if isinstance(tree, Op) and tree.head in _ITEMS else "" for tree in (a, g)]
    if kinds == ["", ""]:
        return None
    for tree, other, kind, other_kind in ((a, g, *kinds), (g, a, *kinds[::-1])):
        if (
            kind == "set"
            and len(tree.args) == 1
            and (not other_kind or other_kind == "tuple")
            and not isinstance(other, (Interval,))
        ):
            return same(tree.args[0], g, q) if tree is a else same(a, tree.args[0], q)
        if kind == "tuple" and isinstance(other, Interval) and len(tree.args) == 2:
            interval = Interval(tree.args[0], tree.args[1], (False, False))
            return same(interval, g, q) if tree is a else same(a, interval, q)
    if not kinds[0] or not kinds[1]:
        return False
    assert isinstance(a, Op) and isinstance(g, Op)
    a, g = _by_name(a, g), _by_name(g, a)
    if {a.head, g.head} <= {"list", "and", "tuple"} and "tuple" in (a.head, g.head):
        a, g = Op("tuple", a.args), Op("tuple", g.args)
    heads = {a.head, g.head}
    if a.head == "set" and g.head == "set":
        return all_of((_has_all(a.args, g.args, q), _has_all(g.args, a.args, q)))
    if heads & {"tuple", "matrix", "cases"} and len(heads) > 1 or len(a.args) != len(g.args):
        return False
    if a.head in ("tuple", "matrix"):
        return all_of(same(x, y, q) for x, y in zip(a.args, g.args, strict=True))
    if "set" in heads and any(len({_base(n) for n, _ in map(named, t.args) if n}) > 1 for t in (a, g)):
        return False
    return _same_items(a.args, g.args, q)


_ITEMS = frozenset({"list", "and", "or", "tuple", "set", "matrix", "cases"})


def _base(name: str) -> str:
    return name.partition("_")[0]


def _by_name(tree: Op, other: Op) -> Op:
    """Return "y = 2, x = 1" as the tuple (1, 2) if the other tree is a tuple."""
    pairs = [named(item) for item in tree.args]
    if (
        other.head != "tuple"
        or tree.head not in ("list", "and")
        or not all(n for n, _ in pairs)
        or len({n for n, _ in pairs}) < max(len(pairs), 2)
    ):
        return tree
    return Op("tuple", tuple(value for _, value in sorted(pairs, key=lambda pair: pair[0].lstrip("\\"))))


def _has_all(items: Sequence[Tree], others: Sequence[Tree], q: Question) -> Verdict:
    """Return whether each of ``others`` equals one of ``items``."""
    return all_of(any_of(same(item, other, q) for item in items) for other in others)


def _same_items(items: Sequence[Tree], golds: Sequence[Tree], q: Question) -> Verdict:
    """Compare two sequences of equal length, ignoring the order. Each reference item is matched only once."""
    left = list(golds)
    for position, item in enumerate(items):
        found = next(((i, v) for i, other in enumerate(left) if (v := same(item, other, q)) is not False), None)
        if found is None:
            return False
        if found[1] is not True:
            return Matching(tuple(tuple(same(later, other, q) for other in left) for later in items[position:]))
        del left[found[0]]
    return True


def _formulas(a: Tree, g: Tree, q: Question) -> Verdict | None:
    """Compare two formulas: certainly different values at a random point, or a condition for the engine."""
    if not is_formula(a) or not is_formula(g):
        return None
    if a in (INFINITY, MINUS_INFINITY) or g in (INFINITY, MINUS_INFINITY):
        infinite = [tree == INFINITY or tree == MINUS_INFINITY for tree in (a, g)]
        if all(infinite):
            return False
    if isinstance(a, Sym) and isinstance(g, Sym):
        return _bare(a.name) == _bare(g.name)
    readings = [(a, g)]
    if _has_plain_log(a) or _has_plain_log(g):  # the base is e or 10
        readings.append((mapped(a, _decimal_log), mapped(g, _decimal_log)))
    return any_of(
        False if differ(x, y, q.integers, q.positive) else SameFormula(x, y, q.integers, q.positive)
        for x, y in readings
    )


def _has_plain_log(tree: Tree) -> bool:
    return any(isinstance(part, Op) and part.head == "log" and len(part.args) == 1 for part in walk(tree))


def _decimal_log(tree: Tree) -> Tree:
    is_plain = isinstance(tree, Op) and tree.head == "log" and len(tree.args) == 1
    return Op("log", (*tree.args, Num(Fraction(10)))) if is_plain else tree  # type: ignore[union-attr]


def _words(a: Tree, g: Tree, q: Question) -> Verdict | None:
    texts = [_word(tree) for tree in (a, g)]
    if None in texts or not (isinstance(a, Phrase) or isinstance(g, Phrase)):
        return None
    ours, theirs = (str(text).casefold() for text in texts)
    return ours == theirs and (len(ours) > 1 or texts[0] == texts[1])


def _word(tree: Tree) -> str | None:
    if isinstance(tree, Phrase):
        return " ".join(part if isinstance(part, str) else str(part) for part in tree.parts)
    if isinstance(tree, Sym):
        return tree.name
    if isinstance(tree, Op) and tree.head == "*" and all(isinstance(arg, Sym) for arg in tree.args):
        return "".join(arg.name for arg in tree.args if isinstance(arg, Sym))
    return None


DECIDERS: dict[str, Decider] = {
    "numbers": _numbers,
    "dates": _dates,
    "words": _words,
    "numbers in a base": _bases,
    "choices": _choices,
    "piecewise functions": _piecewise,
    "conditions": _wheres,
    "vectors": _vectors,
    "clocks": _clocks,
    "integrals": _integrals,
    "progressions": _progressions,
    "congruences": _congruences,
    "chains": _chains,
    "assignments": _assignments,
    "quantities": _quantities,
    "ratios": _ratios,
    "equations": _equations,
    "sets of reals": _real_sets,
    "collections": _collections,
    "formulas": _formulas,
}
