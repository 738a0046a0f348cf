"""The command line. Each command is a module with a docstring (its help), a Config (its flags) and run(config).

No command is imported before it is called, so that `gem list` costs what it needs and no more.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

from gem._internal.imports import resolve
from gem.errors import CallerError, InfraError, UnknownArgument, did_you_mean

# name → (module, one line for `gem --help`: the first line of the module's docstring)
COMMANDS = {
    "list": ("gem.cli.list", "List the environments."),
    "info": ("gem.cli.info", "Show what is known of one environment, with a sample game."),
    "play": ("gem.cli.play", "Play an environment yourself, in the terminal."),
    "check": ("gem.cli.check", "Check that environments keep their promises."),
    "replay": ("gem.cli.replay", "Replay recorded games and show what changed."),
    "bench": ("gem.cli.bench", "Measure how fast environments step."),
    "sandbox": ("gem.cli.sandbox", "Run untrusted programs contained, and see what containment holds on this machine."),
    "train": ("gem.cli.train", "Train a policy with reinforcement learning."),
}
CALLER_ERROR, FAILED, INTERRUPTED, PIPE_CLOSED = 2, 1, 130, 141  # the last two as a shell reports SIGINT and SIGPIPE


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    argv: what follows `gem` on the command line; None takes it from sys.argv.

    Returns the exit code. A mistake of the caller's and a failure of the machinery are one line on stderr;
    GEM_TRACEBACK=1 raises them instead. What is neither is a bug, and raises.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # an observation may echo what no terminal can show
    return _guarded(lambda: _dispatch(sys.argv[1:] if argv is None else argv))


def help_text(command: str | None = None, *, width: int | None = None) -> str:
    """What `gem --help` or `gem COMMAND --help` prints. width: in characters; None asks the terminal."""
    if command is not None:
        from gem.cli import flags

        module = _module(command)
        return flags.help_text(module.Config, prog=f"gem {command}", description=_description(module), width=width)
    longest = max(len(name) for name in COMMANDS) + 2
    commands = "\n".join(f"  {name:<{longest}}{summary}" for name, (_, summary) in COMMANDS.items())
    return (
        "usage: gem COMMAND ...\n\n"
        "gem, the General Experience Maker: a gym for agentic language models.\n\n"
        f"commands:\n{commands}\n\n"
        "`gem COMMAND --help` explains a command; `gem --version` prints the version.\n"
        "Exit codes: 0 done, 1 failed, 2 a mistake in what was asked for. An error is one line;\n"
        "with GEM_TRACEBACK=1 in the environment it comes with its traceback.\n"
    )


def _dispatch(argv: Sequence[str]) -> int:
    if not argv or argv[0] in ("-h", "--help"):
        print(help_text(), end="", file=sys.stdout if argv else sys.stderr)
        return 0 if argv else CALLER_ERROR
    command = argv[0]
    if command == "--version":
        import gem

        print(f"gem {gem.__version__}")
        return 0
    if command not in COMMANDS:
        raise UnknownArgument(f"no command {command!r}{did_you_mean(command, COMMANDS)}  (`gem --help` lists them)")
    from gem.cli.flags import parse

    module = _module(command)
    try:
        config = parse(module.Config, argv[1:], prog=f"gem {command}", description=_description(module))
    except SystemExit:  # --help, which it has printed
        return 0
    with config.applied() if hasattr(config, "applied") else nullcontext():  # see gem.cli.data
        code: int = module.run(config)
    return code


def _module(command: str) -> Any:
    return resolve(COMMANDS[command][0])


def _description(module: Any) -> str:
    return (module.__doc__ or "").strip()


def _guarded(command: Callable[[], int]) -> int:
    try:
        code = command()
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        print(file=sys.stderr)
        return INTERRUPTED
    except (CallerError, InfraError, OSError) as e:
        if isinstance(e, BrokenPipeError) and _stdout_is_gone():
            return PIPE_CLOSED
        if os.environ.get("GEM_TRACEBACK"):
            raise
        print(f"gem: error: {_one_line(e)}", file=sys.stderr)
        is_callers = isinstance(e, CallerError) or (isinstance(e, OSError) and e.filename is not None)
        return CALLER_ERROR if is_callers else FAILED


def _one_line(error: Exception) -> str:
    text = str(error)
    if isinstance(error, OSError) and error.filename is not None:
        text = f"{error.filename}: {error.strerror}"
    return "; ".join(line.strip() for line in text.splitlines() if line.strip())


def _stdout_is_gone() -> bool:
    """Whether nobody reads stdout any more (`gem list | head -1`), as against a pipe of the command's own."""
    try:
        print(flush=True)  # flush() alone finds nothing to write where Python runs unbuffered
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the interpreter flushes once more at exit
        return True
    return False
