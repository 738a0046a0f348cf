r"""Answers in mathematics: is this one the gold one?

Numbers are compared exactly: 0.5 is 1/2, and 1.414 is not the square root of 2. Two decimals that differ by a rounding
error of floating point (1e-12, relative) are equal. A percentage is its hundredth: 50% is 0.5, and is not 50. Units
have to agree where both sides have one (5 km is 5000 m, and is not 5 miles); a side without one is taken to be in the
other's. A name stands for its value (x = 5 is 5), but x = 5 is not y = 5. Tuples are ordered, sets and lists are not,
(1, 2) is both a pair and an open interval. Formulas are compared by value, equations up to a factor.

>>> grade_math(r"\frac{2}{4}", "0.5").correct, grade_math("10 miles", "10 km").correct
(True, False)
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, is_dataclass, replace

from gem._internal.imports import is_installed
from gem.errors import BadValue, GraderError, MissingDependency, require
from gem.graders.base import Grade
from gem.graders.math_caps import over_caps
from gem.graders.math_compare import Comparison, SameEquation, SameFormula
from gem.graders.math_read import read
from gem.graders.math_text import clean
from gem.graders.math_values import Formula
from gem.graders.pool import GraderPool


class _NeedsEngine(Exception):
    """The comparison takes computer algebra."""


def grade_math(answer: str, gold: str | Sequence[str]) -> Grade:
    """Judge an answer, here and now, with no limit on the time: see MathGrader for one that can be stopped.

    Args:
        answer: LaTeX or plain text, with or without a box or dollar signs.
        gold: the right answer, or several of which one suffices.

    An answer beyond the caps of gem.graders.math_caps is wrong, with that reason, without being evaluated. Raises
    MissingDependency where formulas have to be compared and the extra [math] is not installed.
    """
    from gem.graders.math_engine import same_equation, same_formula

    return _grade(answer, gold, same_formula, same_equation)


@dataclass(frozen=True)
class MathGrader:
    """Judges answers in mathematics; what takes computer algebra is done by a pool of workers that can be killed.

    Args:
        pool: None uses one that all graders of the process share.
        timeout: seconds for one answer; None is the pool's.
    """

    pool: GraderPool | None = None
    timeout: float | None = None

    def grade(self, answer: str, gold: str | Sequence[str]) -> Grade:
        """grade_math, bounded. Raises GraderError when it took too long: then nobody knows whether it is right.

        Raises MissingDependency where formulas have to be compared and the extra [math] is not installed.
        """
        if (quick := quick_grade(answer, gold)) is not None:
            return quick
        pool = _engine_pool(self.pool)
        grade: Grade = pool.run("gem.graders.math:grade_math", answer, gold, timeout=self.timeout)
        return grade

    def complaint(self, gold: str) -> str | None:
        """Why nothing could be equal to a gold answer: it is beyond the caps, or a formula that cannot be read.

        None where nothing is wrong. Raises GraderError, MissingDependency.
        """
        if (quick := quick_complaint(gold)) is not None or not _formulas_in(read(gold)):
            return quick
        found: str | None = _engine_pool(self.pool).run(
            "gem.graders.math:_engine_complaint", gold, timeout=self.timeout
        )
        return found

    async def agrade(self, answer: str, gold: str | Sequence[str]) -> Grade:
        """grade(), for event loops."""
        if (quick := quick_grade(answer, gold)) is not None:
            return quick
        pool = _engine_pool(self.pool)
        grade: Grade = await pool.arun("gem.graders.math:grade_math", answer, gold, timeout=self.timeout)
        return grade


def quick_grade(answer: str, gold: str | Sequence[str]) -> Grade | None:
    """The grade where it takes no computer algebra, in microseconds; None where it does."""
    try:
        return _grade(answer, gold, _unknown, _unknown)
    except _NeedsEngine:
        return None


def quick_complaint(gold: str) -> str | None:
    """MathGrader.complaint, as far as it takes no computer algebra."""
    if (reason := over_caps(gold)) is not None:
        return reason
    braces = re.findall(r"(?<!\\)(?:\\\\)*([{}])", gold)
    return "its braces do not close" if braces.count("{") != braces.count("}") else None


def _engine_complaint(gold: str) -> str | None:
    from gem.graders.math_engine import parse

    for formula in _formulas_in(read(gold)):
        try:
            parse(formula.latex)
        except BadValue as e:
            return str(e)
    return None


def _formulas_in(value: object) -> list[Formula]:
    """The formulas that a value is made of."""
    if isinstance(value, Formula):
        return [value]
    if isinstance(value, tuple):
        return [formula for item in value for formula in _formulas_in(item)]
    return _formulas_in(tuple(vars(value).values())) if is_dataclass(value) else []


def _unknown(answer: object, gold: object) -> bool:
    raise _NeedsEngine


def _engine_pool(pool: GraderPool | None) -> GraderPool:
    """Raises MissingDependency where the engine is not installed."""
    if not is_installed("latex2sympy2_extended"):
        require("latex2sympy2_extended", extra="math")
    return pool or shared_pool()


_pool: list[GraderPool] = []


def shared_pool() -> GraderPool:
    """The pool of all graders of this process, with the libraries for formulas loaded."""
    if not _pool:
        _pool.append(GraderPool(modules=["gem.graders.math_warm"]))
    return _pool[0]


def _grade(answer: str, gold: str | Sequence[str], formula: SameFormula, equation: SameEquation) -> Grade:
    golds = [gold] if isinstance(gold, str) else list(gold or ())
    if not golds or not all(isinstance(g, str) and g.strip() for g in golds):
        raise BadValue(f"need a gold answer, got {gold!r:.80}")
    if not isinstance(answer, str):
        raise BadValue(f"an answer is text, got {type(answer).__name__}")
    if (reason := over_caps(answer)) is not None:
        return _wrong(reason)
    if not answer.strip():
        return _wrong("no answer")
    same = Comparison(formula, equation)
    cleaned, waiting = clean(answer), None
    for each in golds:
        try:
            if _joined(cleaned) == _joined(clean(each)) or same.texts(answer, each):
                return Grade(reward=1.0, correct=True, reason=f"equal to {each!r:.80}", parsed=cleaned)
        except _NeedsEngine as e:
            waiting = e  # another gold may settle it
    if waiting is not None:
        raise waiting
    return replace(_wrong(f"not equal to {golds[0]!r:.80}"), parsed=cleaned)


def _joined(cleaned: str) -> str:
    """Without the space between a number and its unit."""
    return re.sub(r"(?<=\d) (?=[a-zA-Z])", "", cleaned)


def _wrong(reason: str) -> Grade:
    return Grade(reward=0.0, correct=False, reason=reason)


__all__ = ["GraderError", "MathGrader", "MissingDependency", "grade_math", "quick_grade", "shared_pool"]
