"""What environments over a data set share: one task from its rows, one answer, one verdict.

Which task: the episodes of a seed go through all rows in an order of their own, drawn anew when all were seen. With
``shuffle=False``, episode k of seed s is row (s + k) modulo the number of rows: the seeds 0, 1, 2, … take every row
once. ``reset(idx=…)`` takes a row by its number. ``info["idx"]`` is the number of the row in the data set.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gem.core import Env, Info, Step, StopReason, require_text
from gem.datasets import (
    Row,
    Rows,
    Stream,
    is_iterable_dataset,
    load_rows,
    skips_by_default,
    stream_rows,
    without_bad_rows,
)
from gem.envs.catalog import FORMAT_ERROR
from gem.errors import BadValue, EpisodeOver
from gem.graders import Grade
from gem.seeding import check_seed, derive

SHIPPED = "gem:"  # opens the names of data sets that come with gem, in …
DATA = Path(__file__).parent / "data"


@dataclass(frozen=True)
class State:
    """idx: of the row. over: it was answered. position: in a stream, where the row comes; None for other rows."""

    idx: int
    over: bool = False
    position: int | None = None


class DatasetEnv(Env, ABC):
    """One task of a data set, answered once.

    Args:
        dataset_name: what gem.datasets.load_rows takes by name: a file, a folder, a data set of the hub; or one that
            comes with gem, as "gem:code/warmup.jsonl".
        split: of a data set that has several; None where there is one.
        dataset: rows, in place of a name: a sequence of mappings, or a mapping of splits to such.
        seed: of the first reset; None leaves it to reset.
        shuffle: see the module docstring.
        streaming: read the rows one after the other without keeping them, as they come from the hub or from an
            ``IterableDataset``. Their order is the only one: shuffle has to be False, and there is no reset(idx=…).
        skip_bad_rows: leave out rows that open() refuses, and log how many; all are read for that. False raises
            BadValue, naming file and row, when it is the turn of such a row. None: True where the environment variable
            GEM_SKIP_BAD_ROWS is 1.

    Raises BadValue where neither or both of name and rows are given, for what is no data set, and without rows.
    """

    state: State
    row: Row  # of the open task
    answer_format: str  # how to answer, told to whoever wrote something unreadable

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
        if bool(dataset_name) == (dataset is not None):
            raise BadValue("give either dataset_name or dataset, and not both")
        source = shipped(dataset_name) if dataset is None else dataset
        self._bad: Mapping[int, str] = {}
        skips = skips_by_default() if skip_bad_rows is None else skip_bad_rows
        self.dataset: Rows | Stream
        if streaming or isinstance(source, Stream) or is_iterable_dataset(source):
            self.dataset = self._streamed(stream_rows(source, split), shuffle, skips)
        else:
            self.dataset = load_rows(source, split)
            if skips:
                self.dataset, bad = without_bad_rows(self.dataset, self.open, self._reader())
                self._bad = bad.reasons
        self.seed, self.shuffle = seed, shuffle
        self._first_seed = None if seed is None else check_seed(seed)
        self.idx = 0

    @property
    def skipped_rows(self) -> int:
        """Bad rows left out; of a stream, those that came by."""
        return len(self.dataset.bad if isinstance(self.dataset, Stream) else self._bad)

    @abstractmethod
    def open(self, row: Row) -> Any:
        """Keep what judging this task needs. Returns the prompt, which says how to answer. Raises BadValue for a row
        that is no task.
        """

    @abstractmethod
    def judge(self, action: str) -> Grade | None:
        """The verdict on an answer to the open task, None when it cannot be read. Raises InfraError."""

    def revealed(self) -> Info:
        """What info tells besides when the task is over: the gold answer."""
        return {}

    def complaint(self) -> str | None:
        """What is wrong with the open task beyond what open() sees, for ``gem check --rows``; None for nothing."""
        return None

    def spoiled(self, action: str) -> str | None:
        """A right answer to the open task made wrong, for ``gem check --rows``; None where no way is known."""
        return None

    def reset(self, seed: int | None = None, idx: int | None = None) -> tuple[str, Info]:
        """Open a task. idx: the number of its row; None takes the next one of the seed's order."""
        if idx is not None:
            self._check(idx)
        super().reset(seed)
        position = self._next() if idx is None else idx
        self.idx, self.first_obs = self._open(position)
        self.state = State(self.idx, position=position if isinstance(self.dataset, Stream) else None)
        return self.first_obs, {"idx": self.idx}

    def step(self, action: str) -> Step:
        require_text(action)
        if getattr(self, "state", None) is None or self.state.over:
            raise EpisodeOver(f"{self!r} has no task open; call reset()")
        verdict = self.judge(action)  # where this raises, the task stays open
        self.state = replace(self.state, over=True)
        info: Info = {"idx": self.idx, "correct": verdict is not None and verdict.correct} | self.revealed()
        if verdict is None:
            info |= {"invalid": "no_answer", "stop_reason": StopReason.FORMAT}
            return Step(f"No answer found; {self.answer_format}", FORMAT_ERROR, terminated=True, info=info)
        info |= verdict.details
        info["stop_reason"] = StopReason.SOLVED if verdict.correct else StopReason.LOST
        return Step(verdict.reason, verdict.reward, terminated=True, info=info)

    def set_state(self, state: Mapping[str, Any]) -> None:
        try:
            self._check(state["state"]["idx"], by_number=False)
        except (KeyError, TypeError) as e:
            raise BadValue(f"not a state of {type(self).__name__}: no state with an idx in it") from e
        super().set_state(state)
        position = self.state.idx if self.state.position is None else self.state.position
        self.idx, self.first_obs = self._open(position)

    def _open(self, position: int) -> tuple[int, Any]:
        """The number of the row at a position, and its prompt."""
        if isinstance(self.dataset, Stream):
            idx, row = self.dataset.at(position)
        else:
            idx, row = position, self.dataset[position]
        self.row = row
        try:
            return idx, self.open(row)
        except BadValue as e:
            raise BadValue(f"{self.dataset.where(idx)}: {e}") from e

    def _streamed(self, stream: Stream, shuffle: bool, skips: bool) -> Stream:
        if shuffle:
            raise BadValue(f"{stream.name} is a stream, whose order is the only one: give shuffle=False")
        return stream.readable(self.open) if skips else stream

    def _reader(self) -> str:
        """What open() depends on, besides the row."""
        args, kwargs = self._arguments
        plain = [(k, v) for k, v in [*enumerate(args), *kwargs.items()] if isinstance(v, (str, int, float))]
        return repr((type(self), [(k, v) for k, v in plain if k not in ("seed", "shuffle")]))

    def _next(self) -> int:
        seed = self._seed or 0
        if isinstance(self.dataset, Stream):
            return seed + self._episode
        rows = len(self.dataset)
        if not self.shuffle:
            return (seed + self._episode) % rows
        epoch, position = divmod(self._episode, rows)
        return permuted(position, rows, seed, epoch)

    def _check(self, idx: Any, by_number: bool = True) -> None:
        if isinstance(self.dataset, Stream):
            if by_number:
                raise BadValue(f"{self.dataset.name} is a stream: no row can be had by its number, so no idx={idx!r}")
            return
        if isinstance(idx, bool) or not isinstance(idx, int) or not 0 <= idx < len(self.dataset):
            raise BadValue(f"idx must be a row's number, 0 to {len(self.dataset) - 1}, got {idx!r}")


def permuted(position: int, count: int, *name: int | str) -> int:
    """Where a random permutation of range(count), the one with this name, takes a position.

    It costs the same for any count: a Feistel network permutes the smallest square of numbers that holds the range,
    and is applied again to what falls outside.

    >>> sorted(permuted(position, 5, "tasks", 0) for position in range(5))
    [0, 1, 2, 3, 4]
    """
    side = math.isqrt(count - 1) + 1
    while True:
        left, right = divmod(position, side)
        for turn in range(4):
            left, right = right, (left + derive(*name, turn, right)) % side
        position = left * side + right
        if position < count:
            return position


def shipped(name: str) -> str:
    """The path of a data set by name, where it comes with gem; other names stay as they are."""
    return str(DATA / name.removeprefix(SHIPPED)) if name.startswith(SHIPPED) else name


def text_in(row: Row, column: str) -> str:
    """The text of a column, stripped. Raises BadValue where there is none."""
    value = row.get(column)
    if not isinstance(value, str) or not value.strip():
        there = "" if column in row else f"; the row has {', '.join(map(repr, row))}"
        raise BadValue(f"the column {column!r} should be a text, got {value!r:.80}{there}")
    return value.strip()
