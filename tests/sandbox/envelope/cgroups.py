"""Caps on memory and processes that hold for a whole envelope: a cgroup of either version, where one can be written.

Where none can, each process of the envelope has resource limits instead, which say nothing of all of them together.
"""

from __future__ import annotations

import contextlib
import os
import resource
import time
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")
MEMORY_BYTES = 3 << 30
PROCESSES = 300
CAPS_V1 = {
    "memory": {"memory.limit_in_bytes": MEMORY_BYTES},
    "pids": {"pids.max": PROCESSES},
    "cpu": {"cpu.shares": 1024},  # no more of the processors than each of the others
    "cpuacct": {},
}
CAPS_V2 = {"memory.max": MEMORY_BYTES, "memory.swap.max": 0, "pids.max": PROCESSES}


class Caps:
    """The caps of one envelope, from making it to remove().

    name: of its cgroup, not in use on this machine.
    """

    def __init__(self, name: str) -> None:
        self.folders: list[Path] = []
        with contextlib.suppress(OSError):
            self._make(name)

    def _make(self, name: str) -> None:
        if (ROOT / "cgroup.controllers").exists():
            parent = own_cgroup() if os.getuid() else ROOT
            (parent / "cgroup.subtree_control").write_text("+memory +pids")
            self._add(parent / name, CAPS_V2)
        else:
            for controller, caps in CAPS_V1.items():
                self._add(ROOT / controller / name, caps)

    def _add(self, folder: Path, caps: dict[str, int]) -> None:
        folder.mkdir()
        self.folders.append(folder)
        for cap, value in caps.items():
            with contextlib.suppress(FileNotFoundError):  # swap is not counted everywhere
                (folder / cap).write_text(str(value))

    def enter(self) -> None:
        """Move this process in. Called between fork and exec."""
        if not self.folders:
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
            resource.setrlimit(resource.RLIMIT_NPROC, (PROCESSES, PROCESSES))
        for folder in self.folders:
            (folder / "cgroup.procs").write_text(str(os.getpid()))

    def peaks(self) -> dict[str, int]:
        """The most "bytes" and "processes" there were at once, and "cpu_ms" in all, as far as the kernel says."""
        names = {
            "memory.max_usage_in_bytes": ("bytes", 1),
            "memory.peak": ("bytes", 1),
            "pids.peak": ("processes", 1),
            "cpuacct.usage": ("cpu_ms", 1_000_000),
            "cpu.stat": ("cpu_ms", 1_000),
        }
        seen = {}
        for folder in self.folders:
            for name, (what, unit) in names.items():
                with contextlib.suppress(OSError, ValueError):  # cpu.stat says something else in version 1
                    seen[what] = int((folder / name).read_text().split("\n")[0].removeprefix("usage_usec")) // unit
        return seen

    def remove(self) -> None:
        """Call when the envelope has ended: the kernel may need a moment to let go of its last process."""
        for folder in self.folders:
            for _ in range(100):
                try:
                    folder.rmdir()
                    break
                except OSError:
                    time.sleep(0.05)


def own_cgroup() -> Path:
    """Of cgroups version 2, the one that this process is in."""
    return ROOT / Path("/proc/self/cgroup").read_text().rsplit("::", 1)[1].strip().lstrip("/")
