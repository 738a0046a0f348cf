"""Combine several graders into one score. Each grader has a name and a weight.

>>> from gem.graders.exact import exact_match
>>> short = lambda answer, gold: exact_match("short" if len(answer) < 20 else "long", "short")
>>> rubric = Rubric({"right": Part(exact_match, weight=3), "short": Part(short)})
>>> grade = rubric.grade("It is Paris", "Paris")
>>> grade.reward, grade.details["reward_parts"]
(0.25, {'right': 0.0, 'short': 0.25})
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from gem.errors import BadValue
from gem.graders.base import Grade


@dataclass(frozen=True)
class Part:
    """One grader of a rubric.

    Args:
        grade: function of an answer and a gold answer, such as ``exact_match`` or ``MathGrader().grade``.
        weight: relative weight. A part with weight 0 is reported but does not affect the grade.
        takes_question: whether ``grade`` accepts ``question=``, as ``Judge(…).grade`` does.
        agrade: async version of ``grade``, such as ``Judge(…).agrade``. If None, Rubric.agrade() runs ``grade`` in a
            thread.

    Raises:
        BadValue: ``grade`` is not callable, or the weight is negative or not a finite number.
    """

    grade: Callable[..., Grade]
    weight: float = 1.0
    takes_question: bool = False
    agrade: Callable[..., Awaitable[Grade]] | None = None

    def __post_init__(self) -> None:
        if not callable(self.grade):
            raise BadValue(f"grade must be a function of an answer and a gold answer, got {self.grade!r}")
        if isinstance(self.weight, bool) or not 0 <= self.weight < math.inf:
            raise BadValue(f"a weight must be a number >= 0, got {self.weight!r}")

    def extra_arguments(self, question: str) -> dict[str, str]:
        """Return the keyword arguments of ``grade`` besides answer and gold."""
        return {"question": question} if self.takes_question else {}


class Rubric:
    """Grade by the weighted mean of several graders.

    An answer is correct if every part with a positive weight grades it as correct.

    ``Grade.details["parts"]`` holds the reward, weight, reason and details of each part by name.
    ``details["reward_parts"]`` holds the contribution of each part; the contributions sum to the reward.
    ``details["checks"]`` says of each part whether it grades the answer as correct, and why.

    Raises:
        BadValue: no part has a positive weight.
    """

    def __init__(self, parts: Mapping[str, Part]) -> None:
        if not sum(part.weight for part in parts.values()) > 0:
            raise BadValue(f"a rubric needs a part with a weight above 0, got {dict(parts)!r}")
        self.parts = dict(parts)

    def grade(self, answer: str, gold: str | Sequence[str], *, question: str = "") -> Grade:
        """Grade an answer with all parts, in order. If a part raises an exception, the exception propagates."""
        return self._combined(
            {name: part.grade(answer, gold, **part.extra_arguments(question)) for name, part in self.parts.items()}
        )

    async def agrade(self, answer: str, gold: str | Sequence[str], *, question: str = "") -> Grade:
        """Grade an answer with all parts concurrently. If a part raises an exception, the other parts are cancelled."""
        tasks = [asyncio.ensure_future(_agraded(part, answer, gold, question)) for part in self.parts.values()]
        try:
            grades = await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
        return self._combined(dict(zip(self.parts, grades, strict=True)))

    def _combined(self, grades: Mapping[str, Grade]) -> Grade:
        total = sum(part.weight for part in self.parts.values())
        contributions = {name: part.weight * grades[name].reward / total for name, part in self.parts.items()}
        correct = all(grades[name].correct for name, part in self.parts.items() if part.weight)
        below_one = math.nextafter(1.0, 0.0)  # rounding must not give an incorrect answer a reward of 1
        parts = {
            name: {
                "reward": grade.reward,
                "weight": self.parts[name].weight,
                "reason": grade.reason,
                "details": grade.details,
            }
            for name, grade in grades.items()
        }
        checks = [
            {"name": name, "passed": grade.correct, "detail": f"{grade.reward:g}: {grade.explanation}"}
            for name, grade in grades.items()
        ]
        return Grade(
            reward=1.0 if correct else min(sum(contributions.values()), below_one),
            correct=correct,
            reason="; ".join(
                f"{name} {grade.reward:g}: {grade.reason.removesuffix('.')}" for name, grade in grades.items()
            ),
            details={"reward_parts": contributions, "parts": parts, "checks": checks},
        )


async def _agraded(part: Part, answer: str, gold: str | Sequence[str], question: str) -> Grade:
    extra = part.extra_arguments(question)
    if part.agrade is not None:
        return await part.agrade(answer, gold, **extra)
    return await asyncio.to_thread(part.grade, answer, gold, **extra)
