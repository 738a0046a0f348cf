"""The trees of parsed math answers: a few small types, compared by value."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeGuard


@dataclass(frozen=True, slots=True)
class Num:
    """A number as written.

    Args:
        places: digits after its decimal point, less the power of ten that it is written with; None for integers and
            fractions. 1.50 has 2, and 1.5e3 has -2.
    """

    exact: Fraction
    places: int | None = None


@dataclass(frozen=True, slots=True)
class Sym:
    r"""A name with its subscript and primes: x, a_{n}, f', \pi, \vec{v}, AB, y(t), dy/dx."""

    name: str


@dataclass(frozen=True, slots=True)
class Op:
    r"""An operator or function with its arguments, or a collection with its items. Heads are:

    - arithmetic: + * / ^ neg pm mp (of one or two arguments) ! !! sqrt (radicand, index) abs floor ceil binom
      mixed (integer, fraction) sin, cos, … log (argument, base) gcd, … call (function, arguments), ' (derivative)
    - calculus: int (integrand, variable, lower, upper), sum and prod (term, variable, lower, upper), lim (term,
      variable, point, direction), diff (function, variable)
    - collections: list and or (items of an answer without brackets), tuple, set, matrix (of tuples), cases (of tuples
      of a value and its condition), cup cap minus (of sets), builder (element, condition), ratio, time, dots
    - where (value, conditions), mod (value, modulus), given (event, condition), transpose, label (letter, value)
    """

    head: str
    args: tuple[Tree, ...] = ()


@dataclass(frozen=True, slots=True)
class Quantity:
    """A value with a canonical unit of gem.graders.math.units, such as km/h, degree and %."""

    value: Tree
    unit: str


@dataclass(frozen=True, slots=True)
class Interval:
    """An interval of real numbers; a bound may be infinite. ``closed`` says which bounds belong to it."""

    low: Tree
    high: Tree
    closed: tuple[bool, bool]


@dataclass(frozen=True, slots=True)
class Relation:
    """Sides joined by operators, such as 1 < x ≤ 2; there is one more side than operators."""

    sides: tuple[Tree, ...]
    operators: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class InBase:
    """A number written with its base as a subscript."""

    digits: str
    base: int


@dataclass(frozen=True, slots=True)
class Phrase:
    """Words in their order, with the math between them as trees."""

    parts: tuple[str | Tree, ...]

    @property
    def text(self) -> str:
        return " ".join(part for part in self.parts if isinstance(part, str))


Tree = Num | Sym | Op | Quantity | Interval | Relation | InBase | Phrase

ZERO, ONE, TWO, TEN = (Num(Fraction(n)) for n in (0, 1, 2, 10))
INFINITY = Sym("∞")
MINUS_INFINITY = Op("neg", (INFINITY,))
REALS = Interval(MINUS_INFINITY, INFINITY, (False, False))
EMPTY = Op("set", ())
COLLECTIONS = frozenset(
    {"list", "and", "or", "tuple", "set", "matrix", "cases", "cup", "cap", "minus", "builder", "ratio"}
)


def joined(head: str, items: Sequence[Tree]) -> Tree:
    """Return the only item, or an Op of several."""
    return items[0] if len(items) == 1 else Op(head, tuple(items))


def is_op(tree: object, *heads: str) -> TypeGuard[Op]:
    """Return whether a tree is an Op with one of the heads."""
    return isinstance(tree, Op) and tree.head in heads


def children(tree: Tree) -> tuple[Tree, ...]:
    """Return the trees of which a tree is made."""
    match tree:
        case Op(_, args):
            return args
        case Quantity(value, _):
            return (value,)
        case Interval(low, high, _):
            return (low, high)
        case Relation(sides, _):
            return sides
        case Phrase(parts):
            return tuple(part for part in parts if not isinstance(part, str))
    return ()


def walk(tree: Tree) -> Iterator[Tree]:
    """Yield a tree and all trees in it."""
    yield tree
    for child in children(tree):
        yield from walk(child)


def mapped(tree: Tree, change: Callable[[Tree], Tree]) -> Tree:
    """Return a tree with its parts changed, from the leaves up."""
    match tree:
        case Op(head, args):
            tree = Op(head, tuple(mapped(arg, change) for arg in args))
        case Quantity(value, unit):
            tree = Quantity(mapped(value, change), unit)
        case Interval(low, high, closed):
            tree = Interval(mapped(low, change), mapped(high, change), closed)
        case Relation(sides, operators):
            tree = Relation(tuple(mapped(side, change) for side in sides), operators)
        case Phrase(parts):
            tree = Phrase(tuple(part if isinstance(part, str) else mapped(part, change) for part in parts))
    return change(tree)


def names_in(tree: Tree) -> set[str]:
    """Return the names in a tree that stand for variables, bound ones included; not e, i, π and ∞."""
    return {part.name for part in walk(tree) if isinstance(part, Sym)} - {"e", "i", "\\pi", "∞"}


def is_collection(tree: Tree) -> bool:
    return isinstance(tree, Interval) or (isinstance(tree, Op) and tree.head in COLLECTIONS)


def substituted(tree: Tree, names: dict[str, Tree]) -> Tree:
    return mapped(tree, lambda part: names.get(part.name, part) if isinstance(part, Sym) else part)
