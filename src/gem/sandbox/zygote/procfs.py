"""What a run uses, by /proc: its processes, their CPU time and memory, and its files."""

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
    """tasks: its threads. cpu_s: of it and of those children that it has waited for. rss_bytes: resident memory.
    stopped: whether by a signal.
    """

    pid: int
    group: int
    tasks: int
    cpu_s: float
    rss_bytes: int
    stopped: bool


def process(pid: int) -> ProcessInfo | None:
    """None where there is none."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            data = file.read()
    except OSError:
        return None
    fields = data[data.rindex(b")") + 2 :].split()
    cpu_s = sum(map(int, fields[11:15])) / TICKS_PER_S
    return ProcessInfo(pid, int(fields[2]), int(fields[17]), cpu_s, int(fields[21]) * PAGE, fields[0] == b"T")


def children(pid: int, tasks: int = 1) -> list[int]:
    """The processes that a process, or one of its threads, started or adopted."""
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
    """Bytes of memory that processes take. What they share counts once."""
    return sum(map(_proportional, processes))


def _proportional(found: ProcessInfo) -> int:
    """A process's share of anonymous and shared memory: a page that n processes map counts 1/n in each."""
    try:
        with open(f"/proc/{found.pid}/smaps_rollup") as file:
            sizes = {key: value for key, _, value in (line.partition(":") for line in file)}
        return sum(int(sizes[key].split()[0]) << 10 for key in ("Pss_Anon", "Pss_Shmem"))
    except (OSError, KeyError, ValueError):  # it is over, or does not let itself be looked at
        return found.rss_bytes if process(found.pid) else 0


def files(folder: str, enough: int) -> int:
    """Bytes of disk that a folder takes; counting stops above `enough`, and more than MAX_FILES entries are that."""
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
    """Bytes of files that a process holds open and that have no name any more."""
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
    """Processes and threads of a user, as far as they can be seen."""
    total = 0
    for name in os.listdir("/proc"):
        try:
            if name.isdigit() and os.stat(f"/proc/{name}").st_uid == uid:
                found = process(int(name))
                total += found.tasks if found else 0
        except OSError:
            continue
    return total
