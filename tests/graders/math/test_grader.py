"""Math grading: the labeled corpus, known confusions of other graders, size caps and the worker pool."""

from __future__ import annotations

import collections
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from gem.errors import BadValue, GraderError
from gem.graders.math.engine import SameFormula, first_true_within
from gem.graders.math.grader import WALL_SECONDS, MathGrader, grade_math, quick_grade
from gem.graders.math.parser import parse
from gem.graders.pool import GraderPool

pytest.importorskip("sympy", reason="needs the extra [math]")

ROWS = [json.loads(line) for line in (Path(__file__).parent / "math_cases.jsonl").read_text("utf-8").splitlines()]
CLASSES = sorted({row["class"] for row in ROWS})


def test_the_corpus_is_large_and_balanced():
    assert len(ROWS) >= 600 and len(CLASSES) >= 25
    counts = collections.Counter((row["class"], row["equal"]) for row in ROWS)
    assert all(counts[name, True] == counts[name, False] >= 10 for name in CLASSES)


@pytest.mark.parametrize(
    "step", [83, pytest.param(3, marks=pytest.mark.slow), pytest.param(1, marks=pytest.mark.exhaustive)]
)
def test_the_corpus_is_graded_as_labeled(step):
    """No unequal pair is accepted, and few equal ones of each class are rejected; a verdict without sympy is right."""
    graded = [(row, grade_math(row["answer"], row["gold"]).correct) for row in ROWS[::step]]
    assert [row for row, correct in graded if correct and not row["equal"]] == []
    rejected = [row for row, correct in graded if row["equal"] and not correct]
    assert len(rejected) <= 0.01 * len(graded), rejected
    most, classes = (
        collections.Counter(row["class"] for row in rejected),
        collections.Counter(row["class"] for row, _ in graded),
    )
    assert all(count <= max(1, 0.05 * classes[name]) for name, count in most.items()), rejected
    quick = [(row, quick_grade(row["answer"], row["gold"])) for row, _ in graded]
    assert [row for row, grade in quick if grade is not None and grade.correct is not row["equal"]] == []


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
    ("2, 1", "(1, 2)"),
    ("f(t)=2t+x", "f(x)=2x+x"),
    ("f(t)=2t", "g(x)=2x"),
    ("2 hours and 30 minutes", "30 minutes"),
    ("March 5", "March 6"),
    ("March 5, 2020", "5"),
    ("(c)", "(B)"),
    ("c", "C"),
    (r"\mathbb{R}\setminus[-2,1]", r"(-\infty,-2]\cup(1,\infty)"),
    (r"|x|\le 1", "(-1,1)"),
    (r"|x|\le 1", "1"),
    (r"x\ne 2", r"y\ne 2"),
    (r"x\ne 2", "2"),
    (r"0<x<36, x\ne 9", "(0,36)"),
    (r"0<x<36, y\ne 9", r"(0,9)\cup(9,36)"),
    (r"[0,1]\cup[2,3]", "[0,3]"),
    (r"\begin{cases}x&x>0\\-x&x\le 0\end{cases}", r"\begin{cases}x&x\le 0\\-x&x>0\end{cases}"),
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
    ("1, 2", "(1, 2)"),
    ("2+3=5", "5=x"),
    ("f(t)=2t", "f(x)=2x"),
    (r"\vec{v}=(1,2)", "(1,2)"),
    (r"5\mp 2", "3, 7"),
    ("2 hours and 30 minutes", "150 minutes"),
    (r"2\text{ hours }30\text{ minutes}", "2.5 hours"),
    ("DNE", "does not exist"),
    ("March 5, 2020", "5th of March 2020"),
    ("(c)", "(C)"),
    (r"\mathbb{R}\setminus[-2,1]", r"(-\infty,-2)\cup(1,\infty)"),
    (r"x\in\mathbb{R}\setminus\{2\}", r"x\ne 2"),
    (r"|x|\le 1", "[-1,1]"),
    ("|x|>3", r"(-\infty,-3)\cup(3,\infty)"),
    (r"x\ne 2", r"(-\infty,2)\cup(2,\infty)"),
    (r"0<x<36, x\ne 9", r"(0,9)\cup(9,36)"),
    (r"5\ \text{m}\,\text{s}^{-1}", r"5 \text{ m/s}"),
    (r"9.8 \text{ m s}^{-2}", r"9.8 \text{ m/s}^2"),
]


def test_the_pieces_of_a_function_have_no_order():
    pieces = (
        r"\begin{cases}x&x>0\\-x&x\le 0\end{cases}",
        r"\begin{cases}-x&\text{if }x\le 0\\x&\text{if }x>0\end{cases}",
    )
    assert grade_math(*pieces).correct


def test_the_left_side_of_an_equation_is_dropped_if_the_question_asks_for_it():
    assert grade_math("m+n=771", "771", question="The area is $m/n$. Find $m + n$.").correct
    assert not grade_math("m+n=772", "771", question="The area is $m/n$. Find $m + n$.").correct
    for question in ("Find $x$.", "Find $2x+y$.", "Where do $x+y=5$ and $y=0$ meet?", ""):
        assert not grade_math("x+y=5", "5", question=question).correct


def test_a_small_letter_names_a_choice_only_if_the_question_lists_choices():
    for question in (
        "Which? (A) 1 (B) 2 (C) 3",
        "A. one\nB. two\nC. three",
        r"$\textbf{(A)}\ 1 \textbf{(B)}\ 2 \textbf{(C)}\ 3$",
    ):
        assert grade_math("c", "C", question=question).correct and not grade_math("b", "C", question=question).correct
    for question in ("Find the constant.", "Which? (A) 1 (B) 2", ""):
        assert not grade_math("c", "C", question=question).correct


def test_a_percentage_equals_its_number_if_the_question_asks_for_one():
    for question in ("What percent is it?", "Give the answer as a percentage.", "By what per cent does it fall?"):
        assert grade_math("50%", "50", question=question).correct
        assert grade_math("50", r"50\%", question=question).correct
    assert not grade_math("50%", "50", question="A price falls by 20 percent. What is it?").correct
    assert not grade_math("0.5", "50", question="What percent is it?").correct


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
    assert (grade.correct, grade.reward, grade.parsed) == (True, 1.0, r"\boxed{ \dfrac12 }")
    assert "0.5" in grade.reason


@pytest.fixture(scope="module")
def grader() -> Iterator[MathGrader]:
    with GraderPool(2, timeout=20.0, modules=["gem.graders.math.warm"]) as pool:
        yield MathGrader(pool)


@pytest.mark.slow
def test_the_pool_agrees_with_the_function(grader):
    for row in ROWS[::90]:
        assert grader.grade(row["answer"], row["gold"]) == grade_math(row["answer"], row["gold"])


@pytest.mark.slow
def test_a_grader_can_be_shared_by_threads(grader):
    wrong: list[object] = []

    def grade_all() -> None:
        wrong.extend(row for row in ROWS[::170] if grader.grade(row["answer"], row["gold"]).correct is not row["equal"])

    threads = [threading.Thread(target=grade_all) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


SLOW = parse(r"\sum_{k=1}^{800} \frac{1}{k^{k}}")
DEGENERATE = {
    "ones": "1 " * 1499,
    "bars": "|" * 2999,
    "fractions": r"\frac12" * 400,
    "plus": "1+" * 1400 + "1",
    "roots": r"\sqrt{2}+" * 300 + "1",
    "powers": "2^{9999}+" * 290 + "1",
    "power of power": "((2^{999})^{999})^{999}",
    "nested roots": r"\sqrt{2+" * 45 + "2" + "}" * 45,
    "fewer ones": "1 " * 499,
    "fewer bars": "|" * 299,
    "fewer fractions": r"\frac12" * 250,
}


GOLD = r"\sqrt{7}+1"
VERDICTS = {
    **dict.fromkeys(DEGENERATE.values(), False),
    r"1+\sqrt7": True,
    r"\frac{6}{\sqrt{7}-1}": True,
    r"\sqrt{8+2\sqrt{7}}": True,
    r"\frac{(\sqrt{7}+1)^{30}}{(\sqrt{7}+1)^{29}}": True,
    r"\sqrt{7}-1": False,
    r"\sqrt{7}+1+\frac{1}{2^{100}}": False,
    r"\frac{7}{\sqrt{7}-1}": False,
    r"\sqrt{7+1": False,
    r"\frac{\sqrt{7}+1}{": False,
    r"}{\sqrt{7}+1": False,
    r"\begin{cases}\sqrt{7}+1": False,
}


@pytest.mark.slow
def test_right_wrong_malformed_and_degenerate_answers_get_the_same_verdicts_on_a_loaded_machine():
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(4)]
    try:
        with (
            GraderPool(2, timeout=WALL_SECONDS, modules=["gem.graders.math.warm"]) as pool,
            ThreadPoolExecutor(2) as two,
        ):
            graded = two.map(lambda answer: MathGrader(pool).grade(answer, GOLD).correct, VERDICTS)
            assert dict(zip(VERDICTS, graded, strict=True)) == VERDICTS
    finally:
        for process in busy:
            process.kill()
            process.wait()


@pytest.mark.parametrize("answer", ["1 " * 1499, "|" * 2999, r"\frac12" * 400, "1+" * 1400 + "1"])
def test_degenerate_answers_exceed_the_caps(answer):
    assert quick_grade(answer, r"\sqrt{7}+1") is not None


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # raised in a destructor
def test_a_gold_answer_that_exceeds_the_limit_on_cpu_time_raises():
    condition = SameFormula(parse("x+1"), SLOW)
    with pytest.raises(GraderError, match=r"needs over 0\.2 s of CPU"):
        first_true_within([condition], 0.2)
    assert first_true_within([SameFormula(condition.gold, parse("x+1"))], 0.2) is None


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # raised in a destructor
@pytest.mark.slow
def test_a_slow_comparison_does_not_hide_an_equal_second_gold_answer():
    slow = SameFormula(SLOW, parse("x+1"))
    assert first_true_within([slow, SameFormula(parse("x+1"), parse("1+x")), slow], 0.5) == 1
    assert first_true_within([slow, slow, SameFormula(parse("x+1"), parse("1+x"))], 0.5) == 2


@pytest.mark.slow
def test_a_worker_whose_comparison_was_stopped_is_replaced():
    """Sympy may have been stopped between two steps that belong together, and grades wrong from then on."""
    with GraderPool(1, timeout=60.0, modules=["gem.graders.math.warm"]) as pool:
        before = pool.run("os:getpid")
        slow = SameFormula(SLOW, parse("x+1"))
        assert pool.run("gem.graders.math.engine:first_true_within", [slow], 0.2) is None
        assert pool.run("os:getpid") != before


@pytest.mark.slow
def test_a_grading_timeout_raises_and_the_pool_recovers():
    hard = r"\sum_{k=1}^{800} \frac{1}{k^{k}}"
    with GraderPool(1, modules=["gem.graders.math.warm"]) as pool:
        grader = MathGrader(pool, timeout=1.0)
        with pytest.raises(GraderError, match="timed out after 1 s"):
            grader.grade(hard, r"\sqrt{2}+x")
        assert grader.grade(r"\sqrt{8}", r"2\sqrt{2}").correct
