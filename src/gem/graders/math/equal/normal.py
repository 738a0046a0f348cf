"""Trees in which one thing has one form: lists of named values, solutions with ±, sets with conditions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

from gem.graders.math.tree import (
    ONE,
    REALS,
    Num,
    Op,
    Phrase,
    Quantity,
    Relation,
    Sym,
    Tree,
    children,
    is_collection,
    is_op,
    joined,
    mapped,
    names_in,
    walk,
)
from gem.graders.math.units import unit_named
from gem.graders.math.values import fraction_of, is_formula
from gem.graders.math.words import meaning


def normal(tree: Tree) -> Tree:
    """Return a tree in which one thing has one form: lists of named values, solutions with ±, sets with conditions."""
    match _flat(tree):
        case Phrase() as phrase:
            return meaning(phrase)
        case Op("det", (Op(_, rows),)) as det:
            return _determinant([row.args for row in rows if isinstance(row, Op)]) or det
        case Op("builder", (element, condition)):
            return _builder(element, condition)
        case Op("list" | "and" | "or" as head, args):
            items = [each for item in args for each in _signs(item)]
            last = items[-1]
            if is_op(last, "mod") and not any(is_op(i, "mod") for i in items[:-1]):
                items = [*(Op("mod", (item, last.args[1])) for item in items[:-1]), last]  # x ≡ 1, 3 (mod 8)
            return _named_list(head, [normal(item) for item in items])
        case Op("set", args):
            return Op("set", tuple(normal(each) for item in args for each in _signs(item)))
        case Op("tuple", args) as pair if len(_signs(pair)) == 1:
            return Op("tuple", tuple(map(normal, args)))
        case Op("matrix") as matrix:
            return _column(matrix)
        case Op("transpose", (Op() as inner,)):
            return _transposed(normal(inner))
        case Op("mod", (Relation((name, *_, right), _), modulus)) as congruence:
            value = normal(right)
            if not is_op(value, "list"):
                return congruence
            return Op("list", tuple(Op("mod", (Relation((name, v), ("≡",)), modulus)) for v in value.args))
        case Op("cup" | "cap" | "minus" | "where" as head, args):
            parts = tuple(map(normal, args))
            if head == "cup" and all(is_op(part, "set") for part in parts):
                return Op("set", tuple(item for part in parts for item in children(part)))
            return Op(head, parts)
        case Op("*" | "neg" as head, args) as scaled:
            negated = head == "neg" and is_collection(args[0])
            return _scaled(Op("*", (Num(Fraction(-1)), *args)) if negated else scaled)
        case Relation() as relation:
            return _relation(relation)
        case Op() as other:
            signed = _signs(other)
            return Op("list", tuple(map(normal, signed))) if len(signed) > 1 else other  # (±2, 0)
        case other:
            return other


def _builder(element: Tree, condition: Tree) -> Tree:
    """Return a set of reals with a condition as the condition; other sets stay builders."""
    if isinstance(element, Relation) and element.operators == ("∈",):
        element, universe = element.sides
        if universe not in (REALS, Sym("ℝ")):
            return Op("builder", (element, condition))
    return normal(condition) if isinstance(element, Sym) else Op("builder", (normal(element), condition))


def _transposed(tree: Tree) -> Tree:
    if not is_op(tree, "matrix"):
        return tree
    rows = [row.args for row in tree.args if isinstance(row, Op)]
    return _column(Op("matrix", tuple(Op("tuple", cells) for cells in zip(*rows, strict=False))))


def _relation(tree: Relation) -> Tree:
    left, right = tree.sides[:2]
    if tree.operators == ("=",) and is_op(left, "mod"):
        return Op("mod", (Relation((left.args[0], right), ("≡",)), left.args[1]))  # 17 mod 5 = 2
    if tree.operators == ("≡",):
        return normal(Relation(tree.sides, ("=",)))
    if (unit := next((side for side in tree.sides if isinstance(side, Quantity)), None)) is not None:
        pairs = [split_unit(side, unit) for side in tree.sides]  # 5 km = 5000 m
        tree = Relation(tuple(Quantity(v, u) if u else v for v, u in pairs), tree.operators)
    signed = _signs(tree)
    return Op("list", tuple(map(normal, signed))) if len(signed) > 1 else _assignment(tree)


def _flat(tree: Tree) -> Tree:
    """Return a list in a list, as "x = 1, 2 or 3" is, as one list."""
    if is_op(tree, "list", "and", "or") and len(tree.args) == 1:
        return _flat(tree.args[0])
    return tree


def _signs(tree: Tree) -> list[Tree]:
    """Return both values of a tree with one ±; a ∓ has the other sign. Any other tree is returned alone."""
    found = [part for part in walk(tree) if is_op(part, "pm", "mp")]
    if not found or len(found) > 2 or (len(found) == 2 and found[0].head == found[1].head):
        return [tree]
    if is_collection(tree) and not is_op(tree, "tuple"):
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
        flat += item.args if is_op(item, "list") else [item]
    names = [named(item) for item in flat]
    name = next((n for n, _ in names if n), "")
    if name and all(
        n == name or (not n and not isinstance(item, Relation)) for (n, _), item in zip(names, flat, strict=True)
    ):
        values: list[Tree] = []
        for _, value in names:
            values += value.args if is_op(value, "list") else [value]
        if not any(isinstance(item, Relation) and item.operators != ("=",) for item in flat):
            return Relation((Sym(name), Op("list", tuple(values))), ("=",))
    if len({n for n, _ in names if n}) > 1 and head == "or":
        return Op("or", tuple(flat))
    return Op(head if any(isinstance(item, Relation) for item in flat) else "list", tuple(flat))


def named(tree: Tree) -> tuple[str, Tree]:
    """Return the name and the value of an assignment such as x = 5 or x ∈ (1, 2); "" and the tree for any other."""
    match tree:
        case Relation((Sym(name), value), ("=" | "∈",)) if name not in ("e", "i", "\\pi", "∞"):
            return name, value
        case Relation((Op("call", (Sym(name), *given)) as call, value), ("=" | "∈",)):
            letters = [arg.name for arg in given if isinstance(arg, Sym)]
            return (f"{name}({','.join(letters)})" if len(letters) == len(given) else repr(call)), value
    return "", tree


def _assignment(tree: Relation) -> Tree:
    """Return (x, y) = (1, 2) as the tuple, and 5 = x as x = 5."""
    if len(tree.sides) == 2 and tree.operators == ("=",):
        left, right = tree.sides
        if is_op(left, "tuple", "list") and all(isinstance(arg, Sym) for arg in left.args):
            return normal(right)
        if isinstance(right, Sym) and names_in(right) and not names_in(left):
            left, right = right, left
        right = normal(right)
        if not isinstance(left, Sym):
            return right if is_collection(right) else Relation((left, right), ("=",))
        return right if is_op(right, "set") and left.name.isupper() else Relation((left, right), ("=",))  # S = {1, 2}
    if len(tree.sides) == 2 and tree.operators == ("∈",):
        left, right = tree.sides[0], normal(tree.sides[1])
        return right if is_op(left, "tuple") else Relation((left, right), ("∈",))
    if set(tree.operators) == {"="} and all(isinstance(side, Sym) and names_in(side) for side in tree.sides[:-1]):
        return Op("and", tuple(Relation((side, tree.sides[-1]), ("=",)) for side in tree.sides[:-1]))  # m = n = 2
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
        if is_op(item, "tuple"):
            return Op("tuple", tuple(map(times, item.args)))
        return Op("*", (*factors, item))

    return Op(last.head, tuple(map(times, last.args)))


def split_unit(tree: Tree, other: Tree) -> tuple[Tree, str]:
    """Return a value and its unit; a letter after a number, as in 3 N, is a unit if the other value has one."""
    if isinstance(tree, Quantity):
        return tree.value, tree.unit
    if is_op(tree, "*") and isinstance(other, Quantity) and other.unit != "%":
        numbers = tuple(arg for arg in tree.args if not names_in(arg))
        letters = tree.args[len(numbers) :]
        if numbers and letters and tree.args[: len(numbers)] == numbers:
            unit = unit_named(" ".join(map(_letter, letters)))
            if unit is not None:
                return joined("*", numbers), unit
    return tree, ""


def _letter(tree: Tree) -> str:
    """Return a name or its power as text; ? for other trees."""
    if isinstance(tree, Sym):
        return tree.name
    if is_op(tree, "^") and isinstance(tree.args[0], Sym) and (power := fraction_of(tree.args[1])) is not None:
        return f"{tree.args[0].name}^{{{power}}}"
    return "?"


def difference(tree: Relation) -> Tree:
    return Op("+", (tree.sides[0], Op("neg", (tree.sides[-1],))))
