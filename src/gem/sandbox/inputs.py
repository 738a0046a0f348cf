"""What a run is given: the job, with checks of its files and its command."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from gem.errors import BadValue
from gem.sandbox.results import Files, Limits


@dataclass(frozen=True, kw_only=True)
class Job:
    """A program or a command to run. Sandbox.run(), exec() and run_tests() build it, and backends execute it.

    Args:
        limits: limits of the run, or of each test.
        program: Python source; not used if there is a command.
        command: arguments of a command; empty to run the program.
        function: name of the function that each test calls; None runs the program as a script.
        stdin: the complete standard input of a run.
        files: files to create in the working directory: relative path → content.
    """

    limits: Limits
    program: str | bytes = ""
    command: Sequence[str] = ()
    function: str | None = None
    stdin: str | bytes = ""
    files: Mapping[str, bytes] = field(default_factory=dict)


def as_bytes(text: str | bytes) -> bytes:
    return text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text


def as_base64(data: str | bytes) -> str:
    """Encode as base64, because JSON cannot hold bytes and some JSON parsers reject lone surrogates."""
    return base64.b64encode(as_bytes(data)).decode()


def command_arguments(command: str | Sequence[str]) -> list[str]:
    """Return a command as a list of arguments. A string becomes ["/bin/sh", "-c", command].

    Raises:
        BadValue: if the list is empty, or if an argument is not a string or contains NUL.
    """
    arguments = ["/bin/sh", "-c", command] if isinstance(command, str) else list(command)
    if not arguments or any(not isinstance(argument, str) or "\0" in argument for argument in arguments):
        raise BadValue(f"command must be a shell line or a list of strings without NUL, got {command!r}")
    return arguments


def checked_files(files: Files | None) -> dict[str, bytes]:
    """Return the files with their contents as bytes; an empty dict for None.

    Raises:
        BadValue: if a path is absolute or empty, or contains ".." or NUL.
    """
    for path in files or {}:
        if not path or "\0" in path or ".." in PurePosixPath(path).parts or PurePosixPath(path).is_absolute():
            raise BadValue(f"file paths must be relative and must not contain '..', got {path!r}")
    return {path: as_bytes(content) for path, content in (files or {}).items()}
