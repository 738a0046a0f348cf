"""Words and signs of the grammar, and small operations on tokens and trees."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from gem.graders.math.lexer import Token, words
from gem.graders.math.tree import (
    INFINITY,
    MINUS_INFINITY,
    REALS,
    Interval,
    Num,
    Op,
    Quantity,
    Relation,
    Sym,
    Tree,
    is_op,
    names_in,
)

RELATIONS = words("= < > ≤ ≥ ≠ ≈ ≡ ∈ ∉ ∼ → ⊂ ∥ ⊥ ≅")
FUNCTIONS = words(
    "sin cos tan cot sec csc arcsin arccos arctan arccot arcsec arccsc sinh cosh tanh coth sech csch log ln lg "
    "exp arg Re Im det gcd lcm max min sgn deg dim ker tr rank span adj cis erf Gamma Var"
)
MANY = frozenset({"gcd", "lcm", "max", "min", "span"})  # functions of several arguments
CALLED = words("f F G H P E")  # letters before brackets that are functions, not factors
SEPARATORS = {",": "list", ";": "list", "and": "and", "or": "or", "∧": "and", "∨": "or", "&": "and"}
SEPARATORS |= {"und": "and", "et": "and", "и": "and", "oder": "or", "ou": "or", "или": "or"}
CONDITIONS = words("for where with if when whenever provided given such as assuming at")
DECLARING = CONDITIONS | words(
    "all any that every some real arbitrary is are be an a the number numbers constant constants and complex"
)
_BASE_NAMES = {"two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10}
BASES = {**_BASE_NAMES, "twelve": 12, "sixteen": 16, "hex": 16}
END = Token("end", "")
HOURS = frozenset(Num(Fraction(hour)) for hour in range(25))
SETS: dict[str, Tree] = {
    "mathbbR": REALS,
    "mathbbZ": Sym("ℤ"),
    "mathbbN": Sym("ℕ"),
    "mathbbQ": Sym("ℚ"),
    "mathbbC": Sym("ℂ"),
}


class NotMath(ValueError):
    """The tokens are no formula."""


FAILURES = (NotMath, RecursionError, ZeroDivisionError)  # of the parser


_NOT_PRODUCTS = words(
    "or and is in no of to by at on if so as an we it he up be do my us go the for not all one two six ten per "
    "mod red yes odd any day old men how who you can cm mm km kg ml ft mi oz lb hr min sec deg sum dne pm am"
)


_VAGUE = words("approximately about roughly all exactly")


def product(left: Tree, right: Tree) -> Tree:
    factors = [each for side in (left, right) for each in (side.args if is_op(side, "*") else (side,))]
    return Op("*", tuple(factors))


def with_unit(head: str, left: Tree, right: Tree) -> Tree:
    """Return a product or quotient; the unit after its last factor is that of the whole, as in 3/4 inch."""
    if isinstance(right, Quantity) and not isinstance(left, Quantity):
        return Quantity(with_unit(head, left, right.value), right.unit)
    return product(left, right) if head == "*" else Op("/", (left, right))


def negated(head: str, tree: Tree) -> Tree:
    return Quantity(Op(head, (tree.value,)), tree.unit) if isinstance(tree, Quantity) else Op(head, (tree,))


def is_infinite(tree: Tree) -> bool:
    return tree in (INFINITY, MINUS_INFINITY)


def is_row(tree: Tree) -> bool:
    return (isinstance(tree, Interval) and tree.closed == (True, True)) or (is_op(tree, "tuple"))


def row(tree: Tree) -> Tree:
    return Op("tuple", (tree.low, tree.high)) if isinstance(tree, Interval) else tree


def is_product(word: str) -> bool:
    """Return whether letters of plain text are a product of variables, such as xy and ABC, and not a word."""
    is_name = len(word) > 2 and word.istitle() and bool(set(word[:2].lower()) & set("aeiou"))
    if not word.isascii() or len(word) > 4 or word.lower() in ("am", "pm", "dne") or word in _NOT_PRODUCTS or is_name:
        return False
    if word.isupper():
        return True
    return len(word) <= 3 or not set(word) & set("aeiouy")


def flat(found: Sequence[Token]) -> str:
    return "".join(flat(token.inner) if token.kind == "group" else token.text for token in found)


def _declares(tree: Tree) -> bool:
    return isinstance(tree, Relation) and tree.operators == ("∈",)


def is_condition(tree: Tree) -> bool:
    if is_op(tree, "list", "and"):
        return all(map(is_condition, tree.args))
    return isinstance(tree, Relation) and (tree.operators[0] != "=" or len(names_in(tree)) == 1)


def is_domain(tree: Tree, before: Tree) -> bool:
    r"""Return whether an item such as k \in ℤ only says where the item before it holds."""
    if not isinstance(tree, Relation) or not set(tree.operators) <= {"∈", "≠", "≤", "≥", "<", ">"}:
        return False
    if isinstance(before, Relation) and not set(before.operators) <= {"=", "≡", "≈"}:
        return False
    return tree.operators[0] in ("∈", "≠") or not isinstance(before, (Num, Interval))


def with_conditions(trees: list[Tree]) -> list[Tree]:
    """Join conditions in a list, such as x ≠ 2 and k ∈ ℤ, to the value before them."""
    found: list[Tree] = []
    for tree in trees:
        conditions = tree.args if is_op(tree, "where") and len(tree.args) == 1 else (tree,)
        if found and (conditions != (tree,) or is_domain(tree, found[-1])):
            found[-1] = Op("where", (found[-1], *conditions))
        else:
            found.append(tree)
    last = found[-1]
    if len(found) > 1 and is_op(last, "where") and isinstance(last.args[0], Relation) and _declares(last.args[1]):
        return [Op("where", (Op("list", (*found[:-1], last.args[0])), *last.args[1:]))]  # x = 2k, y = 3k for integers k
    return found


def stripped(found: Sequence[Token]) -> Sequence[Token]:
    """Remove signs around an answer that are no part of it: quotes, Markdown, a final full stop, a leading =."""
    start, end = 0, len(found)
    while start < end and (found[start].text in ("=", "≈", '"', "`", ":", ",", "→", "∴")):
        start += 1
    while start + 1 < end and found[start].text.casefold() in _VAGUE and found[start + 1].kind != "word":
        start += 1
    while start < end and (found[end - 1].text in (".", ",", ";", '"', "`", ":", "…")):
        if found[end - 1].text == "…" and end - start > 2 and found[end - 2].text in (",", "+"):
            break
        if found[end - 1].text == "…" and found[end - 2].kind == "number":
            break
        end -= 1
    if end - start == 1 and found[start].kind == "group" and not is_set(found[start].inner):
        return stripped(found[start].inner)
    return found[start:end]


def is_set(found: Sequence[Token]) -> bool:
    return len(found) > 2 and found[1].text in ("|", "∈")


def infix(found: Sequence[Token]) -> tuple[str, Sequence[Token], Sequence[Token]] | None:
    r"""Split tokens at \over or \choose; None if they have neither."""
    for name, head in (("over", "/"), ("choose", "binom")):
        at = next((i for i, token in enumerate(found) if token.text == name and token.kind == "command"), 0)
        if at:
            return head, found[:at], found[at + 1 :]
    return None
