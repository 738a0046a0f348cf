"""Decide on families: parameters, arbitrary constants, congruences, and functions with cases or conditions."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise, product

from gem.graders.math.engine import SameFamily, SameFormula, SameProgressions
from gem.graders.math.equal.collections import as_sets, is_set_like
from gem.graders.math.equal.core import Verdict, all_of, same
from gem.graders.math.equal.formulas import same_name
from gem.graders.math.equal.normal import named, normal
from gem.graders.math.question import Question
from gem.graders.math.sets import bounds_of, contains
from gem.graders.math.tree import (
    Num,
    Op,
    Phrase,
    Quantity,
    Relation,
    Sym,
    Tree,
    is_op,
    joined,
    mapped,
    names_in,
    substituted,
    walk,
)
from gem.graders.math.values import approximate, fraction_of, is_formula

_INTEGERS = (Sym("ℤ"), Sym("ℕ"), Sym("ℤ+"), Sym("ℤ*"))
_CONSTANT_LETTERS = frozenset("ABCDKMabcdk") | {"\\alpha", "\\beta", "\\lambda"}
_VARIABLES = frozenset("nrstuvwxyz") | {"\\theta", "\\phi"}


def families(a: Tree, g: Tree, q: Question) -> Verdict | None:
    """Compare families of values: x = π/4 + kπ for all integers k, and C_1 e^x + C_2 for all constants."""
    (ours, declared), (theirs, gold_declared) = _parameters(a), _parameters(g)
    (name, _), (gold_name, _) = named(ours), named(theirs)
    if any(letter in name.partition("_")[2] + gold_name.partition("_")[2] for letter in {*declared, *gold_declared}):
        return same(ours, theirs, q)  # a_n is a sequence
    integers = {kind for each in (declared, gold_declared) for kind in each.values()} - {"ℝ"}
    if len(integers) > 1:
        return False
    periodic = all(
        any(part == Sym("\\pi") or isinstance(part, Quantity) for part in walk(tree)) for tree in (ours, theirs)
    )
    if integers == {"ℤ"} or (periodic and not integers):
        members = [_members(tree, each) for tree, each in ((ours, declared), (theirs, gold_declared))]
        if members[0] and members[1]:
            return SameProgressions(tuple(members[0]), tuple(members[1]))
    if len(declared) == len(gold_declared) == 1 and set(declared) != set(gold_declared):
        (letter,), (gold_letter,) = declared, gold_declared  # (3k, 4k) and (3t, 4t)
        if gold_letter not in names_in(ours):
            return same(substituted(ours, {letter: Sym(gold_letter)}), theirs, q)
    (name, x), (gold_name, y) = named(ours), named(theirs)
    has_constants = q.has_family or "ℝ" in {*declared.values(), *gold_declared.values()}
    if not is_formula(x) or not is_formula(y) or not has_constants:
        return None
    known = q.letters | {letter for each in (name, gold_name) for letter in each.partition("(")[2]}
    constants = [
        sorted(_arbitrary(tree, known) | {n for n, kind in each.items() if kind == "ℝ"} & names_in(tree))
        for tree, each in ((x, declared), (y, gold_declared))
    ]
    if not constants[1] or len(constants[0]) != len(constants[1]):
        return None
    if name and gold_name and not same_name(name.partition("(")[0], gold_name.partition("(")[0]):
        return False
    renamed = [
        substituted(tree, {n: Sym(f"q_{i}") for i, n in enumerate(each, 1)})
        for tree, each in zip((x, y), constants, strict=True)
    ]
    return SameFamily(renamed[0], renamed[1])


def _parameters(tree: Tree) -> tuple[Tree, dict[str, str]]:
    """Return a tree without the declarations of its parameters, and the set of each: ℝ for a constant."""
    declared: dict[str, str] = {}
    while is_op(tree, "where") and all(map(_is_declaration, tree.args[1:])):
        for condition in tree.args[1:]:
            left = condition.sides[0] if isinstance(condition, Relation) else condition
            numbers = condition.sides[1] if isinstance(condition, Relation) else None
            kind = numbers.name if isinstance(numbers, Sym) and numbers in _INTEGERS else "ℝ"
            declared |= {part.name: kind for part in walk(left) if isinstance(part, Sym)}
        tree = tree.args[0]
    return tree, declared


def _members(tree: Tree, declared: dict[str, str]) -> list[Tree] | None:
    """Return the formulas of a family of values of one integer, which is renamed to q_1; None for other trees."""
    _, tree = named(tree)
    match tree:
        case Op("list" | "or" | "and" | "set", items):
            parts = [_members(item, declared) for item in items]
            return None if None in parts else [each for part in parts for each in part or ()]
        case Op("where"):
            bare, own = _parameters(tree)
            return None if bare is tree else _members(bare, declared | own)
        case Op("mod") as congruence:
            _, value, modulus = _congruence(congruence)
            return [Op("+", (value, Op("*", (modulus, Sym("q_1")))))]
    degrees = isinstance(tree, Op) and any(isinstance(part, Quantity) for part in walk(tree))
    if isinstance(tree, Quantity) and tree.unit == "degree":
        tree, degrees = tree.value, True
    letters = names_in(tree)
    if len(letters) != 1 or not is_formula(tree) or not letters <= (set(declared) or {"k", "l", "m", "n"}):
        return None
    name = letters.pop()
    at = [approximate(tree, {name: complex(x)}) for x in (1, 2, 3)]
    if None in at or abs(at[0] - 2 * at[1] + at[2]) > 1e-9 * abs(at[2]):  # type: ignore[operator, arg-type]
        return None
    tree = substituted(tree, {name: Sym("q_1")})
    if degrees:
        tree = mapped(tree, lambda part: part.value if isinstance(part, Quantity) else part)
        return [Op("/", (Op("*", (tree, Sym("\\pi"))), Num(Fraction(180))))]
    return [tree]


def _arbitrary(tree: Tree, known: frozenset[str] | set[str]) -> set[str]:
    """Return the arbitrary constants of a general solution: letters such as C_1, A and k that the question has not."""
    found = {
        name
        for name in names_in(tree)
        if name.partition("_")[0] in _CONSTANT_LETTERS and (name not in known or "_" in name)
    }
    return found if len({name.casefold() for name in found}) == len(found) else set()


def integrals(a: Tree, g: Tree, q: Question) -> Verdict | None:
    """Compare two antiderivatives with an arbitrary constant at the end, whatever its letter."""
    found = [_without_constant(named(tree)[1]) for tree in (a, g)]
    bare = [each for each in found if each is not None]
    if len(bare) < 2 or "C" not in {constant[0] for _, constant in bare}:
        return None
    ours, theirs = (tree for tree, _ in bare)
    if not is_formula(ours) or not is_formula(theirs) or not names_in(theirs) <= _VARIABLES:
        return None
    return SameFormula(ours, theirs, up_to_constant=True)


def _without_constant(tree: Tree) -> tuple[Tree, str] | None:
    """Return a sum without its arbitrary constant, and the name of this; None for other trees."""
    while is_op(tree, "where"):
        tree = tree.args[0]
    if not isinstance(tree, Op) or tree.head != "+":
        return None
    names = ("C", "c", "K", "k")
    constants = [arg for arg in tree.args if isinstance(arg, Sym) and arg.name.partition("_")[0] in names]
    rest = tuple(arg for arg in tree.args if arg not in constants)
    if len(constants) != 1 or not rest or constants[0].name in names_in(Op("+", rest)):
        return None
    return joined("+", rest), constants[0].name


def progressions(a: Tree, g: Tree, q: Question) -> Verdict | None:
    """Compare the integers n = 3k + 1 with n ≡ 1 (mod 3)."""
    if not any(is_op(tree, "mod") for tree in (a, g)):
        return None
    pairs = [_residue(named(tree)[1]) for tree in (a, g)]
    if None in pairs or all(is_op(tree, "mod") for tree in (a, g)):
        return None
    (x, m), (y, n) = pairs  # type: ignore[misc]
    return bool(abs(m) == abs(n) and (x - y) % m == 0)


def _begins(tree: Tree, member: Tree) -> bool:
    """Return whether a condition such as k ≥ 0 leaves out no positive member of a residue class."""
    if not isinstance(tree, Relation) or len(tree.sides) != 2 or tree.operators[0] not in "<≤≥>":
        return False
    bounds = [fraction_of(side) for side in tree.sides if not names_in(side)]
    letters = names_in(tree)
    if len(bounds) != 1 or bounds[0] is None or len(letters) != 1:
        return False
    (letter,) = letters
    before = bounds[0] - 1 + (tree.operators[0] in "<>")
    last = fraction_of(substituted(member, {letter: Num(before)}))
    return last is not None and last <= 0


def _residue(tree: Tree) -> tuple[Fraction, Fraction] | None:
    """Return the residue and the modulus of a congruence, or of a linear formula of one letter."""
    while is_op(tree, "where"):
        if not all(_is_declaration(each) or _begins(each, named(tree.args[0])[1]) for each in tree.args[1:]):
            return None
        tree = named(tree.args[0])[1]
    if is_op(tree, "mod"):
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


def congruences(a: Tree, g: Tree, q: Question) -> Verdict | None:
    if not any(is_op(tree, "mod") for tree in (a, g)):
        return None
    (name, value, modulus), (gold_name, gold_value, gold_modulus) = (
        _congruence(tree) if is_op(tree, "mod") else ("", named(tree)[1], None) for tree in (a, g)
    )
    if name and gold_name and name != gold_name and ("ℤ" not in (name, gold_name) or "(" in name + gold_name):
        return False
    if "ℤ" in (name, gold_name) and None in (modulus, gold_modulus):
        return False  # odd is not 1
    if gold_modulus is None or modulus is None:  # 3 (mod 7) is 3, but n ≡ 3 (mod 7) is more than 3
        is_allowed = _is_residue(value, modulus, q) if gold_modulus is None else not gold_name
        return is_allowed and same(value, gold_value, q)
    x, y, m = fraction_of(value), fraction_of(gold_value), fraction_of(gold_modulus)
    if None in (x, y, m):
        return all_of((same(modulus, gold_modulus, q), same(value, gold_value, q)))
    return all_of((same(modulus, gold_modulus, q), bool(m) and ((x - y) / m).denominator == 1))  # type: ignore[operator]


def _is_residue(value: Tree, modulus: Tree | None, q: Question) -> bool:
    """Return whether a value is a least residue by a modulus that the question has."""
    x, m = fraction_of(value), None if modulus is None else fraction_of(modulus)
    return x is not None and m is not None and 0 <= x < m and (not q.text or str(m) in q.text)


def _congruence(tree: Op) -> tuple[str, Tree, Tree]:
    left, modulus = tree.args
    match left:
        case Relation((*_, name, value), (*_, "≡" | "=")):
            return name.name if isinstance(name, Sym) else repr(name) if names_in(name) else "", value, modulus
    return "", left, modulus


def piecewise(a: Tree, g: Tree, q: Question) -> Verdict | None:
    """Compare functions of which one has cases, at the bounds of the cases and between them."""
    values = [named(tree)[1] for tree in (a, g)]
    cases = [tree for tree in values if is_op(tree, "cases")]
    conditions = [
        row.args[1] for tree in cases for row in tree.args if isinstance(row, Op) and not _is_rest(row.args[1])
    ]
    names = {name for condition in conditions for name in names_in(condition)}
    if not cases or len(names) != 1:
        return None
    found = [bounds_of(normal(condition)) for condition in conditions]
    bounds = {value: bound for each in found for value, bound in each or ()}
    if None in found or not bounds:
        return None
    inner = [Fraction(value) for value in sorted(bounds)]
    low, high, far = inner[0], inner[-1], max(Fraction(1), abs(inner[0]), abs(inner[-1]))
    between = [x + (y - x) * part for x, y in pairwise(inner) for part in (Fraction(1, 2), Fraction(1, 3))]
    outside = [low - far, low - far * Fraction(7, 3), high + far, high + far * Fraction(7, 3)]
    (name,) = names
    verdicts: list[Verdict] = []
    for x, point in (*bounds.items(), *((float(each), Num(each)) for each in (*between, *outside))):
        ours, theirs = (_cases_at(value, name, x, point) for value in values)
        verdicts += [same(one, other, q) for one, other in product(ours, theirs)]
        if bool(ours) is not bool(theirs):
            return False
    return all_of(verdicts)


def _is_rest(condition: Tree) -> bool:
    return isinstance(condition, Phrase) and condition.text in ("otherwise", "else")


def _cases_at(tree: Tree, name: str, x: float, point: Tree) -> list[Tree]:
    """Return the values of a function, piecewise or not, in all cases that hold at a point near x."""
    if not isinstance(tree, Op) or tree.head != "cases":
        return [substituted(tree, {name: point})]
    rows = [row.args for row in tree.args if isinstance(row, Op)]
    found = [value for value, condition in rows if not _is_rest(condition) and contains(normal(condition), x)]
    found = found or [value for value, condition in rows if _is_rest(condition)]
    return [substituted(value, {name: point}) for value in found]


def wheres(a: Tree, g: Tree, q: Question) -> Verdict | None:
    """Compare values with conditions; a condition that only one of the two has says nothing if it is a domain."""
    if not any(is_op(tree, "where") for tree in (a, g)):
        return None
    if (is_set_like(a) or is_set_like(g)) and (verdict := as_sets(a, g, q)) is not None:
        return verdict
    (x, *ours), (y, *theirs) = (tree.args if is_op(tree, "where") else (tree,) for tree in (a, g))
    are_declared = all(map(_is_declaration, (*ours, *theirs)))
    if ours and theirs and not are_declared:
        return all_of((same(x, y, q), same(joined("and", ours), joined("and", theirs), q)))
    return are_declared and same(x, y, q)


def _is_declaration(tree: Tree) -> bool:
    return isinstance(tree, Sym) or (isinstance(tree, Relation) and tree.operators == ("∈",))
