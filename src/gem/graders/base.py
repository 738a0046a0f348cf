"""The class Grade, which every grader returns, and the validation of gold answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from gem._internal.text import quoted, short_repr
from gem.errors import BadValue


@dataclass(frozen=True, kw_only=True)
class Grade:
    """The verdict on an answer. A grader that cannot reach a verdict raises InfraError instead of returning a Grade.

    Args:
        reward: the score, from 0 to 1.
        correct: whether the answer is fully correct. The reward is 1 if and only if this is True.
        reason: a one-line explanation for humans.
        parsed: the answer as parsed; "" if nothing was parsed.
        details: JSON-like data specific to the grader. ``details["checks"]``, if present, are checks as gem.core.Step
            defines them.

    Raises:
        BadValue: the reward is outside 0 to 1 or contradicts ``correct``.
    """

    reward: float
    correct: bool
    reason: str
    parsed: str = ""
    details: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not 0 <= self.reward <= 1 or self.correct is not (self.reward == 1):
            raise BadValue(f"reward must be 0 to 1, and 1 exactly if correct; got {self.reward!r} and {self.correct}")

    @property
    def explanation(self) -> str:
        """What was read of the answer, and the reason."""
        return f"Read {quoted(self.parsed, 200)}. {self.reason}" if self.parsed else self.reason


def gold_answers(gold: str | Sequence[str], *, allow_none: bool = False) -> list[str]:
    """Validate one gold answer or a sequence of gold answers, and return them as a list.

    Args:
        allow_none: accept an empty sequence.

    Raises:
        BadValue: a gold answer is blank or not a string, or the sequence is empty and ``allow_none`` is False.
    """
    golds = list(gold) if isinstance(gold, Sequence) and not isinstance(gold, str) else [gold]
    if not (golds or allow_none) or not all(isinstance(each, str) and each.strip() for each in golds):
        raise BadValue(f"gold must be a non-empty string or several, got {short_repr(gold, 80)}")
    return golds
