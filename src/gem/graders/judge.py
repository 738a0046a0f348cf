"""A language model as the judge, by a rubric, of answers that no rule can grade.

The answer is untrusted: it stands between lines with a random token that it cannot know, the judge is told that
whatever stands there is data, and a verdict counts only as a reply that is one JSON object and names the token. So an
answer can neither end its own part of the prompt nor write the verdict. What it can still do is talk the judge round:
a judge is a weaker grader than a rule.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gem.errors import BadValue, GraderError
from gem.graders.base import Grade
from gem.messages import Message, assistant, user
from gem.policies.endpoint import Completion, Endpoint

MAX_CHARS = 50_000  # about 12,000 tokens of English: what every model in use today can read
SAME = "The score is the highest where ANSWER says the same as REFERENCE in substance, and 0 where it does not."


@dataclass(frozen=True, kw_only=True)
class Judge:
    """Grades answers by asking a model.

    Args:
        endpoint: the model. Whoever made it closes it.
        rubric: what earns which score; it may speak of QUESTION, REFERENCE and ANSWER.
        top: the best score; the scores are whole numbers from 0, and the reward is score / top.
        max_chars: of an answer; a longer one is wrong, without being shown to the judge.
        sampling: options for the endpoint.

    ``Grade.details`` has the score, top and the judge's name. Raises BadValue for an empty rubric or a top below 1.
    """

    endpoint: Endpoint
    rubric: str = SAME
    top: int = 1
    max_chars: int = MAX_CHARS
    sampling: Mapping[str, Any] = field(default_factory=lambda: {"temperature": 0})

    def __post_init__(self) -> None:
        if not self.rubric.strip():
            raise BadValue("a rubric should say what earns which score; it is empty")
        if self.top < 1 or self.max_chars < 1:
            raise BadValue(f"top and max_chars must be at least 1, got {self.top} and {self.max_chars}")

    def grade(self, answer: str, gold: str | Sequence[str] = (), *, question: str = "") -> Grade:
        """The judge's verdict.

        Args:
            gold: a right answer, or several; none for a rubric that needs none.
            question: shown to the judge where there is one.

        Raises EndpointError where the endpoint fails, and GraderError where the judge gives no readable verdict, asked
        twice: then nobody knows whether the answer is right. BadValue for an answer or gold that is no text.
        """
        if (refused := self._refused(answer)) is not None:
            return refused
        case = _Case(self, answer, _texts(gold), question)
        first = self.endpoint.complete(case.messages(), **self.sampling)
        verdict = case.verdict(first)
        if isinstance(verdict, str):
            second = self.endpoint.complete(case.repair(first, verdict), **self.sampling)
            verdict = case.last_verdict(second)
        return verdict

    async def agrade(self, answer: str, gold: str | Sequence[str] = (), *, question: str = "") -> Grade:
        """grade(), for event loops."""
        return await asyncio.to_thread(self.grade, answer, gold, question=question)

    def _refused(self, answer: str) -> Grade | None:
        """The grade of what needs no judge."""
        if not isinstance(answer, str):
            raise BadValue(f"an answer is text, got {type(answer).__name__}")
        if not answer.strip():
            return Grade(reward=0.0, correct=False, reason="no answer")
        if len(answer) > self.max_chars:
            return Grade(reward=0.0, correct=False, reason=f"longer than {self.max_chars:,} characters")
        return None
