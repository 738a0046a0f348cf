"""Decide conditions on formulas with computer algebra, in a worker process that can be killed.

Formulas are compared structurally, then by the value of their difference (at random points if they have variables). A
rational difference is computed exactly. Any other is computed with a precision that grows with the size of the numbers
in the formulas, so that e^{-100} is not mistaken for 0.
"""

from __future__ import annotations

import math
import random
import signal
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import permutations
from typing import Any

from gem._internal.text import short_repr
from gem.errors import BadValue, GraderError
from gem.graders.math.heads import HEADS, MAX_DIGITS, sympy_library
from gem.graders.math.tree import Num, Op, Quantity, Sym, Tree

DIGITS = 40  # decimal digits of numerical evaluation, in addition to twice the size of the formula
AGREEMENT = 30  # decimal digits that must agree, in addition to the size of the formula
CPU_SECONDS = 1.5  # limit on the CPU time of one comparison; typical formulas take milliseconds
MAX_SIZE = 10_000  # size of a formula, in decimal digits, above which its value is undecided
POINTS = 6  # number of random points for expressions with variables; half of the values must be defined
INTEGER_POINTS = 8  # number of integer points, for formulas that have a function in _STEPS
CONFIRMING_DIGITS = 500  # a difference that vanishes is computed again with these digits
TINY = Fraction(1, 10**25)  # a number below it counts as zero in a family
MAX_CONSTANTS = 4
MAX_RESIDUES = 200  # members of a progression within the common period
MAX_FAR = 2_000  # greatest integer point for formulas with a variable in an exponent or under a factorial
UNDEFINED, UNDECIDED = "undefined", "undecided"  # verdicts of _is_zero() besides True and False
_SLOW = ("Integral", "Sum", "Product", "Limit", "Derivative")  # not computed with CONFIRMING_DIGITS
_STEPS = ("floor", "ceiling", "factorial", "binomial")  # functions whose special values are at integers
_UNREADABLE = (
    BadValue,
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    MemoryError,
    NotImplementedError,
    RecursionError,
    TypeError,
    ValueError,
)  # of sympy


@dataclass(frozen=True)
class SameFormula:
    """The condition that two formulas are equal wherever both are defined.

    Args:
        integers: letters that stand for positive integers, as k, m and n always do in floors and factorials; all others
            stand for complex numbers.
        positive: names that stand for positive numbers.
        up_to_constant: whether the formulas may differ by a constant.
    """

    answer: Tree
    gold: Tree
    integers: str = ""
    positive: str = ""
    up_to_constant: bool = False


@dataclass(frozen=True)
class SameEquation:
    """The condition that two equations, given as the difference of their sides, are equal up to a constant factor.

    Args:
        positive: whether the factor must be positive, because the two are inequalities.
    """

    answer: Tree
    gold: Tree
    positive: bool = False


@dataclass(frozen=True)
class SameFamily:
    """The condition that two formulas with the arbitrary constants q_1, q_2 and so on have the same members."""

    answer: Tree
    gold: Tree


@dataclass(frozen=True)
class SameProgressions:
    """The condition that two unions of progressions base + step q_1, over all integers q_1, are equal."""

    answer: tuple[Tree, ...]
    gold: tuple[Tree, ...]


@dataclass(frozen=True)
class Rounded:
    """The condition that the absolute value of a difference is at most a tolerance."""

    difference: Tree
    tolerance: Fraction


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


Condition = SameFormula | SameEquation | SameFamily | SameProgressions | Rounded | AllOf | AnyOf | Matching


def first_true(conditions: Sequence[Condition]) -> int | None:
    """Return the index of the first condition that holds; None if no condition holds."""
    return next((i for i, condition in enumerate(conditions) if holds(condition)), None)


def first_true_within(conditions: Sequence[Condition], seconds: float = CPU_SECONDS) -> int | None:
    """Evaluate first_true() with a limit on the CPU time of each condition, in the main thread of a worker process.

    A condition that exceeds the limit does not hold. CPU time, unlike time, does not depend on the load of the machine.

    Raises:
        GraderError: no condition holds, one exceeds the limit, and evaluating its reference formula exceeds it too.
    """
    exceeded: list[Condition] = []
    for index, condition in enumerate(conditions):
        try:
            with _cpu_limit(seconds):
                if holds(condition):
                    return index
        except _CpuTimeExceeded:
            exceeded.append(condition)
    for gold in _golds(exceeded):
        try:
            with _cpu_limit(seconds):
                holds(SameFormula(gold, Sym("\\pi")))
        except _CpuTimeExceeded:
            formula = short_repr(str(gold), 80)
            raise GraderError(
                f"the formula {formula} of the reference answer needs over {seconds:g} s of CPU"
            ) from None
    return None


class _CpuTimeExceeded(BaseException):
    """The limit on CPU time was exceeded. Not an Exception, so that parse() does not handle it."""


@contextmanager
def _cpu_limit(seconds: float) -> Iterator[None]:
    """Raise _CpuTimeExceeded in the main thread when this process has used some more seconds of CPU time."""

    def stop(number: int, frame: Any) -> None:
        raise _CpuTimeExceeded

    before = signal.signal(signal.SIGPROF, stop)
    # Repeated, because an exception that the handler raises in a destructor or a callback of gc is swallowed.
    signal.setitimer(signal.ITIMER_PROF, seconds, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def _golds(conditions: Iterable[bool | Condition]) -> Iterator[Tree]:
    """Yield the reference formulas of conditions."""
    for condition in conditions:
        if isinstance(condition, (AllOf, AnyOf)):
            yield from _golds(condition.conditions)
        elif isinstance(condition, Matching):
            yield from _golds(cell for row in condition.rows for cell in row)
        elif isinstance(condition, (SameFormula, SameFamily, SameEquation)):
            yield condition.gold
        elif isinstance(condition, SameProgressions):
            yield from condition.gold


def first_error(formulas: Sequence[Tree]) -> str | None:
    """Return the error of the first formula that cannot be evaluated; None if all can."""
    for tree in formulas:
        try:
            to_sympy(tree)
        except BadValue as e:
            return str(e)
    return None


def holds(condition: bool | Condition) -> bool:
    """Evaluate a condition. A formula that cannot be evaluated is not equal to any formula."""
    if isinstance(condition, bool):
        return condition
    if isinstance(condition, AllOf):
        return all(map(holds, condition.conditions))
    if isinstance(condition, AnyOf):
        return any(map(holds, condition.conditions))
    if isinstance(condition, Matching):
        return _match(condition.rows)
    try:
        if isinstance(condition, SameEquation):
            return _same_equation(condition)
        if isinstance(condition, SameFamily):
            return _same_family(condition)
        if isinstance(condition, SameProgressions):
            return _same_progressions(condition)
        if isinstance(condition, Rounded):
            value = sympy_library().N(to_sympy(condition.difference), DIGITS)
            return bool(value.is_Float and abs(value) <= condition.tolerance)
        return _same_formula(condition)
    except _UNREADABLE:
        return False


def _match(rows: Sequence[Sequence[bool | Condition]]) -> bool:
    """Return whether each row can be assigned a different column whose condition holds.

    Equality is transitive, so it is sufficient to assign the first free column to each row.
    """
    free = list(range(len(rows)))
    for row in rows:
        column = next((column for column in free if holds(row[column])), None)
        if column is None:
            return False
        free.remove(column)
    return True


# --- trees as sympy objects ---


@lru_cache(maxsize=4096)
def to_sympy(tree: Tree) -> Any:
    """Return the sympy expression of a formula. Raises BadValue if the tree is no formula.

    Arithmetic is evaluated exactly; so are integrals, sums, products, limits and derivatives, if possible.
    """
    try:
        expression = _sympy(tree)
        if _digits(expression) > MAX_DIGITS:
            raise BadValue(f"a number with more than {MAX_DIGITS} digits")
        return expression.doit()
    except _UNREADABLE as e:
        raise BadValue(f"not a formula: {short_repr(str(tree), 80)} ({type(e).__name__})") from e


def _sympy(tree: Tree) -> Any:
    sympy = sympy_library()
    if isinstance(tree, Num):
        return sympy.Rational(tree.exact.numerator, tree.exact.denominator)
    if isinstance(tree, Sym):
        constants = {"e": sympy.E, "i": sympy.I, "\\pi": sympy.pi, "∞": sympy.oo}
        return constants.get(tree.name) or sympy.Symbol(tree.name)
    if isinstance(tree, Quantity) and tree.unit in ("degree", "%"):
        return _sympy(tree.value) * (sympy.pi / 180 if tree.unit == "degree" else sympy.Rational(1, 100))
    if not isinstance(tree, Op):
        raise BadValue(f"not a formula: {tree}")
    if tree.head == "call":
        return sympy.Function(_sympy_name(tree.args[0]))(*map(_sympy, tree.args[1:]))
    if tree.head == "lim":
        side = str(_sympy_name(tree.args[3]))
        point = _sympy(tree.args[2])
        side = side if point.is_finite else "+"
        return sympy.Limit(_sympy(tree.args[0]), _sympy(tree.args[1]), point, side)
    if tree.head == "det":
        (matrix,) = tree.args
        if not isinstance(matrix, Op) or matrix.head != "matrix":
            raise BadValue("a determinant of no matrix")
        return sympy.Matrix([[_sympy(cell) for cell in row.args] for row in matrix.args if isinstance(row, Op)]).det()
    if tree.head not in HEADS or (build := HEADS[tree.head].symbolic) is None:
        raise BadValue(f"an operator {tree.head}")
    return (getattr(sympy, build) if isinstance(build, str) else build)(*map(_sympy, tree.args))


def _sympy_name(tree: Tree) -> str:
    if not isinstance(tree, Sym):
        raise BadValue(f"not a name: {tree}")
    return tree.name


def _digits(expression: Any) -> float:
    """Return an upper estimate of the decimal digits of the integers that doit() computes for an expression."""
    if (
        not isinstance(expression, sympy_library().Basic)
        or expression.is_Symbol
        or not (expression.args or expression.is_Rational)
    ):
        return 0.0
    if expression.is_Rational:
        return math.log10(abs(expression.p) or 1) + math.log10(expression.q)
    total = sum(map(_digits, expression.args))
    if expression.is_Pow and expression.exp.is_number:
        exponent = expression.exp if _digits(expression.exp) < 10 else math.inf
        return _digits(expression.base) * max(1.0, abs(complex(exponent))) + total
    if expression.func.__name__ == "factorial" and expression.args[0].is_number:
        size = abs(complex(expression.args[0])) if total < 10 else math.inf
        return size * math.log10(size + 1)
    return total


# --- equality ---


def _same_formula(condition: SameFormula) -> bool:
    ours, theirs = to_sympy(condition.answer), to_sympy(condition.gold)
    if bool(ours == theirs):
        return True
    if not _is_expression(ours) or not _is_expression(theirs):
        return False
    difference = ours - theirs
    if condition.up_to_constant:
        difference -= difference.subs(_random_point(_symbols(difference), POINTS))
    return _vanishes(difference, condition.integers, condition.positive, (ours, theirs))


def _same_equation(condition: SameEquation) -> bool:
    ours, theirs = to_sympy(condition.answer), to_sympy(condition.gold)
    if ours.free_symbols != theirs.free_symbols:
        return False
    if ours == 0 or theirs == 0:
        return bool(ours == theirs)
    if condition.positive:
        return _is_multiple(ours, theirs, positive=True)
    numerators = [sympy_library().numer(sympy_library().together(difference)) for difference in (ours, theirs)]
    return _is_multiple(ours, theirs) or _is_multiple(*numerators)  # xy = 1 and y = 1/x


def _is_multiple(ours: Any, theirs: Any, *, positive: bool = False) -> bool:
    """Return whether the ratio of two expressions is the same at all random points, and not zero (or positive)."""
    symbols = _symbols(ours)
    points = [_random_point(symbols, point) for point in range(POINTS)]
    pairs = [(ours.subs(at), theirs.subs(at)) for at in points]
    known = [pair for pair in pairs if all(_is_zero(value) is False for value in pair)]
    if positive and not all(sympy_library().N(a / b, 15).is_positive for a, b in known):
        return False
    return len(known) >= POINTS // 2 and all(_is_zero(a * known[0][1] - known[0][0] * b) for a, b in known)


def _is_expression(value: Any) -> bool:
    """Return whether a sympy object is an expression, in contrast to an equation, a set or a truth value."""
    return isinstance(value, sympy_library().Expr)


def _vanishes(difference: Any, integers: str = "", positive: str = "", sides: Sequence[Any] = ()) -> bool:
    """Return whether an expression is zero. An expression with variables is evaluated at random points.

    Points where none of ``sides`` is real, if they have no i, are outside the domain: √(1/n) is 1/√n.
    """
    symbols = _symbols(difference)
    if not symbols:
        return _is_zero(difference) is True
    steps = difference.has(*(getattr(sympy_library(), name) for name in _STEPS))
    whole = all(symbol.name in integers or (steps and symbol.name in "kmn") for symbol in symbols)
    if whole:
        points: list[dict[Any, Any]] = [_integer_point(symbols, point) for point in range(3 * INTEGER_POINTS)]
    else:
        points = [_random_point(symbols, point, positive) for point in range(POINTS)]
    known = [verdict for at in points if (verdict := _is_zero(difference.subs(at))) is not UNDEFINED]
    if False in known and sides and not any(side.has(sympy_library().I) for side in sides):
        points = [at for at in points if any(sympy_library().N(side.subs(at)).is_real for side in sides)]
        known = [verdict for at in points if (verdict := _is_zero(difference.subs(at))) is not UNDEFINED]
    if not known or 2 * len(known) < len(points) + whole or not all(verdict is True for verdict in known):
        return False
    if steps and not whole:
        values = [difference.subs(_integer_point(symbols, point)) for point in range(INTEGER_POINTS)]
        if not all(verdict in (True, UNDEFINED) for verdict in map(_is_zero, values)):
            return False
    far = _far_points(difference, symbols, whole, positive)  # |x - 100| is not 100 - x
    return all(_is_zero(difference.subs(at)) is not False for at in far)


def _is_zero(value: Any) -> bool | str:
    """Return whether a constant is zero; UNDEFINED if it is not a finite number; UNDECIDED if it is too large."""
    if value.is_Rational:
        return bool(value == 0)
    if not value.is_number or value.is_finite is False:
        return UNDEFINED
    size = _size(value)
    if size > MAX_SIZE:
        return UNDECIDED
    try:
        number = sympy_library().N(value, DIGITS + 2 * size)
        if not number.is_number or not number.is_finite:
            return UNDEFINED
        if abs(number) >= sympy_library().Float(10) ** -(AGREEMENT + size):
            return False
        if size > CONFIRMING_DIGITS or value.has(*(getattr(sympy_library(), name) for name in _SLOW)):
            return True
        number = sympy_library().N(value, CONFIRMING_DIGITS)  # cos(10^{-30}) agrees with 1 to 60 digits
        return bool(abs(number) < sympy_library().Float(10) ** -(CONFIRMING_DIGITS - 2 * DIGITS))
    except ValueError:  # a series that diverges at this point
        return UNDEFINED


def _size(value: Any) -> int:
    """Return an upper estimate of the decimal digits that the integers and powers in a constant have in total."""
    sympy, total = sympy_library(), 0.0
    if value.has(sympy.functions.elementary.hyperbolic.HyperbolicFunction):
        value = value.rewrite(sympy.exp)  # 1 - tanh(200) is as small as e^{-400}
    for part in sympy.preorder_traversal(value):
        if part.is_Rational:
            total += math.log10(abs(part.p) or 1) + math.log10(part.q)
        elif part.args and not part.is_Add and not part.is_Mul and part.is_number:
            number = abs(sympy.N(part, 5))
            if number.is_finite and number > 0:
                total += abs(float(sympy.log(number, 10)))
        if total > MAX_SIZE:
            break
    return math.ceil(total)


def _symbols(expression: Any) -> list[Any]:
    return sorted(expression.free_symbols, key=lambda symbol: symbol.name)


def _random_point(symbols: Sequence[Any], point: int, positive: str = "") -> dict[Any, Any]:
    """Return a random rational value of each symbol, seeded by ``point``; a positive one for ``positive`` letters."""
    chance = random.Random(point)
    values = {s: (chance.choice([-1, 1, 1]), chance.randint(101, 2999)) for s in symbols}
    signs = {s: 1 if s.name in positive.split() else sign for s, (sign, _) in values.items()}
    return {s: sympy_library().Rational(signs[s] * size, 997) for s, (_, size) in values.items()}


def _far_points(expression: Any, symbols: Sequence[Any], whole: bool, positive: str) -> list[dict[Any, Any]]:
    """Return points beyond the numbers in an expression, where absolute values, maxima and floors change.

    They are integers if ``whole``. There is none if powers would become too large, or where a root or a logarithm of a
    negative number is taken.
    """
    sympy = sympy_library()
    scale = max((max(abs(n.p), n.q) for n in expression.atoms(sympy.Rational)), default=0) + 1
    powers = [power for power in expression.atoms(sympy.Pow) if power.exp.free_symbols]
    if any(power.exp.atoms(sympy.Pow) for power in powers):
        return []
    if whole and (powers or expression.has(sympy.factorial, sympy.binomial, sympy.gamma)) and scale > MAX_FAR // 2:
        return []
    points = []
    for point in range(POINTS if scale > 3 else 0):
        chance = random.Random(point)
        sizes = {s: scale + chance.randint(1, scale) for s in symbols}
        if not whole:
            signs = {s: 1 if s.name in positive.split() else (-1) ** point for s in symbols}
            sizes = {
                s: sympy.Rational(signs[s] * (997 * size + chance.randint(1, 996)), 997) for s, size in sizes.items()
            }
        points.append(sizes)
    radicands = [power.base for power in expression.atoms(sympy.Pow) if not power.exp.is_integer]
    radicands += [part.args[0] for part in expression.atoms(sympy.log)]
    return [at for at in points if not any(part.subs(at).is_negative for part in radicands)]


def _integer_point(symbols: Sequence[Any], point: int) -> dict[Any, int]:
    """Return a positive integer value of each symbol; ``point + 1`` for the first symbol."""
    chance = random.Random(point)
    return {symbol: point + 1 + chance.randint(0, 6) * (index > 0) for index, symbol in enumerate(symbols)}


# --- families ---


def _same_family(condition: SameFamily) -> bool:
    """Return whether two formulas with the same number of arbitrary constants have the same members.

    Families that are linear in their constants are equal if their functions span the same space, and their difference
    is in it. Others must be equal after renaming the constants.
    """
    ours, theirs = to_sympy(condition.answer), to_sympy(condition.gold)
    constants, gold_constants = _constants(ours), _constants(theirs)
    size = len(constants)
    if not 1 <= size <= MAX_CONSTANTS or size != len(gold_constants):
        return False
    variables = sorted(ours.free_symbols - set(constants), key=str)
    if set(variables) != theirs.free_symbols - set(gold_constants):
        return False
    spans, gold_spans = _linear(ours, constants), _linear(theirs, gold_constants)
    if spans is None or gold_spans is None:
        return any(
            _vanishes(ours.subs(dict(zip(constants, order, strict=True)), simultaneous=True) - theirs)
            for order in permutations(gold_constants)
        )
    rows = [_values(each, variables, size) for each in (*spans, *gold_spans)]
    ours_rows, gold_rows, apart = rows[1 : size + 1], rows[size + 2 :], _minus(rows[0], rows[size + 1])
    return (
        None not in rows
        and _rank(ours_rows) == _rank(gold_rows) == size
        and _rank([*ours_rows, *gold_rows, apart]) == size
    )


def _same_progressions(condition: SameProgressions) -> bool:
    """Return whether two unions of arithmetic progressions base + step q_1, over all integers q_1, are equal."""
    answers, golds = condition.answer, condition.gold
    families = [_progression(tree) for tree in (*answers, *golds)]
    known = [family for family in families if family is not None]
    ratios = [_near_fraction(step / known[0][1]) for _, step in known]
    exact = [ratio for ratio in ratios if ratio]
    if not len(families) == len(known) == len(exact):
        return False
    parts = math.lcm(*(ratio.denominator for ratio in exact))
    sizes, unit = [abs(int(ratio * parts)) for ratio in exact], known[0][1] / parts
    period = math.lcm(*sizes)
    if any(period // size > MAX_RESIDUES for size in sizes):
        return False
    residues = [
        [base / unit + j * size for j in range(period // size)] for (base, _), size in zip(known, sizes, strict=True)
    ]
    ours, theirs = residues[: len(answers)], residues[len(answers) :]
    return all(
        any(_is_small((x - y + Fraction(period, 2)) % period - Fraction(period, 2)) for each in others for y in each)
        for some, others in ((ours, theirs), (theirs, ours))
        for each in some
        for x in each
    )


def _constants(expression: Any) -> list[Any]:
    return sorted((s for s in expression.free_symbols if s.name.startswith("q_")), key=lambda s: str(s.name))


def _linear(expression: Any, constants: Sequence[Any]) -> list[Any] | None:
    """Return the formula for zero constants and the factor of each constant; None if it is not linear in them."""
    factors = [sympy_library().expand(expression).diff(constant) for constant in constants]
    if any(factor.has(*constants) for factor in factors):
        return None
    return [expression.subs(dict.fromkeys(constants, 0)), *factors]


def _values(expression: Any, variables: Sequence[Any], size: int) -> list[Any] | None:
    """Return the values of a formula at random positive points; None if it is undefined at one."""
    sympy, chance, values = sympy_library(), random.Random(7), []
    for _ in range(2 * size + 3):
        point = {variable: sympy.Rational(chance.randint(101, 1999), 997) for variable in variables}
        value = sympy.N(expression.subs(point), DIGITS)
        if not value.is_number or not value.is_finite:
            return None
        values.append(value)
    return values


def _minus(a: list[Any] | None, g: list[Any] | None) -> list[Any] | None:
    return None if a is None or g is None else [x - y for x, y in zip(a, g, strict=True)]


def _rank(rows: Sequence[list[Any] | None]) -> int:
    """Return the rank of a matrix of floating-point numbers, by elimination with pivots."""
    left = [list(row) for row in rows if row is not None]
    rank = 0
    while left:
        sizes = [max(map(abs, row)) for row in left]
        pivot = left.pop(max(range(len(left)), key=lambda i: sizes[i]))
        column = max(range(len(pivot)), key=lambda j: abs(pivot[j]))
        if abs(pivot[column]) < TINY:
            break
        rank += 1
        left = [[x - row[column] / pivot[column] * p for x, p in zip(row, pivot, strict=True)] for row in left]
    return rank


def _progression(tree: Tree) -> tuple[Fraction, Fraction] | None:
    """Return the base and the step of a progression, to DIGITS digits; None for other formulas."""
    sympy, expression = sympy_library(), to_sympy(tree)
    if len(constants := _constants(expression)) != 1 or len(expression.free_symbols) != 1:
        return None
    parts = _linear(expression, constants)
    numbers = [sympy.N(part, DIGITS) for part in parts or ()]
    if not numbers or not all(number.is_Float or number.is_Rational for number in numbers):
        return None
    base, step = (Fraction(str(number)) for number in numbers)
    return (base, step) if step else None


def _near_fraction(value: Fraction) -> Fraction | None:
    near = value.limit_denominator(1000)
    return near if _is_small(value - near) else None


def _is_small(value: Fraction) -> bool:
    return -TINY < value < TINY
