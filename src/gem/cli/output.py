"""Output of commands: text wrapped to the terminal's width, tables, progress bars, files and JSON; and how they stop.

SIGTERM is treated as Ctrl-C. With --json a command prints one document on stdout: an object, or an array of objects if
it lists several things. Keys are in snake_case; null stands for a value that is unknown or infinite.
"""

from __future__ import annotations

import json
import math
import re
import shlex
import shutil
import signal
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, TextIO

from gem._internal.text import escape_output, unescaped, visible
from gem.errors import BadValue

if TYPE_CHECKING:
    from rich.console import Console
    from rich.live import Live
    from rich.progress import Progress

MAX_TEXT = 50_000  # characters of an observation or an action that are printed
MAX_WIDTH = 120  # longer lines of prose are hard to read
INTERRUPTED, TERMINATED, PIPE_CLOSED = 130, 143, 141  # what shells report for SIGINT, SIGTERM and SIGPIPE
_MIN_COLUMN = 20  # characters; a narrower second column goes below the first
_received: set[int] = set()  # signals


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


def console(*, stderr: bool = False, **options: Any) -> Console:
    """Return a console of rich that reads no [markup]. The styles of any other console are escaped with its text."""
    from rich.console import Console

    class EscapedConsole(Console):
        def render(self, *args: Any, **kwargs: Any) -> Any:
            for segment in super().render(*args, **kwargs):
                yield segment if segment.control else segment._replace(text=visible(segment.text))

    file = unescaped(sys.stderr if stderr else sys.stdout)
    return EscapedConsole(file=file, **{"markup": False, "emoji": False, **options})


@contextmanager
def live(display: Live | Progress) -> Iterator[None]:
    """Show a live display while the block runs. Text that is printed meanwhile is escaped before rich reads it."""
    with display, escape_output():
        yield


@contextmanager
def progress(*, time_left: bool = True, **options: Any) -> Iterator[Progress]:
    """Show progress bars on stderr while the block runs, or nothing if stderr is not a terminal."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = [TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()]
    shown, disable = columns if time_left else columns[:-1], not sys.stderr.isatty()
    bars = Progress(*shown, console=console(stderr=True, highlight=False), transient=True, disable=disable, **options)
    with live(bars):
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


@contextmanager
def on_signals(act: Callable[[int, FrameType | None], object]) -> Iterator[None]:
    """Call a function for each SIGINT and SIGTERM in the block. A signal that this process ignores stays ignored."""

    def handle(number: int, frame: FrameType | None) -> None:
        _received.add(number)
        act(number, frame)

    is_main = threading.current_thread() is threading.main_thread()  # others cannot set handlers
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)} if is_main else {}
    changed = {number: old for number, old in before.items() if old not in (signal.SIG_IGN, None, act)}
    for number in changed:
        signal.signal(number, handle)
    try:
        yield
    finally:
        for number, old in changed.items():
            signal.signal(number, old)


def is_stopped() -> bool:
    """Return whether this command got a signal."""
    return bool(_received)


def exit_code(code: int) -> int:
    """Return the exit code of a command that ended with ``code``: TERMINATED if SIGTERM has stopped it."""
    terminated = signal.SIGTERM in _received
    _received.clear()
    return TERMINATED if terminated else code


@contextmanager
def resumable(command: str, folder: str) -> Iterator[None]:
    """If a signal or a closed stdout ends the block, say on stderr how to go on in the folder that it writes."""
    try:
        yield
        sys.stdout.flush()
    except (KeyboardInterrupt, BrokenPipeError, SystemExit) as e:
        if isinstance(e, KeyboardInterrupt) or is_closed_pipe(e):
            why = "" if isinstance(e, KeyboardInterrupt) else ", because its output was closed"
            is_kept = Path(folder).is_dir()
            how = f"Continue with: gem {command} --resume {shlex.quote(folder)}" if is_kept else "Nothing was kept."
            with suppress(OSError):  # stderr may be closed as well
                print(f"Stopped{why}. {how}", file=sys.stderr, flush=True)
        raise


def is_closed_pipe(error: BaseException) -> bool:
    """Return whether an exception is a BrokenPipeError, or what rich makes of one."""
    return isinstance(error, BrokenPipeError) or (
        isinstance(error, SystemExit) and isinstance(error.__context__, BrokenPipeError)
    )


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
