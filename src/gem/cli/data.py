"""The two flags for datasets, shared by every command that creates environments.

The values are passed in environment variables, so that worker processes inherit them.
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
from gem.datasets.load import GEM_DATA
from gem.datasets.rows import BAD_ROWS, GEM_SKIP_BAD_ROWS, BadRows
from gem.errors import BadValue

MAX_SHOWN = 10  # maximum number of malformed rows printed per dataset


@dataclass(frozen=True, kw_only=True)
class DataFlags:
    """Base class of the Config classes of commands. gem.cli runs the command inside applied()."""

    data: Path | None = flag(None, help="folder of local dataset copies, as owner/name; overrides GEM_DATA")
    skip_bad_rows: bool = flag(False, help="skip malformed dataset rows and report them at exit")

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Set the environment variables inside the `with` block. At the end, report skipped rows on stderr.

        Raises:
            BadValue: ``data`` is not a folder.
        """
        if self.data is not None and not self.data.is_dir():
            raise BadValue(f"--data must be a folder, got {str(self.data)!r}")
        changes: dict[str, str] = {}
        if self.data is not None:
            changes[GEM_DATA] = str(self.data.resolve())
        if self.skip_bad_rows:
            changes[GEM_SKIP_BAD_ROWS] = "1"
        before = {name: os.environ[name] for name in changes if name in os.environ}
        collector = _BadRowsCollector()
        logger = logging.getLogger(BAD_ROWS)
        logger.addHandler(collector)
        os.environ.update(changes)
        try:
            yield
        finally:
            for name in changes:
                os.environ.pop(name, None)
            os.environ.update(before)
            logger.removeHandler(collector)
            for bad in collector.found.values():
                _report(bad)


class _BadRowsCollector(logging.Handler):
    """A logging handler that keeps the last BadRows logged for each dataset."""

    def __init__(self) -> None:
        super().__init__()
        self.found: dict[str, BadRows] = {}

    def emit(self, record: logging.LogRecord) -> None:
        if isinstance(bad := record.args, tuple) and bad and isinstance(bad[0], BadRows):
            self.found[bad[0].name] = bad[0]


def _report(bad: BadRows) -> None:
    lines = [f"{bad}:", *(f"  {reason}" for reason in list(bad.reasons.values())[:MAX_SHOWN])]
    if len(bad.reasons) > MAX_SHOWN:
        lines.append(f"  … and {len(bad.reasons) - MAX_SHOWN:,} more")
    print("\n".join(lines), file=sys.stderr)
