"""The deciders decide comparisons without computer algebra, and leave conditions on formulas to the engine."""

from __future__ import annotations

import sys

import pytest

from gem.graders.math.engine import AllOf, AnyOf, Matching, SameEquation, SameFormula, first_error, first_true, holds
from gem.graders.math.equal.core import DECIDERS
from gem.graders.math.grader import compare
from gem.graders.math.parser import parse
from gem.graders.math.tree import Phrase


def formula(answer: str, gold: str) -> SameFormula:
    return SameFormula(parse(answer), parse(gold))


SAME, OTHER = formula(r"\sqrt{8}", r"2\sqrt{2}"), formula(r"\sqrt{8}", "3")


@pytest.fixture
def engine():
    pytest.importorskip("sympy", reason="needs the extra [math]")


@pytest.mark.parametrize(
    ("answer", "gold", "verdict"),
    [
        ("0.5", r"\frac{1}{2}", True),
        ("(1, 2)", "(1, 3)", False),
        (r"(\sqrt{8}, 1)", r"(2\sqrt{2}, 2)", False),  # the second items differ
        (r"\sqrt{8}", "3", False),  # their approximate values differ
        (r"\sqrt{8}", r"2\sqrt{2}", SAME),
        (r"(\sqrt{8}, 1)", r"(2\sqrt{2}, 1)", SAME),
        (r"(\sqrt{8}, \sqrt{8})", r"(2\sqrt{2}, 2\sqrt{2})", AllOf((SAME, SAME))),
        (r"\sqrt{8}, 1", r"1, 2\sqrt{2}", Matching(((False, SAME), (True, False)))),
        ("y = x+1", "x = y-1", SameEquation(parse("y-(x+1)"), parse("x-(y-1)"))),
    ],
)
def test_deciders_keep_only_undecided_comparisons(answer, gold, verdict):
    assert compare(answer, gold) == verdict


def test_comparing_does_not_import_sympy(monkeypatch):
    monkeypatch.setitem(sys.modules, "sympy", None)
    assert compare(r"\sin^2 x+\cos^2 x", "1") == formula(r"\sin^2 x+\cos^2 x", "1")


def test_the_deciders_form_a_table_with_names():
    first, *_, last = DECIDERS
    assert first == "numbers" and last == "formulas" and len(DECIDERS) >= 15


def test_conditions_combine_by_all_any_and_matching(engine):
    assert holds(AllOf((SAME, SAME))) and not holds(AllOf((SAME, OTHER)))
    assert holds(AnyOf((OTHER, SAME))) and not holds(AnyOf((OTHER, OTHER)))
    assert holds(Matching(((False, SAME), (True, False))))
    assert not holds(Matching(((True, False), (SAME, False))))


def test_what_is_no_formula_equals_nothing(engine):
    words = Phrase(("x", "is"))
    assert not holds(SameFormula(words, words)) and not holds(SameEquation(words, parse("x")))
    assert first_true([OTHER, SAME]) == 1 and first_true([OTHER]) is None
    assert first_error([parse("x+1")]) is None and "not a formula" in (first_error([parse("x+1"), words]) or "")
