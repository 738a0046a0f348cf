r"""Questions from the generators of reasoning-gym, scored by the library's own scorers.

Action       text holding the answer in the format that the prompt asks for: the last ``\boxed{…}`` by default.
Observation  the question with the answer format; after the answer, whether it was right.
Reward       the scorer's result, 0.0 to 1.0 (many scorers give partial credit); -0.1 if no answer is found. The
             scorers read plain text: an answer in LaTeX also counts as what it shows, if that scores higher.
Ends         terminated after one answer.

Episode k of a seed is question number k modulo ``size``. After every ``size`` episodes, a new dataset is generated.
docs/design/reasoning_gym.md lists the generators with defects.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from gem._internal.counts import check_count
from gem._internal.text import quoted
from gem.core import Env, Info, Step, StopReason, require_text
from gem.envs.questions.answer_format import AnswerFormat, Kind
from gem.envs.questions.reasoning_gym.source import DataSet, Generator, score_once
from gem.envs.spec_defaults import FORMAT_ERROR
from gem.errors import BadValue, EpisodeOver
from gem.graders.pool import GraderPool
from gem.parsing import readings
from gem.seeding import check_seed, derive

SEEDS = 2**31  # some generators pass seed + index to numpy, which accepts seeds below 2**32

# Ten scorers evaluate the answer: nine as Python code, by eval() or sympy's parse_expr(), and one as a Fraction. For
# these scorers, an answer may contain only the characters and names below. They are sufficient for every right answer
# and exclude attributes, huge numbers and calls of other functions. Any other answer is graded wrong without being
# scored.
LONGEST = 20_000  # maximum number of characters of an answer, about twenty times the longest right answer
_LONGEST_FORMULA = 2_000
_LISTS = re.compile(r"""[\w\s,.\[\]'"+-]*""")
_ARITHMETIC = re.compile(r"(?:(?<!\d)\d{1,20}(?!\d)|(?<!\*)\*(?!\*)|[\s+/().-])*")
_FRACTION = re.compile(r"[\d\s./+-]{0,200}(?:[eE]-?\d{1,2})?")
_FUNCTION = r"a?(?:sin|cos|tan)h?|sec|csc|cot|exp|log|ln|sqrt|erf|Abs"
_FORMULA = re.compile(
    rf"(?:(?<![A-Za-z])(?:[A-Za-z]|{_FUNCTION}|pi)(?![A-Za-z])"
    r"|(?<!\d)\d{1,40}(?!\d)|[\s+*/().,-])*"
)
_FORMULA_TOKEN = re.compile(rf"\*\*|({_FUNCTION})|pi|[A-Za-z]|\d+(?:\.\d+)?|\S")
_DRESSED = re.compile(r"\\|^[*`$]|[0-9]\.$")  # in LaTeX or Markdown, or a number with a full stop
_TOWER = re.compile(r"\*\*\s*[(-]*\s*\d{4}|\*\*\s*\(*\s*-?[\w.]+\s*\)*\s*\*\*")  # x**9999, x**y**z
_ALLOWED = {
    **dict.fromkeys(["binary_matrix", "n_queens", "spiral_matrix", "string_insertion"], _LISTS),
    **dict.fromkeys(["countdown", "puzzle24"], _ARITHMETIC),
    **dict.fromkeys(["intermediate_integration", "polynomial_multiplication", "simple_integration"], _FORMULA),
    "coin_flip": _FRACTION,
}


def may_be_scored(name: str, answer: str) -> bool:
    """Return whether it is safe to pass an answer to the scorer of the generator ``name``."""
    pattern = _ALLOWED.get(name)
    if len(answer) > (LONGEST if pattern in (None, _LISTS) else _LONGEST_FORMULA):
        return False
    if pattern is None:
        return True
    return pattern.fullmatch(answer) is not None and not (pattern is _FORMULA and _TOWER.search(answer))


def with_products(formula: str) -> str:
    """Write a formula as Python: with the sign of every product, and brackets after every function.

    >>> with_products("2 x sin**2(3x) - e**x"), with_products("3 cos 2x + 1")
    ('2*x*sin(3*x)**2-E**x', '3*cos(2*x)+1')
    """
    written: list[str] = []
    opened: list[str] = []  # for each open bracket: the power of the function before it
    tokens = list(_FORMULA_TOKEN.finditer(formula))
    texts = [match[0] for match in tokens] + [""]
    at, after_operand, bare = 0, False, None  # bare: the power of a function whose argument has no brackets
    while at < len(tokens):
        text, function = texts[at], tokens[at][1]
        operand = text[0].isalnum()
        at += 1
        if bare is not None and (function or not (operand or text == "**")):
            written.append(f"){bare}")
            bare = None
        if after_operand and (operand or text == "("):
            written.append("*")
        after_operand = operand and not function
        if function:
            power = ""
            if texts[at] == "**" and texts[at + 1].isdigit():
                power, at = f"**{texts[at + 1]}", at + 2
            written.append(f"{text}(")
            if texts[at] == "(":
                opened.append(power)
                at += 1
            else:
                bare = power
        elif text == "(":
            opened.append("")
            written.append(text)
        elif text == ")":
            written.append(f"){opened.pop() if opened else ''}")
            after_operand = True
        else:
            written.append("E" if text == "e" else text)
    return "".join(written) if bare is None else "".join([*written, f"){bare}"])


@dataclass(frozen=True)
class QuestionState:
    """The open question.

    Args:
        dataset: seed of the dataset.
        index: number of the question in the dataset.
        over: whether the question was answered.
    """

    dataset: int
    index: int
    over: bool = False


class ReasoningGymEnv(Env):
    """See the module docstring. The positional arguments are those of the published GEM package.

    Args:
        name: name of the generator, such as "chain_sum".
        size: number of questions per dataset. Some generators need up to a second to build a dataset.
        seed: seed of the first reset() that is called without a seed. If None, that reset() draws a fresh seed.
        level: level of the generator's curriculum; 0 is the easiest. None uses the defaults of the generator.
        answer_format: see AnswerFormat.
        config: fields of the generator's configuration; they override those of the level.

    Raises:
        BadValue: unknown generator or level, or a configuration that the generator rejects.
        UnknownArgument: a field that the configuration does not have.
        MissingDependency: the extra [reasoning] is not installed.
    """

    state: QuestionState

    def __init__(
        self,
        name: str,
        size: int = 500,
        seed: int | None = None,
        *,
        level: int | None = None,
        answer_format: Kind = "boxed",
        **config: Any,
    ) -> None:
        check_count("size", size, 1, SEEDS - 1)
        self.name, self.size, self.seed, self.level, self.config = name, size, seed, level, config
        self.format = AnswerFormat(answer_format)
        self.answers_in_fences = self.format.kind == "code"
        self._generator = Generator(name, size, level, config)
        self._first_seed = None if seed is None else check_seed(seed)
        self._dataset: DataSet | None = None

    def reset(self, seed: int | None = None) -> tuple[str, Info]:
        super().reset(seed)
        number, index = divmod(self._episode, self.size)
        self._open(QuestionState(derive("reasoning_gym", self._seed or 0, number) % SEEDS, index))
        return self.prompt, {}

    def step(self, action: str) -> Step:
        require_text(action)
        if getattr(self, "state", None) is None or self.state.over:
            raise EpisodeOver(f"{self!r} has no question open; call reset()")
        answer = self.format.read(action)
        score = None if answer is None else self._best_score(answer)  # if this raises, the question stays open
        self.state = replace(self.state, over=True)
        info: Info = {"correct": score == 1.0, "answer": self.answer}
        if answer is None or score is None:
            said = f"No answer found; {self.format.how}"
            info |= {"invalid": "no_answer", "stop_reason": StopReason.FORMAT, "explanation": said}
            return Step(said, FORMAT_ERROR, terminated=True, info=info)
        info["stop_reason"] = StopReason.SOLVED if score == 1.0 else StopReason.LOST
        expected = "" if self.answer is None else f" The expected answer is {quoted(str(self.answer), 200)}."
        info["explanation"] = f"Read {quoted(answer, 200)}. {_feedback(score)}{expected}"
        return Step(_feedback(score), score, terminated=True, info=info)

    @property
    def prompt(self) -> str:
        return f"{self.entry['question']}\n\nThink step by step, and {self.format.how}"

    @property
    def answer(self) -> str | None:
        """The gold answer to the open question; None if the generator provides no gold answer."""
        gold = self.entry["answer"]
        return None if gold is None else str(gold)

    def set_state(self, state: Mapping[str, Any]) -> None:
        try:
            self._check(state["state"]["dataset"], state["state"]["index"])
        except (KeyError, TypeError) as e:
            raise BadValue(f"not a state of {type(self).__name__}: it names no question") from e
        super().set_state(state)
        self._open(self.state)

    def secrets(self) -> list[str]:
        """Return the gold answer if it has at least 6 characters and does not occur in the question.

        Some questions ask to reverse a text, or to turn a matrix by 180 degrees: they have the answer backwards.
        """
        gold, question = self.answer, self.entry["question"]
        if gold is None or len(gold) < 6 or gold in question or gold in question[::-1]:
            return []
        return [gold]

    def sample_random_action(self) -> str:
        return self.format.write(str(self.action_rng.randint(0, 99)))

    def _open(self, state: QuestionState) -> None:
        if self._dataset is None or self._dataset.seed != state.dataset:
            self._dataset = self._generator.dataset(state.dataset)
        self.entry = self._dataset.entry(state.index)
        self.state = state

    def _check(self, dataset: int, index: int) -> None:
        if not 0 <= dataset < SEEDS or not 0 <= index < self.size:
            raise BadValue(f"no question {index!r} in dataset {dataset!r}: size is {self.size}")

    def _best_score(self, answer: str) -> float:
        """Return the highest score of the readings of an answer."""
        read = readings(answer)
        if self.answer in read:
            return self._score(self.answer)
        # Some scorers ignore what they cannot read, such as \text{5 in \text{5, 6}.
        plain = [each for each in read if not _DRESSED.search(each)] or read
        if _ALLOWED.get(self.name) is _FORMULA:
            plain += [with_products(each) for each in plain if each != answer]
        best = 0.0
        for each in dict.fromkeys(plain):
            best = max(best, self._score(each))
            if best == 1.0:
                break
        return best

    def _score(self, answer: str) -> float:
        if answer != self.answer:
            if not may_be_scored(self.name, answer):
                return 0.0
            if _ALLOWED.get(self.name) is _FORMULA:  # computer algebra may not terminate, so it runs in a worker
                generator = (self.name, self.level, self.config, self.size)
                question = (self.state.dataset, self.state.index)
                score: float = _pool.run(f"{score_once.__module__}:score_once", generator, question, answer)
                return score
        assert self._dataset is not None
        return self._dataset.score(answer, self.entry)

    def __getstate__(self) -> dict[str, Any]:
        """Omit the generator, the dataset and the question, which __setstate__ rebuilds; they may not be picklable."""
        return {name: value for name, value in vars(self).items() if name not in ("_generator", "_dataset", "entry")}

    def __setstate__(self, saved: dict[str, Any]) -> None:
        vars(self).update(saved)
        self._generator, self._dataset = Generator(self.name, self.size, self.level, self.config), None
        if hasattr(self, "state"):
            self._open(self.state)


_pool = GraderPool(modules=["reasoning_gym"])


def _feedback(score: float) -> str:
    if score == 1.0:
        return "Right."
    return "Wrong." if score == 0.0 else f"Partial credit: {score:.3g} of 1."
