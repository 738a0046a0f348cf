"""All exceptions of gem, and ``require``, which imports optional dependencies.

    GemError
    ├── CallerError                 a mistake of the caller; the message names the value and how to fix it
    │   ├── UnknownEnv              (KeyError and ValueError) unknown environment id
    │   ├── DuplicateEnv            (ValueError)    the id is already registered
    │   ├── UnknownArgument         (TypeError)     unknown keyword argument
    │   ├── BadValue                (ValueError)    a value out of range, or a file that cannot be parsed
    │   │   └── BadInput                            data from outside that is damaged, or above a limit
    │   ├── BadAction               (TypeError)     an action of the wrong type, or a list of the wrong length
    │   ├── EpisodeOver             (RuntimeError)  step() before reset() or after the end of the episode
    │   └── MissingDependency       (ImportError)   an extra is not installed
    └── InfraError                  an infrastructure failure, which is never turned into a reward
        ├── EnvFailed               an environment in a vector raised or hung, or its worker process died
        ├── GraderError             an answer could not be graded: the grader timed out or crashed
        ├── EndpointError           a chat endpoint gave no usable response, after all retries
        ├── SandboxError            a sandbox could not be started, or crashed while running a program
        └── ToolError               a tool's server was down, crashed, or sent an invalid response, after all retries

The first CallerError also reports whether another package has overwritten files of this one. A mistake of the agent
does not raise. It is reported in the observation, the reward and ``info["invalid"]``.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

__all__ = [
    "BadAction",
    "BadInput",
    "BadValue",
    "CallerError",
    "CompatibilityWarning",
    "DuplicateEnv",
    "EndpointError",
    "EnvFailed",
    "EpisodeOver",
    "GemError",
    "GraderError",
    "InfraError",
    "MissingDependency",
    "SandboxError",
    "ToolError",
    "UnknownArgument",
    "UnknownEnv",
]

DISTRIBUTION = "gem-gym"  # the name of this distribution, used if its metadata is not installed
PUBLISHED = "gem-llm"  # another distribution that installs a package called gem


class GemError(Exception):
    """Base class of all exceptions that gem raises deliberately."""

    __str__ = Exception.__str__  # KeyError.__str__ would show the message in quotes


class CallerError(GemError):
    """A mistake of the caller. The message names the offending value and how to fix it."""

    def __init__(self, *args: object) -> None:
        super().__init__(*args)
        report_shared_folder()


class UnknownEnv(CallerError, KeyError, ValueError):
    pass


class DuplicateEnv(CallerError, ValueError):
    pass


class UnknownArgument(CallerError, TypeError):
    pass


class BadValue(CallerError, ValueError):
    pass


class BadInput(BadValue):
    """Data from outside (a reply, a server's answer, a file, a request) is damaged or exceeds a limit.

    Args:
        source: what the data is, such as a path.
        reason: what is wrong with it; the message is "source reason".
        limit: the limit that it exceeds; None for damaged data.
        value: how much it has of what is limited.
    """

    def __init__(self, source: str, reason: str = "", *, limit: int | None = None, value: int | None = None) -> None:
        super().__init__(f"{source} {reason}".rstrip())
        self.source, self.limit, self.value = source, limit, value
        self.reason = reason

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (type(self), self.source, self.reason, self.limit, self.value)


def _restored(kind: type[BadInput], source: str, reason: str, limit: int | None, value: int | None) -> BadInput:
    return kind(source, reason, limit=limit, value=value)


class BadAction(CallerError, TypeError):
    pass


class EpisodeOver(CallerError, RuntimeError):
    pass


class MissingDependency(CallerError, ImportError):
    pass


class CompatibilityWarning(UserWarning):
    """A keyword argument of the published package has no effect. Issued once per process."""


class InfraError(GemError):
    """A grader, sandbox, server or worker failed. In a vector slot the episode ends as failed, with reward NaN."""


class EnvFailed(InfraError):
    """An environment in a vector raised an unexpected exception or timed out, or its worker process died."""


class GraderError(InfraError):
    """An answer could not be graded because the grader timed out or crashed."""


class EndpointError(InfraError):
    """A chat endpoint gave no usable response, after all retries."""


class SandboxError(InfraError):
    """A sandbox could not be started as requested, or crashed. A failure of the sandboxed program is a Result."""


class ToolError(InfraError):
    """A tool's server was down, crashed or sent an invalid response, after all retries."""


def require(module: str, *, extra: str) -> Any:
    """Import and return an optional dependency.

    Args:
        module: dotted name of the module.
        extra: the extra that installs the module, named in the error message.

    Raises:
        MissingDependency: when the module or one of its imports cannot be imported.

    >>> require("json", extra="none").dumps([1])
    '[1]'
    """
    try:
        return importlib.import_module(module)
    except MissingDependency:
        raise  # the module itself requires another extra
    except ImportError as e:
        raise MissingDependency(
            f"{module} is required but could not be imported ({e}); {install_command(extra)}"
        ) from e


def install_command(extra: str) -> str:
    """Return the command that installs the libraries of extras.

    The libraries come from the metadata of the installed package, because the package itself may be on no index.

    Args:
        extra: one extra, or several separated by commas. The command names an extra itself if the metadata lacks it.

    >>> install_command("unknown")
    "pip install 'gem-gym[unknown]'"
    """
    from importlib.metadata import PackageNotFoundError, requires

    try:
        declared = requires(_own_name()) or []
    except PackageNotFoundError:
        declared = []
    libraries = [f"'{library}'" for library in _libraries(declared, extra.split(","))]
    return f"pip install {' '.join(libraries) or repr(f'{_own_name()}[{extra}]')}"


def _libraries(declared: Sequence[str], extras: Sequence[str]) -> list[str]:
    """Return the requirements of extras for this version of Python.

    Args:
        declared: lines of package metadata, such as ``tomli>=2; python_version < "3.11" and extra == "eval"``. An extra
            may include others: ``gem-gym[train]; extra == "lora"``.
        extras: names of extras.
    """
    import re  # imported only for an error

    found: list[str] = []
    for line in declared:
        requirement, _, marker = (part.strip() for part in line.partition(";"))
        extra = re.search(r"""extra == ["']([^"']+)""", marker)
        below = re.search(r"""python_version < ["'](\d+)\.(\d+)""", marker)
        if extra is None or extra[1] not in extras:
            continue
        if below is not None and sys.version_info >= (int(below[1]), int(below[2])):
            continue
        name, _, included = requirement.rstrip("]").partition("[")
        found += _libraries(declared, included.split(",")) if name == _own_name() else [requirement]
    return list(dict.fromkeys(found))


@lru_cache(maxsize=1)
def report_shared_folder() -> None:
    """Log a warning, once per process, if another distribution also installed files into the folder of this package."""
    if len(_distributions()) > 1:
        import logging

        others = sorted(set(_distributions()) - {_own_name()})
        logging.getLogger("gem").warning(
            "%s and %s are both installed and overwrite each other's files in the folder gem; run "
            "`pip uninstall %s`, then install %s again",
            _own_name(),
            " and ".join(others),
            " ".join([_own_name(), *others]),
            _own_name(),
        )


def _own_name() -> str:
    return next((name for name in _distributions() if name != PUBLISHED), DISTRIBUTION)


@lru_cache(maxsize=1)
def _distributions() -> tuple[str, ...]:
    """Return the names of the installed distributions that contain a package called gem. Takes about 50 ms."""
    from importlib.metadata import packages_distributions

    return tuple(dict.fromkeys(packages_distributions().get("gem", ())))


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return ``"; did you mean 'x'?"`` for the closest known word, or an empty string if none is close.

    Close means that three quarters of the characters match, in order, regardless of case and leading dashes.

    >>> did_you_mean("max_turn", ["max_turns", "min_number"])
    "; did you mean 'max_turns'?"
    >>> did_you_mean("zzz", ["max_turns"])
    ''
    """
    import difflib  # takes 5 ms, so it is imported only for an error

    names = {name.casefold().lstrip("-"): name for name in known}
    close = difflib.get_close_matches(word.casefold().lstrip("-"), names, n=1, cutoff=0.75)
    return f"; did you mean {names[close[0]]!r}?" if close else ""
