"""Size caps, cleaning and splitting of the text of math answers."""

from __future__ import annotations

import pytest

from gem.graders.math.caps import MAX_CHARS, MAX_DEPTH, exceeded_cap
from gem.graders.math.split import split
from gem.graders.math.text import clean


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("9" * 1001, "digits"),
        ("(" * (MAX_DEPTH + 1), "nested"),
        ("a" * (MAX_CHARS + 1), "characters"),
        ("2^{100000}", "exponent"),
        ("5000!", "factorial"),
        ("x^" * 1000 + "x", "tower"),
        ("**a" * 900, "tower"),
        ("1 " * 1499, "tokens"),
        ("x+" * 400 + "1", "operators"),
    ],
)
def test_the_reason_names_the_exceeded_cap(answer, reason):
    assert reason in (exceeded_cap(answer) or "")


@pytest.mark.parametrize(
    "answer", ["2^{100}", r"10^{-3}", "20!", r"\binom{10}{3}", "x^{2n+1}", "2^{3^2}", "e^{-x^2/2}"]
)
def test_ordinary_expressions_are_within_the_caps(answer):
    assert exceeded_cap(answer) is None


def test_cleaning_keeps_the_meaning():
    assert clean(r"$\left( \dfrac12,\; 1{,}000 \right).$") == r"(\frac{1}{2}, 1000)"
    assert clean("3×10²") == r"3\cdot 10^2"


def test_splitting_respects_brackets():
    assert split(r"1, (2, 3), \{4, 5\}", ",") == ["1", "(2, 3)", r"\{4, 5\}"]
