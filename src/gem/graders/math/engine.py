"""Decide conditions on formulas with computer algebra, in a worker process that can be killed.

Formulas are compared structurally, then by the value of their difference, at random points if they have variables.
"""

from __future__ import annotations

import math
import random
import signal
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from itertools import permutations
from typing import Any

from gem._internal.text import short_repr
from gem._internal.worker_pool import retire
from gem.errors import BadValue, GraderError
from gem.graders.math.heads import sympy_library
from gem.graders.math.symbolic import DIGITS, POINTS, UNREADABLE, is_zero, random_point, symbols_of, to_sympy, vanishes
from gem.graders.math.tree import Sym, Tree

CPU_SECONDS = 1.5  # limit on the CPU time of one comparison; typical formulas take milliseconds
TINY = Fraction(1, 10**25)  # a number below it counts as zero in a family
MAX_CONSTANTS = 4
MAX_RESIDUES = 200  # members of a progression within the common period


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
            retire()  # sympy may have been stopped between two steps that belong together
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
        match condition:
            case AllOf(inner) | AnyOf(inner):
                yield from _golds(inner)
            case Matching(rows):
                yield from _golds(cell for row in rows for cell in row)
            case SameFormula(_, gold) | SameFamily(_, gold) | SameEquation(_, gold):
                yield gold
            case SameProgressions(_, golds):
                yield from golds


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
    match condition:
        case bool():
            return condition
        case AllOf(conditions):
            return all(map(holds, conditions))
        case AnyOf(conditions):
            return any(map(holds, conditions))
        case Matching(rows):
            return _match(rows)
    try:
        match condition:
            case SameEquation():
                return _same_equation(condition)
            case SameFamily():
                return _same_family(condition)
            case SameProgressions():
                return _same_progressions(condition)
            case Rounded(difference, tolerance):
                value = sympy_library().N(to_sympy(difference), DIGITS)
                return bool(value.is_Float and abs(value) <= tolerance)
        return _same_formula(condition)
    except UNREADABLE:
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


# --- equality ---


def _same_formula(condition: SameFormula) -> bool:
    ours, theirs = to_sympy(condition.answer), to_sympy(condition.gold)
    if bool(ours == theirs):
        return True
    if not all(isinstance(side, sympy_library().Expr) for side in (ours, theirs)):  # but an equation or a set
        return False
    difference = ours - theirs
    if condition.up_to_constant:
        difference -= difference.subs(random_point(symbols_of(difference), POINTS))
    return vanishes(difference, condition.integers, condition.positive, (ours, theirs))


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
    symbols = symbols_of(ours)
    points = [random_point(symbols, point) for point in range(POINTS)]
    pairs = [(ours.subs(at), theirs.subs(at)) for at in points]
    known = [pair for pair in pairs if all(is_zero(value) is False for value in pair)]
    if positive and not all(sympy_library().N(a / b, 15).is_positive for a, b in known):
        return False
    return len(known) >= POINTS // 2 and all(is_zero(a * known[0][1] - known[0][0] * b) for a, b in known)


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
            vanishes(ours.subs(dict(zip(constants, order, strict=True)), simultaneous=True) - theirs)
            for order in permutations(gold_constants)
        )
    rows = [row for each in (*spans, *gold_spans) if (row := _values(each, variables, size)) is not None]
    if len(rows) < 2 * size + 2:
        return False
    ours_rows, gold_rows = rows[1 : size + 1], rows[size + 2 :]
    apart = [x - y for x, y in zip(rows[0], rows[size + 1], strict=True)]
    return _rank(ours_rows) == _rank(gold_rows) == size == _rank([*ours_rows, *gold_rows, apart])


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


def _rank(rows: Sequence[list[Any]]) -> int:
    """Return the rank of a matrix of floating-point numbers, by elimination with pivots."""
    left = list(rows)
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
