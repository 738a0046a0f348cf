"""Rows that are no task: which they are, and what is left without them."""

from __future__ import annotations

import logging
import os
import threading
import weakref
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass

from gem.datasets.rows import Row, Rows, Selected
from gem.errors import BadValue

GEM_SKIP_BAD_ROWS = (
    "GEM_SKIP_BAD_ROWS"  # environment variable: "1" leaves bad rows out where nothing else was asked for
)
BAD_ROWS = "gem.datasets.bad_rows"  # the logger that is told once what was left out of a data set
_log = logging.getLogger(BAD_ROWS)
_known: weakref.WeakKeyDictionary[Rows, dict[Hashable, BadRows]] = weakref.WeakKeyDictionary()
_lock = threading.Lock()  # one reads them all, and the other environments of a process wait for what it finds


@dataclass(frozen=True)
class BadRows:
    """name: of the data set. total: its rows. reasons: index → what is wrong, with file and row."""

    name: str
    total: int
    reasons: Mapping[int, str]

    def __str__(self) -> str:
        first = f", the first: {next(iter(self.reasons.values()))}" if self.reasons else ""
        return f"{self.name}: {len(self.reasons):,} of {self.total:,} rows are bad and left out{first}"


def bad_rows(rows: Rows, read: Callable[[Row], object]) -> BadRows:
    """The rows that cannot be read, by read's or the file's own BadValue; all are read for that."""
    reasons = {}
    for index in range(len(rows)):
        try:
            read(rows[index])
        except BadValue as e:
            text = str(e)
            reasons[index] = text if rows.where(index) in text else f"{rows.where(index)}: {text}"
    return BadRows(rows.name, len(rows), reasons)


def without_bad_rows(rows: Rows, read: Callable[[Row], object], reader: Hashable = None) -> tuple[Rows, BadRows]:
    """The rows that can be read, and those that cannot, which are logged as a warning.

    reader: names what read does. The rows are read once for all readers of a name; None reads them anew.

    Raises BadValue where no row is left.
    """
    with _lock:
        bad = _known.get(rows, {}).get(reader) if reader is not None else None
        if bad is None:
            bad = bad_rows(rows, read)
            if len(bad.reasons) == len(rows):
                raise BadValue(f"all {len(rows)} rows of {rows.name} are bad, the first: {bad.reasons[0]}")
            if bad.reasons:
                _log.warning("%s", bad)
            _known.setdefault(rows, {})[reader] = bad
    if not bad.reasons:
        return rows, bad
    return Selected(rows, [index for index in range(len(rows)) if index not in bad.reasons]), bad


def skips_by_default() -> bool:
    """What the environment variable GEM_SKIP_BAD_ROWS says."""
    return os.environ.get(GEM_SKIP_BAD_ROWS) == "1"
