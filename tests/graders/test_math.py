"""Math grading: the labeled corpus, known confusions of other graders, size caps and the worker pool."""

from __future__ import annotations

import collections
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gem.errors import BadValue, GraderError
from gem.graders.math import MathGrader, grade_math, quick_grade
from gem.graders.pool import GraderPool

pytest.importorskip("latex2sympy2_extended", reason="needs the extra [math]")

ROWS = [json.loads(line) for line in (Path(__file__).parent / "math_cases.jsonl").read_text("utf-8").splitlines()]
CLASSES = sorted({row["class"] for row in ROWS})


def test_the_corpus_is_large_and_balanced():
    assert len(ROWS) >= 600 and len(CLASSES) >= 25
    counts = collections.Counter((row["class"], row["equal"]) for row in ROWS)
    assert all(counts[name, True] == counts[name, False] >= 10 for name in CLASSES)


@pytest.mark.parametrize("name", CLASSES)
def test_a_class_is_graded_as_labeled(name):
    rows = [row for row in ROWS if row["class"] == name]
    wrong = [row for row in rows if grade_math(row["answer"], row["gold"]).correct is not row["equal"]]
    assert len(wrong) <= 0.05 * len(rows), wrong


def test_the_whole_corpus_is_graded_as_labeled():
    wrong = [row for row in ROWS if grade_math(row["answer"], row["gold"]).correct is not row["equal"]]
    assert len(wrong) <= 0.01 * len(ROWS), wrong


def test_quick_grade_agrees_with_the_labels():
    for row in ROWS:
        quick = quick_grade(row["answer"], row["gold"])
        assert quick is None or quick.correct is row["equal"], row


UNEQUAL = [
    ("a+b", "c+b"),
    ("m+1", "s+1"),
    ("y=5", "x=5"),
    ("10 miles", "10 km"),
    ("5 g", "5 kg"),
    ("50 %", "50"),
    ("(1,234)", "1234"),
    ("a+1", "h+1"),
    ("m-2", "s-2"),
    (r"\frac{a}{2}", r"\frac{h}{2}"),
    ("1.41421356", r"\sqrt{2}"),
    ("3 hours", "3 minutes"),
    ("1011_2", "1011_3"),
    ("5 cm^2", "5 cm"),
    (r"\sqrt{x^2}", "x"),
    ("1, 2", "(1, 2)"),
]
EQUAL = [
    ("50 %", "0.5"),
    ("1,234", "1234"),
    ("2 1/2", r"\frac{5}{2}"),
    ("5.", "5"),
    ("3e5", "300000"),
    (r"0.\overline{3}", r"\frac13"),
    ("3,14", "3.14"),
    ("0.30000000000000004", "0.3"),
    ("x < 2", r"(-\infty, 2)"),
    (r"0 \le x < 1", "[0, 1)"),
    (r"\cos 60^\circ", r"\frac12"),
    ("five", "5"),
    (r"\text{5 apples}", "5 apples"),
]


@pytest.mark.parametrize(("answer", "gold"), UNEQUAL)
def test_pairs_that_other_graders_confuse_are_unequal(answer, gold):
    assert not grade_math(answer, gold).correct
    assert not grade_math(gold, answer).correct


@pytest.mark.parametrize(("answer", "gold"), EQUAL)
def test_pairs_that_other_graders_separate_are_equal(answer, gold):
    assert grade_math(answer, gold).correct
    assert grade_math(gold, answer).correct


POISONS = [
    r"9^{9^{9^9}}",
    "99999999!",
    "(x+y)^{3000}",
    "{" * 1_000_000,
    "9" * 1_000_000,
    r"10^{10^8}",
    "(10^8)!",
    "2**(10**9)",
    "9**9**9",
    "2**2**2**2**2**2",
    r"\binom{10^9}{5*10^8}",
    r"\frac{" * 60 + "1" + "}{2}" * 60,
    "((((" * 100,
    "a" * 1_000_000,
    "3!!!!!!",
    "(3!)!",
    "the answer is " * 10_000,
    "x^{10^{10}}",
    "7^{7^{7}}",
]


@pytest.mark.parametrize("poison", POISONS, ids=lambda poison: poison[:24])
def test_an_answer_over_the_caps_is_wrong_without_evaluation(poison):
    grade = quick_grade(poison, "12345")
    assert grade is not None and not grade.correct and "expected" not in grade.reason


@pytest.mark.parametrize(
    "answer", ["", "   ", "I do not know", r"\frac{1}{", "}{", "\x00", "🙂", r"\undefinedmacro{3}"]
)
def test_malformed_text_is_wrong_and_does_not_raise(answer):
    assert not grade_math(answer, r"\sqrt{7}+1").correct


PIECES = [
    *(
        "$",
        "{a}",
        "(1)",
        "x^2+",
        "1 million ",
        r"\pm ",
        "=",
        "x<",
        "1:",
        "1 to ",
        "and ",
        "**a",
        '"',
        r"\boxed",
        "°",
        "½",
    ),
    *(
        r"\text{a}",
        r"\pmod{5}",
        "1,",
        "1 234",
        r"\begin{pmatrix}",
        "A)",
        "_{1}",
        r"\over ",
        "+-",
        "cm^2",
        "m/s",
        "'",
        "²",
    ),
]


@pytest.mark.parametrize("piece", PIECES)
def test_a_long_repetitive_answer_does_not_raise_or_warn(piece):
    for tail in ("", "1", "}", ")"):
        grade = quick_grade((piece * 3000)[:2_900] + tail, r"\sqrt{7}+1")
        assert grade is None or not grade.correct


def test_one_of_several_golds_suffices():
    assert grade_math("0.5", ["1/3", "1/2"]).correct
    assert not grade_math("0.5", ["1/3", "1/4"]).correct


@pytest.mark.parametrize("gold", ["", [], [""], None])
def test_an_empty_or_missing_gold_answer_is_rejected(gold):
    with pytest.raises(BadValue, match="gold must be"):
        grade_math("1", gold)


def test_a_grade_reports_the_parsed_answer_and_the_reason():
    grade = grade_math(r"\boxed{ \dfrac12 }", "0.5")
    assert (grade.correct, grade.reward, grade.parsed) == (True, 1.0, r"\frac{1}{2}")
    assert "0.5" in grade.reason


@pytest.fixture(scope="module")
def grader() -> Iterator[MathGrader]:
    with GraderPool(2, timeout=20.0, modules=["gem.graders.math_engine", "latex2sympy2_extended"]) as pool:
        yield MathGrader(pool)


def test_the_pool_agrees_with_the_function(grader):
    for row in ROWS[::40]:
        assert grader.grade(row["answer"], row["gold"]) == grade_math(row["answer"], row["gold"])


def test_a_grader_can_be_shared_by_threads(grader):
    wrong: list[object] = []

    def grade_all() -> None:
        wrong.extend(row for row in ROWS[::60] if grader.grade(row["answer"], row["gold"]).correct is not row["equal"])

    threads = [threading.Thread(target=grade_all) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_grading_timeout_raises_and_the_pool_recovers():
    hard = r"\sum_{k=1}^{800} \frac{1}{k^{k}}"
    with GraderPool(1, modules=["gem.graders.math_engine", "latex2sympy2_extended"]) as pool:
        grader = MathGrader(pool, timeout=1.0)
        started = time.monotonic()
        with pytest.raises(GraderError, match="timed out after 1 s"):
            grader.grade(hard, r"\sqrt{2}+x")
        assert time.monotonic() - started < 60  # a guard against hanging
        assert grader.grade(r"\sqrt{8}", r"2\sqrt{2}").correct
