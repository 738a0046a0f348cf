"""Resource limits of a run that the kernel enforces, and its initial files."""

from __future__ import annotations

import functools
import math
import os
import resource
import sys
import time
from collections.abc import Mapping

from gem.sandbox.forkserver import linux
from gem.sandbox.forkserver.limits import cgroup, monitor
from gem.sandbox.forkserver.limits.processes import PAGE, tasks_of_user
from gem.sandbox.forkserver.protocol import RunRequest

OPEN_FILES = 256
PENDING_SIGNALS = 1024  # queued signals and timers
_RLIMIT_SIGPENDING = 11  # not in the resource module
_COUNT_S = 1.0  # seconds for which a count of the user's tasks is reused


def set_limits(request: RunRequest, *, processes: int) -> None:
    """Set hard limits on this process and its children.

    Args:
        request: the limits of the run.
        processes: value of RLIMIT_NPROC, which limits the number of all tasks of the user in the user namespace.
    """
    cpu_s = math.ceil(request.cpu_s) + 1  # a fallback: the monitor is more precise and reports the reason
    limits = {
        # An allocation fails in the program as a MemoryError, before anyone has to kill it (03_mem_bomb).
        "RLIMIT_AS": request.memory_bytes + image_bytes(),
        "RLIMIT_FSIZE": request.disk_bytes,  # one large file between two checks of the folder (07_disk_fill)
        "RLIMIT_CPU": cpu_s,  # 09_cpu_spin_ignore_xcpu
        "RLIMIT_NPROC": processes,  # 01_fork_bomb, 02_thread_bomb
        "RLIMIT_NOFILE": OPEN_FILES,  # the machine has a limit for all of its processes (62_exhaust_descriptors)
        "RLIMIT_CORE": 0,  # a crash would first write its memory to the disk (72_crash_with_a_core)
        # Where the user may raise priorities, a program would outrun all others (64_priorities, 212_idle_and_deadline).
        "RLIMIT_RTPRIO": 0,
        "RLIMIT_NICE": 0,
    }
    if request.entry == monitor.TESTS:
        del limits["RLIMIT_CPU"]  # set for each test
    if image_bytes() == 0:
        del limits["RLIMIT_AS"]  # without /proc the address space in use is unknown
    numbers = {getattr(resource, name): value for name, value in limits.items() if hasattr(resource, name)}
    if sys.platform.startswith("linux"):
        numbers[_RLIMIT_SIGPENDING] = PENDING_SIGNALS  # by user: the host could queue none (119_pending_signals)
    for number, value in numbers.items():
        hard = resource.getrlimit(number)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(number, (value, value))  # the hard limit too, or the program raises it (63_raise_rlimits)


def enforced_by(level: str) -> dict[str, str]:
    """Return who enforces each limit of a run on this machine, and what is not enforced.

    Args:
        level: "ns", "lsm" or "basic".

    Returns:
        A description for each of "memory", "process_limit", "cpu" and "disk".
    """
    groups = cgroup.available()
    by_proc = {name: f"a monitor of /proc; not enforced: {what}" for name, what in monitor.NOT_HELD.items()}
    own_user = level == "ns" or (os.getuid() == 0 and linux.has_capability(linux.CAP_SETUID))
    sees_files = os.getuid() != 0 or linux.has_capability(linux.CAP_SYS_PTRACE)
    unseen = "that are only mapped, in a run that forks all the time" if sees_files else "that are still open"
    return {
        "memory": "cgroup" if "memory" in groups else f"RLIMIT_AS per process; in total {by_proc['memory']}",
        "process_limit": "cgroup"
        if "tasks" in groups
        else "RLIMIT_NPROC of a user of its own"
        if own_user
        else "RLIMIT_NPROC of all runs; for each run a monitor of /proc; not enforced: processes started between two "
        "checks, because of which other runs of the user may fail to start any",
        "cpu": "a monitor of the cgroup" if "cpu" in groups else f"RLIMIT_CPU per process; in total {by_proc['cpu']}",
        "disk": "the size of a tmpfs"
        if level == "ns"
        else f"RLIMIT_FSIZE per file; a monitor of the folder; not enforced: deleted files {unseen}",
    }


@functools.cache
def image_bytes() -> int:
    """Return the bytes of address space that this process, or its parent before the fork, used at the first call.

    Returns 0 if /proc is not available.
    """
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[0]) * PAGE
    except OSError:
        return 0


class UserTasks:
    """Counts the tasks of the current user, so that RLIMIT_NPROC can be set relative to the count.

    The kernel also counts tasks in other containers, which are not visible in /proc. Their number is measured once.
    """

    def __init__(self) -> None:
        self._seen, self._when = 0, -math.inf
        self._hidden = max(0, _measured() - self._visible())

    def count(self) -> int:
        return self._visible() + self._hidden

    def _visible(self) -> int:
        now = time.monotonic()
        if now - self._when > _COUNT_S:
            self._seen, self._when = tasks_of_user(os.getuid()), now
        return self._seen


def _measured() -> int:
    """Return the kernel's count of the user's tasks: the lowest RLIMIT_NPROC at which a fork succeeds, minus one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NPROC)
    low, high = 0, hard if 0 < hard < 1 << 17 else 1 << 17
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if _can_fork(middle) else (middle + 1, high)
    resource.setrlimit(resource.RLIMIT_NPROC, (soft, hard))
    return low - 1


def _can_fork(limit: int) -> bool:
    resource.setrlimit(resource.RLIMIT_NPROC, (limit, resource.getrlimit(resource.RLIMIT_NPROC)[1]))
    try:
        pid = os.fork()
    except OSError:
        return False
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    return True


def write_files(files: Mapping[str, bytes]) -> None:
    """Write files below the working directory. Raises OSError if writing fails, for example if the disk is full."""
    for path, content in files.items():
        if os.path.dirname(path):
            os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(content)
