"""Correct and incorrect solutions for the programming tasks in envs/data/code.

``NAME.jsonl`` contains the tasks of a built-in dataset, and ``NAME_solutions.md`` contains programs for these tasks.
The heading ``## task id`` precedes the programs of a task. The heading ``### correct: comment`` or
``### wrong: comment`` precedes each program.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from gem.envs.dataset_env import DATA
from gem.envs.questions.code_env import CodeEnv, fenced
from gem.errors import BadValue
from gem.parsing import code_blocks

_TASK, _PROGRAM = re.compile(r"^## (.+)\n", re.MULTILINE), re.compile(r"^### (correct|wrong): (.+)\n", re.MULTILINE)


@dataclass(frozen=True)
class Solution:
    """A program for a built-in task.

    Args:
        task: id of the task's row.
        correct: whether the program passes the tests of the task.
        comment: describes the approach, or the mistake of an incorrect program.
        source: the program.
    """

    task: str
    correct: bool
    comment: str
    source: str


@cache
def solutions(name: str) -> tuple[Solution, ...]:
    """Return the solutions for a built-in dataset, "warmup" or "mini", in the order of the file."""
    _, *sections = _TASK.split((DATA / "code" / f"{name}_solutions.md").read_text(encoding="utf-8"))
    found = []
    for task, section in zip(sections[::2], sections[1::2], strict=True):
        _, *parts = _PROGRAM.split(section)
        for word, comment, text in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
            found.append(Solution(task, word == "correct", comment, code_blocks(text)[0].code))
    return tuple(found)


def reference(task: str) -> str:
    """Return the source of the first correct solution of a built-in task.

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
    """Policy that solves built-in tasks with their reference solutions. Reads the task id from the environment."""

    def __init__(self, env: CodeEnv) -> None:
        self.env = env

    def act(self, observation: str) -> str:
        return fenced(reference(self.env.row["id"]))
