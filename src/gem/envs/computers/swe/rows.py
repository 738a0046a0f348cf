"""Rows in the format of SWE-bench and SWE-Gym: what each column must hold.

See the dataset cards of princeton-nlp/SWE-bench and SWE-Gym/SWE-Gym. Columns that are not named here are not read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gem._internal.inbound import loads
from gem._internal.text import short_repr
from gem.errors import BadValue

_ID = re.compile(r"[A-Za-z0-9][\w.+-]*")
_REPO = re.compile(r"\w[\w.+-]*(/\w[\w.+-]*)?")
_COMMIT = re.compile(r"[0-9a-f]{7,64}")
_CHANGED = re.compile(r"^diff --git a/(.+?) b/(.+)$", re.MULTILINE)


@dataclass(frozen=True)
class SweRow:
    """One issue of a repository.

    Args:
        instance_id, repo, base_commit, problem_statement, hints_text, version, environment_setup_commit: as in the row;
            "" for an optional one that is missing.
        patch: the reference solution.
        test_patch: the change of the tests; may be empty.
        fail_to_pass, pass_to_pass: names of the tests that must pass.
        test_command: bash source that runs the tests, from ``test_cmd``; "" if the row has none.
        files_follow: whether the files of test_patch are arguments at the end of the command.
        log_parser: how the output of the tests is read; "" if the row does not say.
    """

    instance_id: str
    repo: str
    base_commit: str
    problem_statement: str
    patch: str
    test_patch: str
    fail_to_pass: tuple[str, ...]
    pass_to_pass: tuple[str, ...]
    hints_text: str = ""
    version: str = ""
    environment_setup_commit: str = ""
    test_command: str = ""
    files_follow: bool = False
    log_parser: str = ""


def read_row(row: Mapping[str, Any]) -> SweRow:
    """Check a row. Raises BadValue, which names the column, what it must hold, and what it holds."""
    settings = _settings(row)
    command = _command("test_cmd", row.get("test_cmd"))
    install_command = _command("install_config.test_cmd", settings.get("test_cmd"))
    parser = settings.get("log_parser", row.get("log_parser"))
    if parser is not None and not isinstance(parser, str):
        raise _wrong("log_parser", "must be text", parser)
    fail_to_pass = _names(row, "FAIL_TO_PASS")
    if not fail_to_pass:
        raise BadValue("the column 'FAIL_TO_PASS' must name at least one test")
    return SweRow(
        instance_id=_matching(row, "instance_id", _ID, "a name like 'owner__name-1'"),
        repo=_matching(row, "repo", _REPO, "a name like 'owner/name'"),
        base_commit=_matching(row, "base_commit", _COMMIT, "a commit, 7 to 64 hexadecimal digits"),
        problem_statement=_text(row, "problem_statement", needed=True),
        patch=_diff(row, "patch", needed=True),
        test_patch=_diff(row, "test_patch", needed=False),
        fail_to_pass=fail_to_pass,
        pass_to_pass=_names(row, "PASS_TO_PASS"),
        hints_text=_text(row, "hints_text"),
        version=_text(row, "version"),
        environment_setup_commit=_text(row, "environment_setup_commit"),
        test_command=command or install_command,
        files_follow=not command,
        log_parser=parser or "",
    )


def changed_paths(diff: str) -> tuple[str, ...]:
    """Return the paths that a diff changes, creates, removes or renames.

    >>> changed_paths("diff --git a/x.py b/x.py")
    ('x.py',)
    """
    return tuple(dict.fromkeys(path for pair in _CHANGED.findall(diff) for path in pair))


def _wrong(column: str, wanted: str, value: Any) -> BadValue:
    return BadValue(f"the column {column!r} {wanted}, got {short_repr(value, 80)}")


def _present(row: Mapping[str, Any], column: str) -> Any:
    if column not in row:
        raise BadValue(f"the column {column!r} is missing; the row has {', '.join(map(repr, row)) or 'none'}")
    return row[column]


def _text(row: Mapping[str, Any], column: str, *, needed: bool = False) -> str:
    """Return the text of a column; "" for an optional one that is missing or None."""
    value = _present(row, column) if needed else row.get(column)
    if value is None and not needed:
        return ""
    if not isinstance(value, str) or (needed and not value.strip()):
        raise _wrong(column, "must be text", value)
    return value


def _matching(row: Mapping[str, Any], column: str, pattern: re.Pattern[str], wanted: str) -> str:
    value = _text(row, column, needed=True)
    if not pattern.fullmatch(value):
        raise _wrong(column, f"must be {wanted}", value)
    return value


def _diff(row: Mapping[str, Any], column: str, *, needed: bool) -> str:
    _present(row, column)
    value = _text(row, column, needed=needed)
    if value.strip() and not _CHANGED.search(value):
        raise _wrong(column, "must be a diff that git made, with lines like 'diff --git a/x.py b/x.py'", value)
    if outside := [path for path in changed_paths(value) if path.startswith("/") or ".." in path.split("/")]:
        raise _wrong(column, "must change files of the repository", outside[0])
    return value if value.endswith("\n") or not value else f"{value}\n"


def _names(row: Mapping[str, Any], column: str) -> tuple[str, ...]:
    """Return the names of tests in a list, or in the JSON of one."""
    value = _present(row, column)
    if isinstance(value, str):
        try:
            value = loads(value, "it")
        except ValueError:
            raise _wrong(column, "must be a list of tests, or the JSON of one", value) from None
    if not isinstance(value, (list, tuple)) or not all(isinstance(name, str) and name.strip() for name in value):
        raise _wrong(column, "must be a list of tests, or the JSON of one", value)
    return tuple(value)


def _settings(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return install_config, which may be JSON."""
    value = row.get("install_config")
    if isinstance(value, str) and value.strip():
        try:
            value = loads(value, "it")
        except ValueError:
            raise _wrong("install_config", "must be an object, or the JSON of one", value) from None
    if value is not None and not isinstance(value, (Mapping, str)):
        raise _wrong("install_config", "must be an object, or the JSON of one", value)
    return value if isinstance(value, Mapping) else {}


def _command(column: str, value: Any) -> str:
    if value is None:
        return ""
    lines = [value] if isinstance(value, str) else value
    if not isinstance(lines, (list, tuple)) or not all(isinstance(line, str) for line in lines):
        raise _wrong(column, "must be a command, or a list of commands", value)
    return " && ".join(line for line in lines if line.strip())
