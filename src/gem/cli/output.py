"""Output of commands: text wrapped to the terminal's width, and JSON.

With --json a command prints one document on stdout: an object, or an array of objects if it lists several things. Keys
are in snake_case; null stands for a value that is unknown or infinite.
"""

from __future__ import annotations

import json
import math
import re
import shutil
import textwrap
from collections.abc import Mapping
from typing import Any, TextIO

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
