"""Processes of a run, from /proc: find, measure, slow down, stop and kill them.

A process that vanishes meanwhile counts as gone.
"""

from __future__ import annotations

import contextlib
import math
import os
import signal
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

PASSES = 10  # attempts to stop a process tree that keeps forking (82_runs_from_its_hunter)
NICE_STEP = 1.25  # the weights of two processes whose nice values differ by one
PAGE = os.sysconf("SC_PAGE_SIZE")
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
GONE = (FileNotFoundError, ProcessLookupError, NotADirectoryError)


@dataclass(frozen=True)
class ProcessInfo:
    """A process.

    Args:
        group: id of the process group.
        task: id of a thread that has not ended.
        tasks: number of threads.
        start: when it started, in clock ticks since boot.
        own_cpu_s: CPU seconds of the process itself.
        cpu_s: CPU seconds, including the children that the process has waited for.
        rss_bytes: resident memory.
        stopped: whether it is stopped by a signal.
        running: whether its main thread is running or waiting for a processor.
    """

    pid: int
    group: int
    task: int
    tasks: int
    start: int
    own_cpu_s: float
    cpu_s: float
    rss_bytes: int
    stopped: bool
    running: bool


def process(pid: int) -> ProcessInfo | None:
    """Return information about a process, or None if the process does not exist."""
    fields = stat_fields(f"/proc/{pid}")
    if fields is None:
        return None
    task, live = pid, fields
    # If the main thread has ended, its state and memory are those of none (130_memory_without_a_leader).
    if fields[0] == b"Z" and int(fields[17]) > 1:
        for other in tasks_of(pid):
            found = stat_fields(f"/proc/{pid}/task/{other}")
            if found is not None and found[0] not in b"ZX":
                task, live = other, found
    own, waited = (sum(map(int, fields[first : first + 2])) / TICKS_PER_S for first in (11, 13))
    return ProcessInfo(
        pid=pid,
        group=int(fields[2]),
        task=task,
        tasks=int(fields[17]),
        start=int(fields[19]),
        own_cpu_s=own,
        cpu_s=own + waited,
        rss_bytes=int(live[21]) * PAGE,
        stopped=live[0] == b"T",
        running=live[0] == b"R",
    )


def stat_fields(folder: str) -> list[bytes] | None:
    """Return the fields of a stat file from the state on, or None if the process or thread does not exist.

    The first are: state, parent, group, session, terminal, foreground group of the terminal.
    """
    try:
        with open(f"{folder}/stat", "rb") as file:
            data = file.read()
    except GONE:
        return None
    return data[data.rindex(b")") + 2 :].split()  # the last one, because a program can name itself "x) R 1 1"


def is_ending(pid: int, task: int) -> bool:
    """Whether a thread has ended, or has no memory any more because it is about to end. Then it belongs to root."""
    fields = stat_fields(f"/proc/{pid}/task/{task}")
    return fields is None or fields[0] in b"ZX" or fields[20] == b"0"


def tasks_of(pid: int) -> list[int]:
    """Return the ids of the threads of a process; empty if it does not exist."""
    try:
        return list(map(int, os.listdir(f"/proc/{pid}/task")))
    except GONE:
        return []


def children(pid: int, tasks: int = 1) -> list[int]:
    """Return the ids of the children of a process, including adopted orphans; empty if the process does not exist.

    Args:
        tasks: number of threads of the process. If it is 1, only the main thread is read.
    """
    found: list[int] = []
    for thread in [pid] if tasks == 1 else tasks_of(pid):
        with contextlib.suppress(*GONE), open(f"/proc/{pid}/task/{thread}/children", "rb") as file:
            found += map(int, file.read().split())
    return found


def tree(roots: Iterable[int]) -> Iterator[ProcessInfo]:
    """Yield the root processes and all their descendants."""
    pending = list(roots)
    while pending:
        found = process(pending.pop())
        if found is not None:
            yield found
            pending += children(found.pid, found.tasks)


def tasks_of_user(uid: int) -> int:
    """Return the number of threads of a user's processes that are visible in /proc."""
    total = 0
    for name in os.listdir("/proc"):
        with contextlib.suppress(*GONE):
            if name.isdigit() and os.stat(f"/proc/{name}").st_uid == uid:
                found = process(int(name))
                total += found.tasks if found else 0
    return total


def lower_priority(processes: Iterable[ProcessInfo]) -> None:
    """Give a run with many busy processes about the weight of one process.

    Priorities are only lowered, because raising them again is not permitted to ordinary users.
    """
    processes = list(processes)
    busy = sum(p.running if p.tasks == 1 else p.tasks for p in processes)
    nice = min(19, math.ceil(math.log(max(busy, 1), NICE_STEP)))
    for found in processes if nice else ():
        for task in [found.pid] if found.tasks == 1 else tasks_of(found.pid):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                if os.getpriority(os.PRIO_PROCESS, task) < nice:
                    os.setpriority(os.PRIO_PROCESS, task, nice)


def switches(processes: Iterable[ProcessInfo]) -> dict[int, int]:
    """Return how often the kernel has switched to each task; empty if the kernel does not count it."""
    found = {}
    for task in (task for p in processes for task in ([p.pid] if p.tasks == 1 else tasks_of(p.pid))):
        with contextlib.suppress(*GONE), open(f"/proc/{task}/schedstat", "rb") as file:
            found[task] = int(file.read().split()[2])
    return found


def use_one_processor(processes: Iterable[ProcessInfo]) -> None:
    """Move a run to the last processor. The scheduler shares a processor fairly if all wake-ups happen on it."""
    last = {max(os.sched_getaffinity(0))}
    for task in (task for p in processes for task in tasks_of(p.pid)):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.sched_setaffinity(task, last)


# ---- memory


def measured(roots: Iterable[int]) -> int:
    """Return the bytes of memory used by process trees, counting shared pages once.

    The processes are stopped during the measurement.
    """
    roots = list(roots)
    stopped = stop(roots)
    try:
        return sum(map(_proportional, tree(roots)))
    finally:
        resume(stopped)


def _proportional(found: ProcessInfo) -> int:
    """Return the proportional set size in bytes of anonymous and shared memory.

    A page mapped by n processes counts as 1/n page for each of them.
    """
    try:
        with open(f"/proc/{found.task}/smaps_rollup") as file:
            sizes = {key: value for key, _, value in (line.partition(":") for line in file)}
        return sum(int(sizes[key].split()[0]) << 10 for key in ("Pss_Anon", "Pss_Shmem"))
    except (OSError, KeyError, ValueError):  # the process has ended, or smaps_rollup is not readable
        return found.rss_bytes if process(found.pid) else 0


# ---- signals


def stop(roots: Iterable[int]) -> list[int]:
    """Stop every process of the trees. Returns the ids of the processes that were running before."""
    roots = list(roots)
    seen: dict[int, bool] = {}
    for _ in range(PASSES):
        new = [p for p in tree(roots) if p.pid not in seen]
        if not new:
            break
        for found in new:
            seen[found.pid] = not found.stopped
            _signal(found.pid, signal.SIGSTOP)
    return [pid for pid, running in seen.items() if running]


def resume(stopped: Iterable[int]) -> None:
    """Continue the processes that stop() has returned."""
    for pid in stopped:
        _signal(pid, signal.SIGCONT)


def kill_all(roots: Iterable[int], *, but: int) -> None:
    """Kill every process of the trees except one, which is stopped meanwhile so that it cannot fork."""
    roots = list(roots)
    stopped = stop(roots)
    for found in list(tree(roots)):  # all are stopped first, so that none forks while others are killed
        if found.pid != but:
            _signal(found.pid, signal.SIGKILL)
    if but in stopped:
        resume([but])


def _signal(pid: int, signum: int) -> None:
    # The process may have ended or may belong to another user.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signum)
