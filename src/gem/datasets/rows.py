"""Rows of a dataset, read on access; views of them (slices, shards, filters, mixtures); and malformed rows."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import random
import threading
import weakref
from abc import abstractmethod
from array import array
from bisect import bisect_right
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, overload

from gem.errors import BadValue
from gem.seeding import check_seed, fresh_seed

Row = Mapping[str, Any]
ID_COLUMNS = ("id", "task_id", "idx", "index", "uid", "unique_id", "question_id")  # in order of preference
GEM_SKIP_BAD_ROWS = "GEM_SKIP_BAD_ROWS"  # environment variable: "1" skips malformed rows by default
BAD_ROWS = "gem.datasets.bad_rows"  # logger that gets one warning per dataset with malformed rows

_logger = logging.getLogger(BAD_ROWS)


class Rows(Sequence[Row]):
    """A sequence of rows. Each row is read when it is accessed.

    name: name of the dataset in messages.
    generated: whether rows are computed when they are read, from a practically endless supply.
    """

    name: str = "rows"
    generated: bool = False

    @abstractmethod
    def row(self, index: int) -> Row:
        """Return the row at an index from 0 to len - 1. Raises BadValue if the row is malformed."""

    def where(self, index: int) -> str:
        """Describe the location of a row for messages: file and row number, from 0."""
        return f"{self.name}, row {index}"

    @overload
    def __getitem__(self, index: int) -> Row: ...
    @overload
    def __getitem__(self, index: slice) -> Rows: ...
    @overload
    def __getitem__(self, index: str) -> list[Any]: ...
    def __getitem__(self, index: int | slice | str) -> Row | Rows | list[Any]:
        if isinstance(index, str):
            return self._column(index)
        if isinstance(index, slice):
            return Selected(self, range(*index.indices(len(self))))
        if not -len(self) <= index < len(self):
            raise IndexError(f"{self.name} has {len(self)} rows, so row {index} is out of range")
        return self.row(index % len(self))

    def take(self, count: int) -> Rows:
        """Return the first count rows, or all rows if there are fewer. Raises BadValue for a negative count."""
        return self[: _non_negative("take", count)]

    def skip(self, count: int) -> Rows:
        """Return all but the first count rows. Raises BadValue for a negative count."""
        return self[_non_negative("skip", count) :]

    def select(self, indices: Iterable[int]) -> Rows:
        """Return the rows at the given indices, in the given order. Raises BadValue for an index out of range."""
        chosen = list(indices)
        if wrong := [index for index in chosen if not 0 <= index < len(self)]:
            raise BadValue(f"{self.name} has {len(self)} rows, so index {wrong[0]!r} is out of range")
        return Selected(self, chosen)

    def shuffle(self, seed: int | None = None) -> Rows:
        """Return the rows in a random order that depends only on their number and the seed. None: a random seed."""
        seed = fresh_seed() if seed is None else check_seed(seed)
        return Selected(self, random.Random(seed).sample(range(len(self)), len(self)))

    def _column(self, name: str) -> list[Any]:
        """Return the values of a column. Raises KeyError if a row does not have it."""
        return [row[name] for row in self]

    def shard(self, index: int, count: int) -> Rows:
        """Return every count-th row, starting at index. Raises BadValue unless 0 <= index < count."""
        if count < 1 or not 0 <= index < count:
            raise BadValue(f"shard() needs 0 <= index < count, got index {index} and count {count}")
        return self[index::count]

    def filter(self, keep: Callable[[Row], bool]) -> Rows:
        """Return the rows for which ``keep`` returns true. All rows are read once."""
        return Selected(self, [index for index, row in enumerate(self) if keep(row)])

    def rename(self, columns: Mapping[str, str]) -> Rows:
        """Return the rows with columns renamed as in {new: old}. A row without an old column raises BadValue."""
        return Renamed(self, columns)


class ListRows(Rows):
    """Rows in memory: a list of mappings, or any object with a length and an index."""

    def __init__(self, rows: Any, name: str = "rows") -> None:
        self._rows, self.name = rows, name

    def row(self, index: int) -> Row:
        row = self._rows[index]
        if not isinstance(row, Mapping):
            raise BadValue(f"{self.where(index)} must be a mapping of columns, got {type(row).__name__}")
        return row

    def __len__(self) -> int:
        return len(self._rows)


class Selected(Rows):
    """The rows of another Rows object at the given indices, in the given order."""

    def __init__(self, rows: Rows, indices: Sequence[int]) -> None:
        self._rows, self._indices, self.name = rows, indices, rows.name

    def row(self, index: int) -> Row:
        return self._rows[self._indices[index]]

    def where(self, index: int) -> str:
        return self._rows.where(self._indices[index])

    def __len__(self) -> int:
        return len(self._indices)


class Renamed(Rows):
    """Rows with renamed columns; see Rows.rename()."""

    def __init__(self, rows: Rows, columns: Mapping[str, str]) -> None:
        self._rows, self._columns, self.name = rows, dict(columns), rows.name

    def row(self, index: int) -> Row:
        row = dict(self._rows[index])
        if missing := [old for old in self._columns.values() if old not in row]:
            raise BadValue(f"{self.where(index)} has no column {missing[0]!r}; it has {', '.join(map(repr, row))}")
        renamed = {new: row.pop(old) for new, old in self._columns.items()}
        return {**row, **renamed}

    def where(self, index: int) -> str:
        return self._rows.where(index)

    def __len__(self) -> int:
        return len(self._rows)


class Mixed(Rows):
    """Concatenates datasets. Each dataset is repeated until its share of the rows matches its weight.

    The dataset with the most rows per unit of weight is used exactly once.

    Args:
        parts: the datasets.
        weights: one positive number per dataset; None uses every row once.

    Raises:
        BadValue: no datasets, an empty dataset, or invalid weights.
    """

    def __init__(self, parts: Sequence[Rows], weights: Sequence[float] | None = None) -> None:
        if not parts or any(len(part) == 0 for part in parts):
            raise BadValue("a mixture needs at least one dataset, and each of them needs rows")
        if weights is not None and (len(weights) != len(parts) or not all(weight > 0 for weight in weights)):
            raise BadValue(f"a mixture needs one weight above 0 for each of {len(parts)} datasets, got {weights}")
        self.parts, self.name = list(parts), " + ".join(part.name for part in parts)
        if weights is None:
            counts = [len(part) for part in parts]
        else:
            unit = max(len(part) / weight for part, weight in zip(parts, weights, strict=True))
            counts = [max(1, round(unit * weight)) for weight in weights]
        self._ends = list(accumulate(counts))

    def row(self, index: int) -> Row:
        part, inner = self._locate(index)
        return self.parts[part][inner]

    def where(self, index: int) -> str:
        part, inner = self._locate(index)
        return self.parts[part].where(inner)

    def __len__(self) -> int:
        return self._ends[-1]

    def _locate(self, index: int) -> tuple[int, int]:
        part = bisect_right(self._ends, index)
        before = self._ends[part - 1] if part else 0
        return part, (index - before) % len(self.parts[part])


class Without(Sequence[int]):
    """The numbers from 0 to count - 1 without some of them; keeps only those in memory.

    >>> list(Without(6, [4, 1]))
    [0, 2, 3, 5]
    """

    def __init__(self, count: int, excluded: Sequence[int]) -> None:
        self._count = count - len(excluded)
        # The i-th excluded number is preceded by this many numbers that are kept.
        self._kept_before = array("Q", (number - i for i, number in enumerate(sorted(excluded))))

    @overload
    def __getitem__(self, index: int) -> int: ...
    @overload
    def __getitem__(self, index: slice) -> list[int]: ...
    def __getitem__(self, index: int | slice) -> int | list[int]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        if not 0 <= index < len(self):
            raise IndexError(index)
        return index + bisect_right(self._kept_before, index)

    def __len__(self) -> int:
        return self._count


def hold_back(rows: Rows, share: float) -> Sequence[int]:
    """Choose rows that are held back from training, for evaluation. All rows are read once.

    The choice depends on the contents of the rows and not on their order or ids, and rows with the same content are
    either all held back or not at all.

    Args:
        share: share of the rows, 0 to 1; at least one row is held back.

    Returns:
        The numbers of the rows, in a random order that depends on their contents.

    Raises:
        BadValue: all rows have the same content, so nothing would be left for training.
    """
    ranked = sorted((_content_hash(row), number) for number, row in enumerate(rows))
    count = max(1, round(share * len(ranked)))
    while count < len(ranked) and ranked[count][0] == ranked[count - 1][0]:
        count += 1
    if count >= len(ranked):
        raise BadValue(
            f"{rows.name}: holding {share:g} of {len(rows)} rows back from training leaves none; "
            "choose another split for the evaluation"
        )
    return array("Q", (number for _, number in ranked[:count]))


def _content_hash(row: Row) -> str:
    content = {column: value for column, value in row.items() if column not in ID_COLUMNS}
    text = json.dumps(content, sort_keys=True, default=_as_text, ensure_ascii=False)
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _as_text(value: Any) -> str:
    # The repr of an image contains its address, which differs from process to process.
    return value.tobytes().hex() if hasattr(value, "tobytes") else repr(value)


def key_of(row: Row) -> str:
    """Return an id that does not depend on the position of the row: its id column, or a hash of its contents."""
    for column in ID_COLUMNS:
        if isinstance(row.get(column), (str, int)) and row[column] != "":
            return str(row[column])
    text = json.dumps(row, sort_keys=True, default=repr, ensure_ascii=False)
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def _non_negative(method: str, count: int) -> int:
    if count < 0:
        raise BadValue(f"{method}() takes a number of rows >= 0, got {count}")
    return count


# --- malformed rows --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class BadRows:
    """The malformed rows of a dataset.

    name: name of the dataset. total: number of rows. reasons: maps the index of a malformed row to an error message.
    """

    name: str
    total: int
    reasons: Mapping[int, str]

    def __str__(self) -> str:
        first = f"; the first: {next(iter(self.reasons.values()))}" if self.reasons else ""
        return f"{self.name}: {len(self.reasons):,} of {self.total:,} rows are malformed and were skipped{first}"


def bad_rows(rows: Rows, read: Callable[[Row], object]) -> BadRows:
    """Read all rows and collect the rows for which loading or ``read`` raises BadValue."""
    reasons = {}
    for index in range(len(rows)):
        try:
            read(rows[index])
        except BadValue as e:
            text = str(e)
            reasons[index] = text if rows.where(index) in text else f"{rows.where(index)}: {text}"
    return BadRows(rows.name, len(rows), reasons)


_known: weakref.WeakKeyDictionary[Rows, dict[Hashable, BadRows]] = weakref.WeakKeyDictionary()
_lock = threading.Lock()  # held while a dataset is validated, so that other threads can use the result


def without_bad_rows(rows: Rows, read: Callable[[Row], object], reader: Hashable = None) -> tuple[Rows, BadRows]:
    """Return the readable rows and the malformed rows. All malformed rows are logged as one warning.

    Args:
        rows: rows of a dataset.
        read: raises BadValue for a malformed row.
        reader: identifies ``read``; the result is cached per dataset and reader. None reads the rows each time.

    Raises:
        BadValue: all rows are malformed.
    """
    with _lock:
        bad = _known.get(rows, {}).get(reader) if reader is not None else None
        if bad is None:
            bad = bad_rows(rows, read)
            if len(bad.reasons) == len(rows):
                raise BadValue(f"all {len(rows)} rows of {rows.name} are malformed; the first: {bad.reasons[0]}")
            if bad.reasons:
                _logger.warning("%s", bad)
            _known.setdefault(rows, {})[reader] = bad
    if not bad.reasons:
        return rows, bad
    return Selected(rows, [index for index in range(len(rows)) if index not in bad.reasons]), bad


def skips_by_default() -> bool:
    """Return whether the environment variable GEM_SKIP_BAD_ROWS is "1"."""
    return os.environ.get(GEM_SKIP_BAD_ROWS) == "1"
