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
        group: process group.
        tasks: number of threads.
        cpu_s: CPU seconds, including children it has waited for.
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
    """Read a process; None if it does not exist."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            data = file.read()
    except OSError:
        return None
    fields = data[data.rindex(b")") + 2 :].split()
    cpu_s = sum(map(int, fields[11:15])) / TICKS_PER_S
    return ProcessInfo(pid, int(fields[2]), int(fields[17]), cpu_s, int(fields[21]) * PAGE, fields[0] == b"T")


def children(pid: int, tasks: int = 1) -> list[int]:
    """The child processes of a process, including those it adopted."""
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
    """Processes and all their descendants."""
    pending = list(roots)
    while pending:
        found = process(pending.pop())
        if found is not None:
            yield found
            pending += children(found.pid, found.tasks)


def memory(processes: Iterable[ProcessInfo]) -> int:
    """Bytes of memory used by processes, counting shared pages once."""
    return sum(map(_proportional, processes))


def _proportional(found: ProcessInfo) -> int:
    """Proportional set size of anonymous and shared memory: a page mapped by n processes counts 1/n in each."""
    try:
        with open(f"/proc/{found.pid}/smaps_rollup") as file:
            sizes = {key: value for key, _, value in (line.partition(":") for line in file)}
        return sum(int(sizes[key].split()[0]) << 10 for key in ("Pss_Anon", "Pss_Shmem"))
    except (OSError, KeyError, ValueError):  # it has ended or is not readable
        return found.rss_bytes if process(found.pid) else 0


def files(folder: str, enough: int) -> int:
    """Bytes of disk used by a folder. Counting stops above ``enough``, or at more than MAX_FILES entries."""
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
    """Bytes of deleted files that a process holds open."""
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
    """Number of visible processes and threads of a user."""
    total = 0
    for name in os.listdir("/proc"):
        try:
            if name.isdigit() and os.stat(f"/proc/{name}").st_uid == uid:
                found = process(int(name))
                total += found.tasks if found else 0
        except OSError:
            continue
    return total
