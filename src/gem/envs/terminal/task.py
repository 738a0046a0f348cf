"""Terminal tasks: an instruction, files, the files that a solution leaves, and a reference solution.

The verifier compares files that process 1 of the machine has read after every process of the agent was killed. It runs
in the host, so no expected content, program or result of it is ever inside the machine.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from gem.sandbox.machine import FILE, HOME, LINK, FileEntry

CANARY = "gem-terminal-canary-5b1f6c2e-7d3a-4c0e-9a57-1e2d8f4b6a90"  # in every file of tasks; never train on such files
MAX_LEVEL = 3


@dataclass(frozen=True, kw_only=True)
class TerminalTask:
    """One task. Paths are relative to the home folder.

    Args:
        instruction: what to do.
        files: the first files.
        expected: content of every file that the verifier looks at; None for a file that must not exist. A str ending
            in a newline also matches without it.
        links: targets of the symbolic links that must exist, by path.
        complete: folders in which there may be no other files or links.
        solution: commands of the reference solution.
        near_misses: scripts that almost solve the task and must score 0.
    """

    instruction: str
    files: Mapping[str, str | FileEntry]
    expected: Mapping[str, str | None]
    solution: tuple[str, ...]
    near_misses: tuple[str, ...]
    links: Mapping[str, str] = field(default_factory=dict)
    complete: tuple[str, ...] = ()

    def entries(self) -> list[FileEntry]:
        listed = self.files.items()
        return [item if isinstance(item, FileEntry) else FileEntry(path, item.encode()) for path, item in listed]


Template = Callable[[random.Random, int], TerminalTask]


def first_fault(task: TerminalTask, found: Iterable[FileEntry]) -> str:
    """Return why the task is not solved, or "" if it is.

    Args:
        task: the task.
        found: the entries of the machine, with absolute paths.
    """
    inside = {entry.path.removeprefix(f"{HOME}/"): entry for entry in found if entry.path.startswith(f"{HOME}/")}
    for path, text in task.expected.items():
        entry = inside.get(path)
        if text is None:
            if entry is not None:
                return f"{path} still exists"
        elif entry is None or entry.kind != FILE:
            return f"{path} is missing" if entry is None else f"{path} is not a regular file"
        elif entry.content != text.encode() and entry.content != text.removesuffix("\n").encode():
            return f"the content of {path} is wrong"
    for path, target in task.links.items():
        entry = inside.get(path)
        if entry is None or entry.kind != LINK:
            return f"{path} is not a symbolic link"
        if entry.content.decode("utf-8", "replace").removeprefix("./").removeprefix(f"{HOME}/") != target:
            return f"{path} leads to the wrong place"
    for folder in task.complete:
        for path, entry in inside.items():
            wanted = task.expected.get(path) is not None or path in task.links
            if path.startswith(f"{folder}/") and entry.kind in (FILE, LINK) and not wanted:
                return f"{path} should not exist"
    return ""
