r"""Questions of reasoning-gym's generators, judged by their own scorers.

Action       text holding the answer in the format that the prompt asks for: the last ``\boxed{…}`` by default.
Observation  the question and how to answer; after the answer, whether it was right.
Reward       the generator's score of the answer, 0.0 to 1.0, where many give parts of a point; -0.1 where no answer is
             found.
Ends         terminated on the answer, whatever it is.

Episode k of a seed is question k modulo ``size`` of a data set; after ``size`` questions comes another data set.
docs/design/reasoning_gym.md has the generators that are not as they should be.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from gem.core import Env, Info, Step, StopReason, require_text
from gem.envs.answer_format import AnswerFormat, Kind
from gem.envs.catalog import FORMAT_ERROR
from gem.envs.reasoning_gym_answers import may_be_scored, takes_algebra
from gem.envs.reasoning_gym_source import DataSet, Source, score_once
from gem.errors import BadValue, EpisodeOver
from gem.graders.pool import GraderPool
from gem.seeding import check_seed, derive

SEEDS = 2**31  # some generators hand seed + index to numpy, which takes 32 bits


@dataclass(frozen=True)
class State:
    """dataset: its seed. index: of the question in it. over: it was answered."""

    dataset: int
    index: int
    over: bool = False


class ReasoningGymEnv(Env):
    """See the module docstring. The arguments before the asterisk are the published ones.

    Args:
        name: of the generator, as "chain_sum".
        size: questions of a data set; a new one takes some generators up to a second to build.
        seed: of the first reset; None leaves it to reset.
        level: of the generator's curriculum, 0 the easiest; None: the generator's defaults.
        answer_format: see AnswerFormat.
        config: fields of the generator's configuration, over those of the level.

    Raises BadValue for a generator or level that there is not and for a configuration that the generator refuses,
    UnknownArgument for a field that it does not have, MissingDependency without the extra [reasoning].
    """

    state: State

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
        if isinstance(size, bool) or not isinstance(size, int) or not 1 <= size < SEEDS:
            raise BadValue(f"size must be an integer from 1 to {SEEDS - 1}, got {size!r}")
        self.name, self.size, self.seed, self.level, self.config = name, size, seed, level, config
        self.format = AnswerFormat(answer_format)
        self._source = Source(name, size, level, config)
        self._first_seed = None if seed is None else check_seed(seed)
        self._dataset: DataSet | None = None

    def reset(self, seed: int | None = None) -> tuple[str, Info]:
        super().reset(seed)
        number, index = divmod(self._episode, self.size)
        self._open(State(derive("reasoning_gym", self._seed or 0, number) % SEEDS, index))
        return self.prompt, {}

    def step(self, action: str) -> Step:
        require_text(action)
        if getattr(self, "state", None) is None or self.state.over:
            raise EpisodeOver(f"{self!r} has no question open; call reset()")
        answer = self.format.read(action)
        score = None if answer is None else self._score(answer)  # where this raises, the question stays open
        self.state = replace(self.state, over=True)
        info: Info = {"correct": score == 1.0, "answer": self.answer}
        if score is None:
            info |= {"invalid": "no_answer", "stop_reason": StopReason.FORMAT}
            return Step(f"No answer found; {self.format.how}", FORMAT_ERROR, terminated=True, info=info)
        info["stop_reason"] = StopReason.SOLVED if score == 1.0 else StopReason.LOST
        return Step(_said(score), score, terminated=True, info=info)

    @property
    def prompt(self) -> str:
        return f"{self.entry['question']}\n\nThink step by step, and {self.format.how}"

    @property
    def answer(self) -> str | None:
        """The generator's own answer to the open question; None where it gives none, and the scorer tries answers."""
        gold = self.entry["answer"]
        return None if gold is None else str(gold)

    def set_state(self, state: Mapping[str, Any]) -> None:
        try:
            self._check(state["state"]["dataset"], state["state"]["index"])
        except (KeyError, TypeError) as e:
            raise BadValue(f"not a state of {type(self).__name__}: no state that names a question") from e
        super().set_state(state)
        self._open(self.state)

    def secrets(self) -> list[str]:
        """The gold answer, where it is long enough to be no chance and not in the question."""
        gold = self.answer
        return [gold] if gold is not None and len(gold) >= 6 and gold not in self.entry["question"] else []

    def sample_random_action(self) -> str:
        return self.format.write(str(self.action_rng.randint(0, 99)))

    def _open(self, state: State) -> None:
        if self._dataset is None or self._dataset.seed != state.dataset:
            self._dataset = self._source.dataset(state.dataset)
        self.entry = self._dataset.entry(state.index)
        self.state = state

    def _check(self, dataset: int, index: int) -> None:
        if not 0 <= dataset < SEEDS or not 0 <= index < self.size:
            raise BadValue(f"no question {index!r} of data set {dataset!r} here: size is {self.size}")

    def _score(self, answer: str) -> float:
        own = answer == self.answer
        if not own and not may_be_scored(self.name, answer):
            return 0.0
        if not own and takes_algebra(self.name):
            question = (self.state.dataset, self.state.index, self.size)
            score: float = _workers.run(f"{score_once.__module__}:score_once", *self._made_of, *question, answer)
            return score
        assert self._dataset is not None
        return self._dataset.score(answer, self.entry)

    @property
    def _made_of(self) -> tuple[str, int | None, dict[str, Any]]:
        return self.name, self.level, self.config

    def __getstate__(self) -> dict[str, Any]:
        """Without the data set and the question, which follow from the state and need not be picklable."""
        return {name: value for name, value in vars(self).items() if name not in ("_source", "_dataset", "entry")}

    def __setstate__(self, saved: dict[str, Any]) -> None:
        vars(self).update(saved)
        self._source, self._dataset = Source(self.name, self.size, self.level, self.config), None
        if hasattr(self, "state"):
            self._open(self.state)


_workers = GraderPool(modules=["reasoning_gym"])


def _said(score: float) -> str:
    if score == 1.0:
        return "Right."
    return "Wrong." if score == 0.0 else f"Not right; it scores {score:.3g} of 1."
