"""Units are known words, multipliers change the value, and an answer names one choice."""

from __future__ import annotations

import pytest

from gem.graders.math.grader import quick_grade


def grades(answer: str, gold: str, question: str = "") -> bool:
    grade = quick_grade(answer, gold, question=question)
    assert grade is not None
    return grade.correct


@pytest.mark.parametrize(
    "answer",
    [
        "5 dozen",
        "5 squared",
        "5 thirds",
        r"5 \text{ or six}",
        r"5\text{ or six}",
        "5 is wrong",
        "5 percent",
        "5 hundredths",
        r"5 \text{ squared}",
        "5 gazillion",
        "5 times",
        "5 apples",
        r"5 \text{ negative}",
        "x = 5 is wrong",
        "(5 is wrong)",
    ],
)
def test_an_unknown_word_or_a_multiplier_is_not_a_unit(answer):
    assert not grades(answer, "5")
    assert not grades(answer, "5", "Which of these is wrong, five or six?")


@pytest.mark.parametrize(
    ("answer", "gold"),
    [("5 dozen", "60"), ("7 squared", "49"), ("2 cubed", "8"), ("2 thirds", "2/3"), ("3 hundredths", "0.03")],
)
def test_a_multiplier_multiplies(answer, gold):
    assert grades(answer, gold)


def test_a_word_of_the_question_or_the_gold_answer_is_a_unit():
    assert grades("5 apples", "5", "How many apples does Ann have?")
    assert grades("5 apples", "5", "Ann buys one apple a day.")
    assert grades(r"5 \text{ boxes}", "5", "Each box holds 3 pens.")
    assert grades("5 apples", "5 apples") and grades("5", "5 apples")
    assert not grades("5 pears", "5 apples") and not grades("5 pears", "5", "How many apples?")


@pytest.mark.parametrize("answer", ["5 cm", "5 people", r"5 \text{ ways}", "5 units", "5 km/h", r"5 \text{ dollars}"])
def test_a_listed_unit_needs_no_context(answer):
    assert grades(answer, "5")


@pytest.mark.parametrize("answer", ["(C) 1 (D) 2", "C. D.", r"\text{(C) and (D)}", "(C) is wrong", "(C) (D)", "C or D"])
def test_an_answer_with_two_choices_is_wrong(answer):
    assert not grades(answer, "C") and not grades(answer, "(C)")


@pytest.mark.parametrize("answer", ["(C) 12", "C. 12", r"\text{(C)}", "(C)", "Option C", r"(C) \text{cats and dogs}"])
def test_an_answer_with_one_choice_is_right(answer):
    assert grades(answer, "(C)") and grades(answer, "C")
