"""MathEnv and QaEnv over rows with gold answers."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest

from gem.core import StopReason
from gem.envs.questions.answer_format import AnswerFormat
from gem.envs.questions.math_env import MathEnv
from gem.envs.questions.qa_env import QaEnv
from gem.envs.questions.worked_out import restates
from gem.errors import BadValue, GraderError
from gem.graders.math import MathGrader

ROWS = [
    {"problem": "One half?", "answer": r"\frac{1}{2}"},
    {"problem": "Two?", "answer": 2},
    {"problem": "Either?", "answer": ["3", "4"]},
]


@pytest.mark.parametrize(("idx", "answer"), [(0, "0.5"), (0, r"\frac{2}{4}"), (1, "2.0"), (2, "3"), (2, "4")])
def test_an_equal_answer_scores_one(idx, answer):
    env = MathEnv(dataset=ROWS)
    env.reset(idx=idx)
    step = env.step(rf"So \boxed{{{answer}}}.")
    assert (step.reward, step.terminated, step.truncated) == (1.0, True, False)
    assert step.info["correct"] is True and step.info["stop_reason"] == StopReason.SOLVED


def test_a_wrong_answer_scores_zero_and_then_the_gold_answer_is_revealed():
    env = MathEnv(dataset=ROWS)
    observation, info = env.reset(idx=0)
    assert "answer" not in info and "frac" not in observation
    step = env.step(r"\boxed{3}")
    assert (step.reward, step.info["correct"], step.info["answer"]) == (0.0, False, r"\frac{1}{2}")
    assert step.info["stop_reason"] == StopReason.LOST


def test_a_missing_answer_is_a_format_error():
    env = MathEnv(dataset=ROWS)
    env.reset(idx=0)
    step = env.step("It is 0.5.")
    assert (step.reward, step.terminated, step.info["invalid"]) == (-0.1, True, "no_answer")
    assert r"\boxed{}" in step.observation


# answer || gold || question. Their values are right.
COPIED = r"""
\sin 60^\circ || \frac{\sqrt{3}}{2} || What is $\sin 60^\circ$?
\sin(60^{\circ}) || \frac{\sqrt{3}}{2} || What is $\sin 60^\circ$?
12+34 || 46 || Compute $12 + 34$.
\left(12+34\right). || 46 || Compute $12 + 34$.
12 + 34 = 12 + 34 || 46 || Compute $12 + 34$.
x = 12+34 || 46 || Compute $12 + 34$.
12 \cdot 34 || 408 || What is 12 × 34?
\binom{10}{3} || 120 || Evaluate $\dbinom{10}{3}$.
\log_{2}(8) || 3 || Evaluate $\log_2 8$.
\frac{84}{2} || 42 || What is $84 \div 2$?
7 \div 4 || \frac{7}{4} || Compute $7 \div 4$.
2^{10} || 1024 || How many are $2^{10}$?
5! || 120 || Find $5!$.
|3-8| || 5 || What is the value of $|3-8|$?
\sum_{k=1}^4 k || 10 || Compute $\sum_{k=1}^{4} k$.
\gcd(12, 18) || 6 || What is $\gcd(12,18)$?
3x-6=0 || x=2 || Solve $3x-6=0$.
|x|<3 || (-3,3) || Solve $|x|<3$.
12+34, 5\cdot 6 || 46, 30 || What are $12+34$ and $5\cdot 6$?
\{1,2\} \cup \{2,3\} || \{1,2,3\} || Which set is $\{1,2\}\cup\{2,3\}$?
\log_2 8 || \log_2 8 = 3 || Evaluate $\log_2 8$.
\frac{27}{3} || 9 || Find the quotient: $\frac{27}{3}$
1101_{2} || 13 || Write $1101_2$ in base 10.
120^\circ || \frac{2\pi}{3} || Convert $120^\circ$ to radians.
"""
# The first may also be a choice, or has the form of the gold answer, or is a number that the question happens to have.
WORKED_OUT = r"""
x^2+1 || x^2+1 || Which of $x^2+1$, $x^2-1$ is irreducible over the reals?
1+x^2 || x^{2}+1 || Which of $1+x^2$, $x^2-1$ is irreducible over the reals?
3\sqrt{2} || B || Which equals $\sqrt{18}$? (A) $2\sqrt2$ (B) $3\sqrt{2}$ (C) 4
2n-1 || a_n = 2n-1 || What is the general term of $1, 3, \dots, 2n-1$?
\binom{1}{2-t} || A = \binom{1}{2-t} || For the vector $A = \binom{1}{2-t}$, compute $-(-A)$.
\frac{1}{x} || f^{-1}(x) = \frac{1}{x} || What is the inverse of $f(x) = \frac{1}{x}$?
x^2+y^2=25 || x^2+y^2=25 || Reflect the circle $x^2+y^2=25$ in the origin.
\log_2 8 = 3 || \log_2 8 = 3 || Evaluate $\log_2 8$.
12+34 = 46 || 46 || Compute $12 + 34$.
x > 0 || (0, \infty) || Let $x > 0$. For which $x$ is $\log x$ defined?
-1 \le x \le 1 || [-1, 1] || If $-1 \le x \le 1$, which $x$ may be the sine of an angle?
\frac{1}{2} || 0.5 || Heads has the probability $\frac{1}{2}$. What is the probability of tails?
60^\circ || 60 || Two angles of a triangle are $60^\circ$. What is the third?
4.5\text{ m/s}^2 || 4.5 || Find the acceleration in m/s$^2$.
(-\infty,0)\cup(0,\infty) || x \neq 0 || Let $f$ be defined on $(-\infty,0)\cup(0,\infty)$. What is its domain?
5 || 5 || What is $5$?
"""


def cases(text):
    return [pytest.param(*line.split(" || "), id=line) for line in text.strip().split("\n")]


@pytest.mark.parametrize(("answer", "gold", "question"), cases(COPIED))
def test_an_expression_of_the_question_is_no_answer(answer, gold, question):
    pytest.importorskip("sympy", reason="needs the extra [math]")
    env = MathEnv(dataset=[{"problem": question, "answer": gold}])
    env.reset(seed=0)
    step = env.step(rf"\boxed{{{answer}}}")
    assert (step.reward, step.info["correct"]) == (0.0, False)
    assert restates(answer, question, [gold]) is not None  # whatever the grader says


@pytest.mark.parametrize(("answer", "gold", "question"), cases(WORKED_OUT))
def test_an_answer_in_the_form_of_the_gold_answer_may_stand_in_the_question(answer, gold, question):
    pytest.importorskip("sympy", reason="needs the extra [math]")
    env = MathEnv(dataset=[{"problem": question, "answer": gold}])
    env.reset(seed=0)
    assert env.step(rf"\boxed{{{answer}}}").reward == 1.0


def test_a_gold_answer_never_counts_as_copied():
    for answer, gold, question in (line.split(" || ") for line in (COPIED + WORKED_OUT).split("\n") if line):
        assert restates(gold, question, [gold]) is None
        assert restates(gold, question, ["unknown", gold]) is None, answer


@pytest.mark.parametrize("kind", ["boxed", "tag", "code", "plain"])
def test_the_prompt_states_the_answer_format_and_only_that_format_is_parsed(kind):
    if kind == "plain":  # the other formats are compared as formulas
        pytest.importorskip("sympy", reason="needs the extra [math]")
    env = MathEnv(dataset=ROWS, answer_format=kind)
    observation, _ = env.reset(idx=1)
    assert AnswerFormat(kind).how in observation
    assert env.step(AnswerFormat(kind).write("2")).reward == 1.0
    for other in {"boxed", "tag", "code"} - {kind}:
        env.reset(idx=1)
        assert env.step("no: " + AnswerFormat(other).write("2")).reward != 1.0


def test_a_grader_timeout_raises_and_the_task_stays_open(monkeypatch):
    env = MathEnv(dataset=ROWS)
    env.reset(idx=0)

    def outage(self: Any, answer: Any, gold: Any, **options: Any) -> Any:
        raise GraderError("grading timed out after 5 s")

    monkeypatch.setattr(MathGrader, "grade", outage)
    with pytest.raises(GraderError):
        env.step(r"\boxed{\sqrt{2}}")
    monkeypatch.undo()
    assert env.step(r"\boxed{1/2}").reward == 1.0  # the task is still open


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"problem": "x?", "answer": None}, r"data\.jsonl, line 1 \(row 0\): .*'answer' .*got None"),
        ({"problem": "x?"}, "no column 'answer'; the row has 'problem' .answer_key="),
        ({"problem": "", "answer": "1"}, "'problem' .*text, got ''"),
        ({"question": "x?", "answer": "1"}, "the row has 'question', 'answer'"),
        ({"problem": "x?", "answer": ["1", None]}, "must hold an answer"),
        ({"problem": "x?", "answer": r"\frac{1}{"}, r"line 1 .* unreadable answer, .*braces are not balanced"),
        ({"problem": "x?", "answer": "9^{9^{9^9}}"}, r"line 1 .* unreadable answer, .*exponent"),
    ],
)
def test_a_bad_row_is_reported_with_file_and_number(tmp_path, row, message):
    path = tmp_path / "data.jsonl"
    path.write_text(json.dumps(row) + "\n")
    with pytest.raises(BadValue, match=message):
        MathEnv(str(path)).reset(seed=0)


def test_row_error_reports_a_gold_answer_that_cannot_be_parsed():
    pytest.importorskip("sympy", reason="needs the extra [math]")
    env = MathEnv(dataset=[{"problem": "x?", "answer": answer} for answer in ("x+1", "x+*", "Monday", "(1, 2)")])
    errors = [(env.reset(idx=idx), env.row_error())[1] for idx in range(4)]
    assert [bool(error) for error in errors] == [False, True, False, False]


def test_bad_rows_can_be_skipped(tmp_path, caplog):
    path = tmp_path / "data.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in [*ROWS, {"problem": "x?"}]))
    with caplog.at_level(logging.WARNING):
        env = MathEnv(str(path), skip_bad_rows=True)
    assert (len(env.dataset), env.skipped_rows) == (3, 1)
    assert "row 3" in caplog.text


def test_the_state_survives_a_json_round_trip():
    env, twin = MathEnv(dataset=ROWS), MathEnv(dataset=ROWS)
    env.reset(seed=4)
    twin.set_state(json.loads(json.dumps(env.get_state())))
    assert twin.first_obs == env.first_obs
    answer = env.format.write(str(env.answer if isinstance(env.answer, str) else env.answer[0]))
    assert twin.step(answer) == env.step(answer)
    assert twin.reset()[0] == env.reset()[0]


def test_the_published_constructor_and_static_grader_work():
    env = MathEnv(dataset={"train": ROWS}, split="train", question_key="problem", answer_key="answer", seed=3)
    assert env.reset()[0] == MathEnv(dataset=ROWS, seed=3).reset()[0]
    assert MathEnv.check_correct("1/2", "0.5") and not MathEnv.check_correct("1", "2")


QA = [{"question": "Who?", "answer": ["The Goethe", "J. W."]}, {"question": "Where?", "answer": "Weimar"}]


def test_a_short_answer_is_matched_after_normalization():
    env = QaEnv(dataset=QA)
    env.reset(idx=0)
    assert env.step("I think <answer>goethe!</answer>").reward == 1.0
    env.reset(idx=1)
    assert env.step("<answer>the town of Weimar</answer>").reward == 0.0


def test_f1_gives_partial_credit_for_shared_words():
    env = QaEnv(dataset=QA, reward="f1")
    env.reset(idx=1)
    step = env.step("<answer>the town of Weimar</answer>")
    assert step.reward == pytest.approx(2 / 4) and step.info["correct"] is False


def test_boxed_answers_are_requested_and_parsed():
    env = QaEnv(dataset=QA, extract_boxed=True)
    assert r"\boxed{}" in env.reset(idx=1)[0]
    assert env.step(r"\boxed{Weimar}").reward == 1.0


@pytest.mark.parametrize("kwargs", [{"extract_boxed": True, "answer_format": "tag"}, {"reward": "bleu"}])
def test_contradictory_options_are_rejected(kwargs):
    with pytest.raises(BadValue):
        QaEnv(dataset=QA, **kwargs)


def test_an_unknown_answer_format_is_rejected():
    with pytest.raises(BadValue, match=r"answer_format .*'boxed', 'tag', 'code', 'plain'.*'box'"):
        MathEnv(dataset=ROWS, answer_format="box")  # type: ignore[arg-type]
