r"""Programming tasks: write a program, and tests judge it.

Action       text holding a fenced block of Python; the last one marked as Python, or as nothing, is the program.
Observation  the task, with the way to answer; after the answer, how the tests went.
Reward       1.0 where every test is passed, else 0.0; with ``reward="fraction"``, the share of tests passed. -0.1 for
             an answer without a program.
Ends         terminated on the answer, whatever it is.
Tests        the task's own; gem.graders.code_tests says in which forms, gem.graders.code_compare what passes. They run
             in a sandbox that no expected output enters, in an order of their own for every episode.

``info["correct"]`` says whether all tests were passed, ``info["tests"]`` how each went, in the data set's order.

>>> rows = [{"problem": "Print the sum of two integers.", "tests": {"inputs": ["1 2"], "outputs": ["3"]}}]
>>> prompt, info = CodeEnv(dataset=rows).reset(seed=0)
>>> prompt.split("\n")[0], info
('Print the sum of two integers.', {'idx': 0})
"""

from __future__ import annotations

import json
from typing import Any

from gem.core import position_of
from gem.datasets import Row
from gem.envs.dataset_env import DatasetEnv
from gem.envs.spoiled import spoiled_program
from gem.errors import BadValue
from gem.graders import Grade
from gem.graders.code import CodeGrader, Reward
from gem.graders.code_tests import Suite, read_tests
from gem.parsing import code_blocks
from gem.sandbox import Limits, Sandbox, get_sandbox
from gem.sandbox.choose import PUBLISHED_NAMES
from gem.seeding import derive

# The published default names, and what data sets have where they do not use them.
PROBLEM, TESTS = "problem", "tests"
_PROBLEMS = (PROBLEM, "question", "description", "prompt", "problem_statement")
_TESTS = (TESTS, "input_output", "verification_info", "test_cases")
_SPLIT_TESTS = ("public_tests", "private_tests", "generated_tests")  # of CodeContests; they belong together
_PYTHON = ("", "python", "python3", "py")
TELLING = 8  # characters of an expected output that nobody writes by chance


class CodeEnv(DatasetEnv):
    """See the module docstring. The arguments before the asterisk are the published ones.

    Args:
        dataset_name, split, dataset, seed, shuffle, skip_bad_rows, streaming: see DatasetEnv.
        question_key, test_key: columns of the task's text and of its tests. The defaults also find "question",
            "description", "prompt" and "problem_statement"; and "input_output", "verification_info", "test_cases", and
            "public_tests" with "private_tests" and "generated_tests".
        max_workers, verbose: without effect; how many tests run at once is the sandbox's business.
        max_tests, reward, early_exit: see CodeGrader. info["tests"] tells of the tests chosen.
        sandbox_type: a Sandbox, or a name that get_sandbox takes; "bwrap" is "bubblewrap", and "none" is "subprocess",
            which contains nothing.
        timeout: seconds of wall clock for each test.
        memory_bytes: for each test.

    Raises BadValue for a value out of its range.
    """

    answer_format = "put the program into a fenced block that opens with ```python and closes with ```."

    # For subclasses that set what they know themselves and never call __init__, as other people's do.
    max_tests: int = 12
    sandbox_type: str | Sandbox = "auto"
    reward: Reward = "all"
    early_exit: bool | None = None
    limits: Limits = Limits()

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
        """Where programs run. Raises SandboxError."""
        if isinstance(self.sandbox_type, Sandbox):
            return self.sandbox_type
        return get_sandbox(PUBLISHED_NAMES.get(self.sandbox_type, self.sandbox_type))

    def open(self, row: Row) -> str:
        self.problem = str(row[_column(row, self.question_key, PROBLEM, _PROBLEMS)]).strip()
        self.tests = _tests_of(row, self.test_key)
        starter = str(row.get("starter_code") or "").strip("\n")
        return f"{self.problem}\n\n{how_to_answer(read_tests(self.tests), starter, self.limits)}"

    def judge(self, action: str) -> Grade | None:
        program = program_in(action)
        return None if program is None else self.grade(program)

    def grade(self, program: str) -> Grade:
        """Run a program against the tests of the open task. Raises SandboxError."""
        seed, episode = position_of(self)
        order = derive(seed or 0, episode, "tests")
        return self.grader().grade(program, read_tests(self.tests), self.sandbox(), seed=order)

    def spoiled(self, action: str) -> str:
        return fenced(spoiled_program(program_in(action) or "", read_tests(self.tests).function))

    def _check_correct(self, model_code: str) -> bool:
        """A published name: whether a program passes ``self.tests``."""
        return self.grade(model_code).correct

    def secrets(self) -> list[str]:
        """What the tests expect, where it is too long to be met by chance and no example of the task's own."""
        tests = read_tests(self.tests).longest(self.max_tests).tests
        expected = [value if isinstance(value, str) else json.dumps(value) for t in tests for value in t.accepted]
        return [text.strip() for text in expected if len(text) >= TELLING and text.strip() not in self.problem]

    def sample_random_action(self) -> str:
        """A program that prints, or returns, a small number, whatever it is asked."""
        function, number = read_tests(self.tests).function, self.action_rng.randint(0, 9)
        if function is None:
            return fenced(f"print({number})")
        return fenced(f"def {function.rpartition('.')[2]}(*arguments):\n    return {number}")


def program_in(action: str) -> str | None:
    r"""The program in an answer: its last fenced block that is marked as Python or as nothing. None without one.

    >>> program_in("```python\nprint(1)\n```\nIt prints:\n```text\n1\n```\n")
    'print(1)\n'
    """
    programs = [block.code for block in code_blocks(action) if block.language in _PYTHON]
    return programs[-1] if programs and programs[-1].strip() else None


def fenced(program: str) -> str:
    return f"```python\n{program.strip(chr(10))}\n```"


def how_to_answer(suite: Suite, starter: str, limits: Limits) -> str:
    """What the prompt says after the task."""
    if suite.function is None:
        asked = "Write a Python 3 program that reads standard input and prints the answer to standard output."
    else:
        asked = f"Write a Python 3 function `{suite.function}`; it is called with the arguments and returns the answer."
    given = f" Start from:\n{fenced(starter)}\n" if starter else " "
    return (
        f"{asked} Hidden tests judge it, each within {limits.wall_s:g} seconds.{given}"
        "Put all of it into one fenced block, the last one of your answer:\n```python\n# your program\n```"
    )


def _column(row: Row, key: str, default: str, known: tuple[str, ...]) -> str:
    """The column that a key names; where the key is the default, whichever known one the row has."""
    for name in known if key == default else (key,):
        if row.get(name):
            return name
    raise BadValue(f"this row has no {key!r}; its columns are {', '.join(map(repr, row))}")


def _tests_of(row: Row, key: str) -> Any:
    if key == TESTS and not any(row.get(name) for name in _TESTS):
        together = {name: row[name] for name in _SPLIT_TESTS if row.get(name)}
        if together:
            return together
    return row[_column(row, key, TESTS, _TESTS)]
