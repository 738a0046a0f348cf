"""The flags for datasets and for environments of the user, shared by every command that creates environments.

The values for datasets are passed in environment variables, so that worker processes inherit them.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from gem._internal.imports import import_file
from gem.cli.flags import flag
from gem.datasets.load import GEM_DATA
from gem.datasets.rows import BAD_ROWS, GEM_SKIP_BAD_ROWS, BadRows
from gem.errors import BadValue
from gem.registry import register_class

MAX_SHOWN = 10  # maximum number of malformed rows printed per dataset


@dataclass(frozen=True, kw_only=True)
class DataFlags:
    """Base class of the Config classes of commands. gem.cli runs the command inside applied().

    Attributes:
        env_fields: the flags that hold ids of environments, or "module:Class".
    """

    env_fields: ClassVar[tuple[str, ...]] = ("env",)
    data: Path | None = flag(None, help="folder of local dataset copies, as owner/name; overrides GEM_DATA")
    skip_bad_rows: bool = flag(False, help="skip malformed dataset rows and report them at exit")
    env_path: str | None = flag(
        None,
        help="Python file to import first; it registers environments, or is named as FILE:Class",
        metavar="FILE.py",
    )

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Set the environment variables inside the `with` block. At the end, report skipped rows on stderr.

        Environments of ``env_path``, and those that are named as "module:Class", are registered, and stay so.

        Raises:
            BadValue: ``data`` is not a folder, or ``env_path`` is no file that can be imported.
            UnknownEnv: a "module:Class" cannot be loaded.
        """
        self._register()
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

    def _register(self) -> None:
        if self.env_path is not None:
            try:
                import_file(self.env_path)
            except ImportError as e:
                raise BadValue(f"--env-path {self.env_path}: {e}") from e
        for name in self.env_fields:
            given = getattr(self, name)
            for env_id in [given] if isinstance(given, str) else given or ():
                register_class(env_id.partition("=")[0])  # gem train takes ID=WEIGHT


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
