"""Rows of a data set, read when they are asked for, and views of them: parts, shards, filters, mixtures."""

from __future__ import annotations

import hashlib
import json
from abc import abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from typing import Any, overload

from gem.errors import BadValue

Row = Mapping[str, Any]
KEYS = ("id", "task_id", "idx", "index", "uid", "unique_id", "question_id")  # columns that data sets name rows by


class Rows(Sequence[Row]):
    """A sequence of rows in the order of their file, each read when it is asked for.

    name: of the data set, for messages.
    """

    name: str = "rows"

    @abstractmethod
    def row(self, index: int) -> Row:
        """The row of an index in range. Raises BadValue, naming file and row, for one that cannot be read."""

    def where(self, index: int) -> str:
        """Where a row stands, for messages: file and row, counted from 0."""
        return f"{self.name}, row {index}"

    @overload
    def __getitem__(self, index: int) -> Row: ...
    @overload
    def __getitem__(self, index: slice) -> Rows: ...
    def __getitem__(self, index: int | slice) -> Row | Rows:
        if isinstance(index, slice):
            return Selected(self, range(*index.indices(len(self))))
        if not -len(self) <= index < len(self):
            raise IndexError(f"{self.name} has {len(self)} rows, no row {index}")
        return self.row(index % len(self))

    def take(self, count: int) -> Rows:
        """The first count rows, or all where there are fewer. Raises BadValue below 0."""
        return self[: _at_least_zero("take", count)]

    def skip(self, count: int) -> Rows:
        """All but the first count rows. Raises BadValue below 0."""
        return self[_at_least_zero("skip", count) :]

    def shard(self, index: int, count: int) -> Rows:
        """Every count-th row, from index on: together the shards 0 to count - 1 are all rows. Raises BadValue."""
        if count < 1 or not 0 <= index < count:
            raise BadValue(f"a shard is index of count, 0 <= index < count; got {index} of {count}")
        return self[index::count]

    def filter(self, keep: Callable[[Row], bool]) -> Rows:
        """The rows for which keep is true; reads them all, once."""
        return Selected(self, [index for index, row in enumerate(self) if keep(row)])

    def rename(self, columns: Mapping[str, str]) -> Rows:
        """With other names of columns: {new: old}; the others stay. A row that lacks an old name raises when read."""
        return Renamed(self, columns)


class ListRows(Rows):
    """Rows that are there already: a list of mappings, or anything with a length and an index."""

    def __init__(self, rows: Any, name: str = "rows") -> None:
        self._rows, self.name = rows, name

    def row(self, index: int) -> Row:
        row = self._rows[index]
        if not isinstance(row, Mapping):
            raise BadValue(f"{self.where(index)} should be a mapping of columns, got {type(row).__name__}")
        return row

    def __len__(self) -> int:
        return len(self._rows)


class Selected(Rows):
    """Some rows of others, in the order given."""

    def __init__(self, rows: Rows, indices: Sequence[int]) -> None:
        self._rows, self._indices, self.name = rows, indices, rows.name

    def row(self, index: int) -> Row:
        return self._rows[self._indices[index]]

    def where(self, index: int) -> str:
        return self._rows.where(self._indices[index])

    def __len__(self) -> int:
        return len(self._indices)


class Renamed(Rows):
    def __init__(self, rows: Rows, columns: Mapping[str, str]) -> None:
        self._rows, self._columns, self.name = rows, dict(columns), rows.name

    def row(self, index: int) -> Row:
        row = dict(self._rows[index])
        if missing := [old for old in self._columns.values() if old not in row]:
            raise BadValue(f"{self.where(index)} has no column {missing[0]!r}; it has {', '.join(map(repr, row))}")
        taken = {new: row.pop(old) for new, old in self._columns.items()}
        return {**row, **taken}

    def where(self, index: int) -> str:
        return self._rows.where(index)

    def __len__(self) -> int:
        return len(self._rows)


class Mixed(Rows):
    """Several data sets as one, each repeated so often that its share of the rows is its weight's, or nearly.

    Args:
        parts: the data sets.
        weights: one number above 0 for each; None gives each row the same weight, and repeats none.

    The longest in relation to its weight is there once. Rows of the parts alternate as their weights say.
    """

    def __init__(self, parts: Sequence[Rows], weights: Sequence[float] | None = None) -> None:
        if not parts or any(len(part) == 0 for part in parts):
            raise BadValue("a mixture needs data sets, and each of them rows")
        if weights is not None and (len(weights) != len(parts) or not all(weight > 0 for weight in weights)):
            raise BadValue(f"a mixture needs one weight above 0 for each of {len(parts)} data sets, got {weights}")
        self.parts, self.name = list(parts), " + ".join(part.name for part in parts)
        if weights is None:
            counts = [len(part) for part in parts]
        else:
            unit = max(len(part) / weight for part, weight in zip(parts, weights, strict=True))
            counts = [max(1, round(unit * weight)) for weight in weights]
        self._ends = list(accumulate(counts))

    def row(self, index: int) -> Row:
        part, inner = self._find(index)
        return self.parts[part][inner]

    def where(self, index: int) -> str:
        part, inner = self._find(index)
        return self.parts[part].where(inner)

    def __len__(self) -> int:
        return self._ends[-1]

    def _find(self, index: int) -> tuple[int, int]:
        part = bisect_right(self._ends, index)
        before = self._ends[part - 1] if part else 0
        return part, (index - before) % len(self.parts[part])


def key_of(row: Row) -> str:
    """A name of the row that stays the same when rows are added, dropped or reordered: its id, or a hash of it."""
    for column in KEYS:
        if isinstance(row.get(column), (str, int)) and row[column] != "":
            return str(row[column])
    text = json.dumps(row, sort_keys=True, default=repr, ensure_ascii=False)
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def _at_least_zero(what: str, count: int) -> int:
    if count < 0:
        raise BadValue(f"{what}() takes a number of rows >= 0, got {count}")
    return count
