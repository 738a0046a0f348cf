"""Working directories of tests, and the steps by which a forked process becomes the test in one of them."""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from gem.sandbox.zygote.confinement import Confinement, Confinements, no_confinement
from gem.sandbox.zygote.removal import empty_folder, remove_tree

SHARED = "/dev/shm"
# putenv of the C library keeps the given buffer and copies nothing.
_putenv = ctypes.CDLL(None).putenv


class CleanupError(Exception):
    """What a test left behind could not be removed."""


@dataclass(frozen=True)
class ProcessLimits:
    """Limits that a test sets for itself.

    Args:
        cpu_s: soft and hard limit in CPU seconds.
        last_fd: upper bound of all descriptors.
    """

    cpu_s: tuple[int, int]
    last_fd: int


class Workspace:
    """A folder, empty when a test starts, with its confinement and an eventfd that starts the test."""

    def __init__(self, folder: str, confinement: Confinement) -> None:
        self.folder, self.confinement, self.start_event = folder, confinement, os.eventfd(0)
        self.variables = {name: os.fsencode(folder) for name in (b"HOME", b"TMPDIR")}
        self.entries = [ctypes.create_string_buffer(b"=".join(pair)) for pair in self.variables.items()]

    def enter(self, limits: ProcessLimits, fds: Sequence[int]) -> None:
        """Enter the workspace, wait for the start event, and keep only these descriptors. Raises OSError.

        Uses as little of Python as possible, because every page that is written to is copied.
        """
        resource.setrlimit(resource.RLIMIT_CPU, limits.cpu_s)
        sys.path[0] = self.folder
        for entry in self.entries:
            _putenv(entry)
        os.environ._data.update(self.variables)  # type: ignore[attr-defined]
        os.chdir(self.folder)
        self.confinement.apply()
        os.eventfd_read(self.start_event)
        for number, fd in enumerate(fds):
            os.dup2(fd, number)
        os.closerange(len(fds), limits.last_fd)

    def reset_start_event(self) -> None:
        """Replace the start event, whose signal may not have been consumed."""
        os.close(self.start_event)
        self.start_event = os.eventfd(0)

    def clear(self) -> None:
        """Empty the folder. Raises CleanupError if that fails."""
        try:
            os.chmod(self.folder, 0o700)
            if os.listdir(self.folder):
                empty_folder(self.folder)
                if os.listdir(self.folder):
                    raise CleanupError
        except OSError as e:
            raise CleanupError from e


class Workspaces:
    """The workspaces of one program's tests, and the folders that all tests can write to.

    Args:
        level: level of the sandbox.

    ``free`` lists the workspaces without a test.
    """

    def __init__(self, level: str) -> None:
        self.home, self.confinements = os.getcwd(), Confinements(level)
        self.free: list[Workspace] = []
        self.names: set[str] = set()  # folder names of the workspaces
        self.shared = [SHARED] if level == "ns" else []  # private folders that all tests can write to
        if not self.confinements.restricts_writes:
            self.shared.append(self.home)

    def ensure_free(self, count: int) -> None:
        """Create workspaces until at least ``count`` are free."""
        while len(self.free) < count:
            folder = f"{self.home}/{len(self.names)}"
            os.mkdir(folder, 0o700)
            self.names.add(os.path.basename(folder))
            self.free.append(Workspace(folder, self.confinements.for_folder(folder)))

    def has_leftovers(self) -> bool:
        """Whether the shared folders contain files of tests."""
        return bool(self._leftovers())

    def remove_leftovers(self) -> None:
        """Remove files from the shared folders while no test is running. Raises CleanupError if that fails."""
        for path in self._leftovers():
            remove(path)
        if self._leftovers():
            raise CleanupError

    def _leftovers(self) -> list[str]:
        return [f"{folder}/{name}" for folder in self.shared for name in os.listdir(folder) if name not in self.names]


def remove(path: str) -> None:
    """Remove a file or a folder, as far as possible."""
    with contextlib.suppress(OSError):
        os.unlink(path)
        return
    remove_tree(path)


def warm_up(times: int) -> None:
    """Enter a workspace several times, without lasting effect on this process."""
    variables, path, folder = dict(os.environ), sys.path[0], os.getcwd()
    workspace = Workspace(folder, no_confinement())
    limits = ProcessLimits(resource.getrlimit(resource.RLIMIT_CPU), last_fd=3)
    try:
        for _ in range(times):
            os.eventfd_write(workspace.start_event, 1)
            workspace.enter(limits, (0, 1, 2))
    finally:
        os.close(workspace.start_event)
        sys.path[0] = path
        for name in set(os.environ) - set(variables):
            del os.environ[name]
        os.environ.update(variables)
