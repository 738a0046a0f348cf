r"""Question answering: short answers, compared with the reference answers after normalization.

Action       text with the answer in the format that the prompt asks for, by default the last ``<answer>…</answer>``.
Observation  the question and the answer format; after the answer, whether it was correct.
Reward       1.0 for an exact match (see gem.graders.exact), else 0.0; with another ``reward`` the score of the grader
             that it names. -0.1 if no answer is found. LaTeX is read as text: ``\text{True}`` is True.
Ends         terminated after the first action.

>>> env = QaEnv(dataset=[{"question": "Who wrote Faust?", "answer": ["Goethe", "J. W. von Goethe"]}])
>>> _ = env.reset(seed=0)
>>> env.step("<answer>goethe</answer>").reward
1.0
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, cast

from gem._internal.counts import check_count
from gem._internal.text import short_repr
from gem.datasets import Row
from gem.envs.dataset_env import AnswerEnv, answers_in, text_in, unusable_gold
from gem.envs.questions.answer_format import AnswerFormat, Kind
from gem.envs.questions.corrupted import corrupt_words
from gem.errors import BadValue
from gem.graders import Grade
from gem.graders.exact import exact_match, f1, hotpotqa_f1, squad_em, squad_f1, squad_normalize
from gem.graders.gold_audit import choice_error, gold_error
from gem.parsing import readings
from gem.registry import resolve

Grader = Callable[[str, "str | list[str]"], Grade]
GRADERS: dict[str, Grader] = {
    "exact": exact_match,
    "f1": f1,
    "squad_em": squad_em,
    "squad_f1": squad_f1,
    "hotpotqa_f1": hotpotqa_f1,
}


def grader_of(reward: str | Grader) -> Grader:
    """Return the grader that a name in GRADERS or "module:function" stands for, or the grader itself.

    Raises:
        BadValue: there is no such grader.
    """
    if callable(reward):
        return reward
    if not isinstance(reward, str) or (":" not in reward and reward not in GRADERS):
        known = ", ".join(map(repr, GRADERS))
        raise BadValue(f"reward must be {known}, a function or 'module:function', got {reward!r}")
    return GRADERS[reward] if reward in GRADERS else cast(Grader, resolve(reward))


class QaEnv(AnswerEnv):
    """See the module docstring. The positional arguments are those of the published GEM package.

    Args:
        dataset_name, split, dataset, seed, shuffle, skip_bad_rows, streaming: see DatasetEnv.
        question_key, answer_key: columns of the question and of its reference answer or list of reference answers.
        extract_boxed: same as answer_format="boxed".
        load_from_cache_file: has no effect.
        answer_format: see AnswerFormat. None means "boxed" if extract_boxed is True, else "tag".
        reward: how answers are graded: "exact" or "f1"; "squad_em", "squad_f1" or "hotpotqa_f1", the scores of the
            official scripts (see gem.graders.exact; the exact match of HotpotQA is "squad_em"); or a grader of yours, a
            function or "module:function" of one. It gets the answer as written and the reference answer or list of
            them, and returns a Grade.
        max_turns: at least 1. An episode has one turn, whatever the limit is.

    Raises:
        BadValue: unknown reward or answer format, or extract_boxed together with another answer format.
    """

    ignored_kwargs: ClassVar[Mapping[str, str]] = {"load_from_cache_file": "rows are read without a cache of prompts"}

    def __init__(
        self,
        dataset_name: str = "",
        split: str | None = None,
        dataset: Any = None,
        question_key: str = "question",
        answer_key: str = "answer",
        seed: int | None = None,
        extract_boxed: bool = False,
        load_from_cache_file: bool = True,
        *,
        shuffle: bool = True,
        skip_bad_rows: bool | None = None,
        streaming: bool = False,
        answer_format: Kind | None = None,
        reward: str | Grader = "exact",
        max_turns: int = 1,
    ) -> None:
        check_count("max_turns", max_turns)
        self.max_turns = max_turns
        if extract_boxed and answer_format not in (None, "boxed"):
            raise BadValue(f"extract_boxed=True conflicts with answer_format={answer_format!r}")
        self.grade = grader_of(reward)
        self.question_key, self.answer_key, self.reward = question_key, answer_key, reward
        self.extract_boxed, self.load_from_cache_file = extract_boxed, load_from_cache_file
        self.format = AnswerFormat(answer_format or ("boxed" if extract_boxed else "tag"))
        self.answers_in_fences = self.format.kind == "code"
        self.answer_format = self.format.how
        super().__init__(
            dataset_name, split, dataset, seed=seed, shuffle=shuffle, skip_bad_rows=skip_bad_rows, streaming=streaming
        )

    def open(self, row: Row) -> str:
        self.question = text_in(row, self.question_key, "question_key")
        self._answer = answers_in(row, self.answer_key, "answer_key")
        return f"{self.question}\n\nYou may think first. Then {self.format.how}"

    def row_error(self) -> str | None:
        """Return why no answer can equal any of the reference answers, or None; None with a grader of yours."""
        if self.reward not in GRADERS:
            return None
        errors = [self._gold_error(gold) for gold in self.golds]
        return None if None in errors else unusable_gold(self.answer_key, self.golds[0], errors[0])

    def _gold_error(self, gold: str) -> str | None:
        if self.reward not in ("exact", "f1") and not squad_normalize(gold):
            return "it consists of articles and punctuation, which this reward deletes; reward='exact' keeps them"
        return gold_error(gold, formula=False) or choice_error(gold, self.question)

    def grade_action(self, action: str) -> Grade | None:
        answer = self.extractor(action)
        if answer is None:
            return None
        if self.reward in GRADERS:
            return max((self.grade(each, self.answer) for each in readings(answer)), key=lambda grade: grade.reward)
        grade = self.grade(answer, self.answer)
        if not isinstance(grade, Grade):
            raise BadValue(f"the grader {self.reward!r} must return a gem.graders.Grade, got {short_repr(grade, 80)}")
        return grade

    def answer_info(self) -> dict[str, Any]:
        return {"answer": self.answer}

    def corrupted(self, action: str) -> str | None:
        if self.reward not in GRADERS:  # what another grader calls wrong is not known
            return None
        by_word = str(self.reward).endswith("f1")  # a word of the right answer earns a part of the reward
        return self.format.write("elsewhere" if by_word else corrupt_words(self.format.read(action) or ""))

    def extractor(self, action: str) -> str | None:
        """Return the answer in a text, or None. Kept for compatibility with the published package."""
        return self.format.read(action)

    @staticmethod
    def check_correct(model_answer: str, gt_answer: str | list[str]) -> bool:
        """Return whether an answer matches a reference answer. Kept for compatibility with the published package."""
        return any(exact_match(each, gt_answer).correct for each in readings(model_answer))

    def secrets(self) -> list[str]:
        """Return the reference answers of at least 6 characters that do not occur in the question."""
        return [gold for gold in self.golds if len(gold) >= 6 and gold.lower() not in self.question.lower()]

    def sample_random_action(self) -> str:
        return self.format.write(self.action_rng.choice(["yes", "no", "a river", "in 1900"]))
