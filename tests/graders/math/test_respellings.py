"""Math grading of answers that are written in another way, and of answers with one digit, name or sign changed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from gem.graders.math import grade_math

pytest.importorskip("latex2sympy2_extended", reason="needs the extra [math]")
sys.path.insert(0, str(Path(__file__).parent))

from respellings import KINDS, pair

SIZES = [300, pytest.param(1_000, marks=pytest.mark.slow), pytest.param(5_000, marks=pytest.mark.exhaustive)]


def verdicts(count: int, *, equal: bool) -> list[tuple[str, str, str, bool]]:
    """Return kinds, answers, golds and verdicts; the kinds take turns."""
    pairs = [(kind, *pair(kind, seed, equal)) for seed in range(count) for kind in [KINDS[seed % len(KINDS)]]]
    return [(kind, answer, gold, grade_math(answer, gold).correct) for kind, answer, gold in pairs]


@pytest.mark.parametrize("count", SIZES)
def test_an_answer_equals_itself_in_another_spelling(count):
    rejected = [row for row in verdicts(count, equal=True) if not row[3]]
    assert len(rejected) <= 0.001 * count, rejected


@pytest.mark.parametrize("count", SIZES)
def test_an_answer_with_one_digit_name_or_sign_changed_is_not_accepted(count):
    assert [row for row in verdicts(count, equal=False) if row[3]] == []
