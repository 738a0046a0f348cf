"""Enforce the limits that the kernel does not enforce for a whole run: CPU time, files, and without a cgroup memory.

With a cgroup, the kernel limits memory and tasks and counts CPU time; only files are left to check, and only where they
are not in a tmpfs of the run. Without one, a run is checked every TICK_S through /proc, and more often as it approaches
its memory limit. If the resident sizes of its processes add up to more than the limit, the processes are stopped and
their memory is measured exactly, counting shared pages once. The processes are stopped because the measurement takes
time, during which they could allocate more memory.

A process or file that vanishes during a check counts as gone. One that may not be looked at counts as over the limit.
NOT_HELD lists what /proc does not show.
"""

from __future__ import annotations

import contextlib
import errno
import math
import os
import random
import stat
import time
from collections.abc import Iterable
from dataclasses import dataclass, field

from gem.sandbox.forkserver.limits.cgroup import Cgroup
from gem.sandbox.forkserver.limits.processes import (
    GONE,
    ProcessInfo,
    is_ending,
    lower_priority,
    measured,
    process,
    switches,
    tasks_of,
    tree,
    use_one_processor,
)
from gem.sandbox.forkserver.protocol import RunRequest

NOT_HELD = {
    "memory": "shared memory that no process has mapped any more, buffers of sockets",
    "cpu": "children that end within 50 ms without being waited for",
}
TICK_S, QUICK_S = 0.05, 0.004  # longest and shortest interval between checks of a run
# Maximum share of a processor for checks of all runs, and of the time for those of a run near its memory limit.
CHECK_SHARE, URGENT_CHECK_SHARE = 0.1, 0.25
FILLED_PER_S = 4 << 30  # bytes of memory that one processor can fill per second
CALM = 0.25  # below this fraction of its memory limit, a run is not near the limit
MAX_FILES = 20_000  # in a run's folder; empty ones take the machine's inodes and memory (08_many_files)
# Characters of a path. Reading a folder takes time in proportion to its depth: a chain of 2,000 folders took .4 s, in
# which a program wrote 400 MiB.
MAX_PATH = 1024
# For the mappings of a run, in one check. Those of a process that forks all the time cannot be read at once. Without
# this limit, a check of 40 such processes took 7 s, in which no run could be ended.
MAPPINGS_S = 0.1
# Consecutive checks that may find descriptors in the buffer of a socket, whose files cannot be seen
# (142_disk_in_flight).
MAX_CHECKS_IN_FLIGHT = 3
# More switches between tasks per second than programs with queues and pools reach. Linux 6.18 gave a run with 200,000
# switches per second nearly all processors, beside others of equal weight; with 30,000 it got only its share
# (165_wakeups).
MOST_SWITCHES_PER_S = 20_000
_PROCESSORS = os.cpu_count() or 1
_RANDOM = random.SystemRandom()  # keeps the state that programs inherit
# What a program can make the kernel answer, to hide files (141_disk_unreadable_folders, 143_disk_of_the_undumpable).
_REFUSED = (errno.EACCES, errno.EPERM, errno.ENAMETOOLONG, errno.ELOOP)
TESTS = "tests"  # the entry of test runners, whose process group is trusted and may not be looked at


@dataclass
class RunMonitor:
    """Monitors one run.

    Args:
        request: limits of the run.
        pid: the first process of the run.
        folder: working directory of the run; empty if the kernel limits disk usage.
        group: cgroup of the run, which enforces the limits in its ``holds``; None without cgroups.
        roots: ids of the processes from which all other processes of the run descend. Only needed without a group.
        sees_files: whether this process is permitted to see the open files of the run.
        own_socket: inode of the socket over which the host sends descriptors to the first process, if there is one.
        due: time.monotonic() of the next check.
        cpu_s: CPU seconds of the run at the last check.
    """

    request: RunRequest
    pid: int
    folder: str
    group: Cgroup | None = None
    roots: Iterable[int] = ()
    sees_files: bool = True
    own_socket: int | None = None
    due: float = field(default_factory=lambda: time.monotonic() + TICK_S / 2)
    cpu_s: float = 0.0
    _cell_cpu_s: float = math.inf
    _cell_start: float | None = None
    _own_cpu_s: dict[tuple[int, int], float] = field(default_factory=dict)  # by process id and start time
    _checks_in_flight: int = 0
    _switches: dict[int, int] = field(default_factory=dict)  # by task, at the last check
    _switches_at: float = field(default_factory=time.monotonic)

    def allow(self, cpu_s: float) -> None:
        """Start to count the CPU time of a cell, which may use ``cpu_s`` seconds."""
        self._cell_cpu_s, self._cell_start = cpu_s, self.group.cpu_s() if self.group else None
        if self.group:
            self.group.weigh(light=False)
        self.due = min(self.due, time.monotonic() + TICK_S / 2)

    def cell_exceeded(self) -> bool:
        """Return whether the cell has used more CPU time than it may, once per cell. Called after check()."""
        if self._cell_start is None:  # the first check during this cell
            self._cell_start = self.cpu_s
        exceeded = self.cpu_s - self._cell_start > self._cell_cpu_s
        if exceeded:
            self._cell_cpu_s = math.inf
        return exceeded

    def check(self, runs: int) -> str | None:
        """Check the run and schedule the next check.

        Args:
            runs: number of runs that share the time available for checks.

        Returns:
            The value of the Status for the exceeded limit, or None if no limit is exceeded.

        Raises:
            OSError: if the run could not be checked, for example because no descriptors are left.
        """
        start, cpu_start = time.monotonic(), time.thread_time()
        if self.group and self.group.holds >= {"memory", "tasks", "cpu"}:
            why = self._check_group(self.group)
            pause = self._until_cpu_limit()
        else:
            processes = list(tree(self.roots))
            used = sum(p.rss_bytes for p in processes)
            if used > self.request.memory_bytes:
                used = measured(self.roots)  # pages that processes share count once (80_shared_pages)
            why = self._check_processes(processes, used)
            pause = self._until_memory_limit(time.monotonic() - start, used, sum(p.tasks for p in processes))
        spent, cpu_s = time.monotonic() - start, time.thread_time() - cpu_start
        self.due = start + spent + (pause if pause < TICK_S else max(pause, spent, cpu_s * runs / CHECK_SHARE))
        return why

    def _check_group(self, group: Cgroup) -> str | None:
        if self.request.entry != TESTS:  # a test runner checks this for each of its tests
            if group.killed_for_memory():
                return "memory"
            self.cpu_s = group.cpu_s() or 0.0
            if self.cpu_s > self.request.cpu_s:
                return "timeout"
        processes = [p for p in map(process, group.pids()) if p]
        self._share_processors(processes)
        return self._check_files(processes)

    def _check_processes(self, processes: list[ProcessInfo], used: int) -> str | None:
        if used > self.request.memory_bytes:
            return "memory"
        self.cpu_s = self._total_cpu_s(processes)
        if self.cpu_s > self.request.cpu_s:
            return "timeout"
        # Exceeded only where RLIMIT_NPROC is not exact because the run has no user of its own.
        if sum(p.tasks for p in processes) > self.request.processes + 1:
            return "killed"
        self._share_processors(processes)
        return self._check_files(processes)

    def _total_cpu_s(self, processes: list[ProcessInfo]) -> float:
        """Return the CPU seconds of a run: of its processes and the children that they waited for, or of all processes
        that a check has seen, whichever is more. Of a test runner, only the processes of the running test count.
        """
        if self.request.entry == TESTS:
            processes = [p for p in processes if p.pid != self.pid]
            if not any((p.pid, p.start) in self._own_cpu_s for p in processes):  # another test has started
                self._own_cpu_s.clear()
                self.cpu_s = 0.0
        self._own_cpu_s.update({(p.pid, p.start): p.own_cpu_s for p in processes})
        return max(self.cpu_s, sum(p.cpu_s for p in processes), sum(self._own_cpu_s.values()))

    def _share_processors(self, processes: list[ProcessInfo]) -> None:
        """Keep a run from delaying others by many busy tasks, or by tasks that wake each other all the time."""
        group = self.group if self.group and "weight" in self.group.holds else None
        if group is None:
            lower_priority(processes)  # 160_sixty_spinners
        if self._switches_per_s(processes) > MOST_SWITCHES_PER_S:
            if group is None:
                use_one_processor(processes)
            else:
                group.weigh(light=True)

    def _switches_per_s(self, processes: list[ProcessInfo]) -> float:
        """Return how often per second the kernel has switched to a task of the run since the last call."""
        before, then = self._switches, self._switches_at
        self._switches, self._switches_at = switches(processes), time.monotonic()
        more = sum(count - before.get(task, 0) for task, count in self._switches.items())
        return more / max(self._switches_at - then, QUICK_S)

    def _check_files(self, processes: list[ProcessInfo]) -> str | None:
        if not self.folder:
            return None
        try:
            hidden = HiddenFiles(self.folder, self.own_socket)
            until = time.monotonic() + MAPPINGS_S
            # Those that sleep are read without waiting. The others take turns by chance.
            in_turn = sorted(processes, key=lambda p: (p.running, _RANDOM.random()))
            for found in in_turn if self.sees_files else ():
                if found.group != self.pid or self.request.entry != TESTS:
                    hidden.add(found, mappings=time.monotonic() < until)
            used = files(self.folder, self.request.disk_bytes) + hidden.total()
        except OSError as e:
            if e.errno not in _REFUSED:
                raise
            return "killed"
        self._checks_in_flight = self._checks_in_flight + 1 if hidden.in_flight else 0
        over = used > self.request.disk_bytes or self._checks_in_flight > MAX_CHECKS_IN_FLIGHT
        return "killed" if over else None

    def _until_cpu_limit(self) -> float:
        """Return the seconds until the next check if there is a cgroup: no limit of CPU time is exceeded earlier."""
        cell_left = self._cell_cpu_s - (self.cpu_s - (self._cell_start or 0.0))
        left = min(self.request.cpu_s - self.cpu_s, cell_left) / _PROCESSORS
        return TICK_S if self.folder else min(max(left, TICK_S), 10 * TICK_S)

    def _until_memory_limit(self, spent: float, used: int, tasks: int) -> float:
        """Return the seconds until the next check if there is no cgroup.

        Args:
            spent: seconds spent on this check.
            used: bytes of memory in use.
            tasks: number of tasks of the run, which may fork before the next check.
        """
        if used < CALM * self.request.memory_bytes:
            return TICK_S
        until_full = (self.request.memory_bytes - used) / (FILLED_PER_S * min(_PROCESSORS, 2 * tasks))
        return min(TICK_S, max(QUICK_S, until_full, spent / URGENT_CHECK_SHARE))


# ---- files


def files(folder: str, enough: int) -> int:
    """Return the bytes of disk space used by a folder.

    Returns ``enough + 1`` if the folder uses more than ``enough`` bytes, has more than MAX_FILES entries, or a path
    longer than MAX_PATH.

    Raises:
        OSError: if a subfolder cannot be read.
    """
    total = count = 0
    pending = [folder]
    while pending:
        with contextlib.suppress(*GONE), os.scandir(pending.pop()) as entries:
            for entry in entries:
                with contextlib.suppress(*GONE):
                    # Not st_size: space beyond the end counts, holes do not (250_space_beyond_the_end).
                    total += entry.stat(follow_symlinks=False).st_blocks * 512
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(entry.path)
                count += 1
                if total > enough or count > MAX_FILES or len(entry.path) > MAX_PATH:
                    return enough + 1
    return total


class HiddenFiles:
    """Files that take disk space but have no name in a folder: deleted files that processes hold open or mapped.

    Descriptors can also be in a message that no process has received yet. Then ``in_flight`` is true.

    Args:
        folder: the folder in which the files were.
        own_socket: inode of a socket in which descriptors of the host may be waiting.
    """

    def __init__(self, folder: str, own_socket: int | None = None) -> None:
        self._prefix, self._own_socket = f"{folder}/".encode(), own_socket
        self._found: dict[int, int] = {}  # bytes by inode, because processes share files
        self.in_flight = False

    def total(self) -> int:
        """Return their bytes."""
        return sum(self._found.values())

    def add(self, found: ProcessInfo, *, mappings: bool = True) -> None:
        """Add the files of a process, also those that it has only mapped if ``mappings`` is true.

        Raises:
            PermissionError: if the process may not be looked at.
        """
        for task in tasks_of(found.pid):  # a thread can have descriptors of its own (252_descriptors_of_one_thread)
            try:
                with contextlib.suppress(*GONE):
                    self._add_descriptors(f"/proc/{found.pid}/task/{task}")
                    if mappings and task == found.task:
                        self._add_mappings(f"/proc/{task}")
            except PermissionError:
                if not is_ending(found.pid, task):
                    raise

    def _add_descriptors(self, task: str) -> None:
        for fd in os.listdir(f"{task}/fd"):
            with contextlib.suppress(*GONE):
                found = os.stat(f"{task}/fd/{fd}")
                if stat.S_ISREG(found.st_mode) and found.st_nlink == 0:
                    self._found[found.st_ino] = found.st_blocks * 512
                elif stat.S_ISSOCK(found.st_mode) and found.st_ino != self._own_socket:
                    with open(f"{task}/fdinfo/{fd}") as file:
                        self.in_flight |= any(int(line.split()[1]) for line in file if line.startswith("scm_fds:"))

    def _add_mappings(self, task: str) -> None:
        """Add files that are mapped but neither open nor named (144_disk_by_mappings)."""
        with open(f"{task}/maps", "rb") as file:
            deleted = [line.split(maxsplit=5) for line in file.read().splitlines() if line.endswith(b" (deleted)")]
        for address, *_, inode, path in deleted:
            if path.startswith(self._prefix) and int(inode) not in self._found:
                with contextlib.suppress(*GONE):
                    self._found[int(inode)] = os.stat(f"{task}/map_files/{address.decode()}").st_blocks * 512
