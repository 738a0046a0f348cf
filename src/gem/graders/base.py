"""What every grader returns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from gem.errors import BadValue


@dataclass(frozen=True, kw_only=True)
class Grade:
    """How an answer was judged. A grader that cannot judge raises InfraError: no verdict stands for an outage.

    Args:
        reward: 0 to 1.
        correct: whether nothing was wrong with it; then the reward is 1.
        reason: why, in a line for people.
        parsed: the answer as it was read, "" where nothing was.
        details: plain data for programs, each grader's own.

    Raises BadValue for a reward outside 0 to 1, or one that ``correct`` contradicts.
    """

    reward: float
    correct: bool
    reason: str
    parsed: str = ""
    details: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not 0 <= self.reward <= 1 or self.correct is not (self.reward == 1):
            raise BadValue(f"a reward is 0 to 1, and 1 exactly where correct; got {self.reward!r} and {self.correct}")
