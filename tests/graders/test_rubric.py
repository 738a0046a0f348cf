"""Rubric: several graders combined."""

from __future__ import annotations

import asyncio

import pytest

from gem.errors import BadValue, GraderError
from gem.graders.base import Grade
from gem.graders.exact import exact_match, f1
from gem.graders.rubric import Part, Rubric


def says(reward: float) -> Part:
    return Part(lambda answer, gold: Grade(reward=reward, correct=reward == 1, reason=f"{answer} for {gold}"))


def weighted(**parts: tuple[float, float]) -> Grade:
    rubric = Rubric({name: Part(says(reward).grade, weight) for name, (reward, weight) in parts.items()})
    return rubric.grade("a", "b")


def test_the_reward_is_the_weighted_mean():
    assert weighted(first=(1.0, 3), second=(0.0, 1)).reward == 0.75
    assert weighted(first=(0.5, 1), second=(0.25, 1)).reward == 0.375


def test_the_parts_are_reported_and_sum_to_the_reward():
    grade = weighted(first=(1.0, 2), second=(0.5, 6))
    assert grade.details["reward_parts"] == {"first": 0.25, "second": 0.375}
    assert sum(grade.details["reward_parts"].values()) == grade.reward
    assert grade.details["parts"]["second"] == {"reward": 0.5, "weight": 6, "reason": "a for b", "details": {}}
    assert grade.reason == "first 1: a for b; second 0.5: a for b"


@pytest.mark.parametrize("weights", [(0.1, 0.2, 0.7), (1e-30, 1.0, 3.3), (1 / 3, 1 / 7, 1 / 11)])
def test_only_a_fully_correct_answer_scores_exactly_one(weights):
    assert weighted(a=(1.0, weights[0]), b=(1.0, weights[1]), c=(1.0, weights[2])).reward == 1.0
    almost = weighted(a=(0.0, weights[0]), b=(1.0, weights[1]), c=(1.0, weights[2]))
    assert almost.reward < 1.0 and not almost.correct


def test_a_part_of_weight_zero_is_only_reported():
    grade = weighted(counted=(1.0, 1), reported=(0.0, 0))
    assert grade.correct and grade.details["parts"]["reported"]["reward"] == 0.0


def test_existing_graders_can_be_parts():
    rubric = Rubric({"exact": Part(exact_match), "words": Part(f1, weight=3)})
    assert rubric.grade("red dog", "The red dog").correct
    assert rubric.grade("dog", "red dog").reward == pytest.approx(0.75 * 2 / 3)


def test_rubrics_can_be_nested():
    inner = Rubric({"a": says(1.0), "b": says(0.0)})
    grade = Rubric({"inner": Part(inner.grade), "c": says(1.0)}).grade("x", "y")
    assert grade.reward == 0.75 and grade.details["parts"]["inner"]["details"]["reward_parts"] == {"a": 0.5, "b": 0.0}


def test_the_question_is_passed_to_parts_that_take_it():
    def asked(answer: str, gold: str, *, question: str) -> Grade:
        return Grade(reward=1.0, correct=True, reason=question)

    rubric = Rubric({"asked": Part(asked, takes_question=True), "exact": Part(exact_match)})
    assert rubric.grade("4", "4", question="2 + 2?").details["parts"]["asked"]["reason"] == "2 + 2?"


def test_a_part_that_raises_leaves_no_grade():
    def down(answer: str, gold: str) -> Grade:
        raise GraderError("down")

    with pytest.raises(GraderError, match="down"):
        Rubric({"right": says(1.0), "down": Part(down, weight=0)}).grade("a", "b")


@pytest.mark.parametrize("parts", [{}, {"a": Part(exact_match, weight=0)}])
def test_a_rubric_needs_a_part_with_a_positive_weight(parts):
    with pytest.raises(BadValue, match="weight above 0"):
        Rubric(parts)


@pytest.mark.parametrize("weight", [-1, float("nan"), float("inf"), True])
def test_an_invalid_weight_is_rejected(weight):
    with pytest.raises(BadValue, match="weight must be a number >= 0"):
        Part(exact_match, weight)


def test_a_part_that_is_not_callable_is_rejected():
    with pytest.raises(BadValue, match="must be a function"):
        Part("exact")  # type: ignore[arg-type]


def test_agrade_runs_parts_concurrently_and_gives_the_same_grade():
    arrived = asyncio.Barrier(2) if hasattr(asyncio, "Barrier") else None

    async def waiting(answer: str, gold: str, *, question: str) -> Grade:
        if arrived is not None:
            await arrived.wait()  # for the other part
        return exact_match(answer, gold if question else "")

    asked = Part(lambda answer, gold, question: exact_match(answer, gold), takes_question=True, agrade=waiting)
    rubric = Rubric({"a": asked, "b": asked, "plain": Part(f1, weight=2)})
    together = asyncio.run(rubric.agrade("red dog", "dog", question="which?"))
    assert together == rubric.grade("red dog", "dog", question="which?")


def test_agrade_cancels_the_other_parts_if_one_raises():
    cancelled = []

    async def slow(answer: str, gold: str) -> Grade:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            cancelled.append(answer)
            raise
        return exact_match(answer, gold)

    async def down(answer: str, gold: str) -> Grade:
        raise GraderError("down")

    rubric = Rubric({"slow": Part(exact_match, agrade=slow), "down": Part(exact_match, agrade=down)})
    with pytest.raises(GraderError, match="down"):
        asyncio.run(rubric.agrade("a", "b"))
    assert cancelled == ["a"]
