"""Several graders as one: named parts with weights.

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
        agrade: the same for event loops, as ``Judge(…).agrade``; None runs ``grade`` in a thread.

    Raises BadValue for a weight that is negative or no number.
    """

    grade: Callable[..., Grade]
    weight: float = 1.0
    takes_question: bool = False
    agrade: Callable[..., Awaitable[Grade]] | None = None

    def __post_init__(self) -> None:
        if not callable(self.grade):
            raise BadValue(f"a part's grade is a function of an answer and a gold one, got {self.grade!r}")
        if isinstance(self.weight, bool) or not 0 <= self.weight < math.inf:
            raise BadValue(f"a weight must be a number >= 0, got {self.weight!r}")

    def asks(self, question: str) -> dict[str, str]:
        """What it is handed besides answer and gold."""
        return {"question": question} if self.takes_question else {}


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
        return self._summed(
            {name: part.grade(answer, gold, **part.asks(question)) for name, part in self.parts.items()}
        )

    async def agrade(self, answer: str, gold: str | Sequence[str], *, question: str = "") -> Grade:
        """grade(), for event loops: all parts at once. Where one raises, the others are given up."""
        tasks = [asyncio.ensure_future(_agraded(part, answer, gold, question)) for part in self.parts.values()]
        try:
            grades = await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
        return self._summed(dict(zip(self.parts, grades, strict=True)))

    def _summed(self, grades: Mapping[str, Grade]) -> Grade:
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


async def _agraded(part: Part, answer: str, gold: str | Sequence[str], question: str) -> Grade:
    asked = part.asks(question)
    if part.agrade is not None:
        return await part.agrade(answer, gold, **asked)
    return await asyncio.to_thread(part.grade, answer, gold, **asked)
