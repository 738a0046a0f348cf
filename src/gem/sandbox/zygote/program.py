"""Executes source as a script would be executed, in a process that is already contained."""

from __future__ import annotations

import atexit
import builtins
import contextlib
import io
import linecache
import os
import signal
import sys
import threading
import traceback
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

NAME = "main.py"
FLUSH = getattr(signal, "SIGRTMAX", 1) - 1  # 0 where there are no such signals


def run(options: Mapping[str, Any], fds: Sequence[int]) -> NoReturn:
    """Run ``options["source"]``, of bytes, as __main__. Descriptors are the standard streams.

    options: with ``unbuffered``, nothing waits for the end of its line; for who does not send FLUSH.
    """
    open_streams(unbuffered=options.get("unbuffered", False))
    code = compiled(options["source"])
    os._exit(1 if code is None else execute(lambda: run_in(new_module("__main__"), code)))


def open_streams(*, unbuffered: bool = False) -> None:
    """Make the standard streams anew, with the encoding of UTF-8 mode. A printed line is on its way at once, and whole:
    threads and processes that print at the same time do not tear each other's lines.
    """
    opened = unbuffered_writer if unbuffered else line_writer
    sys.stdin = reader(0)
    sys.stdout = opened(1, "surrogateescape")
    sys.stderr = opened(2, "backslashreplace")
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


def find_function(module: types.ModuleType, function: str) -> Any:
    """Raises SystemExit, with a message, where the program has no such function."""
    owner, _, name = function.rpartition(".")
    if not owner and not hasattr(module, name) and hasattr(module, "Solution"):
        owner = "Solution"
    if owner and not hasattr(module, owner):
        raise SystemExit(f"the program has no class {owner}")
    holder = getattr(module, owner)() if owner else module
    if not hasattr(holder, name):
        raise SystemExit(f"the program has no function {function}")
    return getattr(holder, name)


def run_in(module: types.ModuleType, code: types.CodeType) -> None:
    """Execute a program's code as a module."""
    reseed_random()
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
    for finish in (_end_threads, _call_exit_functions, _flush_out, _flush_errors):
        try:  # noqa: SIM105  what suppress() touches is copied, in each of a program's tests
            finish()
        except BaseException:  # the program may have put anything in their place
            pass
    return exit_code


def _end_threads() -> None:
    threads: Any = threading
    if len(threads._active) > 1 or threads._threading_atexits:
        threads._shutdown()


def _call_exit_functions() -> None:
    functions: Any = atexit
    if functions._ncallbacks():
        functions._run_exitfuncs()


def _flush_out() -> None:
    sys.stdout.flush()


def _flush_errors() -> None:
    sys.stderr.flush()


def show_exception() -> None:
    """Print the exception being handled, by the program's own excepthook where it has one, without our frames."""
    kind, error, trace = sys.exc_info()
    while trace is not None and trace.tb_frame.f_code.co_filename != NAME:
        trace = trace.tb_next
    try:
        if sys.excepthook is not sys.__excepthook__ and kind is not None and error is not None:
            sys.excepthook(kind, error, trace)
        else:
            traceback.print_exception(kind, error, trace)
    except BaseException:  # stderr was replaced, or there is no memory to print with
        os.write(2, f"{getattr(kind, '__name__', kind)}\n".encode())


def install_flush_handler() -> None:
    """At FLUSH, which comes shortly before the end of who took too long, send off what waits for the end of its line.
    Here and in all forks; a program that is in a long call of C does not hear it.
    """
    if FLUSH:
        signal.signal(FLUSH, _flush)


def _flush(*_: object) -> None:
    for finish in (_flush_out, _flush_errors):
        with contextlib.suppress(BaseException):  # it came while they were flushed, or they are no streams
            finish()


def reader(fd: int) -> io.TextIOWrapper:
    return open(fd, encoding="utf-8", errors="surrogateescape", closefd=False)


def line_writer(fd: int, errors: str) -> io.TextIOWrapper:
    return open(fd, "w", buffering=1, encoding="utf-8", errors=errors, closefd=False)


def unbuffered_writer(fd: int, errors: str) -> io.TextIOWrapper:
    return io.TextIOWrapper(io.FileIO(fd, "w", closefd=False), encoding="utf-8", errors=errors, write_through=True)


def _exit_code(error: SystemExit) -> int:
    if error.code is None or isinstance(error.code, int):
        return (error.code or 0) & 0xFF
    with contextlib.suppress(BaseException):
        print(error.code, file=sys.stderr)
    return 1


def reseed_random() -> None:
    """Without this all runs would draw the same random numbers."""
    python_random, in_c = sys.modules.get("random"), sys.modules.get("_random")
    if python_random is not None and in_c is not None:
        in_c.Random.seed(python_random._inst)  # as random.seed() does, in fewer steps
    numpy_random = sys.modules.get("numpy.random")
    if numpy_random is not None:
        numpy_random.seed()
