"""Resource limits of a run that the kernel enforces, and its initial files."""

from __future__ import annotations

import functools
import math
import os
import resource
import time
from collections.abc import Mapping

from gem.sandbox.zygote import procfs
from gem.sandbox.zygote.protocol import RunRequest

OPEN_FILES = 256
_COUNT_S = 1.0  # how long a count of the user's tasks is reused


def set_limits(request: RunRequest, *, processes: int) -> None:
    """Set hard limits on this process and its children.

    Args:
        request: the limits.
        processes: RLIMIT_NPROC, which counts all tasks of a user per user namespace.
    """
    cpu_s = math.ceil(request.cpu_s) + 1  # a fallback: the monitor is more exact and reports the reason
    limits = {
        "RLIMIT_AS": request.memory_bytes + image_bytes(),
        "RLIMIT_FSIZE": request.disk_bytes,
        "RLIMIT_CPU": cpu_s,
        "RLIMIT_NPROC": processes,
        "RLIMIT_NOFILE": OPEN_FILES,
        "RLIMIT_CORE": 0,
        "RLIMIT_RTPRIO": 0,
    }
    if image_bytes() == 0:
        del limits["RLIMIT_AS"]  # not supported on this system
    for name, value in limits.items():
        number = getattr(resource, name, None)
        if number is not None:
            hard = resource.getrlimit(number)[1]
            value = value if hard == resource.RLIM_INFINITY else min(value, hard)
            resource.setrlimit(number, (value, value))


@functools.cache
def image_bytes() -> int:
    """Address space of this process at the first call, possibly before a fork; 0 if unknown."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[0]) * procfs.PAGE
    except OSError:
        return 0


class UserTasks:
    """Counts the tasks of the current user, so that a limit can be set relative to them.

    The kernel also counts tasks of other containers, which are not visible; their number is measured once.
    """

    def __init__(self) -> None:
        self._seen, self._when = 0, -math.inf
        self._hidden = max(0, _measured() - self._visible())

    def count(self) -> int:
        return self._visible() + self._hidden

    def _visible(self) -> int:
        now = time.monotonic()
        if now - self._when > _COUNT_S:
            self._seen, self._when = procfs.tasks_of_user(os.getuid()), now
        return self._seen


def _measured() -> int:
    """The user's tasks as counted by the kernel: one less than the lowest limit under which a fork succeeds."""
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
    """Write files below the working directory. Raises OSError if there is no space."""
    for path, content in files.items():
        if os.path.dirname(path):
            os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(content)
