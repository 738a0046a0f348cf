"""The rules decide comparisons without computer algebra, and leave conditions on formulas to the engine."""

from __future__ import annotations

import sys

import pytest

from gem.graders.math.compare import compare
from gem.graders.math.conditions import AllOf, AnyOf, Matching, SameEquation, SameFormula
from gem.graders.math.engine import first_error, first_true, holds
from gem.graders.math.read import read

SAME, OTHER = SameFormula(r"\sqrt{8}", r"2\sqrt{2}"), SameFormula(r"\sqrt{8}", "3")
ONE, THREE = SameFormula(r"\sqrt{8}", r"\frac{1}{1}"), SameFormula(r"\sqrt{8}", r"\frac{3}{1}")
SWAPPED = SameFormula(r"\frac{1}{1}", r"2\sqrt{2}")


@pytest.fixture
def engine():
    pytest.importorskip("latex2sympy2_extended", reason="needs the extra [math]")


@pytest.mark.parametrize(
    ("answer", "gold", "verdict"),
    [
        ("0.5", r"\frac{1}{2}", True),
        ("(1, 2)", "(1, 3)", False),
        (r"(\sqrt{8}, 1)", r"(2\sqrt{2}, 2)", False),  # the second items differ
        (r"\sqrt{8}", r"2\sqrt{2}", SAME),
        (r"(\sqrt{8}, 1)", r"(2\sqrt{2}, 1)", SAME),
        (r"(\sqrt{8}, \sqrt{8})", r"(2\sqrt{2}, 3)", AllOf((SAME, THREE))),
        (r"\sqrt{8}, 1", r"2\sqrt{2}, 1", Matching(((SAME, ONE), (SWAPPED, True)))),
        ("y = x+1", "x = y-1", SameEquation(("y", "x+1"), ("x", "y-1"))),
    ],
)
def test_rules_keep_only_undecided_comparisons(answer, gold, verdict):
    assert compare(read(answer), read(gold)) == verdict


def test_comparing_does_not_import_sympy(monkeypatch):
    monkeypatch.setitem(sys.modules, "sympy", None)
    assert compare(read(r"\sin^2 x+\cos^2 x"), read("1")) == SameFormula(r"\sin^2 x+\cos^2 x", r"\frac{1}{1}")


def test_conditions_combine_by_all_any_and_matching(engine):
    assert holds(AllOf((SAME, SAME))) and not holds(AllOf((SAME, OTHER)))
    assert holds(AnyOf((OTHER, SAME))) and not holds(AnyOf((OTHER, OTHER)))
    assert holds(Matching(((False, SAME), (True, False))))
    assert not holds(Matching(((True, False), (SAME, False))))


def test_a_formula_that_cannot_be_parsed_equals_nothing(engine):
    assert not holds(SameFormula("x+*", "x")) and not holds(SameEquation(("x+*", "1"), ("x", "1")))
    assert first_true([OTHER, SAME]) == 1 and first_true([OTHER]) is None
    assert first_error(["x+1"]) is None and "x+*" in (first_error(["x+1", "x+*"]) or "")
