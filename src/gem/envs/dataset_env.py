"""Base class of environments with a dataset. Each episode is one row and ends after one answer.

Order: the seed determines a random permutation of the rows. After all rows, a new permutation starts. With
``shuffle=False``, episode k of seed s is row (s + k) modulo the number of rows, so the first episodes of the seeds
0, 1, 2, … cover every row once. The slots of a vector environment share one order: each reset asks the next row,
so that together they ask each row once per epoch. ``reset(idx=…)`` selects a row by number. ``info["idx"]`` is the
number of the row in the dataset.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from gem._internal.text import short_repr
from gem.core import Env, Info, Step, StopReason, require_text
from gem.datasets import Row, Rows, Stream, load_rows
from gem.datasets.rows import skips_by_default, without_bad_rows
from gem.datasets.stream import is_iterable_dataset, stream_rows
from gem.envs.spec_defaults import FORMAT_ERROR
from gem.errors import BadValue, EpisodeOver
from gem.graders import Grade
from gem.graders.gold_audit import value_error
from gem.seeding import check_seed, derive, permuted

BUILTIN = "gem:"  # prefix of the names of built-in datasets
DATA = Path(__file__).parent / "data"


class _SharedOrder(NamedTuple):
    """An order of rows that several environments share; see DatasetEnv.share_order()."""

    seed: int  # of the episodes
    number: int  # distinguishes the orders of a vector environment
    group_size: int
    first_row: int  # where the order starts without shuffling


@dataclass(frozen=True)
class RowState:
    """The open row.

    Args:
        idx: number of the row in the dataset.
        over: whether the task in this row was answered.
        position: position of the row in a stream; None for a dataset with random access.
    """

    idx: int
    over: bool = False
    position: int | None = None


class DatasetEnv(Env, ABC):
    """An environment whose episodes are single-turn tasks from a dataset.

    Args:
        dataset_name: a file, a folder or a dataset on the Hugging Face Hub (see gem.datasets.load_rows), or a built-in
            dataset such as "gem:code/warmup.jsonl".
        split: split of the dataset; None if the dataset has only one split.
        dataset: rows to use, whatever dataset_name is: a sequence of mappings, or a mapping from split names to such
            sequences.
        seed: seed of the first reset() that is called without a seed. If None, that reset() draws a fresh seed.
        shuffle: see the module docstring.
        streaming: read rows one at a time without keeping them in memory, from the Hub or from an ``IterableDataset``.
            Requires shuffle=False; reset(idx=…) is not available.
        skip_bad_rows: skip the rows for which open() raises BadValue, and log their number. Without streaming, the
            constructor reads all rows to find them. If False, reset() raises BadValue with the file and the row number
            when it opens such a row. None means True if the environment variable GEM_SKIP_BAD_ROWS is "1", else False.

    Attributes:
        dataset: the rows; see gem.datasets.
        idx: number of the open row.
        epoch: how often the order of the rows was gone through before the open row.

    Raises:
        BadValue: neither dataset_name nor dataset was given, or the dataset is unreadable or empty.
    """

    state: RowState
    row: Row  # the open row
    format_error_reward: float = FORMAT_ERROR  # for an answer that cannot be parsed
    answer_format: str  # instruction repeated after an answer that cannot be parsed
    _asked: Sequence[int] | None = None  # see ask_only()
    _shared: _SharedOrder | None = None

    def __init__(
        self,
        dataset_name: str = "",
        split: str | None = None,
        dataset: Any = None,
        *,
        seed: int | None = None,
        shuffle: bool = True,
        skip_bad_rows: bool | None = None,
        streaming: bool = False,
    ) -> None:
        if not dataset_name and dataset is None:
            raise BadValue("pass dataset_name or dataset")
        source = builtin_path(dataset_name) if dataset is None else dataset
        self._bad: Mapping[int, str] = {}
        skips = skips_by_default() if skip_bad_rows is None else skip_bad_rows
        self.dataset: Rows | Stream
        if streaming or isinstance(source, Stream) or is_iterable_dataset(source):
            self.dataset = self._streamed(stream_rows(source, split), shuffle, skips)
        else:
            self.dataset = load_rows(source, split)
            if skips:
                self.dataset, bad = without_bad_rows(self.dataset, self.open, self._open_key())
                self._bad = bad.reasons
        self.seed, self.shuffle = seed, shuffle
        self._first_seed = None if seed is None else check_seed(seed)
        self.idx = self.epoch = 0

    @property
    def skipped_rows(self) -> int:
        """Number of malformed rows that are skipped. For a stream, the number of rows skipped so far."""
        return len(self.dataset.bad if isinstance(self.dataset, Stream) else self._bad)

    @abstractmethod
    def open(self, row: Row) -> Any:
        """Store the parts of the row that grading needs, and return the prompt, including the answer format.

        Raises:
            BadValue: the row is malformed.
        """

    @abstractmethod
    def grade_action(self, action: str) -> Grade | None:
        """Grade an action. Return None if the action contains no answer in the required format.

        Raises:
            InfraError: grading failed, so the verdict is unknown.
        """

    def answer_info(self) -> Info:
        """Return the entries added to info when the task is over, such as the gold answer."""
        return {}

    def row_error(self) -> str | None:
        """Return an error of the open row that open() does not check, or None. Used by ``gem check --rows``."""
        return None

    def gold_action(self) -> str | None:
        """Return a right answer to the open task, or None. Used by ``gem check --rows`` for ids without an oracle."""
        return None

    def corrupted(self, action: str) -> str | None:
        """Return a wrong answer derived from a right answer to the open task, or None if this is not supported.

        Used by ``gem check --rows``.
        """
        return None

    def reset(self, seed: int | None = None, idx: int | None = None) -> tuple[str, Info]:
        """Open a task.

        Args:
            idx: number of the row to open. If None, the next row in the order of the seed is opened.
        """
        if idx is not None:
            self._check(idx)
        super().reset(seed)
        position = self._next() if idx is None else idx
        self.idx, self.first_obs = self._open(position)
        self.state = RowState(self.idx, position=position if isinstance(self.dataset, Stream) else None)
        return self.first_obs, {"idx": self.idx}

    def ask_only(self, numbers: Sequence[int], *, shuffle: bool = True) -> None:
        """Ask only the rows with these numbers, except for reset(idx=…), which opens any row.

        Args:
            numbers: numbers of rows.
            shuffle: as in the constructor; with False, seed s asks row ``numbers[s]`` first.
        """
        self._asked, self.shuffle = numbers, shuffle

    def share_order(self, seed: int, number: int = 0, group_size: int = 1) -> None:
        """Ask the rows in an order that several environments share.

        An episode depends only on the seed and its number in the order, not on the environment that plays it. The
        vector environment assigns the numbers, so that the environments together ask each row once per epoch. Holds
        until reset() is called with a seed.

        Args:
            seed: the same in all of the environments.
            number: number of the order, the same in all of the environments.
            group_size: how many consecutive episodes ask the same row.
        """
        # A derived seed cannot be one that a caller passes to reset(), so it shows whether the order is in use.
        self._shared = _SharedOrder(derive(seed, "shared order"), number, group_size, seed)
        self._first_seed = self._shared.seed

    @property
    def shared_order(self) -> tuple[int, int] | None:
        """The seed and the number of the order that this environment shares, or None; see share_order()."""
        return None if self._shared is None else (self._shared.seed, self._shared.number)

    def instances(self) -> int | None:
        return None if isinstance(self.dataset, Stream) or self.dataset.generated else len(self.dataset)

    def step(self, action: str) -> Step:
        require_text(action)
        if getattr(self, "state", None) is None or self.state.over:
            raise EpisodeOver(f"{self!r} has no task open; call reset()")
        verdict = self.grade_action(action)  # if this raises, the task stays open
        self.state = replace(self.state, over=True)
        info: Info = {"idx": self.idx, "correct": verdict is not None and verdict.correct} | self.answer_info()
        if verdict is None:
            said = f"No answer found; {self.answer_format}"
            info |= {"invalid": "no_answer", "stop_reason": StopReason.FORMAT, "explanation": said}
            return Step(said, self.format_error_reward, terminated=True, info=info)
        info |= {"explanation": verdict.explanation, **verdict.details}
        info["stop_reason"] = StopReason.SOLVED if verdict.correct else StopReason.LOST
        return Step(verdict.reason, verdict.reward, terminated=True, info=info)

    def set_state(self, state: Mapping[str, Any]) -> None:
        try:
            self._check(state["state"]["idx"], by_number=False)
        except (KeyError, TypeError) as e:
            raise BadValue(f"not a state of {type(self).__name__}: it has no idx") from e
        super().set_state(state)
        position = self.state.idx if self.state.position is None else self.state.position
        self.idx, self.first_obs = self._open(position)

    def _open(self, position: int) -> tuple[int, Any]:
        """Open the row at a position, and return the number of the row and the prompt."""
        if isinstance(self.dataset, Stream):
            idx, row = self.dataset.at(position)
        else:
            idx, row = position, self.dataset[position]
        self.row, self.epoch = row, self._epoch()
        try:
            return idx, self.open(row)
        except BadValue as e:
            raise BadValue(f"{self.dataset.where(idx)}: {e}") from e

    def _streamed(self, stream: Stream, shuffle: bool, skips: bool) -> Stream:
        if shuffle:
            raise BadValue(f"{stream.name} is a stream and cannot be shuffled: pass shuffle=False")
        return stream.without_bad_rows(self.open) if skips else stream

    def _open_key(self) -> str:
        """Return a key for caching the list of bad rows: the class and the arguments that may affect open()."""
        args, kwargs = self._arguments
        plain = [(k, v) for k, v in [*enumerate(args), *kwargs.items()] if isinstance(v, (str, int, float))]
        return repr((type(self), [(k, v) for k, v in plain if k not in ("seed", "shuffle")]))

    def _next(self) -> int:
        seed, first, number = self._seed or 0, self._seed or 0, self._episode
        if (shared := self._order_in_use()) is not None:
            first, number = shared.first_row, number // shared.group_size
        if isinstance(self.dataset, Stream):
            return first + number
        numbers = self._numbers()
        if not self.shuffle:
            return numbers[(first + number) % len(numbers)]
        epoch, position = divmod(number, len(numbers))
        return numbers[permuted(position, len(numbers), seed, epoch)]

    def _epoch(self) -> int:
        shared = self._order_in_use()
        group_size = 1 if shared is None else shared.group_size
        return 0 if isinstance(self.dataset, Stream) else self._episode // group_size // len(self._numbers())

    def _order_in_use(self) -> _SharedOrder | None:
        return self._shared if self._shared is not None and self._seed == self._shared.seed else None

    def _numbers(self) -> Sequence[int]:
        assert not isinstance(self.dataset, Stream)
        return range(len(self.dataset)) if self._asked is None else self._asked

    def _check(self, idx: Any, by_number: bool = True) -> None:
        if isinstance(self.dataset, Stream):
            if by_number:
                raise BadValue(
                    f"{self.dataset.name} is a stream without random access, so idx={idx!r} cannot be opened"
                )
            return
        if isinstance(idx, bool) or not isinstance(idx, int) or not 0 <= idx < len(self.dataset):
            raise BadValue(f"idx must be a row number from 0 to {len(self.dataset) - 1}, got {idx!r}")


class AnswerEnv(DatasetEnv):
    """A DatasetEnv whose rows have a question and one or several gold answers.

    Attributes:
        answer: the gold answer of the open row, or a list of texts if the column holds a list. Assigning it starts an
            episode that grades one action against it, as in the published package. Raises BadValue for a blank answer.
    """

    question: str = ""
    _answer: str | list[str]

    @property
    def answer(self) -> str | list[str]:
        return self._answer

    @answer.setter
    def answer(self, value: Any) -> None:
        self._answer = answers_in({"answer": value}, "answer")
        self.state = RowState(self.idx)

    @property
    def golds(self) -> list[str]:
        """All accepted answers to the open question."""
        return [self.answer] if isinstance(self.answer, str) else self.answer


def builtin_path(name: str) -> str:
    """Return the path of a built-in dataset ("gem:…"). Other names are returned unchanged."""
    return str(DATA / name.removeprefix(BUILTIN)) if name.startswith(BUILTIN) else name


def text_in(row: Row, column: str, option: str = "") -> str:
    """Return the stripped text of a column.

    Args:
        option: name of the option that names the column, for the message; "" if there is none.

    Raises:
        BadValue: the column is missing, empty or not text.
    """
    value = row.get(column)
    if not isinstance(value, str) or not value.strip():
        raise bad_column(row, column, option, "must be text")
    return value.strip()


def answers_in(row: Row, column: str, option: str = "") -> str | list[str]:
    """Return the gold answer of a row as text, or a list of texts if the column holds a list.

    Args:
        option: as for text_in().

    Raises:
        BadValue: the column is missing or empty, or contains an answer that is empty, boolean, NaN, infinite, a dict or
            a nested list.
    """
    value = row.get(column)
    values = value if isinstance(value, (list, tuple)) else [value]
    texts = [str(v).strip() for v in values if v is not None and not isinstance(v, bool)]
    if not texts or len(texts) < len(values) or not all(texts) or any(map(value_error, values)):
        raise bad_column(row, column, option, "must hold an answer (text, a number, or a list of them)")
    return texts if isinstance(value, (list, tuple)) else texts[0]


def bad_column(row: Row, column: str, option: str, rule: str) -> BadValue:
    """Return the error about a column that is missing, or whose value breaks a rule such as "must be text"."""
    if column in row:
        return BadValue(f"the column {column!r} {rule}, got {short_repr(row[column], 80)}")
    names = ", ".join(map(repr, row)) or "none"
    return BadValue(f"there is no column {column!r}; the row has {names}" + (option and f" ({option}= names another)"))


def unusable_gold(column: str, gold: str, error: str | None) -> str:
    """Return the message of row_error() about a gold answer that no answer can equal."""
    return f"the column {column!r} has the gold answer {short_repr(gold, 80)}, which can never be right: {error}"
