r"""Questions of mathematics: one answer, judged as gem.graders.math judges.

Action       text holding the answer in the format that the prompt asks for: the last ``\boxed{…}`` by default.
Observation  the question and how to answer; after the answer, whether it was right.
Reward       1.0 for an answer equal to the gold one, else 0.0; -0.1 where no answer is found.
Ends         terminated on the answer, whatever it is.

A grader that runs out of time raises GraderError: then nobody knows whether the answer is right.

>>> env = MathEnv(dataset=[{"problem": "What is $1+1$?", "answer": "2"}])
>>> env.reset(seed=0)[0]
'What is $1+1$?\n\nThink step by step, and put your final answer in \\boxed{}.'
>>> env.step(r"\boxed{4/2}").reward
1.0
"""

from __future__ import annotations

from typing import Any

from gem.datasets import Row
from gem.envs.answer_format import AnswerFormat, Kind
from gem.envs.dataset_env import DatasetEnv, text_in
from gem.envs.spoiled import spoiled_formula
from gem.errors import BadValue
from gem.graders import Grade
from gem.graders.math import MathGrader, grade_math, quick_complaint


class MathEnv(DatasetEnv):
    """See the module docstring. The arguments before the asterisk are the published ones.

    Args:
        dataset_name, split, dataset, seed, shuffle, skip_bad_rows, streaming: see DatasetEnv.
        question_key, answer_key: columns of the question and of its answer: text, a number, or a list of right answers.
        use_mp: without effect: what takes long is always judged in worker processes.
        answer_format: see AnswerFormat.
        timeout: seconds for judging one answer.

    Raises BadValue for a value out of its range.
    """

    grader = MathGrader()

    def __init__(
        self,
        dataset_name: str = "",
        split: str | None = None,
        dataset: Any = None,
        question_key: str = "problem",
        answer_key: str = "answer",
        seed: int | None = None,
        use_mp: bool = True,
        *,
        shuffle: bool = True,
        skip_bad_rows: bool | None = None,
        streaming: bool = False,
        answer_format: Kind = "boxed",
        timeout: float | None = None,
    ) -> None:
        self.question_key, self.answer_key, self.use_mp = question_key, answer_key, use_mp
        self.format = AnswerFormat(answer_format)
        self.answer_format = self.format.how
        self.grader = MathGrader(timeout=timeout)
        super().__init__(
            dataset_name, split, dataset, seed=seed, shuffle=shuffle, skip_bad_rows=skip_bad_rows, streaming=streaming
        )

    def open(self, row: Row) -> Any:
        self.question, self.answer = text_in(row, self.question_key), answers_in(row, self.answer_key)
        for gold in self.golds:
            if (complaint := quick_complaint(gold)) is not None:
                raise BadValue(
                    f"the column {self.answer_key!r} holds an answer that cannot be read, {gold!r:.80}: {complaint}"
                )
        return f"{self.question}\n\nThink step by step, and {self.format.how}"

    @property
    def golds(self) -> list[str]:
        """The right answers to the open question."""
        return [self.answer] if isinstance(self.answer, str) else self.answer

    def complaint(self) -> str | None:
        """Why the open question has no right answer, as far as that takes computer algebra; None where it has one."""
        found = (self.grader.complaint(gold) for gold in self.golds)
        return next((complaint for complaint in found if complaint is not None), None)

    def judge(self, action: str) -> Grade | None:
        answer = self.format.read(action)
        return None if answer is None else self.grader.grade(answer, self.answer)

    def revealed(self) -> dict[str, Any]:
        return {"answer": self.answer}

    def spoiled(self, action: str) -> str:
        return self.format.write(spoiled_formula(self.format.read(action) or ""))

    @staticmethod
    def check_correct(model_answer: str, gold: str) -> bool:
        """A published name: whether an answer equals the gold one."""
        return grade_math(model_answer, gold).correct

    def secrets(self) -> list[str]:
        """The gold answers that the question does not name."""
        return [gold for gold in self.golds if len(gold) >= 6 and gold not in self.question]

    def sample_random_action(self) -> str:
        return self.format.write(str(self.action_rng.randint(0, 99)))


def answers_in(row: Row, column: str) -> str | list[str]:
    """The gold answer of a row, or the list of them. Raises BadValue where there is none."""
    value = row.get(column)
    values = value if isinstance(value, (list, tuple)) else [value]
    texts = [str(v).strip() for v in values if v is not None and not isinstance(v, bool)]
    if not texts or len(texts) < len(values) or not all(texts):
        there = "" if column in row else f"; the row has {', '.join(map(repr, row))}"
        raise BadValue(f"the column {column!r} should hold an answer, got {value!r:.80}{there}")
    return texts[0] if len(texts) == 1 else texts
