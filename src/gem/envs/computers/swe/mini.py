"""swe:Mini — repair a fault in a small repository. Level 1 has faults made by a program, levels 2 and 3 one and two
faults written by hand.

Canary: gem-terminal-canary-5b1f6c2e-7d3a-4c0e-9a57-1e2d8f4b6a90
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

from gem.envs.computers.swe import driver
from gem.envs.computers.swe.repository import NAMES, Defect, Edit, Repository, load
from gem.envs.computers.task import HiddenCheck, TerminalTask, shell_check

PROGRAMS = ("python3",)
_DRIVER = Path(driver.__file__)


def pick_faults(repository: Repository, rng: random.Random, level: int) -> list[Defect]:
    """Return the faults of a task: one that a program made at level 1, else one or two that were written by hand."""
    if level == 1:
        return [repository.defect(rng.choice(repository.mutations))]
    while True:
        picked = rng.sample(repository.written, level - 1)
        try:
            repository.broken(edit for fault in picked for edit in fault.edits)
        except ValueError:  # two faults in the same lines
            continue
        return picked


def make_task(repository: Repository, faults: Sequence[Defect]) -> TerminalTask:
    """Return the task to repair these faults."""
    name = repository.name
    edits = [edit for fault in faults for edit in fault.edits]
    issues = "\n\n".join(f"Issue {number}: {fault.issue}" for number, fault in enumerate(faults, 1))
    if len(faults) == 1:
        issues = f"Issue: {faults[0].issue}"
    return TerminalTask(
        instruction=f"The folder repo has a Python package, {name}, with its documentation and tests. A user has "
        f"reported:\n\n{issues}\n\nRepair the package. It is checked with other tests than those in repo/tests: what "
        "was wrong must be right, here and in similar cases, and everything else must work as before. Only the "
        f"folder repo/{name} counts; changes of tests have no effect. In repo, python3 -m unittest runs the tests.",
        files={f"repo/{path}": text for path, text in repository.broken(edits).items()},
        expected={},
        checks=checks(repository),
        solution=(solution(edits),),
    )


def checks(repository: Repository) -> tuple[HiddenCheck, ...]:
    """Return the hidden tests and the visible ones. Both are put into a fresh machine with the agent's package only."""
    hidden = {"hidden/driver.py": _DRIVER.read_text(encoding="utf-8"), "hidden/probes.py": repository.probes}
    package = (f"repo/{repository.name}",)
    return (
        shell_check(
            "the hidden tests",
            "exec python3 -I -B hidden/driver.py repo hidden digests",
            stdout="".join(driver.line(*result, "digests") for result in repository.expected.items()),
            files=hidden,
            only=package,
        ),
        shell_check(
            "the visible tests",
            "cd repo && exec python3 -B -m unittest discover -s tests -t . >/dev/null 2>&1",
            stdout="",
            files={f"repo/{path}": text for path, text in repository.files.items() if path.startswith("tests/")},
            only=package,
        ),
    )


def solution(edits: Sequence[Edit]) -> str:
    """Return the command that takes the edits back."""
    back = [(f"repo/{edit.path}", edit.new, edit.old) for edit in reversed(edits)]
    pairs = "".join(f"    ({path!r}, {new!r}, {old!r}),\n" for path, new, old in back)
    return (
        f"python3 - <<'END_OF_PATCH'\nfrom pathlib import Path\n\nfor path, wrong, right in [\n{pairs}]:\n"
        "    text = Path(path).read_text(encoding='utf-8')\n    assert text.count(wrong) == 1\n"
        "    Path(path).write_text(text.replace(wrong, right), encoding='utf-8')\nEND_OF_PATCH"
    )


class RepositoryTemplate:
    """Tasks of one repository. Unlike a nested function, it can be pickled with the environment."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __call__(self, rng: random.Random, level: int) -> TerminalTask:
        repository = load(self.__name__)
        return make_task(repository, pick_faults(repository, rng, level))


TEMPLATES = tuple(RepositoryTemplate(name) for name in NAMES)
