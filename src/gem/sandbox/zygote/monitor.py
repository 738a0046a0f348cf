"""Keeps runs to what the kernel does not count for a whole family of processes: CPU time, memory, tasks and files.

It looks at a run again before the run could go far beyond its memory, by how fast memory can be filled: a calm run is
looked at every TICK_S, one that nears its limit more often. Where the sizes of all processes add up to more than the
limit, the family is stopped while it is measured: what they share is counted once then, which takes a while, and they
would fill on meanwhile.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterable
from dataclasses import dataclass, field

from gem.sandbox.zygote import procfs
from gem.sandbox.zygote.procfs import ProcessInfo
from gem.sandbox.zygote.protocol import RunRequest

TICK_S, QUICK_S = 0.05, 0.004  # between looks at a run, at most and at least
SHARE, URGENT_SHARE = 0.1, 0.25  # of the time that looks may take: at all runs, and at one that nears its limit
FILLED_PER_S = 4 << 30  # bytes of memory that one processor can fill
CALM = 0.25  # of its memory: a run that takes less is not near its limit
PASSES = 10  # to stop a family that forks meanwhile
TASK_SLACK = 16  # above twice the limit, a run is stopped: where the kernel does not keep it
_PROCESSORS = os.cpu_count() or 1


@dataclass
class RunMonitor:
    """One run as it is watched.

    Args:
        due: when it is looked at next, by time.monotonic().
        roots: those of its processes from which all others descend.
    """

    request: RunRequest
    folder: str
    roots: Iterable[int] = ()
    due: float = field(default_factory=lambda: time.monotonic() + TICK_S / 2)

    def look(self, runs: int) -> str | None:
        """The Status of the limit that it is beyond, if any; sets when it is due again.

        runs: how many share the time for looks.
        """
        start = time.monotonic()
        processes = list(procfs.tree(self.roots))
        used = sum(p.rss_bytes for p in processes)
        if used > self.request.memory_bytes:
            used = measured(self.roots)
        why = self._overrun(processes, used)
        now = time.monotonic()
        self.due = now + self._pause(now - start, runs, used, sum(p.tasks for p in processes))
        return why

    def _overrun(self, processes: list[ProcessInfo], used: int) -> str | None:
        request = self.request
        if used > request.memory_bytes:
            return "memory"
        if sum(p.cpu_s for p in processes) > request.cpu_s:
            return "timeout"
        if sum(p.tasks for p in processes) > 2 * request.processes + TASK_SLACK:
            return "killed"
        if self.folder:
            unlinked = sum(procfs.unlinked_files(p.pid) for p in processes)
            if unlinked + procfs.files(self.folder, request.disk_bytes) > request.disk_bytes:
                return "killed"
        return None

    def _pause(self, spent: float, runs: int, used: int, tasks: int) -> float:
        calm = max(TICK_S, spent * runs / SHARE)
        if used < CALM * self.request.memory_bytes:
            return calm
        fillers = min(_PROCESSORS, 2 * tasks)  # it may fork meanwhile
        until_full = (self.request.memory_bytes - used) / (FILLED_PER_S * fillers)
        return min(calm, max(QUICK_S, until_full, spent / URGENT_SHARE))


def measured(roots: Iterable[int]) -> int:
    """Bytes of memory that a family takes, which stands still meanwhile. What its processes share counts once."""
    roots = list(roots)
    stopped = _stop(roots)
    try:
        return procfs.memory(procfs.tree(roots))
    finally:
        for pid in stopped:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGCONT)


def _stop(roots: list[int]) -> list[int]:
    """Stop every process of a family. Returns those that were not stopped before."""
    seen: dict[int, bool] = {}
    for _ in range(PASSES):
        new = [p for p in procfs.tree(roots) if p.pid not in seen]
        if not new:
            break
        for found in new:
            seen[found.pid] = not found.stopped
            with contextlib.suppress(ProcessLookupError, PermissionError):  # gone, or another user's
                os.kill(found.pid, signal.SIGSTOP)
    return [pid for pid, running in seen.items() if running]
