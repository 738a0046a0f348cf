"""Executes source as a script would be executed, in a process that is already contained."""

from __future__ import annotations

import atexit
import builtins
import contextlib
import io
import linecache
import os
import sys
import threading
import traceback
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn, cast

NAME = "main.py"
_OWN_FILES = os.path.dirname(__file__) + os.sep


def run(options: Mapping[str, Any], fds: Sequence[int]) -> NoReturn:
    """Run ``options["source"]``, of bytes, as __main__. Descriptors are the standard streams."""
    open_streams()
    code = compiled(options["source"])
    os._exit(1 if code is None else execute(lambda: run_in(new_module("__main__"), code)))


def open_streams() -> None:
    """Make the standard streams anew, with the encoding of UTF-8 mode. A printed line is on its way at once."""
    sys.stdin = _stream(0, "r", "surrogateescape")
    sys.stdout = _stream(1, "w", "surrogateescape")
    sys.stderr = _stream(2, "w", "backslashreplace")
    sys.__stdin__, sys.__stdout__, sys.__stderr__ = sys.stdin, sys.stdout, sys.stderr  # type: ignore[misc]


def compiled(source: bytes) -> types.CodeType | None:
    """The program's code; None, with the error on stderr, where it is no Python."""
    text = source.decode("utf-8", "replace")
    linecache.cache[NAME] = (len(text), None, text.splitlines(True), NAME)  # no time: it is never looked for on disk
    try:
        return compile(source, NAME, "exec", dont_inherit=True)
    except BaseException:  # running out of memory or of stack included
        show_exception()
        return None


def new_module(name: str) -> types.ModuleType:
    """A module for a program to run in. The working directory is first on the path."""
    module = types.ModuleType(name)
    module.__dict__.update(__file__=NAME, __builtins__=builtins)
    sys.modules[name] = module
    sys.argv[:] = [NAME]
    sys.path.insert(0, os.getcwd())
    return module


def run_in(module: types.ModuleType, code: types.CodeType) -> None:
    """Execute a program's code as a module."""
    draw_anew()
    exec(code, module.__dict__)


def execute(play: Callable[[], object]) -> int:
    """Call this and then do what an interpreter does when it ends, but for freeing memory. Returns the exit code."""
    exit_code = 0
    try:
        play()
    except SystemExit as e:
        exit_code = _exit_code(e)
    except BaseException:
        exit_code = 1
        show_exception()
    for finish in (threading._shutdown, atexit._run_exitfuncs, sys.stdout.flush, sys.stderr.flush):  # type: ignore[attr-defined]
        try:  # noqa: SIM105  what suppress() touches is copied, in each of a program's tests
            finish()
        except BaseException:
            pass
    return exit_code


def show_exception() -> None:
    """Print the exception being handled, by the program's own excepthook where it has one, without our frames."""
    kind, error, trace = sys.exc_info()
    while trace is not None and trace.tb_frame.f_code.co_filename.startswith(_OWN_FILES):
        trace = trace.tb_next
    try:
        if sys.excepthook is not sys.__excepthook__ and kind is not None and error is not None:
            sys.excepthook(kind, error, trace)
        else:
            traceback.print_exception(kind, error, trace)
    except BaseException:  # stderr was replaced, or there is no memory to print with
        os.write(2, f"{getattr(kind, '__name__', kind)}\n".encode())


def _stream(fd: int, mode: str, errors: str) -> io.TextIOWrapper:
    return cast(io.TextIOWrapper, open(fd, mode, buffering=1, encoding="utf-8", errors=errors, closefd=False))


def _exit_code(error: SystemExit) -> int:
    if error.code is None or isinstance(error.code, int):
        return (error.code or 0) & 0xFF
    with contextlib.suppress(BaseException):
        print(error.code, file=sys.stderr)
    return 1


def draw_anew() -> None:
    """Python reseeds its own generator after a fork; numpy's global one would be the same in every run."""
    numpy_random = sys.modules.get("numpy.random")
    if numpy_random is not None:
        numpy_random.seed()
