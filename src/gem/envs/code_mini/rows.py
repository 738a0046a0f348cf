"""The rows of code:Mini: programming tasks that come with gem, each with its tests.

Every task is a row. The inputs of its tests are drawn from a seed, and what is expected comes from its reference.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from gem.datasets import Row, Rows
from gem.envs.code_mini import graphs, grids, machines, numbers, parsing, plane, planning, sequences, texts
from gem.envs.code_mini.task import Task
from gem.errors import BadValue
from gem.seeding import check_seed, stream

TOPICS = (texts, numbers, sequences, grids, graphs, planning, parsing, machines, plane)
TASKS: dict[str, Task] = {task.id: task for topic in TOPICS for task in topic.TASKS}


class MiniRows(Rows):
    """One row for each task, with the columns id, problem, tests, difficulty (1 to 3) and topic.

    seed: of the inputs; the tasks and their order are the same for all seeds. Raises BadValue for what is no seed.
    """

    name = "code:Mini"

    def __init__(self, seed: int = 0) -> None:
        self.seed = check_seed(seed)

    def row(self, index: int) -> Row:
        return _row(list(TASKS)[index], self.seed)

    def __len__(self) -> int:
        return len(TASKS)


def reference(row: Row) -> str:
    """A program that passes the tests of a row. Raises BadValue for a row that is not one of MiniRows."""
    if row.get("id") not in TASKS:
        raise BadValue(f"code:Mini has no task {row.get('id')!r}")
    return TASKS[row["id"]].program()


@cache
def _row(name: str, seed: int) -> dict[str, Any]:
    task = TASKS[name]
    topic = task.solve.__module__.rpartition(".")[2]
    tests = task.tests(stream("code:Mini", seed, name))
    return {"id": name, "problem": task.statement, "tests": tests, "difficulty": task.difficulty, "topic": topic}
