"""Several graders as one: named parts with weights.

>>> from gem.graders.exact import exact_match
>>> short = lambda answer, gold: exact_match("short" if len(answer) < 20 else "long", "short")
>>> rubric = Rubric({"right": Part(exact_match, weight=3), "short": Part(short)})
>>> grade = rubric.grade("It is Paris", "Paris")
>>> grade.reward, grade.details["reward_parts"]
(0.25, {'right': 0.0, 'short': 0.25})
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gem.errors import BadValue
from gem.graders.base import Grade


@dataclass(frozen=True)
class Part:
    """A grader of a rubric.

    Args:
        grade: any grader's function of an answer and the gold one: ``exact_match``, ``MathGrader().grade``.
        weight: against the other parts; 0 for one that is only reported.
        takes_question: hand it ``question=`` too, as ``Judge(…).grade`` takes it.

    Raises BadValue for a weight that is negative or no number.
    """

    grade: Callable[..., Grade]
    weight: float = 1.0
    takes_question: bool = False

    def __post_init__(self) -> None:
        if not callable(self.grade):
            raise BadValue(f"a part's grade is a function of an answer and a gold one, got {self.grade!r}")
        if isinstance(self.weight, bool) or not 0 <= self.weight < math.inf:
            raise BadValue(f"a weight must be a number >= 0, got {self.weight!r}")


class Rubric:
    """The weighted mean of its parts; correct where every part with a weight is.

    ``Grade.details["parts"]`` has each part's reward, weight, reason and details by name, and
    ``details["reward_parts"]`` what each contributes; they sum to the reward. Raises BadValue where no part has weight.
    """

    def __init__(self, parts: Mapping[str, Part]) -> None:
        if not sum(part.weight for part in parts.values()) > 0:
            raise BadValue(f"a rubric needs a part with a weight above 0, got {dict(parts)!r}")
        self.parts = dict(parts)

    def grade(self, answer: str, gold: str | Sequence[str], *, question: str = "") -> Grade:
        """Grade by all parts, in their order. Raises what a part raises: without all of them there is no grade."""
        grades = {name: _graded(part, answer, gold, question) for name, part in self.parts.items()}
        total = sum(part.weight for part in self.parts.values())
        shares = {name: part.weight * grades[name].reward / total for name, part in self.parts.items()}
        correct = all(grades[name].correct for name, part in self.parts.items() if part.weight)
        below_one = math.nextafter(1.0, 0.0)  # a part may weigh less than rounding
        return Grade(
            reward=1.0 if correct else min(sum(shares.values()), below_one),
            correct=correct,
            reason="; ".join(f"{name} {grade.reward:g}: {grade.reason}" for name, grade in grades.items()),
            details={"reward_parts": shares, "parts": self._told(grades)},
        )

    def _told(self, grades: Mapping[str, Grade]) -> dict[str, Any]:
        return {
            name: {
                "reward": grade.reward,
                "weight": self.parts[name].weight,
                "reason": grade.reason,
                "details": grade.details,
            }
            for name, grade in grades.items()
        }


def _graded(part: Part, answer: str, gold: str | Sequence[str], question: str) -> Grade:
    return part.grade(answer, gold, question=question) if part.takes_question else part.grade(answer, gold)
