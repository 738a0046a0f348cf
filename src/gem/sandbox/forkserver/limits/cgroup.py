"""Control groups (cgroups): limit, measure, freeze and kill all processes of a run together.

A server makes its groups beside each other, below the group it was started in, so that the kernel gives each run the
same share of the processors as one process of the host. With cgroups version 2, a group that contains processes cannot
have limited subgroups; then the groups are made next to the group of the server, where systemd has delegated that part
of the tree to the user, or for root. The folders are opened before the server changes its root, and emptied groups are
reused. A lock on an empty group, held as long as the server lives, tells other servers which groups they may remove.

Version 1 is tested on a real kernel. Version 2 has only been tested on a recorded folder tree.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import signal
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from gem.errors import SandboxError

SETTING = "GEM_SANDBOX_CGROUP"  # "0" turns cgroups off
# Purpose of a file, and the controller and name of the file. An empty controller means that every group has the file.
V1 = {
    "memory": ("memory", "memory.limit_in_bytes"),
    "memory and swap": ("memory", "memory.memsw.limit_in_bytes"),  # a program would fill the swap of the machine
    "network buffers": ("memory", "memory.kmem.tcp.limit_in_bytes"),  # counted apart (132_memory_in_sockets)
    "memory used": ("memory", "memory.usage_in_bytes"),
    "memory events": ("memory", "memory.oom_control"),
    "tasks": ("pids", "pids.max"),  # RLIMIT_NPROC counts by user, not by run (161_thread_hog)
    "weight": ("cpu", "cpu.shares"),  # by processes, a run with sixty would get sixty shares (160_sixty_spinners)
    "cpu": ("cpuacct", "cpuacct.usage"),  # also of children that nobody waits for (150_cpu_of_unreaped_children)
    "freeze": ("freezer", "freezer.state"),  # SIGSTOP can be undone by others (173_hides_from_the_freezer)
}
V2 = {
    "memory": ("memory", "memory.max"),
    "swap": ("memory", "memory.swap.max"),
    "memory used": ("memory", "memory.current"),
    "memory events": ("memory", "memory.events"),
    "tasks": ("pids", "pids.max"),
    "weight": ("cpu", "cpu.weight"),
    "cpu": ("", "cpu.stat"),
    "freeze": ("", "cgroup.freeze"),
    "kill": ("", "cgroup.kill"),
}
FROZEN = {"freezer.state": ("THAWED", "FROZEN"), "cgroup.freeze": ("0", "1")}
# The usual weight, and a tenth of it for runs that wake each other all the time (165_wakeups).
WEIGHTS = {"cpu.shares": (1024, 102), "cpu.weight": (100, 10)}
CONTROLLERS = ("memory", "pids", "cpu", "cpuacct", "freezer")
PROCESSES = "cgroup.procs"
KEPT_BYTES = 16 << 20  # a group is not reused if more memory of its last run remains, for example cached files
EMPTY_S = 2.0  # time for killed processes to leave a group
REMOVED_S = 8.0  # the same when the server ends, which the host waits for for 10 s
_SHORTAGES = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)  # temporary, so they do not mean that groups cannot be made
_OUR_NAME = re.compile(r"gem-[0-9a-f]{16}")


@dataclass(frozen=True)
class Found:
    """Where groups can be made.

    Args:
        table: V1 or V2.
        parents: maps a controller of the table, or "" with V2, to the folder in which groups are made.
    """

    table: Mapping[str, tuple[str, str]]
    parents: Mapping[str, str]


def find(groups: str, mounts: str) -> Found:
    """Find the folders in which this process may be able to make groups.

    Args:
        groups: content of /proc/self/cgroup.
        mounts: content of /proc/self/mountinfo.
    """
    paths: dict[str, str] = {}
    for line in groups.splitlines():
        _, names, path = line.split(":", 2)
        paths.update(dict.fromkeys(names.split(","), path))
    v1: dict[str, str] = {}
    unified = ""
    for line in mounts.splitlines():
        mount, _, filesystem = line.partition(" - ")
        root, mounted_at = mount.split()[3:5]
        kind, *_, options = filesystem.split()
        for name in set(CONTROLLERS).intersection(options.split(",")) if kind == "cgroup" else {""}:
            folder = _folder(paths.get(name), root=root, mounted_at=mounted_at)
            if kind == "cgroup" and folder:
                v1[name] = folder
            elif kind == "cgroup2" and folder:
                unified = folder
    return Found(V1, v1) if "memory" in v1 or not unified else Found(V2, _delegated(unified))


def _folder(path: str | None, *, root: str, mounted_at: str) -> str | None:
    """Return the folder of a group: mounts show the part of the tree below ``root``."""
    if path is None or os.path.relpath(path, root).startswith(".."):
        return None
    return os.path.normpath(f"{mounted_at}/{os.path.relpath(path, root)}")


def _delegated(own: str) -> dict[str, str]:
    """Return the controllers of version 2 that subgroups of the own group have, or else groups beside the own group."""
    for controller in ("memory", "pids", "cpu"):
        with contextlib.suppress(OSError):  # refused for a group with processes, unless it is the root
            _write(f"{own}/cgroup.subtree_control", f"+{controller}")
    for folder in (own, os.path.dirname(own)):
        with contextlib.suppress(OSError), open(f"{folder}/cgroup.subtree_control") as file:
            if controllers := file.read().split():
                return dict.fromkeys(["", *controllers], folder)
    return {}


def open_groups() -> Groups | None:
    """Open the folders in which the groups of runs are made.

    Returns:
        None if this process cannot make groups.

    Raises:
        OSError: if this could not be decided because memory or descriptors are short.
    """
    try:
        with open("/proc/self/cgroup") as groups, open("/proc/self/mountinfo") as mounts:
            found = find(groups.read(), mounts.read())
    except OSError as e:
        if e.errno in _SHORTAGES:
            raise
        return None
    made = Groups(found)
    if made.holds:
        return made
    made.remove()
    return None


def available() -> frozenset[str]:
    """Return what a cgroup of a run holds on this machine; see Groups.holds.

    Raises:
        SandboxError: if memory or descriptors are too short to decide it.
    """
    if os.environ.get(SETTING) == "0":
        return frozenset()
    try:
        groups = open_groups()
    except OSError as e:
        raise SandboxError(f"could not test which limits a cgroup holds: {e}") from e
    if groups is None:
        return frozenset()
    groups.remove()
    return groups.holds


class Groups:
    """Makes, reuses and removes the groups of one server.

    Attributes:
        holds: what a group holds: a subset of "memory", "tasks", "weight", "cpu" and "freeze".
    """

    def __init__(self, found: Found) -> None:
        self.name = f"gem-{os.urandom(8).hex()}"
        self.parents: dict[str, int] = {}  # descriptor of the folder in which the groups of a controller are made
        self._locks: list[int] = []
        self._made, self._free, self._leaving = 0, list[Cgroup](), list[Cgroup]()
        self.folders: list[int] = []
        try:
            with _waiting_process() as pid:
                self._open_parents(found.parents, pid)
        except OSError:
            self.remove()
            raise
        self.table = {use: file for use, file in found.table.items() if file[0] in self.parents}
        self.holds = frozenset(self.table).intersection(("memory", "tasks", "weight", "cpu", "freeze"))

    def _open_parents(self, parents: Mapping[str, str], pid: int) -> None:
        opened: dict[str, int] = {}
        # The freezer first: with version 1, what a killed server has left frozen stays in all of its groups.
        for controller, folder in sorted(parents.items(), key=lambda item: item[0] != "freezer"):
            try:
                if folder not in opened:
                    opened[folder] = self._opened(folder, pid)
                    self.folders.append(opened[folder])
                self.parents[controller] = opened[folder]
            except OSError as e:
                if e.errno in _SHORTAGES:
                    raise

    def _opened(self, folder: str, pid: int) -> int:
        """Open a folder, remove the groups of servers that were killed, and lock a group of our own.

        Args:
            folder: the folder in which groups are made.
            pid: a process that can be moved into the group, as a test.

        Raises:
            OSError: if groups cannot be made or processes cannot be moved into them.
        """
        parent = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            _remove_abandoned(parent)
            self._locks.append(_made_and_locked(self.name, parent))
            _write(f"{self.name}/{PROCESSES}", str(pid), parent)
        except OSError:
            _removed(self.name, parent)
            os.close(parent)
            raise
        return parent

    def take(self, *, memory_bytes: int, tasks: int) -> Cgroup:
        """Return an empty group with these limits. Raises OSError if it cannot be made."""
        if self._free:
            group = self._free.pop()
        else:
            self._made += 1
            group = Cgroup(self, f"{self.name}.{self._made}")
        try:
            group.limit(memory_bytes, tasks)
        except OSError:
            group.remove()
            raise
        return group

    def give_back(self, group: Cgroup) -> None:
        """Reuse a group whose processes have been killed, or remove it as soon as it is empty."""
        self._leaving = [old for old in self._leaving if not old.remove()]
        if group.reusable():
            self._free.append(group)
        elif not group.remove():
            self._leaving.append(group)

    def remove(self) -> None:
        """Remove all groups of the server, also those made by a forked process, and close the folders."""
        until = time.monotonic() + REMOVED_S
        for lock in self._locks:
            os.close(lock)  # first, because listing a folder takes a descriptor
        for parent in self.folders:
            with contextlib.suppress(OSError):  # none is left; the next server removes the groups
                _remove(self.name, parent, until)
            os.close(parent)


class Cgroup:
    """The group of one run, in every hierarchy. Methods raise OSError if the group has been removed."""

    def __init__(self, groups: Groups, name: str) -> None:
        self.holds = groups.holds
        self.name, self._parents, self._table = name, groups.parents, groups.table
        self._folders = groups.folders
        self._limits: tuple[int, int] | None = None
        self._cpu_before, self._kills_before = 0.0, 0
        self.frozen = self.light = False
        for parent in self._folders:
            os.mkdir(name, dir_fd=parent)

    def limit(self, memory_bytes: int, tasks: int) -> None:
        """Limit the memory in bytes, including files in memory and memory of the kernel, and the number of tasks."""
        if self._limits == (memory_bytes, tasks):
            return
        self._limits = memory_bytes, tasks
        for use in ("memory and swap", "memory", "memory and swap", "network buffers"):
            with contextlib.suppress(OSError):  # the first limit may not be below the second
                self._set(use, memory_bytes)
        self._set("memory", memory_bytes)
        self._set("swap", 0)
        self._set("tasks", tasks)

    def enter(self) -> None:
        """Move this process, which must have one thread, into the group."""
        # With version 1, writing to tasks moves a thread. Linux 6.0 and later do that without a lock that every fork
        # takes, for which a process that is moved may wait 15 ms.
        file = "tasks" if "kill" not in self._table else PROCESSES
        for parent in self._folders:
            _write(f"{self.name}/{file}", "0", parent)

    def add(self, pid: int) -> None:
        """Move a process into the group."""
        for parent in self._folders:
            _write(f"{self.name}/{PROCESSES}", str(pid), parent)

    def cpu_s(self) -> float | None:
        """Return the CPU seconds used since the group was taken, including ended processes; None if unknown."""
        return cpu_seconds(self._get("cpu")) - self._cpu_before if "cpu" in self._table else None

    def open_usage(self) -> int | None:
        """Return a read-only descriptor for read_usage(), or None."""
        return self._open("cpu") if "cpu" in self._table else None

    def open_events(self) -> int | None:
        """Return a read-only descriptor for read_kills(), or None."""
        return self._open("memory events") if "memory events" in self._table else None

    def killed_for_memory(self) -> bool:
        """Whether the kernel has killed a process of the group for exceeding the memory limit."""
        return self._kills() > self._kills_before

    def _kills(self) -> int:
        return kills(self._get("memory events")) if "memory events" in self._table else 0

    def pids(self) -> list[int]:
        """Return the ids of the processes in the group, without zombies."""
        return list(map(int, _read(_open(f"{self.name}/{PROCESSES}", self._folders[0])).split()))

    def freeze(self) -> None:
        """Stop all processes until thaw(). With version 1, frozen processes cannot be killed."""
        if "freeze" in self._table:
            self.frozen = True
            self._set("freeze", FROZEN[self._table["freeze"][1]][1])

    def thaw(self) -> None:
        if self.frozen:
            self._set("freeze", FROZEN[self._table["freeze"][1]][0])
            self.frozen = False

    def weigh(self, *, light: bool) -> None:
        """Set the share of the processors, relative to other runs: the usual one, or a tenth of it."""
        if light != self.light and "weight" in self._table:
            self._set("weight", WEIGHTS[self._table["weight"][1]][light])
            self.light = light

    def kill(self, *, but: int | None = None) -> None:
        """Send SIGKILL to all processes, or to all but one. They may still be ending on return."""
        if but is None and "kill" in self._table:
            self._set("kill", 1)
        else:
            for pid in self.pids():
                if pid != but:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
        self.thaw()

    def wait_until_empty(self, timeout_s: float = EMPTY_S, *, but: int | None = None) -> bool:
        """Kill all processes, or all but one, until they have ended.

        Returns:
            False if some remain after the timeout, in seconds.
        """
        until = time.monotonic() + timeout_s
        while set(self.pids()) - {but}:
            if but is not None:
                self.freeze()  # so that it does not fork meanwhile (82_runs_from_its_hunter)
            self.kill(but=but)
            if time.monotonic() > until:
                return False
            time.sleep(0.0005)
        return True

    def reusable(self) -> bool:
        """Prepare an emptied group for its next run. Returns False if processes or memory of the last run remain."""
        if self.pids() or ("memory used" in self._table and int(self._get("memory used")) > KEPT_BYTES):
            return False
        self.thaw()
        self.weigh(light=False)
        self._cpu_before += self.cpu_s() or 0.0
        self._kills_before = self._kills()
        return True

    def remove(self) -> bool:
        """Remove the group. Returns False if it still contains processes."""
        return all([_removed(self.name, parent) for parent in self._folders])

    def _set(self, use: str, value: object) -> None:
        """Write to the file for a purpose, if the group has one."""
        if use in self._table:
            controller, name = self._table[use]
            _write(f"{self.name}/{name}", str(value), self._parents[controller])

    def _get(self, use: str) -> bytes:
        return _read(self._open(use))

    def _open(self, use: str) -> int:
        controller, name = self._table[use]
        return _open(f"{self.name}/{name}", self._parents[controller])


def read_usage(fd: int) -> float:
    """Return the CPU seconds of the group whose usage was opened by Cgroup.open_usage(). Only differences count."""
    return cpu_seconds(os.pread(fd, 256, 0))


def read_kills(fd: int) -> int:
    """Return how many processes of a group were killed for memory, from a descriptor of Cgroup.open_events()."""
    return kills(os.pread(fd, 4096, 0))


def kills(text: bytes) -> int:
    """Return the number of processes killed for memory in the content of memory.oom_control or memory.events."""
    return int(dict(line.split() for line in text.splitlines()).get(b"oom_kill", 0))


def cpu_seconds(text: bytes) -> float:
    """Return the CPU seconds in the content of cpuacct.usage (nanoseconds) or cpu.stat (a line in microseconds)."""
    fields = text.split()
    return int(fields[1]) / 1e6 if fields[0] == b"usage_usec" else int(fields[0]) / 1e9


def _open(path: str, parent: int, flags: int = 0) -> int:
    """Open a file or folder for reading."""
    return os.open(path, os.O_RDONLY | os.O_CLOEXEC | flags, dir_fd=parent)


def _read(fd: int) -> bytes:
    """Read a file and close it. A file object would cost several times as much."""
    try:
        text = part = os.read(fd, 65536)
        while part:
            text += (part := os.read(fd, 65536))
        return text
    finally:
        os.close(fd)


def _write(path: str, text: str, parent: int | None = None) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC, dir_fd=parent)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)


@contextlib.contextmanager
def _waiting_process() -> Iterator[int]:
    """Context manager with the id of a process that waits until exit."""
    ours, theirs = os.pipe()
    pid = 0
    try:
        pid = os.posix_spawn("/bin/sh", ["sh", "-c", "read x"], {}, file_actions=[(os.POSIX_SPAWN_DUP2, ours, 0)])
        yield pid
    finally:
        os.close(ours)
        os.close(theirs)
        if pid:
            os.waitpid(pid, 0)


def _made_and_locked(name: str, parent: int) -> int:
    """Make and lock a group. Returns the descriptor that holds the lock."""
    for _ in range(100):  # until then, another server may take the group for an abandoned one
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, dir_fd=parent)
        with contextlib.suppress(FileNotFoundError):
            lock = _open(name, parent, os.O_DIRECTORY)
            fcntl.flock(lock, fcntl.LOCK_EX)
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(lock), os.stat(name, dir_fd=parent)):
                    return lock
            os.close(lock)
    raise OSError(f"the group {name} is removed again and again")


def _groups_of(name: str, parent: int) -> Iterator[str]:
    for entry in os.listdir(parent):
        if entry.partition(".")[0] == name:
            yield entry


def _remove(name: str, parent: int, until: float) -> None:
    """Kill what is left in the groups of a server, and remove them, once their processes have left them.

    The locked group is kept if another one cannot be removed, so that the next server tries again.

    Args:
        until: time.monotonic() at which to give up.
    """
    entries = sorted(_groups_of(name, parent), reverse=True)  # the locked one last
    for entry in entries:
        _kill(entry, parent)
    left = False
    for entry in entries:
        if entry == name and left:
            return
        while not _removed(entry, parent):
            if time.monotonic() > until:
                left = True
                break
            time.sleep(0.005)


def _kill(name: str, parent: int) -> None:
    """Kill the processes of a group that this process can see, and thaw them, so that they end."""
    with contextlib.suppress(OSError):
        for pid in map(int, _read(_open(f"{name}/{PROCESSES}", parent)).split()):
            if pid > 0:  # 0: in another pid namespace
                os.kill(pid, signal.SIGKILL)
    for file, (thawed, _) in FROZEN.items():
        with contextlib.suppress(OSError):
            _write(f"{name}/{file}", thawed, parent)


def _removed(name: str, parent: int) -> bool:
    try:
        os.rmdir(name, dir_fd=parent)
    except FileNotFoundError:
        pass
    except OSError:
        return False
    return True


def _remove_abandoned(parent: int) -> None:
    """Remove the groups of servers that no longer exist."""
    for name in list(filter(_OUR_NAME.fullmatch, os.listdir(parent))):
        with contextlib.suppress(OSError):
            lock = _open(name, parent, os.O_DIRECTORY)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _remove(name, parent, time.monotonic() + EMPTY_S)
            finally:
                os.close(lock)
