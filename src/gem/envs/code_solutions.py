"""Reference solutions, and wrong ones, for the programming tasks in envs/data/code.

``NAME.jsonl`` holds the tasks of a built-in dataset, ``NAME_solutions.md`` programs for each of them, with the heading
``## task id`` above the programs of a task and ``### correct: comment`` or ``### wrong: comment`` above each program.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from gem.envs.code_env import CodeEnv, fenced
from gem.envs.dataset_env import DATA
from gem.errors import BadValue
from gem.parsing import code_blocks

_TASK, _PROGRAM = re.compile(r"^## (.+)\n", re.MULTILINE), re.compile(r"^### (correct|wrong): (.+)\n", re.MULTILINE)


@dataclass(frozen=True)
class Solution:
    """A program for a built-in task.

    Args:
        task: id of the task's row.
        correct: whether it passes the tests of the task.
        comment: the approach, or what is wrong with it.
        source: the program.
    """

    task: str
    correct: bool
    comment: str
    source: str


@cache
def solutions(name: str) -> tuple[Solution, ...]:
    """Solutions for a built-in dataset, "warmup" or "mini", in the order of the file."""
    _, *sections = _TASK.split((DATA / "code" / f"{name}_solutions.md").read_text(encoding="utf-8"))
    found = []
    for task, section in zip(sections[::2], sections[1::2], strict=True):
        _, *parts = _PROGRAM.split(section)
        for word, comment, text in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
            found.append(Solution(task, word == "correct", comment, code_blocks(text)[0].code))
    return tuple(found)


def reference(task: str) -> str:
    """The first correct solution of a built-in task.

    Args:
        task: id of the task's row.

    Raises:
        BadValue: if no built-in dataset has a solution for this task.
    """
    if task not in _references():
        raise BadValue(f"no reference solution for task {task!r}")
    return _references()[task]


@cache
def _references() -> dict[str, str]:
    known = [solution for name in ("warmup", "mini") for solution in solutions(name) if solution.correct]
    return {solution.task: solution.source for solution in reversed(known)}


class CodeOracle:
    """Policy that answers each built-in task with its reference solution, reading the task from the environment."""

    def __init__(self, env: CodeEnv) -> None:
        self.env = env

    def act(self, observation: str) -> str:
        return fenced(reference(self.env.row["id"]))
