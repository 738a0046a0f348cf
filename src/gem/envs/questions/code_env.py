r"""Programming tasks: write a program that passes hidden tests.

Action       text with a fenced code block; the program is the last block labeled as Python or without a label.
Observation  the task with the answer format on reset; a summary of the test results after the answer.
Reward       1.0 if every test passes, else 0.0; with ``reward="fraction"``, the fraction of tests passed. -0.1 for an
             answer without a program.
Ends         terminated after one answer.
Tests        part of the dataset row. gem.graders.code.tests lists the accepted formats, and gem.graders.code.compare
             defines when an output is correct, unless the row has a "checker" (gem.graders.code.checker). The tests run
             in a sandbox, in a random order that changes with each episode. Expected outputs never enter the sandbox of
             the program.
Imports      a program whose function is called by the tests need not import the modules typing, string, re, datetime,
             collections, heapq, bisect, copy, math, random, statistics, itertools, functools, operator, io, sys and
             json, nor names in them such as List, Counter or inf. ListNode and TreeNode are not defined, because
             arguments and return values are plain data. A program that reads stdin imports what it uses.
Integers     programs convert integers of any length to and from text, without Python's limit of 4,300 digits.

``info["correct"]`` is True if all tests passed. ``info["tests"]`` lists the status of each test, in dataset order, as
does ``info["checks"]``.

>>> rows = [{"problem": "Print the sum of two integers.", "tests": {"inputs": ["1 2"], "outputs": ["3"]}}]
>>> prompt, info = CodeEnv(dataset=rows).reset(seed=0)
>>> prompt.split("\n")[0], info
('Print the sum of two integers.', {'idx': 0})
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from gem._internal.inbound import loads
from gem._internal.json_codec import dumps
from gem.core import position_of
from gem.datasets import Row
from gem.envs.dataset_env import DatasetEnv, bad_column, text_in
from gem.envs.questions.corrupted import corrupt_program
from gem.errors import BadValue
from gem.graders import Grade
from gem.graders.code.checker import syntax_tree
from gem.graders.code.grader import CodeGrader, Reward
from gem.graders.code.tests import OPTIONS, SPLIT_TESTS, Suite, read_tests
from gem.graders.gold_audit import suite_error
from gem.parsing import code_blocks, outside_thinking
from gem.sandbox import Limits, Sandbox, get_sandbox
from gem.sandbox.factory import backend_of_published_name
from gem.seeding import derive

# The published default column names, and the names that common datasets use instead.
PROBLEM, TESTS = "problem", "tests"
_PROBLEMS = (PROBLEM, "question", "description", "prompt", "problem_statement", "question_content")
_TESTS = (TESTS, "input_output", "verification_info", "test_cases")
_SOLUTIONS = ("solution", "gold_standard_solution", "solutions")  # columns of correct programs
_PYTHON = ("", "python", "python3", "py")
MIN_SECRET_LENGTH = 8  # characters; shorter expected outputs can occur in a prompt by coincidence


class CodeEnv(DatasetEnv):
    """See the module docstring. The positional arguments are those of the published class, in the same order.

    Args:
        dataset_name, split, dataset, seed, shuffle, skip_bad_rows, streaming: see DatasetEnv.
        question_key: column of the task statement. The default also finds "question", "description", "prompt",
            "problem_statement" and "question_content".
        test_key: column of the tests. The default also finds "input_output", "verification_info", "test_cases", the
            columns "public_tests", "private_tests" and "generated_tests" of CodeContests, and "public_test_cases" and
            "private_test_cases" of LiveCodeBench.
        max_workers, verbose: have no effect. The sandbox decides how many tests run at once.
        max_tests, reward, early_exit: see CodeGrader. info["tests"] lists only the tests selected by max_tests.
        sandbox_type: a Sandbox, or a backend name for get_sandbox(). "bwrap" means "bubblewrap". "none" means
            "subprocess", which does not isolate programs.
        timeout: CPU seconds per test; see CodeGrader.limits.
        memory_bytes: memory limit per test.

    Raises:
        BadValue: if a value is out of range.
    """

    ignored_kwargs: ClassVar[Mapping[str, str]] = {
        "max_workers": "the sandbox decides how many tests run at once",
        "verbose": "info['tests'] has the results",
    }
    answers_in_fences = True
    answer_format = "put the program in a fenced code block that starts with ```python and ends with ```."

    # Defaults for published-style subclasses that do not call __init__.
    max_tests: int = 12
    sandbox_type: str | Sandbox = "auto"
    reward: Reward = "all"
    early_exit: bool | None = None
    limits: Limits = Limits()
    _suite: tuple[Any, Suite] | None = None  # the tests that suite() read last

    def __init__(
        self,
        dataset_name: str = "",
        split: str | None = None,
        dataset: Any = None,
        question_key: str = PROBLEM,
        test_key: str = TESTS,
        seed: int | None = None,
        max_workers: int = 5,
        max_tests: int = 12,
        verbose: bool = False,
        sandbox_type: str | Sandbox = "auto",
        *,
        shuffle: bool = True,
        skip_bad_rows: bool | None = None,
        streaming: bool = False,
        reward: Reward = "all",
        early_exit: bool | None = None,
        timeout: float = 10.0,
        memory_bytes: int = 1 << 30,
    ) -> None:
        self.question_key, self.test_key, self.sandbox_type = question_key, test_key, sandbox_type
        self.max_workers, self.max_tests, self.verbose = max_workers, max_tests, verbose
        self.reward, self.early_exit = reward, early_exit
        self.limits = Limits(wall_s=timeout, memory_bytes=memory_bytes)
        self.grader()
        super().__init__(
            dataset_name, split, dataset, seed=seed, shuffle=shuffle, skip_bad_rows=skip_bad_rows, streaming=streaming
        )

    def grader(self) -> CodeGrader:
        return CodeGrader(reward=self.reward, early_exit=self.early_exit, max_tests=self.max_tests, limits=self.limits)

    def sandbox(self) -> Sandbox:
        """Return the sandbox that runs the programs.

        Raises:
            SandboxError: if the sandbox is not available on this machine, or "auto" finds no isolation on it.
        """
        if isinstance(self.sandbox_type, Sandbox):
            return self.sandbox_type
        return get_sandbox(backend_of_published_name(self.sandbox_type))

    def open(self, row: Row) -> str:
        self.problem = text_in(row, _column(row, self.question_key, PROBLEM, _PROBLEMS))
        self.tests = _tests_of(row, self.test_key)
        starter = str(row.get("starter_code") or "").strip("\n")
        try:
            suite = self.suite()
        except (BadValue, RecursionError) as e:
            raise BadValue(f"{_test_columns(row, self.test_key)} cannot be read: {e}") from e
        return f"{self.problem}\n\n{how_to_answer(suite, starter, self.limits)}"

    def suite(self) -> Suite:
        """Return the tests of the current task. They are read once, because some datasets have megabytes per task."""
        if self._suite is None or self._suite[0] is not self.tests:
            self._suite = self.tests, read_tests(self.tests)
        return self._suite[1]

    def grade_action(self, action: str) -> Grade | None:
        program = program_in(action)
        return None if program is None else self.grade(program)

    def grade(self, program: str) -> Grade:
        """Run the tests of the current task on a program and return its grade.

        Raises:
            SandboxError: if the sandbox fails.
            GraderError: if the checker of the row fails.
        """
        seed, episode = position_of(self)
        order = derive(seed or 0, episode, "tests")
        return self.grader().grade(program, self.suite(), self.sandbox(), seed=order)

    def row_error(self) -> str | None:
        """Return why no program passes the tests of the open task, or why every program does; otherwise None."""
        suite = self.suite().longest(self.max_tests)
        error = suite_error(suite)
        if error is None and suite.checker is not None:
            error = self.grader().checker_error(suite, self.sandbox())
        return None if error is None else f"{_test_columns(self.row, self.test_key)} cannot grade a program: {error}"

    def gold_action(self) -> str | None:
        program = _solution_in(self.row)
        return None if program is None else fenced(program)

    def corrupted(self, action: str) -> str | None:
        if self.suite().checker is not None:  # which may accept additional output
            return None
        return fenced(corrupt_program(program_in(action) or "", self.suite().function))

    def _check_correct(self, model_code: str) -> bool:
        """Return whether a program passes ``self.tests`` (a method of the published class)."""
        return self.grade(model_code).correct

    def secrets(self) -> list[str]:
        """Return the expected outputs that must not appear in the prompt.

        Outputs of fewer than 8 characters and outputs that the task statement contains are left out.
        """
        tests = self.suite().longest(self.max_tests).tests
        expected = [value if isinstance(value, str) else dumps(value) for t in tests for value in t.accepted]
        return [
            text.strip() for text in expected if len(text) >= MIN_SECRET_LENGTH and text.strip() not in self.problem
        ]

    def sample_random_action(self) -> str:
        """Return a program that prints or returns a random digit, regardless of the task."""
        function, number = self.suite().function, self.action_rng.randint(0, 9)
        if function is None:
            return fenced(f"print({number})")
        return fenced(f"def {function.rpartition('.')[2]}(*arguments):\n    return {number}")


def program_in(action: str) -> str | None:
    r"""Return the last fenced code block outside of thinking that is labeled as Python or has no label.

    Returns None if there is no such block or the last such block is blank.

    >>> program_in("```python\nprint(1)\n```\nIt prints:\n```text\n1\n```\n")
    'print(1)\n'
    """
    programs = _programs(outside_thinking(action))
    if not programs and "think>" in action:  # the tag may be a string of the program
        blocks = {block.code for block in code_blocks(action) if "think>" in block.code}
        masked = action
        for code in blocks:
            masked = masked.replace(code, code.replace("think>", "think\0>"))
        programs = [code.replace("think\0>", "think>") for code in _programs(outside_thinking(masked))]
    return programs[-1] if programs and programs[-1].strip() else None


def _programs(text: str) -> list[str]:
    return [block.code for block in code_blocks(text) if block.language in _PYTHON]


def fenced(program: str) -> str:
    return f"```python\n{program.strip(chr(10))}\n```"


def how_to_answer(suite: Suite, starter: str, limits: Limits) -> str:
    """Return the part of the prompt that follows the task statement."""
    if suite.function is None:
        request = "Write a Python 3 program that reads from standard input and prints the answer to standard output."
    else:
        request = f"Write a Python 3 function `{suite.function}` that takes the arguments and returns the answer."
    start = f" Start from this code:\n{fenced(starter)}\n" if starter else " "
    return (
        f"{request} It is graded by hidden tests, each with a time limit of {limits.wall_s:g} seconds.{start}"
        "Put the whole program in one fenced code block, the last one in your answer:\n```python\n# your program\n```"
    )


def _column(row: Row, key: str, default: str, known: tuple[str, ...]) -> str:
    """Return ``key``, or for the default key the first known column that is not empty in the row.

    Raises BadValue if the row has no such column.
    """
    names = known if key == default else (key,)
    if found := [name for name in names if row.get(name)]:
        return found[0]
    option = "question_key" if default == PROBLEM else "test_key"
    raise bad_column(row, next((name for name in names if name in row), key), option, "must not be empty")


def _tests_of(row: Row, key: str) -> Any:
    options = {name: row[name] for name in OPTIONS if row.get(name)}
    if key == TESTS and not any(row.get(name) for name in _TESTS):
        together = {name: row[name] for name in SPLIT_TESTS if row.get(name)}
        if together:
            return {**options, **together, "metadata": row.get("metadata")}
    tests = row[_column(row, key, TESTS, _TESTS)]
    return {**options, TESTS: tests} if options else tests


def _test_columns(row: Row, key: str) -> str:
    """Return the tests and the names of their columns, for messages."""
    known = (*_TESTS, *SPLIT_TESTS) if key == TESTS else (key,)
    names = [repr(name) for name in (*known, *OPTIONS) if row.get(name)]
    return f"the tests in the column{'s' * (len(names) > 1)} {' and '.join(names)}"


def _solution_in(row: Row) -> str | None:
    """Return the first correct program of a row that is Python, or None."""
    programs = next((row[name] for name in _SOLUTIONS if row.get(name)), None)
    if isinstance(programs, str) and programs.startswith("["):  # JSON text of a list, as in APPS and TACO
        with contextlib.suppress(ValueError):
            programs = loads(programs, "programs", long_integers=True)
    if isinstance(programs, Mapping):  # as in CodeContests
        programs = programs.get("solution")
    if isinstance(programs, str):
        programs = [programs]
    for text in programs if isinstance(programs, Sequence) else []:
        program = isinstance(text, str) and (program_in(text) or text)
        if program and syntax_tree(program) is not None:
            return program
    return None
