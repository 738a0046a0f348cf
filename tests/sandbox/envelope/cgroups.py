"""Limits on the memory and processes of a whole envelope, by cgroups version 1 or 2.

Where no cgroup can be written, each process of the envelope has resource limits instead, which do not limit their sum.
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
    "cpu": {"cpu.shares": 1024},  # the same share of the processors as other cgroups
    "cpuacct": {},
}
CAPS_V2 = {"memory.max": MEMORY_BYTES, "memory.swap.max": 0, "pids.max": PROCESSES}


class Caps:
    """The limits of one envelope, until remove().

    Args:
        name: name of the cgroup, unused on this machine.
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
            with contextlib.suppress(FileNotFoundError):  # some kernels do not count swap
                (folder / cap).write_text(str(value))

    def enter(self) -> None:
        """Move this process into the cgroup. Called between fork and exec."""
        if not self.folders:
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
            resource.setrlimit(resource.RLIMIT_NPROC, (PROCESSES, PROCESSES))
        for folder in self.folders:
            (folder / "cgroup.procs").write_text(str(os.getpid()))

    def peaks(self) -> dict[str, int]:
        """Peak "bytes" and "processes", and the sum "cpu_ms", as far as the kernel reports them."""
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
                with contextlib.suppress(OSError, ValueError):  # cpu.stat has another format in version 1
                    seen[what] = int((folder / name).read_text().split("\n")[0].removeprefix("usage_usec")) // unit
        return seen

    def remove(self) -> None:
        """Remove the cgroup of an envelope that has ended. Retries while the kernel still releases its last process."""
        for folder in self.folders:
            for _ in range(100):
                try:
                    folder.rmdir()
                    break
                except OSError:
                    time.sleep(0.05)


def own_cgroup() -> Path:
    """The cgroup (version 2) of this process."""
    return ROOT / Path("/proc/self/cgroup").read_text().rsplit("::", 1)[1].strip().lstrip("/")
