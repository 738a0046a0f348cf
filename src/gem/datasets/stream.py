"""Streams of rows that are read in order and not kept, for datasets too large for memory or disk."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from gem.datasets.load import hub_rows, load_rows, local_copy
from gem.datasets.rows import BAD_ROWS, BadRows, Row
from gem.errors import BadValue

_logger = logging.getLogger(BAD_ROWS)


class Stream:
    """Rows that are read in order. Reading an earlier row starts a new pass from the first row.

    The number of rows is known after the first pass.

    Args:
        start: returns an iterable of the rows. Called for every pass, and again in every process that unpickles the
            stream.
        name: name of the dataset in messages.
    """

    _rows: Iterator[tuple[int, Row]]
    _next: int  # position of the next row
    _last: tuple[int, Row]

    def __init__(self, start: Callable[[], Iterable[Row]], name: str = "stream") -> None:
        self._start, self.name = start, name
        self._read: Callable[[Row], object] | None = None
        self.bad: dict[int, str] = {}  # row number → reason, for the rows skipped so far
        self._length: int | None = None
        self._rewind()

    def without_bad_rows(self, read: Callable[[Row], object]) -> Stream:
        """Return a stream that skips the rows for which ``read`` raises BadValue. Not every row is logged."""
        stream = self.again()
        stream._read = read
        return stream

    def again(self) -> Stream:
        """Return a copy that starts at the first row."""
        stream = Stream(self._start, self.name)
        stream._read, stream._length = self._read, self._length
        return stream

    def at(self, position: int) -> tuple[int, Row]:
        """Return (row number in the dataset, row) at a position, from 0; positions past the end wrap around.

        Raises:
            BadValue: the stream has no rows, or an item is not a mapping.
        """
        if self._length is not None:
            position %= self._length
        if position < self._next - 1:
            self._rewind()
        while self._next <= position:
            try:
                self._last = next(self._rows)
            except StopIteration:
                return self._wrap_around(position)
            self._next += 1
        return self._last

    def where(self, index: int) -> str:
        """Describe the location of a row for messages."""
        return f"{self.name}, row {index}"

    def _wrap_around(self, position: int) -> tuple[int, Row]:
        if self._next == 0:
            raise BadValue(f"{self.name}: the stream has no {'readable ' if self.bad else ''}rows")
        self._length = self._next
        self._rewind()
        return self.at(position)

    def _rewind(self) -> None:
        self._rows, self._next, self._last = self._numbered(), 0, (-1, {})

    def _numbered(self) -> Iterator[tuple[int, Row]]:
        for index, row in enumerate(self._start()):
            if not isinstance(row, Mapping):
                raise BadValue(f"{self.where(index)} must be a mapping of columns, got {type(row).__name__}")
            if self._read is None or self._is_valid(index, row):
                yield index, row

    def _is_valid(self, index: int, row: Row) -> bool:
        assert self._read is not None
        try:
            self._read(row)
        except BadValue as e:
            if index not in self.bad:
                self.bad[index] = f"{self.where(index)}: {e}"
                if len(self.bad).bit_count() == 1:  # log the 1st, 2nd, 4th, 8th, …
                    _logger.warning("%s", BadRows(self.name, index + 1, self.bad))
            return False
        return True

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in ("_rows", "_next", "_last")}

    def __setstate__(self, saved: dict[str, Any]) -> None:
        vars(self).update(saved)
        self._rewind()


def stream_rows(source: Any, split: str | None = None, *, config: str | None = None) -> Stream:
    """Open a dataset as a stream. A hub dataset is not downloaded in full.

    Args:
        source: as for load_rows(), or a ``datasets.IterableDataset``. A local copy in $GEM_DATA takes precedence.
        split, config: as for load_rows().

    Raises:
        BadValue: as load_rows(). Errors of a hub dataset are raised when rows are read.
    """
    if isinstance(source, Stream):
        return source.again()
    if is_iterable_dataset(source):
        return Stream(partial(iter, source), "stream")
    if isinstance(source, str) and not Path(source).exists() and local_copy(source) is None and source.count("/") == 1:
        return Stream(partial(hub_rows, source, split, config, streaming=True), source)
    rows = load_rows(source, split, config=config)
    return Stream(partial(iter, rows), rows.name)


def is_iterable_dataset(source: Any) -> bool:
    """Return whether an object is a ``datasets.IterableDataset``, without importing datasets."""
    return any(
        cls.__module__.startswith("datasets.") and cls.__name__ == "IterableDataset" for cls in type(source).__mro__
    )
