"""Output of commands: text wrapped to the terminal's width, tables, progress bars, files and JSON.

With --json a command prints one document on stdout: an object, or an array of objects if it lists several things. Keys
are in snake_case; null stands for a value that is unknown or infinite.
"""

from __future__ import annotations

import json
import math
import re
import shutil
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from gem.errors import BadValue

if TYPE_CHECKING:
    from rich.progress import Progress

MAX_WIDTH = 120  # longer lines of prose are hard to read
_MIN_COLUMN = 20  # characters; a narrower second column goes below the first


def wrap(text: str, width: int | None = None) -> str:
    """Wrap text at spaces.

    Lines without indentation are joined into paragraphs. An indented line stays a line; what follows a gap of two
    spaces in it is a column of its own, whose lines are aligned.

    Args:
        text: paragraphs, separated by empty lines, and indented lines.
        width: maximum line length in characters; None for the width of the terminal, at most MAX_WIDTH.
    """
    width = min(shutil.get_terminal_size().columns, MAX_WIDTH) if width is None else width
    blocks: list[str] = []
    for line in text.splitlines():
        joins = blocks and blocks[-1] and line.strip() and not (line + blocks[-1]).startswith(" ")
        if joins and not blocks[-1].startswith(" "):
            blocks[-1] += " " + line
        else:
            blocks.append(line.rstrip())
    return "\n".join(line for block in blocks for line in _wrapped(block, width))


def wrap_for(stream: TextIO, text: str, column: int | None = None) -> str:
    """Wrap each line of a text if the stream is a terminal.

    Args:
        column: where the last column of a table begins, which is wrapped; None for the text after the first gap of two
            spaces in each line.
    """
    if not stream.isatty():
        return text
    width = shutil.get_terminal_size().columns
    return "\n".join(part for line in text.splitlines() for part in _wrapped(line, width, column))


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Format rows as lines with aligned columns.

    >>> table([("a", "x"), ("long", "y")])
    ['a     x', 'long  y']
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


@contextmanager
def progress(*, time_left: bool = True, **options: Any) -> Iterator[Progress]:
    """Show progress bars on stderr while the block runs, or nothing if stderr is not a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = [TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()]
    shown = columns if time_left else columns[:-1]
    with Progress(*shown, console=console, transient=True, disable=not sys.stderr.isatty(), **options) as bars:
        yield bars


def output_file(path: Path, *suffixes: str) -> Path:
    """Return a path given as --out. Raises BadValue for another suffix, or a folder that does not exist."""
    if path.suffix not in suffixes:
        raise BadValue(f"--out must end in {', '.join(suffixes)}, got {str(path)!r}")
    if not path.parent.is_dir():
        raise BadValue(f"cannot write {path}: its folder does not exist")
    return path


def print_json(data: Any) -> None:
    """Print one JSON document. Infinite and undefined numbers become null, and objects that JSON lacks their repr."""
    print(json.dumps(_finite(data), indent=1, default=repr))


def _wrapped(line: str, width: int, column: int | None = None) -> list[str]:
    if len(line) <= width:
        return [line]
    indent = len(line) - len(line.lstrip())
    if column is None and (gap := re.search(r"\S {2,}(?=\S)", line)):
        column = gap.end()
    if column is None:
        return _fill(line, width, " " * indent, indent)
    if width - column >= _MIN_COLUMN:
        return _fill(line, width, "", column)
    below = indent + 4
    return [*_wrapped(line[:column].rstrip(), width), *_fill(line[column:], width, " " * below, below)]


def _fill(line: str, width: int, first: str, hanging: int) -> list[str]:
    """Wrap one line, or return it as it is if it contains no space to wrap at."""
    return textwrap.wrap(
        line if not first else line.strip(),
        max(width, hanging + 1),
        initial_indent=first,
        subsequent_indent=" " * hanging,
        break_long_words=False,
        break_on_hyphens=False,
        drop_whitespace=True,
    ) or [line]


def _finite(data: Any) -> Any:
    if isinstance(data, float):
        return data if math.isfinite(data) else None
    if isinstance(data, Mapping):
        return {str(key): _finite(value) for key, value in data.items()}
    return [_finite(value) for value in data] if isinstance(data, (list, tuple)) else data
