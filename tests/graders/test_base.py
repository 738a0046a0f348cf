"""Grade, and the check of gold answers."""

import pytest

from gem.errors import BadValue
from gem.graders import Grade
from gem.graders.base import gold_answers


@pytest.mark.parametrize(("reward", "correct"), [(1.0, True), (0.0, False), (0.5, False)])
def test_the_reward_is_one_exactly_for_a_correct_answer(reward, correct):
    assert Grade(reward=reward, correct=correct, reason="").reward == reward


@pytest.mark.parametrize(
    ("reward", "correct"), [(1.0, False), (0.0, True), (0.5, True), (-0.1, False), (1.1, True), (float("nan"), False)]
)
def test_a_reward_that_contradicts_the_verdict_is_refused(reward, correct):
    with pytest.raises(BadValue, match=f"reward .*0 to 1.*got {reward} and {correct}"):
        Grade(reward=reward, correct=correct, reason="")


def test_one_gold_answer_or_several_become_a_list():
    assert gold_answers("4") == ["4"]
    assert gold_answers(("4", "four")) == ["4", "four"]
    assert gold_answers([], allow_none=True) == []


@pytest.mark.parametrize("gold", ["", "  ", [], ["4", ""], [4], None])
def test_a_gold_answer_that_is_blank_missing_or_no_string_is_refused(gold):
    with pytest.raises(BadValue, match=r"gold .*non-empty string"):
        gold_answers(gold)
