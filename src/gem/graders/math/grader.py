r"""Grade math answers: does an answer equal the reference answer?

- Numbers are compared exactly: 0.5 equals 1/2, and 1.414 does not equal the square root of 2. To allow for
  floating-point rounding, two decimal numbers are equal if their relative difference is at most 1e-12. 50% equals 0.5,
  not 50.
- If both answers have a unit, the units are converted: 5 km equals 5000 m, but not 5 miles. If only one answer has a
  unit, the other answer is assumed to have the same unit. A word that is not a common unit is one only if the
  reference answer or the question has it.
- An assignment equals its value: x = 5 equals 5. Assignments to different names differ: x = 5 does not equal y = 5.
- Tuples are ordered; sets and lists are not. (1, 2) equals both the pair and the open interval.
- Formulas are equal if their values are equal. Equations are equal if they differ only by a constant factor.

The parent process normalizes, parses and compares both answers. Only comparisons of formulas that require computer
algebra run in a worker process.

>>> grade_math(r"\frac{2}{4}", "0.5").correct, grade_math("10 miles", "10 km").correct
(True, False)
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from gem._internal.imports import is_installed
from gem._internal.text import quoted
from gem.errors import BadValue, GraderError, MissingDependency, require
from gem.graders.base import Grade, gold_answers
from gem.graders.math.asked.forms import has_asked_form, in_asked_notation
from gem.graders.math.asked.order import in_asked_order, said_of_asked
from gem.graders.math.asked.quantities import in_asked_units, tolerance
from gem.graders.math.asked.readings import readings
from gem.graders.math.engine import Condition, first_true
from gem.graders.math.equal import Verdict, any_of, named, normal, rounded_equal, same
from gem.graders.math.languages import translated
from gem.graders.math.lexer import Malformed, TooLarge, tokens
from gem.graders.math.parser import parse
from gem.graders.math.question import read_question
from gem.graders.math.tree import Phrase, Tree, children, is_collection, is_op
from gem.graders.math.values import fraction_of, is_formula, too_large
from gem.graders.pool import GraderPool


def grade_math(answer: str, gold: str | Sequence[str], *, question: str = "") -> Grade:
    """Grade an answer in this process, without a time limit. Use MathGrader for untrusted answers.

    Args:
        answer: LaTeX or plain text, with or without a box or dollar signs. An answer that exceeds a size limit of
            `gem.graders.math.lexer` is graded wrong without being evaluated.
        gold: a reference answer or a sequence of them. An answer that equals any of them is correct.
        question: the text of the question. The answer may have units that are not in a list of common units if the
            reference answer or the question names them ("apples").

    Raises:
        BadValue: the answer is not a string, or a reference answer is blank or not a string.
        MissingDependency: formulas have to be compared, and the extra [math] is not installed.
    """
    grade, pending = _compare_texts(answer, gold, question)
    return _resolved(grade, pending, first_true(list(pending.values())))


@dataclass(frozen=True)
class MathGrader:
    """Grade math answers. Comparisons that require computer algebra run in worker processes with a time limit.

    Args:
        pool: the pool of worker processes; None uses the pool shared by all graders of this process.
        timeout: seconds per answer; None uses the time limit of the pool.
    """

    pool: GraderPool | None = None
    timeout: float | None = None

    def grade(self, answer: str, gold: str | Sequence[str], *, question: str = "") -> Grade:
        """Grade an answer as grade_math() does, within the time limit.

        A comparison with a reference answer that needs more than `gem.graders.math.engine.CPU_SECONDS` of CPU time
        decides against the answer; the comparisons with other reference answers have limits of their own.

        Raises:
            GraderError: the comparison timed out or its worker failed, so the verdict is unknown.
            MissingDependency: formulas have to be compared, and the extra [math] is not installed.
        """
        grade, pending = _compare_texts(answer, gold, question)
        if not pending:
            return grade
        conditions, pool = list(pending.values()), _engine_pool(self.pool)
        return _resolved(grade, pending, pool.run(_FIRST_TRUE, conditions, timeout=self.timeout))

    async def agrade(self, answer: str, gold: str | Sequence[str], *, question: str = "") -> Grade:
        """Async version of grade()."""
        grade, pending = _compare_texts(answer, gold, question)
        if not pending:
            return grade
        conditions, pool = list(pending.values()), _engine_pool(self.pool)
        return _resolved(grade, pending, await pool.arun(_FIRST_TRUE, conditions, timeout=self.timeout))

    def check_gold(self, gold: str) -> str | None:
        """Check whether an answer can equal a reference answer.

        Returns:
            The reason why no answer can equal the reference answer: it exceeds a size limit, its braces are not
            balanced, or a formula in it cannot be parsed. None if the reference answer is usable.

        Raises:
            GraderError, MissingDependency: as for grade().
        """
        if (reason := quick_check_gold(gold)) is not None:
            return reason
        tree = parse(gold)
        words = [part for part in tree.parts if isinstance(part, str)] if isinstance(tree, Phrase) else []
        if (sign := next((word for word in words if word in "+*/^_=<>|&" or word[0] == "\\"), None)) is not None:
            return f"a formula in it cannot be read, near {sign!r}"
        formulas = [each for each in _formulas_in(normal(tree)) if fraction_of(each) is None]
        if not formulas:
            return None
        found: str | None = _engine_pool(self.pool).run(_FIRST_ERROR, formulas, timeout=self.timeout)
        return found


def quick_grade(answer: str, gold: str | Sequence[str], *, question: str = "") -> Grade | None:
    """Grade an answer without computer algebra, in microseconds; return None if computer algebra is required."""
    grade, pending = _compare_texts(answer, gold, question)
    return None if pending else grade


def quick_check_gold(gold: str) -> str | None:
    """Return why a reference answer is unusable, or None. Unlike MathGrader.check_gold(), do not parse formulas."""
    if (reason := exceeded_cap(gold)) is not None:
        return reason
    braces = gold.replace("\\\\", "").replace("\\{", "").replace("\\}", "")
    return "its braces are not balanced" if braces.count("{") != braces.count("}") else None


def exceeded_cap(text: str) -> str | None:
    """Return the limit that a text exceeds in its length, nesting or numbers; None if it exceeds none.

    An answer over a limit is wrong without being evaluated.
    """
    try:
        return too_large(parse(text))
    except TooLarge as e:
        return str(e)


def shared_pool() -> GraderPool:
    """Return the pool shared by all graders of this process. Its workers have the math libraries loaded."""
    if not _pool:
        _pool.append(GraderPool(timeout=WALL_SECONDS, modules=["gem.graders.math.warm"]))
    return _pool[0]


WALL_SECONDS = 30.0  # per answer; many times the limit on CPU time, so that the load of the machine decides no verdict
_FIRST_TRUE = "gem.graders.math.engine:first_true_within"
_FIRST_ERROR = "gem.graders.math.engine:first_error"
_pool: list[GraderPool] = []
_Pending = dict[str, Condition]  # reference answer → condition under which the answer equals this reference answer


def _compare_texts(answer: str, gold: str | Sequence[str], question: str = "") -> tuple[Grade, _Pending]:
    """Compare an answer with each reference answer, without computer algebra.

    Returns:
        The grade that applies if no pending condition holds, and the pending conditions. If any of them holds, the
        answer is correct.
    """
    golds = gold_answers(gold)
    if isinstance(answer, str) and _is_integer(answer) and all(map(_is_integer, golds)):  # most answers are integers
        found = next((each for each in golds if int(each) == int(answer)), None)
        return (_expected(golds, answer) if found is None else _right(found, answer)), {}
    if not isinstance(answer, str):
        raise BadValue(f"answer must be a string, got {type(answer).__name__}")
    if (reason := exceeded_cap(answer)) is not None:
        return _wrong(f"Incorrect: the answer is too large ({reason})."), {}
    if not answer.strip():
        return _wrong("Incorrect: the answer is empty."), {}
    pending: _Pending = {}
    parsed = answer.strip()
    try:
        tokens(answer)
    except Malformed as e:
        return _wrong(f"Incorrect: the answer cannot be read ({e}).", parsed), {}
    for each in golds:
        verdict = compare(answer, each, question)
        if verdict is True:
            return _right(each, parsed), {}
        if not isinstance(verdict, bool):
            pending[each] = verdict
    return _expected(golds, parsed), pending


def _is_integer(text: str) -> bool:
    return text.isdecimal() and text.isascii() and len(text) < 100


def compare(answer: str, gold: str, question: str = "") -> Verdict:
    """Return whether an answer equals a reference answer, or the condition under which it does."""
    answer, gold, question = (translated(text, question) for text in (answer, gold, question))
    q = read_question(question)
    ours, theirs = parse(answer), parse(gold)
    if ours == theirs:
        return True
    if question:
        ours, theirs = in_asked_notation(ours, q), in_asked_notation(theirs, q)
        if said_of_asked(ours, q) is None or not has_asked_form(*_decimal_commas(answer, ours, gold, theirs), q):
            return False
    verdicts: list[Verdict] = []
    for a, g in readings(answer, gold, q):
        if question:
            a, g = (said_of_asked(in_asked_notation(tree, q), q) or tree for tree in (a, g))
            parts = zip(a.args, g.args, strict=False) if is_op(a, "tuple") and is_op(g, "tuple") else ()  # with labels
            if not all(has_asked_form(x, y, q) for x, y in parts):
                continue
        a, g = _decimal_commas(answer, normal(a), gold, normal(g))
        pair = in_asked_units(a, g, q)
        if pair is None:
            continue
        if question:
            pair = in_asked_order(pair[0], q), in_asked_order(pair[1], q)
        verdicts.append(same(pair[0], pair[1], q))
        if question and (half := tolerance(pair[1], q)):
            verdicts.append(rounded_equal(pair[0], pair[1], half))
        if True in verdicts:
            return True
    return any_of(verdicts)


def _decimal_commas(answer: str, a: Tree, gold: str, g: Tree) -> tuple[Tree, Tree]:
    """Read the comma of 2,5 as a decimal comma if the other side is no collection."""
    for text, tree, other in ((answer, a, g), (gold, g, a)):
        if is_op(tree, "list") and not is_collection(named(other)[1]):
            again = normal(parse(_COMMA.sub("{,}", text)))
            if not is_collection(again):
                return (again, g) if tree is a else (a, again)
    return a, g


_COMMA = re.compile(r"(?<=\d),(?=\d)")


def _resolved(grade: Grade, pending: _Pending, index: int | None) -> Grade:
    """Return the final grade. ``index`` is the number of the first pending condition that holds; None: none holds."""
    return grade if index is None else _right(list(pending)[index], grade.parsed)


def _right(gold: str, parsed: str) -> Grade:
    return Grade(reward=1.0, correct=True, reason=f"Correct: the answer equals {quoted(gold, 80)}.", parsed=parsed)


def _expected(golds: Sequence[str], parsed: str) -> Grade:
    return _wrong(f"Incorrect: the expected answer is {quoted(golds[0], 80)}.", parsed)


def _wrong(reason: str, parsed: str = "") -> Grade:
    return Grade(reward=0.0, correct=False, reason=reason, parsed=parsed)


def _formulas_in(tree: Tree) -> list[Tree]:
    """Return the outermost formulas in a tree."""
    if is_formula(tree):
        return [tree]
    return [each for child in children(tree) for each in _formulas_in(child)]


def _engine_pool(pool: GraderPool | None) -> GraderPool:
    """Return ``pool``, or the shared pool if it is None. Raises MissingDependency if [math] is not installed."""
    if not is_installed("sympy"):
        require("sympy", extra="math")
    return pool or shared_pool()


__all__ = ["GraderError", "MathGrader", "MissingDependency", "grade_math", "quick_grade", "shared_pool"]
