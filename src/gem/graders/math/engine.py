"""Evaluate conditions on formulas with computer algebra.

Formulas are compared structurally, then by the value of their difference (at random points if they have variables). A
rational difference is computed exactly. Any other is computed with a precision that grows with the size of the numbers
in the formulas, so that e^{-100} is not mistaken for 0. A comparison may not terminate on a malicious formula, so
MathGrader runs this code in a worker process that can be killed.
"""

from __future__ import annotations

import math
import random
import signal
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from typing import Any

from gem._internal.text import short_repr
from gem.errors import BadValue, GraderError
from gem.graders.math.conditions import (
    AllOf,
    AnyOf,
    Condition,
    Matching,
    Rounded,
    SameCases,
    SameEquation,
    SameFamily,
    SameFormula,
    SameProgressions,
    SameSet,
)
from gem.graders.math.families import same_family, same_progressions
from gem.graders.math.parse import parse, sympy_library
from gem.graders.math.sets import case_at, case_points, formulas_in, same_real_set, with_bounds
from gem.graders.math.values import Value, latex_of

DIGITS = 40  # decimal digits of numerical evaluation, in addition to twice the size of the formula
AGREEMENT = 30  # decimal digits that must agree, in addition to the size of the formula
CPU_SECONDS = 1.5  # limit on the CPU time of one comparison; typical formulas take milliseconds
MAX_SIZE = 10_000  # size of a formula, in decimal digits, above which its value is undecided
POINTS = 6  # number of random points for expressions with variables; half of the values must be defined
INTEGER_POINTS = 8  # number of integer points, for formulas that have a function in _STEPS
CONFIRMING_DIGITS = 500  # a difference that vanishes is computed again with these digits
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
                holds(SameFormula(gold, r"\pi"))
        except _CpuTimeExceeded:
            formula = short_repr(gold, 80)
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


def _golds(conditions: Iterable[bool | Condition]) -> Iterator[str]:
    """Yield the reference formulas of conditions."""
    for condition in conditions:
        if isinstance(condition, (AllOf, AnyOf)):
            yield from _golds(condition.conditions)
        elif isinstance(condition, Matching):
            yield from _golds(cell for row in condition.rows for cell in row)
        elif isinstance(condition, (SameFormula, SameFamily)):
            yield condition.gold
        elif isinstance(condition, (SameEquation, SameProgressions)):
            yield from condition.gold
        elif isinstance(condition, SameSet):
            yield from formulas_in(condition.gold)


def first_error(formulas: Sequence[str]) -> str | None:
    """Return the error of the first formula that cannot be parsed; None if all formulas can be parsed."""
    for latex in formulas:
        try:
            parse(latex)
        except BadValue as e:
            return str(e)
    return None


def holds(condition: bool | Condition) -> bool:
    """Evaluate a condition. A formula that cannot be parsed or evaluated is not equal to any formula."""
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
            return _same_equation(condition.answer, condition.gold, condition.positive)
        if isinstance(condition, SameFamily):
            return same_family(condition.answer, condition.gold, _vanishes)
        if isinstance(condition, SameProgressions):
            return same_progressions(condition.answer, condition.gold)
        if isinstance(condition, SameSet):
            return _same_set(condition.answer, condition.gold)
        if isinstance(condition, SameCases):
            return _same_cases(condition.answer, condition.gold)
        if isinstance(condition, Rounded):
            value = sympy_library().N(parse(condition.difference), DIGITS)
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


def _same_formula(condition: SameFormula) -> bool:
    ours, theirs = parse(condition.answer), parse(condition.gold)
    if bool(ours == theirs):
        return True
    if not _is_expression(ours) or not _is_expression(theirs):
        return False
    difference = ours - theirs
    if condition.up_to_constant:
        difference -= difference.subs(_random_point(_symbols(difference), POINTS))
    return _vanishes(difference, condition.integers, condition.positive)


def _same_equation(answer: tuple[str, str], gold: tuple[str, str], positive: bool) -> bool:
    ours = parse(answer[0]) - parse(answer[1])
    theirs = parse(gold[0]) - parse(gold[1])
    if ours.free_symbols != theirs.free_symbols:
        return False
    if ours == 0 or theirs == 0:
        return bool(ours == theirs)
    if positive:
        return _is_multiple(ours, theirs, positive=True)
    numerators = [sympy_library().numer(sympy_library().together(difference)) for difference in (ours, theirs)]
    return _is_multiple(ours, theirs) or _is_multiple(*numerators)  # xy = 1 and y = 1/x


def _same_set(answer: Value, gold: Value) -> bool:
    """Compare two sets of real numbers. Equal bounds are replaced by the same number, and other bounds by others."""
    known: list[tuple[Any, Fraction]] = []

    def number(latex: str) -> Fraction:
        value = parse(latex)
        for other, exact in known:
            for sign in (1, -1):
                if _is_zero(value - sign * other) is True:
                    return sign * exact
        if not value.is_real:
            raise BadValue(f"not a real number: {short_repr(latex, 80)}")
        exact = Fraction(str(value)) if value.is_Rational else Fraction(str(sympy_library().N(value, DIGITS)))
        if not value.is_Rational and any(abs(exact) == abs(other) for _, other in known):
            raise BadValue(f"too close to another bound: {short_repr(latex, 80)}")
        known.append((value, exact))
        return exact

    return same_real_set(with_bounds(answer, number), with_bounds(gold, number))


def _same_cases(answer: Value, gold: Value) -> bool:
    name, points = case_points((answer, gold))
    for x in points:
        cases = [case_at(value, x) for value in (answer, gold)]
        if cases == [None, None]:
            continue
        at = {sympy_library().Symbol(name): sympy_library().Rational(x.numerator, x.denominator)}
        ours, theirs = (None if case is None else parse(latex_of(case)).subs(at) for case in cases)
        if ours is None or theirs is None or not _vanishes(ours - theirs):
            return False
    return True


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


def _vanishes(difference: Any, integers: str = "", positive: str = "") -> bool:
    """Return whether an expression is zero. An expression with variables is evaluated at random points."""
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
    if 2 * len(known) < len(points) + whole or not all(verdict is True for verdict in known):
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
