"""What environments over a data set share: one task from its rows, one answer, one verdict.

Which task: the episodes of a seed go through all rows in an order of their own, drawn anew when all were seen. With
``shuffle=False``, episode k of seed s is row (s + k) modulo the number of rows: the seeds 0, 1, 2, … take every row
once. ``reset(idx=…)`` takes a row by its number. ``info["idx"]`` is the number of the row in the data set.
"""

from __future__ import annotations

import logging
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gem.core import Env, Info, Step, StopReason, require_text
from gem.datasets import Row, Rows, Selected, bad_rows, load_rows
from gem.envs.catalog import FORMAT_ERROR
from gem.errors import BadValue, EpisodeOver
from gem.graders import Grade
from gem.seeding import check_seed, derive

_log = logging.getLogger(__name__)

SHIPPED = "gem:"  # opens the names of data sets that come with gem, in …
DATA = Path(__file__).parent / "data"


@dataclass(frozen=True)
class State:
    """idx: of the row. over: it was answered."""

    idx: int
    over: bool = False


class DatasetEnv(Env, ABC):
    """One task of a data set, answered once.

    Args:
        dataset_name: what gem.datasets.load_rows takes by name: a file, a folder, a data set of the hub; or one that
            comes with gem, as "gem:code/warmup.jsonl".
        split: of a data set that has several; None where there is one.
        dataset: rows, in place of a name: a sequence of mappings, or a mapping of splits to such.
        seed: of the first reset; None leaves it to reset.
        shuffle: see the module docstring.
        skip_bad_rows: leave out rows that open() refuses, and log how many; all are read for that. Otherwise such a row
            raises BadValue, naming file and row, when it is its turn.

    Raises BadValue where neither or both of name and rows are given, for what is no data set, and without rows.
    """

    state: State
    answer_format: str  # how to answer, told to whoever wrote something unreadable

    def __init__(
        self,
        dataset_name: str = "",
        split: str | None = None,
        dataset: Any = None,
        *,
        seed: int | None = None,
        shuffle: bool = True,
        skip_bad_rows: bool = False,
    ) -> None:
        if bool(dataset_name) == (dataset is not None):
            raise BadValue("give either dataset_name or dataset, and not both")
        self.dataset: Rows = load_rows(shipped(dataset_name) if dataset is None else dataset, split)
        self.skipped_rows = 0
        if skip_bad_rows:
            self._skip_bad_rows()
        self.seed, self.shuffle = seed, shuffle
        self._first_seed = None if seed is None else check_seed(seed)
        self.idx = 0

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

    def reset(self, seed: int | None = None, idx: int | None = None) -> tuple[str, Info]:
        """Open a task. idx: the number of its row; None takes the next one of the seed's order."""
        if idx is not None:
            self._check(idx)
        super().reset(seed)
        self.idx = self._next() if idx is None else idx
        self.first_obs = self._open(self.idx)
        self.state = State(self.idx)
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
            self._check(state["state"]["idx"])
        except (KeyError, TypeError) as e:
            raise BadValue(f"not a state of {type(self).__name__}: no state with an idx in it") from e
        super().set_state(state)
        self.idx = self.state.idx
        self.first_obs = self._open(self.idx)

    def _open(self, idx: int) -> Any:
        row = self.dataset[idx]
        try:
            return self.open(row)
        except BadValue as e:
            raise BadValue(f"{self.dataset.where(idx)}: {e}") from e

    def _skip_bad_rows(self) -> None:
        bad = dict(bad_rows(self.dataset, self.open))
        if bad:
            name, count, first = self.dataset.name, len(bad), next(iter(bad.values()))
            if count == len(self.dataset):
                raise BadValue(f"all {count} rows of {name} are bad, the first: {first}")
            _log.warning("%s: %d of %d rows are bad and left out, the first: %s", name, count, len(self.dataset), first)
            self.dataset = Selected(self.dataset, [i for i in range(len(self.dataset)) if i not in bad])
            self.skipped_rows = count

    def _next(self) -> int:
        seed, rows = self._seed or 0, len(self.dataset)
        if not self.shuffle:
            return (seed + self._episode) % rows
        epoch, position = divmod(self._episode, rows)
        return permuted(position, rows, seed, epoch)

    def _check(self, idx: Any) -> None:
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
