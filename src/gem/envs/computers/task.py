"""Terminal tasks: an instruction, files, the files that a solution leaves, checks, and a reference solution.

See gem.envs.computers.verify for how they are verified.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field

from gem.errors import SandboxError
from gem.sandbox.machine import EPOCH_S, FILE, HOME, LINK, FileEntry, Machine, MachineFiles

CANARY = "gem-terminal-canary-5b1f6c2e-7d3a-4c0e-9a57-1e2d8f4b6a90"  # in every file of tasks; never train on such files
MAX_LEVEL = 3
SET_TIMES = f"find . -depth -newermt @{EPOCH_S} -exec touch -hd @{EPOCH_S} {{}} +"


@dataclass(frozen=True, kw_only=True)
class HiddenCheck:
    """A program that runs on a copy of the files, and what it must print and write. Paths are relative to home.

    Args:
        name: what is wrong if the check fails, such as "the table of totals".
        arguments: absolute path of the program, and its arguments.
        stdin: standard input.
        stdout: standard output; None if it does not matter. A missing newline at the end does not matter.
        files: hidden files that replace or join the copied ones.
        expected: content of files that the program must write; None for a file that must not exist.
        only: files and folders to copy, so that settings that the agent left for the program are not; empty for all.
    """

    name: str
    arguments: tuple[str, ...]
    stdin: str = ""
    stdout: str | None = None
    files: Mapping[str, str] = field(default_factory=dict)
    expected: Mapping[str, str | None] = field(default_factory=dict)
    only: tuple[str, ...] = ()


def shell_check(
    name: str,
    script: str,
    *,
    stdout: str | None = None,
    files: Mapping[str, str] = {},
    expected: Mapping[str, str | None] = {},
    only: tuple[str, ...] = (),
    shell: str = "/bin/sh",
) -> HiddenCheck:
    """Return a check that runs a script."""
    arguments = (shell, "-c", script)
    return HiddenCheck(name=name, arguments=arguments, stdout=stdout, files=files, expected=expected, only=only)


@dataclass(frozen=True, kw_only=True)
class RequiredService:
    """A program that the agent starts and that must answer requests made of files. Paths are relative to home.

    Args:
        pid_file: has the id of the service's process, which is not killed before the verification.
        requests: files that are written for it, and that it must remove; the others follow the answer to the first.
        replies: content of the files that it must write, in the order of the requests.
        seconds: longest time for an answer. A service that has ended, or whose replies are complete and stay wrong, is
            not waited for.
    """

    pid_file: str
    requests: Mapping[str, str]
    replies: Mapping[str, str]
    seconds: float = 10.0


@dataclass(frozen=True, kw_only=True)
class TerminalTask:
    """One task. Paths are relative to the home folder.

    Args:
        instruction: what to do.
        files: the first files.
        expected: content of every file that the verifier looks at; None for a file that must not exist. A str ending
            in a newline also matches without it, unless it is, or replaces, one of the first files. Modes and times
            are not compared.
        links: targets of the symbolic links that must exist, by path.
        complete: folders in which there may be no other files or links, except in ``.git``.
        checks: programs whose output must be right.
        service: a program that must be running.
        setup: bash source that runs in the machine before the agent, to make what files alone cannot be.
        solution: commands of the reference solution.
        near_misses: scripts that almost solve the task and must score 0.
    """

    instruction: str
    files: Mapping[str, str | FileEntry]
    expected: Mapping[str, str | None]
    solution: tuple[str, ...]
    near_misses: tuple[str, ...] = ()
    links: Mapping[str, str] = field(default_factory=dict)
    complete: tuple[str, ...] = ()
    checks: tuple[HiddenCheck, ...] = ()
    service: RequiredService | None = None
    setup: str = ""

    def entries(self) -> list[FileEntry]:
        listed = self.files.items()
        return [item if isinstance(item, FileEntry) else FileEntry(path, item.encode()) for path, item in listed]

    def exact(self) -> set[str]:
        """Return the paths of files that are first files, changed or not, or moved ones: every byte of them counts."""
        first = {entry.content for entry in self.entries()}
        return {path for path, text in self.expected.items() if path in self.files or (text or "").encode() in first}


def start_task(task: TerminalTask, start: Callable[[MachineFiles], Machine]) -> Machine:
    """Start a machine with the files of a task, and run its setup. Raises SandboxError if that fails."""
    machine = start(task.entries())
    try:
        if task.setup:
            result = machine.run(["/bin/bash", "-ec", f"{task.setup}\n{SET_TIMES}"])
            if not result.ok:
                raise SandboxError(f"the setup of a task failed: {result.status} {result.stdout[-500:]!r}")
    except BaseException:
        machine.close()
        raise
    return machine


Template = Callable[[random.Random, int], TerminalTask]


def first_fault(task: TerminalTask, found: Iterable[FileEntry]) -> str:
    """Return why the task is not solved, or "" if it is.

    Args:
        task: the task.
        found: the entries of the machine, with absolute paths.
    """
    inside = {entry.path.removeprefix(f"{HOME}/"): entry for entry in found if entry.path.startswith(f"{HOME}/")}
    if fault := first_wrong_file(task.expected, inside, task.exact()):
        return fault
    for path, target in task.links.items():
        entry = inside.get(path)
        if entry is None or entry.kind != LINK:
            return f"{path} is not a symbolic link"
        if entry.content.decode("utf-8", "replace").removeprefix("./").removeprefix(f"{HOME}/") != target:
            return f"{path} leads to the wrong place"
    for folder in task.complete:
        for path, entry in inside.items():
            wanted = task.expected.get(path) is not None or path in task.links
            looked_at = path.startswith(f"{folder}/") and not path.startswith(f"{folder}/.git/")
            if looked_at and entry.kind in (FILE, LINK) and not wanted:
                return f"{path} should not exist"
    return ""


def first_wrong_file(
    expected: Mapping[str, str | None], found: Mapping[str, FileEntry], exact: Collection[str] = ()
) -> str:
    """Return what is wrong with the first file whose content is not as expected, or "".

    Args:
        expected: content by path; None for a file that must not exist.
        found: the entries by path.
        exact: paths of files whose last newline must not be missing.
    """
    for path, text in expected.items():
        entry = found.get(path)
        if text is None:
            if entry is not None:
                return f"{path} still exists"
        elif entry is None or entry.kind != FILE:
            return f"{path} is missing" if entry is None else f"{path} is not a regular file"
        elif entry.content not in (text.encode(), (text if path in exact else text.removesuffix("\n")).encode()):
            return f"the content of {path} is wrong"
    return ""


def same_text(found: str, expected: str) -> bool:
    """Whether two texts are the same, but for a newline at the end that is missing in the first."""
    return found in (expected, expected.removesuffix("\n"))
