"""Rows that come one after the other and are not kept: data sets too large to have, from the hub or elsewhere."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from gem.datasets.load import hub_rows, load_rows, local_copy
from gem.datasets.rows import Row
from gem.datasets.skipping import BAD_ROWS, BadRows
from gem.errors import BadValue

_log = logging.getLogger(BAD_ROWS)


class Stream:
    """Rows read in their order, from the first one on.

    Args:
        start: begins to read them; called again for every pass, and in every process that the stream is sent to.
        name: of the data set, for messages.

    Reading on is cheap; going back begins anew. How many rows there are is known after the first pass.
    """

    _rows: Iterator[tuple[int, Row]]
    _next: int  # position of the row to be read
    _last: tuple[int, Row]

    def __init__(self, start: Callable[[], Iterable[Row]], name: str = "stream") -> None:
        self._start, self.name = start, name
        self._read: Callable[[Row], object] | None = None
        self.bad: dict[int, str] = {}  # rows left out so far → why
        self._length: int | None = None
        self._rewind()

    def readable(self, read: Callable[[Row], object]) -> Stream:
        """The same without the rows on which read raises BadValue; some of those are logged as they come by."""
        stream = self.again()
        stream._read = read
        return stream

    def again(self) -> Stream:
        """The same from its beginning, for another reader."""
        stream = Stream(self._start, self.name)
        stream._read, stream._length = self._read, self._length
        return stream

    def at(self, position: int) -> tuple[int, Row]:
        """The row that comes position-th, counted from 0 and beginning anew at the end; and its number in the data set.

        Raises BadValue for a stream without rows, and for what is no row.
        """
        if self._length is not None:
            position %= self._length
        if position < self._next - 1:
            self._rewind()
        while self._next <= position:
            try:
                self._last = next(self._rows)
            except StopIteration:
                return self._ended(position)
            self._next += 1
        return self._last

    def where(self, index: int) -> str:
        return f"{self.name}, row {index}"

    def _ended(self, position: int) -> tuple[int, Row]:
        if self._next == 0:
            raise BadValue(f"{self.name}: the stream has no rows{' that can be read' if self.bad else ''}")
        self._length = self._next
        self._rewind(self._length)
        return self.at(position)

    def _rewind(self, length: int | None = None) -> None:
        """Begin anew. length: of the stream, where the last pass has shown it."""
        self._length = length or self._length
        self._rows, self._next, self._last = self._numbered(), 0, (-1, {})

    def _numbered(self) -> Iterator[tuple[int, Row]]:
        for index, row in enumerate(self._start()):
            if not isinstance(row, Mapping):
                raise BadValue(f"{self.where(index)} should be a mapping of columns, got {type(row).__name__}")
            if self._read is None or self._is_good(index, row):
                yield index, row

    def _is_good(self, index: int, row: Row) -> bool:
        assert self._read is not None
        try:
            self._read(row)
        except BadValue as e:
            if index not in self.bad:
                self.bad[index] = f"{self.where(index)}: {e}"
                if len(self.bad).bit_count() == 1:  # the 1st, 2nd, 4th, 8th, …
                    _log.warning("%s", BadRows(self.name, index + 1, self.bad))
            return False
        return True

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in ("_rows", "_next", "_last")}

    def __setstate__(self, saved: dict[str, Any]) -> None:
        vars(self).update(saved)
        self._rewind()


def stream_rows(source: Any, split: str | None = None, *, config: str | None = None) -> Stream:
    """A data set as a stream: from the hub without downloading the whole.

    Args:
        source: what load_rows takes; or an ``IterableDataset``. A local copy under $GEM_DATA is preferred to the hub.
        split, config: see load_rows.

    Raises BadValue as load_rows does; what only shows when rows are read raises then.
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
    """Whether it is a ``datasets.IterableDataset``, told without importing datasets."""
    return any(
        cls.__module__.startswith("datasets.") and cls.__name__ == "IterableDataset" for cls in type(source).__mro__
    )
