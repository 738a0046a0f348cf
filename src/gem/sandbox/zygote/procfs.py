"""Resource usage of a run, read from /proc: its processes, their CPU time and memory, and its files."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

PAGE = os.sysconf("SC_PAGE_SIZE")
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
MAX_FILES = 20_000  # in a run's folder


@dataclass(frozen=True)
class ProcessInfo:
    """A process.

    Args:
        group: id of the process group.
        tasks: number of threads.
        cpu_s: CPU seconds, including the children that the process has reaped.
        rss_bytes: resident memory.
        stopped: whether it is stopped by a signal.
    """

    pid: int
    group: int
    tasks: int
    cpu_s: float
    rss_bytes: int
    stopped: bool


def process(pid: int) -> ProcessInfo | None:
    """Return information about a process, or None if the process does not exist."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            data = file.read()
    except OSError:
        return None
    fields = data[data.rindex(b")") + 2 :].split()
    cpu_s = sum(map(int, fields[11:15])) / TICKS_PER_S
    return ProcessInfo(pid, int(fields[2]), int(fields[17]), cpu_s, int(fields[21]) * PAGE, fields[0] == b"T")


def children(pid: int, tasks: int = 1) -> list[int]:
    """Return the ids of the children of a process, including adopted orphans; empty if the process does not exist.

    Args:
        tasks: number of threads of the process. If it is 1, only the main thread is read.
    """
    try:
        threads = [str(pid)] if tasks == 1 else os.listdir(f"/proc/{pid}/task")
        found: list[int] = []
        for thread in threads:
            with open(f"/proc/{pid}/task/{thread}/children", "rb") as file:
                found += map(int, file.read().split())
        return found
    except OSError:
        return []


def tree(roots: Iterable[int]) -> Iterator[ProcessInfo]:
    """Yield the root processes and all their descendants."""
    pending = list(roots)
    while pending:
        found = process(pending.pop())
        if found is not None:
            yield found
            pending += children(found.pid, found.tasks)


def memory(processes: Iterable[ProcessInfo]) -> int:
    """Return the bytes of memory used by processes, counting shared pages once."""
    return sum(map(_proportional, processes))


def _proportional(found: ProcessInfo) -> int:
    """Return the proportional set size in bytes of anonymous and shared memory.

    A page mapped by n processes counts as 1/n page for each of them.
    """
    try:
        with open(f"/proc/{found.pid}/smaps_rollup") as file:
            sizes = {key: value for key, _, value in (line.partition(":") for line in file)}
        return sum(int(sizes[key].split()[0]) << 10 for key in ("Pss_Anon", "Pss_Shmem"))
    except (OSError, KeyError, ValueError):  # the process has ended, or smaps_rollup is not readable
        return found.rss_bytes if process(found.pid) else 0


def files(folder: str, enough: int) -> int:
    """Return the bytes of disk space used by a folder.

    Returns ``enough + 1`` if the folder uses more than ``enough`` bytes or has more than MAX_FILES entries.
    """
    total = count = 0
    pending = [folder]
    while pending:
        try:
            with os.scandir(pending.pop()) as entries:
                for entry in entries:
                    count += 1
                    total += entry.stat(follow_symlinks=False).st_blocks * 512
                    if total > enough or count > MAX_FILES:
                        return enough + 1
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(entry.path)
        except OSError:
            continue
    return total


def unlinked_files(pid: int) -> int:
    """Return the bytes of disk space used by deleted files that a process holds open."""
    total = 0
    try:
        for fd in os.listdir(f"/proc/{pid}/fd"):
            found = os.stat(f"/proc/{pid}/fd/{fd}")
            if stat.S_ISREG(found.st_mode) and found.st_nlink == 0:
                total += found.st_blocks * 512
    except OSError:
        pass
    return total


def tasks_of_user(uid: int) -> int:
    """Return the number of threads of a user's processes that are visible in /proc."""
    total = 0
    for name in os.listdir("/proc"):
        try:
            if name.isdigit() and os.stat(f"/proc/{name}").st_uid == uid:
                found = process(int(name))
                total += found.tasks if found else 0
        except OSError:
            continue
    return total
