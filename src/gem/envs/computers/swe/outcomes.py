"""The command that runs the tests of a row, and what its output says about each test."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from gem.envs.computers.swe.rows import SweRow, changed_paths
from gem.errors import BadValue, did_you_mean, require

NOT_TESTS = (".json", ".png", ".csv", ".txt", ".md", ".jpg", ".jpeg", ".pkl", ".yml", ".yaml", ".toml")
PASSED, FAILED = "PASSED", "FAILED"
# Statuses of pytest -rA and of unittest -v. An expected failure is a success, as in SWE-bench.
_STATUSES = {"PASSED": PASSED, "XFAIL": PASSED, "FAILED": FAILED, "ERROR": FAILED, "XPASS": FAILED}
_SUMMARY = "short test summary info"
_PYTEST = re.compile(rf"^({'|'.join(_STATUSES)})\s+(\S.*?)\s*$")
_UNITTEST = re.compile(
    r"^(\w+) \(([\w.]+)\)(?:\n[^\n]*?)?? \.\.\. (?:.*?)(ok|expected failure|FAIL|ERROR)$", re.MULTILINE
)

Outcomes = Mapping[str, str]  # test → PASSED or FAILED


def run_of(row: SweRow) -> tuple[str, Callable[[str], Outcomes]]:
    """Return the command that runs the tests of a row, and the function that reads its output.

    A row without a command gets both from the tables of the package swebench, by its repository and version.

    Raises:
        BadValue: the row has an unknown log_parser, or no command and the tables have no row for it.
        MissingDependency: the package is needed and not installed.
    """
    if row.test_command:
        files = shlex.join(files_of_tests(row.test_patch)) if row.files_follow else ""
        return f"{row.test_command} {files}".strip(), named_parser(row.log_parser)
    specs = require("swebench.harness.constants", extra="swe").MAP_REPO_VERSION_TO_SPECS
    spec = specs.get(row.repo, {}).get(row.version)
    if spec is None:
        raise BadValue(
            f"{row.instance_id} has no 'test_cmd' or 'install_config', and the package swebench knows no command for "
            f"version {row.version!r} of {row.repo!r}"
        )
    directives = require("swebench.harness.test_spec.python", extra="swe").get_test_directives(
        {"repo": row.repo, "test_patch": row.test_patch}
    )
    command = spec["test_cmd"] if isinstance(spec["test_cmd"], str) else " && ".join(spec["test_cmd"])
    parsers = require("swebench.harness.log_parsers", extra="swe").MAP_REPO_TO_PARSER
    lines = [*spec.get("eval_commands", ()), f"{command} {shlex.join(directives)}".strip()]
    return "\n".join(lines), _published(parsers[row.repo])


def files_of_tests(test_patch: str) -> list[str]:
    """Return the files of a diff that can be tests."""
    return [path for path in changed_paths(test_patch) if not path.endswith(NOT_TESTS)]


def named_parser(name: str) -> Callable[[str], Outcomes]:
    """Return the function with the name of a parser of the package swebench.

    "" and "parse_log_pytest" mean read_outcomes(). Raises BadValue for an unknown name.
    """
    if name in ("", "parse_log_pytest", "parse_log_pytest_v2"):
        return read_outcomes
    parsers = require("swebench.harness.log_parsers", extra="swe")
    known = {value.__name__: value for value in parsers.MAP_REPO_TO_PARSER.values()}
    if name not in known:
        raise BadValue(f"no log_parser {name!r}{did_you_mean(name, known)}  (available: {', '.join(sorted(known))})")
    return _published(known[name])


def _published(parser: Callable[[str, Any], Mapping[str, str]]) -> Callable[[str], Outcomes]:
    """Wrap a parser of the package swebench."""
    return lambda output: {test: _STATUSES.get(status, "") for test, status in parser(output, None).items()}


def read_outcomes(output: str) -> Outcomes:
    r"""Read the output of ``pytest -rA`` or ``unittest -v``.

    A test has passed if a line after the last summary of pytest says so, or any line if there is no summary, and no
    line at all says that it failed: what a test prints does not make a failed one pass.

    >>> read_outcomes("PASSED a.py::x\n=== short test summary info ===\nFAILED a.py::x - assert 0\nPASSED a.py::y")
    {'a.py::x': 'FAILED', 'a.py::y': 'PASSED'}
    """
    found: dict[str, str] = {}
    counted = output.rpartition(_SUMMARY)[2]
    for text, wanted in ((counted, PASSED), (output, FAILED)):
        found |= {name: status for name, status in _results(text) if status == wanted}
    return dict(sorted(found.items()))


def _results(output: str) -> Iterator[tuple[str, str]]:
    for line in output.splitlines():
        if match := _PYTEST.match(line):
            word, name = match.groups()
            yield (name if word == PASSED else name.split(" - ", 1)[0]), _STATUSES[word]
    for match in _UNITTEST.finditer(output):
        function, place, word = match.groups()
        status = PASSED if word in ("ok", "expected failure") else FAILED
        for name in (place, place.removesuffix(f".{function}")):  # Python 3.11 also writes the function
            yield f"{function} ({name})", status
