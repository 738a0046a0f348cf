"""Checkers: programs that decide whether an output is right, for tasks with several right outputs.

A checker is Python source in the dataset row, in one of two forms:

    program     reads the files sys.argv[1:4] (input, output, expected output), in testlib's order, and exits with one of
                testlib's codes: 0 accepts the output; 1 (wrong answer), 2 (presentation error), 4 (more output than
                expected) and 8 (unexpected end) reject it. 7 (points) rejects it as well, because the mark for a right
                output is not known. 3 (the checker found a fault of the test) and other codes are failures.
    function    defines ``check(input, output, answer)`` and does not use sys.argv; the function returns True or False

If the tests call a function, the three are the list of arguments, the return value and the expected value: JSON text for
a program, plain data for check().

A checker runs in the sandbox when the run of the program has ended, in a run of its own, so that a program influences the
verdict by its output only. A checker that crashes, exceeds a limit or returns anything else raises GraderError: a faulty
checker says nothing about the program, so it gives no reward.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace

from gem._internal.text import one_line, short_repr, shorten
from gem.errors import BadValue, GraderError
from gem.sandbox import Limits, Sandbox, Status

ACCEPTED, REJECTED = (0,), (1, 2, 4, 7, 8)  # exit codes of testlib.h
CHECKER_CPU_S, CHECKER_WALL_S = 10.0, 60.0  # at least, however short the time limit of the task is
FILES = ("input.txt", "output.txt", "answer.txt")
_SHOWN = 200  # characters of a checker's errors in a message
# An exception would end the checker with 1, as a wrong answer does; so it ends with 3.
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
except SystemExit:
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
        contents = zip(FILES, (given, output, answer), strict=True)
        limits = replace(
            limits, cpu_s=max(limits.cpu_seconds, CHECKER_CPU_S), wall_s=max(limits.wall_s, CHECKER_WALL_S)
        )
        result = sandbox.run(run, files={"checker.py": self.source, **dict(contents)}, limits=limits)
        if result.exit_code in ACCEPTED + REJECTED and result.status in (Status.OK, Status.ERROR):
            return result.exit_code in ACCEPTED
        ended = result.stopped(limits) or f"exit code {result.exit_code}"
        said = shorten(one_line(result.stderr[-_SHOWN:]), _SHOWN)
        raise GraderError(f"the checker failed ({ended}) on the output {short_repr(output, 40)}: {said}")


def read_checker(source: object) -> Checker:
    """Return the checker with this source.

    Raises:
        BadValue: if the source is not Python, or neither reads sys.argv nor defines check().

    >>> read_checker("def check(input, output, answer):\\n    return sorted(output) == sorted(answer)").is_function
    True
    """
    try:
        if not isinstance(source, str):
            raise SyntaxError("not text")
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as e:
        raise BadValue(f"a checker must be Python source ({e}), got {short_repr(source)}") from e
    names = {node.attr if isinstance(node, ast.Attribute) else node.id for node in ast.walk(tree) if _is_name(node)}
    names |= {alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names}
    defines = any(isinstance(node, ast.FunctionDef) and node.name == "check" for node in tree.body)
    if "argv" not in names and not defines:
        raise BadValue(
            "a checker must read the files in sys.argv[1:4] (input, output, expected output) or define "
            f"check(input, output, answer), got {short_repr(source)}"
        )
    return Checker(source, "argv" not in names)


def _is_name(node: ast.AST) -> bool:
    return isinstance(node, (ast.Name, ast.Attribute))
