"""The `gem` command line.

Each command is a module with a docstring (its help text), a Config dataclass (its flags) and run(config), which returns
the exit code; one whose help text depends on what is registered has more_help(). A command's module is imported only
when the command is used. What a command does is in the package that it is about: here are flags and what is printed.
"""

from __future__ import annotations

import gc
import io
import os
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from typing import Any

from gem._internal.imports import resolve
from gem._internal.text import clip, escape_output, one_line
from gem.cli.output import INTERRUPTED, PIPE_CLOSED, exit_code, is_closed_pipe, on_signals, wrap, wrap_for
from gem.errors import CallerError, InfraError, UnknownArgument, did_you_mean

# name → (module, first line of its docstring, which is its summary in `gem --help`)
COMMANDS = {
    "list": ("gem.cli.list", "List the environments."),
    "info": ("gem.cli.info", "Show an environment's parameters, rewards and a sample episode."),
    "play": ("gem.cli.play", "Play an environment in the terminal."),
    "check": ("gem.cli.check", "Check environments against the gem.Env contract."),
    "eval": ("gem.cli.eval.command", "Score a model on environments, with intervals."),
    "tournament": ("gem.cli.tournament", "Rate players in a game of two: every pair plays every deal with both seats."),
    "export": ("gem.cli.export", "Write tasks in the formats of other systems."),
    "replay": ("gem.cli.replay", "Replay recorded episodes and show what changed."),
    "bench": ("gem.cli.bench", "Measure how fast environments step."),
    "sandbox": (
        "gem.cli.sandbox",
        "Run untrusted programs in a sandbox, and check which isolation this machine supports.",
    ),
    "view": ("gem.cli.view", "Write recorded episodes as one HTML file, to read in a browser and to share."),
    "plot": ("gem.cli.plot", "Draw the learning curves of training runs, or list the runs with their scores."),
    "train": ("gem.cli.train", "Train a policy with reinforcement learning."),
}
# New objects between garbage collections. Python's 700 makes importing PyTorch and transformers a sixth slower.
GC_THRESHOLD = 20_000
MAX_ERROR = 4_000  # characters of an error that are printed
CALLER_ERROR, FAILED = 2, 1


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code.

    CallerError, InfraError and OSError are printed as one line on stderr, or raised if GEM_TRACEBACK is set. Any other
    exception is a bug and is raised.

    Args:
        argv: the arguments after `gem`; None for the arguments in sys.argv.
    """
    for name, mode in ("stdin", "r"), ("stdout", "w"), ("stderr", "w"):
        if getattr(sys, name) is None:  # closed by the caller, as with >&-; else a file of a run would get its number
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115 (for as long as the process)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # stdout may be unable to encode an observation
    with escape_output() as stack:  # text of models, tasks, tools and files gives the terminal no commands
        if argv is None:  # the process is ours, and so is what Python prints afterwards, such as a traceback
            gc.set_threshold(GC_THRESHOLD)
            stack.pop_all()
        return _guarded(lambda: _dispatch(sys.argv[1:] if argv is None else argv))


def help_text(command: str | None = None, *, width: int | None = None) -> str:
    """Return the output of `gem --help` or `gem COMMAND --help`.

    Args:
        command: name of the command; None for `gem --help`.
        width: maximum line length in characters; None for the width of the terminal.
    """
    if command is not None:
        from gem.cli import flags

        module = _module(command)
        return flags.help_text(module.Config, prog=f"gem {command}", description=_description(module), width=width)
    longest = max(len(name) for name in COMMANDS) + 2
    commands = "\n".join(f"  {name:<{longest}}{summary}" for name, (_, summary) in COMMANDS.items())
    text = (
        "usage: gem COMMAND ...\n\n"
        "gem, the General Experience Maker: a gym for agentic language models.\n\n"
        f"commands:\n{commands}\n\n"
        "`gem help COMMAND` or `gem COMMAND --help` describes a command; `gem --version` prints the version.\n\n"
        "Exit codes: 0 success, 1 failure, 2 usage error. Errors are printed as one line;\n"
        "set GEM_TRACEBACK=1 to see the traceback.\n"
    )
    return wrap(text, width) + "\n"


def _dispatch(argv: Sequence[str]) -> int:
    if not argv or argv[0] in ("-h", "--help"):
        print(help_text(), end="", file=sys.stdout if argv else sys.stderr)
        return 0 if argv else CALLER_ERROR
    command = argv[0]
    if command == "help":
        _print_help(argv[1:])
        return 0
    if command in ("--version", "-V"):
        import gem

        print(f"gem {gem.__version__}")
        return 0
    _check_command(command)
    from gem.cli.flags import parse

    module = _module(command)
    try:
        about = "" if {"-h", "--help"}.isdisjoint(argv) else _description(module)
        config = parse(module.Config, argv[1:], prog=f"gem {command}", description=about)
    except SystemExit:  # parse() has printed the help text
        return 0
    with config.applied() if hasattr(config, "applied") else nullcontext():  # see gem.cli.data
        code: int = module.run(config)
    return code


def _print_help(commands: Sequence[str]) -> None:
    if len(commands) > 1:
        raise UnknownArgument(f"unexpected argument {commands[1]!r}  (gem help takes one command)")
    if commands:
        _check_command(commands[0])
    print(help_text(*commands), end="")


def _check_command(command: str) -> None:
    if command not in COMMANDS:
        near = did_you_mean(command, [*COMMANDS, "help", "--help", "--version"])
        raise UnknownArgument(f"unknown command {command!r}{near}  (`gem --help` lists all)")


def _module(command: str) -> Any:
    return resolve(COMMANDS[command][0])


def _description(module: Any) -> str:
    """Return the docstring of a command, and for some a part on what is registered."""
    more = getattr(module, "more_help", str)()
    return f"{(module.__doc__ or '').strip()}\n\n{more}".strip()


def _guarded(command: Callable[[], int]) -> int:
    with on_signals(signal.default_int_handler):
        return exit_code(_caught(command))


def _caught(command: Callable[[], int]) -> int:
    try:
        code = command()
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        with suppress(OSError):
            print(file=sys.stderr)
        return INTERRUPTED
    except SystemExit as e:
        if is_closed_pipe(e):
            return PIPE_CLOSED
        raise
    except (CallerError, InfraError, OSError) as e:
        if isinstance(e, BrokenPipeError) and _stdout_is_gone():
            return PIPE_CLOSED
        if os.environ.get("GEM_TRACEBACK"):
            raise
        text = f"gem: error: {_one_line(e)}"
        print(wrap_for(sys.stderr, text.replace("  (", " (")) if sys.stderr.isatty() else text, file=sys.stderr)
        is_callers = isinstance(e, CallerError) or (isinstance(e, OSError) and e.filename is not None)
        return CALLER_ERROR if is_callers else FAILED


def _one_line(error: Exception) -> str:
    text = str(error)
    if isinstance(error, OSError) and error.filename is not None:
        text = f"{error.filename}: {error.strerror}"
    return clip(one_line(text), MAX_ERROR)


def _stdout_is_gone() -> bool:
    """Whether a BrokenPipeError is due to stdout, as in `gem list | head -1`, and not to another pipe."""
    try:
        print(flush=True)  # with unbuffered output, flush() alone writes nothing
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the interpreter flushes stdout again at exit
        return True
    return False
