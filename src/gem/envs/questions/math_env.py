r"""Math questions with one answer, graded by gem.graders.math.

Action       text holding the answer in the format that the prompt asks for: the last ``\boxed{…}`` by default.
Observation  the question with the answer format; after the answer, whether it was right.
Reward       1.0 if the answer equals the gold answer, else 0.0; -0.1 if no answer is found. An answer that repeats
             an expression of the question is not worked out, unless the gold answer has this form.
Ends         terminated after one answer.

step() raises GraderError if grading times out, since the verdict is then unknown.

>>> env = MathEnv(dataset=[{"problem": "What is $1+1$?", "answer": "2"}])
>>> env.reset(seed=0)[0]
'What is $1+1$?\n\nThink step by step, and put your final answer in \\boxed{}.'
>>> env.step(r"\boxed{4/2}").reward
1.0
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from gem._internal.text import short_repr
from gem.datasets import Row
from gem.envs.dataset_env import AnswerEnv, answers_in, text_in, unusable_gold
from gem.envs.questions.answer_format import AnswerFormat, Kind
from gem.envs.questions.corrupted import corrupt_formula
from gem.envs.questions.worked_out import restates
from gem.envs.spec_defaults import FORMAT_ERROR
from gem.errors import BadValue
from gem.graders import Grade
from gem.graders.gold_audit import choice_error, gold_error
from gem.graders.math.grader import MathGrader, grade_math, quick_check_gold

if TYPE_CHECKING:
    from multiprocessing.pool import ThreadPool

verify_fn = grade_math  # published names
FORMAT_ERROR_REWARD = FORMAT_ERROR


class MathEnv(AnswerEnv):
    """See the module docstring. The positional arguments are those of the published GEM package.

    Args:
        dataset_name, split, dataset, seed, shuffle, skip_bad_rows, streaming: see DatasetEnv.
        question_key: column of the question.
        answer_key: column of the gold answer: text, a number, or a list of right answers.
        use_format_error_reward: if False, an action without an answer earns 0 instead of -0.1.
        use_mp: has no effect; expensive comparisons always run in worker processes.
        eval: published name of shuffle=False.
        answer_format: see AnswerFormat.
        timeout: seconds for grading one answer; None uses the default of the grader pool.

    Raises:
        BadValue: a value is out of range.
    """

    grader = MathGrader()
    _pool: ThreadPool | None = None
    request = "Think step by step"  # the answer format follows in the prompt
    ignored_kwargs: ClassVar[Mapping[str, str]] = {
        "max_turns": "an episode has one turn",
        "use_mp": "expensive comparisons always run in worker processes",
    }

    def __init__(
        self,
        dataset_name: str = "",
        split: str | None = None,
        dataset: Any = None,
        question_key: str = "problem",
        answer_key: str = "answer",
        use_format_error_reward: bool = True,
        seed: int | None = None,
        use_mp: bool = True,
        *,
        shuffle: bool = True,
        eval: bool = False,
        skip_bad_rows: bool | None = None,
        streaming: bool = False,
        answer_format: Kind = "boxed",
        timeout: float | None = None,
    ) -> None:
        self.format_error_reward = FORMAT_ERROR if use_format_error_reward else 0.0
        self.question_key, self.answer_key, self.use_mp = question_key, answer_key, use_mp
        self.format = AnswerFormat(answer_format)
        self.answers_in_fences = self.format.kind == "code"
        self.answer_format = self.format.how
        self.grader = MathGrader(timeout=timeout)
        super().__init__(
            dataset_name,
            split,
            dataset,
            seed=seed,
            shuffle=shuffle and not eval,
            skip_bad_rows=skip_bad_rows,
            streaming=streaming,
        )

    def open(self, row: Row) -> Any:
        self.question = text_in(row, self.question_key, "question_key")
        self._answer = answers_in(row, self.answer_key, "answer_key")
        for gold in self.golds:
            if (error := quick_check_gold(gold)) is not None:
                raise BadValue(
                    f"the column {self.answer_key!r} has an unreadable answer, {short_repr(gold, 80)}: {error}"
                )
        return f"{self.question}\n\n{self.request}, and {self.format.how}"

    def row_error(self) -> str | None:
        """Return why no answer can equal one of the gold answers, or None. This requires computer algebra."""
        for gold in self.golds:
            error = gold_error(gold) or choice_error(gold, self.question) or self.grader.check_gold(gold)
            if error is not None:
                return unusable_gold(self.answer_key, gold, error)
        return None

    def grade_action(self, action: str) -> Grade | None:
        answer = self.format.read(action)
        if answer is None:
            return None
        grade = self.grader.grade(answer, self.answer, question=self.question)
        if not grade.correct or (reason := self.not_worked_out(answer)) is None:
            return grade
        return Grade(reward=0.0, correct=False, reason=f"Wrong: {reason}.", parsed=grade.parsed)

    def not_worked_out(self, answer: str) -> str | None:
        """Return why an answer with the right value leaves the work to the grader, or None."""
        return restates(answer, self.question, self.golds)

    def answer_info(self) -> dict[str, Any]:
        return {"answer": self.answer}

    def corrupted(self, action: str) -> str:
        return self.format.write(corrupt_formula(self.format.read(action) or ""))

    @staticmethod
    def check_correct(model_answer: str, gt_answer: str) -> bool:
        """Return whether an answer equals the gold answer. Kept for compatibility with the published package."""
        return grade_math(model_answer, gt_answer).correct

    @cached_property
    def mp_pool(self) -> ThreadPool:
        """A pool for subclasses of the published package that grade in their own step(). MathEnv does not use it."""
        from multiprocessing.pool import ThreadPool

        self._pool = ThreadPool(1)  # a thread is enough: check_correct() itself grades in killable processes
        return self._pool

    def close(self) -> None:
        if self._pool is not None:  # not a pool that a subclass has put there, which environments may share
            self._pool.terminate()
            del self._pool, self.mp_pool
        super().close()

    def secrets(self) -> list[str]:
        """Return the gold answers of at least 6 characters that do not occur in the question."""
        return [gold for gold in self.golds if len(gold) >= 6 and gold not in self.question]

    def sample_random_action(self) -> str:
        return self.format.write(str(self.action_rng.randint(0, 99)))
