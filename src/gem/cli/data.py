"""Where data sets come from and what becomes of their bad rows: the two flags of every command that makes environments.

They hold for the whole run, in worker processes too, because environment variables carry them there.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from gem.cli.flags import flag
from gem.datasets import BAD_ROWS, GEM_DATA, GEM_SKIP_BAD_ROWS, BadRows
from gem.errors import BadValue

SHOWN = 10  # bad rows of one data set


@dataclass(frozen=True, kw_only=True)
class DataFlags:
    """Inherited by the configurations of commands; gem.cli applies it."""

    data: Path | None = flag(None, help="folder of local copies of data sets, owner/name in it; for one run GEM_DATA")
    skip_bad_rows: bool = flag(False, help="leave out rows of data sets that are no task, and tell of them at the end")

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Hold within. Afterwards what was left out is told on stderr. Raises BadValue where data is no folder."""
        if self.data is not None and not self.data.is_dir():
            raise BadValue(f"--data takes a folder of data sets, and {str(self.data)!r} is none")
        given = {
            GEM_DATA: None if self.data is None else str(self.data.resolve()),
            GEM_SKIP_BAD_ROWS: "1" if self.skip_bad_rows else None,
        }
        before = {name: os.environ.get(name) for name in given}
        collected = _Collected()
        logger = logging.getLogger(BAD_ROWS)
        logger.addHandler(collected)
        _set(given)
        try:
            yield
        finally:
            _set({name: before[name] or "" for name, value in given.items() if value is not None})
            logger.removeHandler(collected)
            print(*(line for bad in collected.found.values() for line in _told(bad)), sep="\n", end="", file=sys.stderr)


class _Collected(logging.Handler):
    """Data set → its bad rows, as they are logged."""

    def __init__(self) -> None:
        super().__init__()
        self.found: dict[str, BadRows] = {}

    def emit(self, record: logging.LogRecord) -> None:
        if isinstance(bad := record.args, tuple) and bad and isinstance(bad[0], BadRows):
            self.found[bad[0].name] = bad[0]


def _told(bad: BadRows) -> Iterator[str]:
    yield f"{bad}:"
    for reason in list(bad.reasons.values())[:SHOWN]:
        yield f"  {reason}"
    if len(bad.reasons) > SHOWN:
        yield f"  … and {len(bad.reasons) - SHOWN:,} more"
    yield ""


def _set(variables: dict[str, str | None]) -> None:
    """Set environment variables; "" removes one, None leaves it."""
    for name, value in variables.items():
        if value:
            os.environ[name] = value
        elif value is not None:
            os.environ.pop(name, None)
