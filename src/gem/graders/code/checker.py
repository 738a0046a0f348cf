"""Checkers: programs that decide whether an output is right, for tasks with several right outputs.

A checker is Python source in the dataset row, in one of two forms:

    program     reads the files sys.argv[1:4] (input, output, expected output) and exits with a code, as testlib's
                checkers do
    function    defines ``check(input, output, answer)``, which returns True or False, and does not use sys.argv

The exit code 0 accepts the output. 1 (wrong answer), 2 (presentation error), 4 (more output than expected) and 8
(unexpected end) reject it, and so does 7 (points), because the mark for a right output is not known. 3 (a fault of the
test) and other codes are failures. If the tests call a function, the three files hold the list of arguments, the return
value and the expected value as JSON; check() gets them as plain data.

A checker runs in the sandbox when the program has ended, in a run of its own, so that the program influences the
verdict by its output only. A failed assertion of a checker rejects the output. A checker that ends with another
exception, exceeds a limit or returns anything else raises GraderError: it says nothing about the program, so it gives
no reward.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace

from gem._internal.inbound import parse_python
from gem._internal.text import one_line, short_repr, shorten
from gem.errors import BadInput, BadValue, GraderError
from gem.sandbox import Limits, Sandbox, Status

ACCEPTED, REJECTED = (0,), (1, 2, 4, 7, 8)  # exit codes of testlib.h
CHECKER_CPU_S, CHECKER_WALL_S = 10.0, 60.0  # at least, however short the time limit of the task is
FILES = ("input.txt", "output.txt", "answer.txt")
_SHOWN = 200  # characters of a checker's error in a message
# Any exception would end the checker with 1, as a wrong answer does; so those that are no assertions end it with 3.
_RUN = """\
import json, runpy, sys, traceback

def read(name):
    with open(name, encoding="utf-8", errors="surrogateescape", newline="") as file:
        return file.read()

def call(decode):
    from checker import check
    verdict = check(*(decode(read(name)) for name in {files}))
    if verdict not in (True, False):
        raise TypeError(f"check() must return True or False, got {{verdict!r:.80}}")
    sys.exit(not verdict)

sys.argv[:] = ["checker.py", *{files}]
try:
    {form}
except (SystemExit, AssertionError):
    raise
except BaseException:
    traceback.print_exc()
    sys.exit(3)
"""
_PROGRAM, _CHECK_TEXT, _CHECK_VALUES = (
    _RUN.format(files=FILES, form=form)
    for form in ("runpy.run_path('checker.py', run_name='__main__')", "call(str)", "call(json.loads)")
)


@dataclass(frozen=True)
class Checker:
    """A checker of one task.

    Args:
        source: Python source.
        is_function: whether the source defines check().
    """

    source: str
    is_function: bool

    def accepts(
        self, given: str, output: str, answer: str, sandbox: Sandbox, limits: Limits, *, values: bool = False
    ) -> bool:
        """Return whether an output is right.

        Args:
            given, output, answer: the input, the output and the expected output.
            limits: limits of the program; the checker may use at least CHECKER_CPU_S.
            values: whether the three are JSON text of arguments, a return value and an expected value.

        Raises:
            GraderError: if the checker fails.
            SandboxError: if the sandbox fails.
        """
        run = _PROGRAM if not self.is_function else _CHECK_VALUES if values else _CHECK_TEXT
        files = {"checker.py": self.source, **dict(zip(FILES, (given, output, answer), strict=True))}
        limits = replace(
            limits,
            cpu_s=max(limits.cpu_seconds, CHECKER_CPU_S),
            wall_s=max(limits.wall_s, CHECKER_WALL_S),
            disk_bytes=limits.disk_bytes + sum(map(len, files.values())) * 4,  # bytes of a character, at most
        )
        result = sandbox.run(run, files=files, limits=limits)
        if result.exit_code in ACCEPTED + REJECTED and result.status in (Status.OK, Status.ERROR):
            return result.exit_code in ACCEPTED
        ended = result.stopped(limits) or f"exit code {result.exit_code}"
        error = shorten(one_line(result.stderr.strip().rpartition("\n")[2]), _SHOWN) or "no message"
        raise GraderError(f"the checker failed ({ended}) on the output {short_repr(output, 40)}: {error}")


def read_checker(source: object) -> Checker:
    r"""Return the checker with this source.

    Raises:
        BadValue: if the source is not Python, or neither reads sys.argv nor defines check().

    >>> read_checker("def check(input, output, answer):\n    return sorted(output) == sorted(answer)").is_function
    True
    """
    if not isinstance(source, str) or (tree := syntax_tree(source)) is None:
        raise BadValue(f"a checker must be Python source (testlib's C++ is not compiled), got {short_repr(source)}")
    names = {getattr(node, kind, None) for node in ast.walk(tree) for kind in ("id", "attr", "name")}
    defines = any(isinstance(node, ast.FunctionDef) and node.name == "check" for node in tree.body)
    if "argv" not in names and not defines:
        raise BadValue(
            "a checker must read the files in sys.argv[1:4] (input, output, expected output) or define "
            f"check(input, output, answer), got {short_repr(source)}"
        )
    return Checker(source, "argv" not in names)


def syntax_tree(source: str) -> ast.Module | None:
    """Return the syntax tree of a Python program, or None if it is not Python, or too long to parse."""
    try:
        return parse_python(source, "it")
    except BadInput:
        return None
