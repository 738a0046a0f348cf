"""Limits on the memory and processes of a whole envelope, by cgroups version 1 or 2.

The processes of the envelope are in the folder DELEGATED of its cgroup, which belongs to the envelope's user: the
sandbox can divide it, but cannot change the limits of the envelope. Where no cgroup can be written, each process of the
envelope has resource limits instead, which do not limit their sum.
"""

from __future__ import annotations

import contextlib
import os
import resource
import time
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")
MEMORY_BYTES = 3 << 30
PROCESSES = 800
CONTROLLERS_V1 = {
    "memory": {"memory.limit_in_bytes": MEMORY_BYTES},
    "pids": {"pids.max": PROCESSES},
    "cpu": {},
    "cpuacct": {},
    "freezer": {},
}
CAPS_V2 = {"memory.max": MEMORY_BYTES, "memory.swap.max": 0, "pids.max": PROCESSES}
DELEGATED = "gem"
SHARES, SHARES_OF_NEIGHBOURS = 1024, 4096  # of the processors; 1024 is the share of each other process of the machine


class Caps:
    """The limits of one envelope, until remove().

    Args:
        name: name of the cgroup, unused on this machine.
        uid: user of the envelope, who may divide its cgroup.
        neighbours: whether honest neighbours run in it, whose answers other work on the machine must not delay.
    """

    def __init__(self, name: str, uid: int, *, neighbours: bool = False) -> None:
        self.folders: list[Path] = []
        self.shares = SHARES_OF_NEIGHBOURS if neighbours else SHARES
        with contextlib.suppress(OSError):
            self._make(name, uid)

    @property
    def controllers(self) -> str:
        """Names of the controllers that the envelope can mount: "v2", names of version 1, or "" if there are none."""
        if not self.folders:
            return ""
        return "v2" if is_v2() else " ".join(CONTROLLERS_V1)

    def _make(self, name: str, uid: int) -> None:
        if is_v2():
            parent = own_cgroup() if os.getuid() else ROOT
            (parent / "cgroup.subtree_control").write_text("+memory +pids +cpu")
            self._add(parent / name, CAPS_V2, uid)
            (parent / name / "cgroup.subtree_control").write_text("+memory +pids +cpu")
        else:
            for controller, caps in CONTROLLERS_V1.items():
                self._add(ROOT / controller / name, caps, uid)
            (ROOT / "cpu" / name / "cpu.shares").write_text(str(self.shares))

    def _add(self, folder: Path, caps: dict[str, int], uid: int) -> None:
        folder.mkdir()
        self.folders.append(folder)
        for cap, value in caps.items():
            with contextlib.suppress(FileNotFoundError):  # some kernels do not count swap
                (folder / cap).write_text(str(value))
        (folder / DELEGATED).mkdir()
        if os.getuid() == 0:
            for path in (folder / DELEGATED, *(folder / DELEGATED).glob("cgroup.*"), folder / DELEGATED / "tasks"):
                with contextlib.suppress(FileNotFoundError):  # version 2 has no file "tasks"
                    os.chown(path, uid, uid)

    def enter(self) -> None:
        """Move this process into the cgroup. Called between fork and exec."""
        if not self.folders:
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
            resource.setrlimit(resource.RLIMIT_NPROC, (PROCESSES, PROCESSES))
        for folder in self.folders:
            (folder / DELEGATED / "cgroup.procs").write_text(str(os.getpid()))

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
            for inner, _, _ in os.walk(folder, topdown=False):
                remove_one(Path(inner))


def remove_one(folder: Path) -> None:
    for _ in range(100):
        try:
            folder.rmdir()
            return
        except FileNotFoundError:
            return
        except OSError:
            time.sleep(0.05)


def is_v2() -> bool:
    return (ROOT / "cgroup.controllers").exists()


def own_cgroup() -> Path:
    """The cgroup (version 2) of this process."""
    return ROOT / Path("/proc/self/cgroup").read_text().rsplit("::", 1)[1].strip().lstrip("/")
