"""Enforce the limits that the kernel does not enforce for a whole process tree: CPU time, memory, tasks and files.

A run is checked every TICK_S, and more often as it approaches its memory limit. If the resident sizes of its processes
add up to more than the limit, the processes are stopped and their memory is measured exactly, counting shared pages
once. The processes are stopped because the measurement takes time, during which they could allocate more memory.
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

TICK_S, QUICK_S = 0.05, 0.004  # longest and shortest interval between checks of a run
CHECK_SHARE, URGENT_CHECK_SHARE = (
    0.1,
    0.25,
)  # maximum fraction of time spent on checks: for all runs together, and for a run near its memory limit
FILLED_PER_S = 4 << 30  # bytes of memory that one processor can fill per second
CALM = 0.25  # below this fraction of its memory limit, a run is not near the limit
PASSES = 10  # attempts to stop a process tree that keeps forking
TASK_SLACK = 16  # a run is killed if it has more than twice its task limit plus this number of tasks
_PROCESSORS = os.cpu_count() or 1


@dataclass
class RunMonitor:
    """Monitors one run.

    Args:
        request: limits of the run.
        folder: working directory of the run; empty if the kernel limits disk usage.
        roots: ids of the processes from which all other processes of the run descend.
        due: time.monotonic() of the next check.
    """

    request: RunRequest
    folder: str
    roots: Iterable[int] = ()
    due: float = field(default_factory=lambda: time.monotonic() + TICK_S / 2)

    def check(self, runs: int) -> str | None:
        """Check the run and schedule the next check.

        Args:
            runs: number of runs that share the time available for checks.

        Returns:
            The value of the Status for the exceeded limit, or None if no limit is exceeded.
        """
        start = time.monotonic()
        processes = list(procfs.tree(self.roots))
        used = sum(p.rss_bytes for p in processes)
        if used > self.request.memory_bytes:
            used = measured(self.roots)
        why = self._exceeded(processes, used)
        now = time.monotonic()
        self.due = now + self._pause(now - start, runs, used, sum(p.tasks for p in processes))
        return why

    def _exceeded(self, processes: list[ProcessInfo], used: int) -> str | None:
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
        calm = max(TICK_S, spent * runs / CHECK_SHARE)
        if used < CALM * self.request.memory_bytes:
            return calm
        fillers = min(_PROCESSORS, 2 * tasks)  # the run may fork before the next check
        until_full = (self.request.memory_bytes - used) / (FILLED_PER_S * fillers)
        return min(calm, max(QUICK_S, until_full, spent / URGENT_CHECK_SHARE))


def measured(roots: Iterable[int]) -> int:
    """Return the bytes of memory used by process trees, counting shared pages once.

    The processes are stopped during the measurement.
    """
    roots = list(roots)
    stopped = _stop(roots)
    try:
        return procfs.memory(procfs.tree(roots))
    finally:
        for pid in stopped:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGCONT)


def _stop(roots: list[int]) -> list[int]:
    """Stop every process of the trees. Returns the ids of the processes that were running before."""
    seen: dict[int, bool] = {}
    for _ in range(PASSES):
        new = [p for p in procfs.tree(roots) if p.pid not in seen]
        if not new:
            break
        for found in new:
            seen[found.pid] = not found.stopped
            # The process may have ended or may belong to another user.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(found.pid, signal.SIGSTOP)
    return [pid for pid, running in seen.items() if running]
