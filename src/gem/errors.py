"""Every exception of gem, and the one way to import an optional library.

    GemError
    ├── CallerError                 the caller's mistake: names the value and the way out
    │   ├── UnknownEnv              (KeyError)      no such environment id
    │   ├── DuplicateEnv            (ValueError)    the id is taken
    │   ├── UnknownArgument         (TypeError)     no such keyword argument
    │   ├── BadValue                (ValueError)    a value out of its range, a file that does not parse
    │   ├── BadAction               (TypeError)     an action of the wrong type, or a list of the wrong length
    │   ├── EpisodeOver             (RuntimeError)  step() without a running episode: after its end, before reset()
    │   └── MissingDependency       (ImportError)   an extra is not installed
    └── InfraError                  the machinery failed: never a reward
        ├── EnvFailed               an environment of a vector raised, hung, or died with its worker
        ├── GraderError             an answer could not be judged: over the time limit, or the grader died
        ├── EndpointError           a chat endpoint gave no usable answer, after all retries
        ├── SandboxError            a sandbox could not be started, or died under a program
        └── ToolError               a tool's server was down, died, or answered with nonsense; after all retries

The agent's mistakes are no exceptions: they are observations, with their reward and ``info["invalid"]``.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from typing import Any


class GemError(Exception):
    """The root: ``except GemError`` catches all that gem raises on purpose."""

    __str__ = Exception.__str__  # KeyError's would show the message in quotes


class CallerError(GemError):
    """The caller's mistake. The message names the value and the way out."""


class UnknownEnv(CallerError, KeyError):
    pass


class DuplicateEnv(CallerError, ValueError):
    pass


class UnknownArgument(CallerError, TypeError):
    pass


class BadValue(CallerError, ValueError):
    pass


class BadAction(CallerError, TypeError):
    pass


class EpisodeOver(CallerError, RuntimeError):
    pass


class MissingDependency(CallerError, ImportError):
    pass


class InfraError(GemError):
    """A grader, sandbox, server or worker failed. In a vector slot this ends the episode as failed, with reward NaN."""


class EnvFailed(InfraError):
    """An environment of a vector raised what it must not, hung past its time limit, or died with its worker."""


class GraderError(InfraError):
    """An answer could not be judged: it took longer than it may, or the grader died. It is neither right nor wrong."""


class EndpointError(InfraError):
    """A chat endpoint refused, was down or too slow, or answered with nonsense; after all retries."""


class SandboxError(InfraError):
    """A sandbox could not be started as asked, or its machinery died; what a program does in it is a Result."""


class ToolError(InfraError):
    """A tool could not do its work: its server was down, died or answered with nonsense, after all retries."""


def require(module: str, *, extra: str) -> Any:
    """Import an optional library.

    Returns the module. Raises MissingDependency with the pip line when it, or something it needs, is not installed.

    >>> require("json", extra="none").dumps([1])
    '[1]'
    """
    try:
        return importlib.import_module(module)
    except MissingDependency:
        raise  # the module asked for an extra of its own
    except ImportError as e:
        raise MissingDependency(
            f"{module} is needed here and could not be imported ({e}); pip install 'gem-llm[{extra}]'"
        ) from e


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """``"; did you mean 'x'?"`` for the closest known word, or an empty string.

    >>> did_you_mean("max_turn", ["max_turns", "min_number"])
    "; did you mean 'max_turns'?"
    >>> did_you_mean("zzz", ["max_turns"])
    ''
    """
    import difflib  # 5 ms that only a mistake pays

    close = difflib.get_close_matches(word, list(known), n=1)
    return f"; did you mean {close[0]!r}?" if close else ""
