"""Execute a program or a command in an isolated process."""

from __future__ import annotations

import atexit
import builtins
import contextlib
import fcntl
import functools
import importlib
import io
import linecache
import os
import resource
import signal
import sys
import threading
import traceback
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

NAME = "main.py"
NOT_FOUND, NOT_EXECUTABLE = 127, 126  # exit codes of a command that cannot be executed, as in a shell
FLUSH = getattr(signal, "SIGRTMAX", 1) - 1  # 0 if the system has no real-time signals
FIRST_OWN_FD = 64  # above the descriptors that a cell or a shell is likely to use
TRACEBACK_FRAMES = 1000  # maximum number of frames in a traceback, as in an interpreter without gem
# If two of these modules have the same name, the later one has precedence: collections.Counter over typing.Counter.
PRELUDE = (
    *("typing", "string", "re", "datetime", "collections", "heapq", "bisect", "copy", "math", "random", "statistics"),
    *("itertools", "functools", "operator", "io", "json"),
)
STARTS_PROCESSES = (b"multiprocessing", b"concurrent")  # names in the source of a program that starts processes
PRELUDE_RECURSION = 50_000  # recursion limit of a program that runs with the prelude
PRELUDE_STACK = 100 << 20  # bytes of stack that such a recursion may use; Linux leaves room for 128 MiB
_imported_source = b""  # of the program that was compiled last, if it may start processes that import it


def run(options: Mapping[str, Any], fds: Sequence[int]) -> NoReturn:
    """Run a program as __main__.

    Args:
        options: ``source``, bytes; ``unbuffered``, whether output is written immediately instead of line by line, for
            callers that do not send the FLUSH signal.
        fds: the standard streams.
    """
    open_streams(unbuffered=options.get("unbuffered", False))
    code = compiled(options["source"])
    os._exit(1 if code is None else execute(lambda: run_in(new_module("__main__"), code)))


def run_command(options: Mapping[str, Any], fds: Sequence[int]) -> NoReturn:
    """Replace this process with the command ``options["command"]``, a list of arguments."""
    command = options["command"]
    try:
        os.execvp(command[0], command)
    except OSError as e:
        os.write(2, f"{command[0]}: {e.strerror}\n".encode("utf-8", "replace"))
        os._exit(NOT_EXECUTABLE if isinstance(e, PermissionError) else NOT_FOUND)


def own_descriptor(fd: int) -> int:
    """Return a copy of a descriptor that programs do not inherit, with a high number if the limit allows it."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, FIRST_OWN_FD if most < 0 else min(FIRST_OWN_FD, most // 2))


def open_streams(*, unbuffered: bool = False) -> None:
    """Reopen the standard streams with the encoding and error handlers of Python's UTF-8 mode.

    Unless ``unbuffered`` is set, output is line-buffered, so that lines from different threads or processes do not mix.
    """
    opened = unbuffered_writer if unbuffered else line_writer
    sys.stdin = reader(0)
    sys.stdout = opened(1, "surrogateescape")
    sys.stderr = opened(2, "backslashreplace")
    sys.__stdin__, sys.__stdout__, sys.__stderr__ = sys.stdin, sys.stdout, sys.stderr  # type: ignore[misc]


def compiled(source: bytes) -> types.CodeType | None:
    """Compile a program. If that fails, print the error to stderr and return None."""
    global _imported_source
    _imported_source = source if any(name in source for name in STARTS_PROCESSES) else b""
    text = source.decode("utf-8", "replace")
    # With None as the time of its modification, linecache does not look for the file.
    linecache.cache[NAME] = (len(text), None, text.splitlines(True), NAME)
    try:
        return compile(source, NAME, "exec", dont_inherit=True)
    except BaseException:  # including MemoryError and RecursionError (60_nested_code)
        show_exception()
        return None


def new_module(name: str) -> types.ModuleType:
    """Create the module in which a program runs, prepend the working directory to sys.path, and lift digit limits.

    Programs may convert integers of any length to and from text: the limit of 4,300 digits protects servers, and tasks
    predate it.
    """
    module = types.ModuleType(name)
    module.__dict__.update(__file__=os.path.join(os.getcwd(), NAME), __builtins__=builtins)
    sys.modules[name] = module
    if "__mp_main__" in sys.modules:  # set when multiprocessing was imported; the name of __main__ in its children
        sys.modules["__mp_main__"] = module
    sys.argv[:] = [NAME]
    if hasattr(sys, "set_int_max_str_digits"):  # since 3.10.7
        sys.set_int_max_str_digits(0)
    sys.path.insert(0, os.getcwd())
    return module


@functools.cache
def prelude() -> dict[str, Any]:
    """Return the names that a program need not import if tests call one of its functions.

    Starter code of programming tasks uses such names, for example List in ``nums: List[int]``. They are the modules of
    PRELUDE, the public names in these modules except those of builtins, ``sys`` and ``maxsize``.
    """
    modules = {name: importlib.import_module(name) for name in PRELUDE}
    names: dict[str, Any] = {}
    for module in modules.values():
        public = getattr(module, "__all__", None) or [name for name in vars(module) if not name.startswith("_")]
        names.update((name, getattr(module, name)) for name in public if not hasattr(builtins, name))
    return {**names, **modules, "sys": sys, "maxsize": sys.maxsize}


def new_function_module() -> types.ModuleType:
    """Create the module of a program whose function is called. It contains the names of the prelude."""
    module = new_module("program")
    module.__dict__.update(prelude())
    sys.setrecursionlimit(PRELUDE_RECURSION)
    with contextlib.suppress(OSError, ValueError):  # a lower hard limit stays
        resource.setrlimit(resource.RLIMIT_STACK, (PRELUDE_STACK, resource.getrlimit(resource.RLIMIT_STACK)[1]))
    return module


def find_function(module: types.ModuleType, function: str) -> Any:
    """Return a function of a program, or a method bound to a new instance of its class.

    Raises:
        SystemExit: if the program has no such function or class; the argument is a message.
    """
    owner, _, name = function.rpartition(".")
    if not owner and not _defines(module, name) and _defines(module, "Solution"):
        owner = "Solution"
    if owner and not _defines(module, owner):
        raise SystemExit(f"the program has no class {owner}")
    holder = getattr(module, owner)() if owner else module
    if not (hasattr(holder, name) if owner else _defines(module, name)):
        raise SystemExit(f"the program has no function {function}")
    return getattr(holder, name)


def _defines(module: types.ModuleType, name: str) -> bool:
    """Return whether a program defines a name. A name of the prelude, such as "search", does not count."""
    return hasattr(module, name) and getattr(module, name) is not prelude().get(name)


def run_in(module: types.ModuleType, code: types.CodeType) -> None:
    """Reseed the random generators and execute the code of a program in a module."""
    reseed_random()
    if _imported_source:
        allow_spawning(_imported_source)
    exec(code, module.__dict__)


def allow_spawning(source: bytes) -> None:
    """Write the file from which an interpreter that multiprocessing starts imports the program.

    The start method "forkserver" becomes "spawn", which does the same without a Unix socket.
    """
    with contextlib.suppress(OSError), open(NAME, "xb") as file:
        file.write(source)
    context: Any = importlib.import_module("multiprocessing.context")
    if hasattr(context, "ForkServerProcess"):
        context.ForkServerProcess._Popen = staticmethod(context.SpawnProcess._Popen)


def execute(main: Callable[[], object]) -> int:
    """Call main(), perform the shutdown steps of an interpreter except freeing memory, and return the exit code."""
    exit_code = 0
    try:
        main()
    except SystemExit as e:
        exit_code = _exit_code(e)
    except BaseException:
        exit_code = 1
        show_exception()
    for finish in (_end_threads, _call_exit_functions, _flush_out, _flush_errors):
        try:  # noqa: SIM105  suppress() writes to pages, which are then copied for each test
            finish()
        except BaseException:  # the program may have replaced the streams
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
    """Print the current exception without frames of gem. If the program has set sys.excepthook, call that instead."""
    kind, error, trace = sys.exc_info()
    while trace is not None and trace.tb_frame.f_code.co_filename != NAME:
        trace = trace.tb_next
    try:
        if sys.excepthook is not sys.__excepthook__ and kind is not None and error is not None:
            sys.excepthook(kind, error, trace)
        else:
            traceback.print_exception(kind, error, trace, limit=-TRACEBACK_FRAMES)
    except BaseException:  # stderr was replaced, or there is not enough memory
        os.write(2, f"{getattr(kind, '__name__', kind)}\n".encode())


def install_flush_handler() -> None:
    """Install a handler that flushes output on the FLUSH signal, which is sent to a program that is about to be killed.

    Forked processes inherit the handler. The handler does not run while the program is inside a C function.
    """
    if FLUSH:
        signal.signal(FLUSH, flush)


def flush(*_: object) -> None:
    """Flush the standard streams. Errors are ignored."""
    for finish in (_flush_out, _flush_errors):
        # The signal may arrive during a flush, or the program may have replaced the streams.
        with contextlib.suppress(BaseException):
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
    """Reseed the global random generators of Python and numpy, which have the same state in all forks."""
    python_random, in_c = sys.modules.get("random"), sys.modules.get("_random")
    if python_random is not None and in_c is not None:
        in_c.Random.seed(python_random._inst)  # same effect as random.seed(), in fewer steps
    numpy_random = sys.modules.get("numpy.random")
    if numpy_random is not None:
        numpy_random.seed()
