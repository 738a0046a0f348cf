"""Math grading beside independent references: math-verify, and arithmetic in fractions."""

from __future__ import annotations

import ast
import json
import logging
import operator
import random
import sys
from fractions import Fraction
from pathlib import Path

import pytest

from gem.graders.math import grade_math

pytest.importorskip("sympy", reason="needs the extra [math]")
sys.path.insert(0, str(Path(__file__).parent))

from fuzz_math import labeled, verified
from math_shapes import KINDS, arithmetic

SEED = 20_251_122
OPERATORS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv}


def exact(node: ast.AST) -> Fraction:
    """Evaluate the syntax tree of an arithmetic expression in fractions."""
    if isinstance(node, ast.Constant):
        return Fraction(node.value)
    if isinstance(node, ast.UnaryOp):
        return -exact(node.operand)
    assert isinstance(node, ast.BinOp)
    left, right = exact(node.left), exact(node.right)
    return left ** int(right) if isinstance(node.op, ast.Pow) else OPERATORS[type(node.op)](left, right)


@pytest.mark.slow
def test_a_seeded_sample_of_each_kind_is_graded_as_labeled():
    drawn = [pair for pair, _ in zip(labeled(SEED, list(KINDS)), range(8 * len(KINDS)), strict=False)]
    assert [row for row in drawn if grade_math(row[1], row[2]).correct is not row[3]] == []


@pytest.mark.slow
def test_where_math_verify_disagrees_the_label_decides_for_this_grader():
    logging.disable(logging.ERROR)  # math-verify logs every answer that it cannot parse
    drawn = [row for row, _ in zip(labeled(SEED + 1, list(KINDS)), range(len(KINDS)), strict=False)]
    verdicts = [(row, grade_math(row[1], row[2]).correct, verified(row[1], row[2])) for row in drawn]
    logging.disable(logging.NOTSET)
    assert [row for row, ours, theirs in verdicts if ours is not theirs and ours is not row[3]] == []
    assert sum(ours is theirs for _, ours, theirs in verdicts) > len(verdicts) / 2  # the comparison means something


@pytest.mark.slow
def test_arithmetic_agrees_with_fractions_to_the_last_digit():
    rng, compared = random.Random(SEED), 0
    while compared < 20:
        latex, plain, value, _ = arithmetic(rng, 3)
        if "!" in plain or not abs(value) + (value == 0) < 10**60:
            continue
        compared += 1
        assert exact(ast.parse(plain.replace("^", "**"), mode="eval").body) == value
        assert grade_math(latex, str(value)).correct, (latex, value)
        assert grade_math(plain, str(value)).correct, (plain, value)
        assert not any(grade_math(latex, str(value + Fraction(1, 10**n))).correct for n in (15, 90)), (latex, value)


@pytest.mark.slow
@pytest.mark.parametrize("step", [9, pytest.param(1, marks=pytest.mark.exhaustive)])
def test_answers_labeled_by_someone_who_had_not_read_the_grader_are_graded_as_labeled(step):
    path = Path(__file__).parents[3] / "benchmarks" / "graders_labels.jsonl"
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()[::step]]
    verdicts = [(row, grade_math(row["answer"], row["gold"], question=row["question"]).correct) for row in rows]
    assert [row for row, correct in verdicts if correct and not row["label"]] == []
    assert sum(correct is bool(row["label"]) for row, correct in verdicts) >= 0.97 * len(rows)
