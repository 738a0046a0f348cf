"""Working directories of tests, and the setup of a forked process before it runs a test."""

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
# The C library's putenv() does not copy its argument, so the buffer must not be freed.
_putenv = ctypes.CDLL(None).putenv


class CleanupError(Exception):
    """Processes or files of a test could not be removed."""


@dataclass(frozen=True)
class ProcessLimits:
    """Limits that a test process sets for itself.

    Args:
        cpu_s: soft and hard limit in CPU seconds.
        last_fd: descriptors below this number are closed, except those of the test.
    """

    cpu_s: tuple[int, int]
    last_fd: int


class Workspace:
    """The working directory of a test, which is empty at the start, its confinement, and an eventfd that starts it."""

    def __init__(self, folder: str, confinement: Confinement) -> None:
        self.folder, self.confinement, self.start_event = folder, confinement, os.eventfd(0)
        self.variables = {name: os.fsencode(folder) for name in (b"HOME", b"TMPDIR")}
        self.entries = [ctypes.create_string_buffer(b"=".join(pair)) for pair in self.variables.items()]

    def enter(self, limits: ProcessLimits, fds: Sequence[int]) -> None:
        """Enter the workspace, wait for the start event, renumber ``fds`` from 0 and close all other descriptors.

        The code executes as little Python as possible, because every page that is written to is copied.

        Raises:
            OSError: if a step fails.
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
        """Replace the start event. Needed if the event was sent but the test died before reading it."""
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
    """The workspaces for the tests of one program, and the folders that all these tests can write to.

    Args:
        level: isolation level of the sandbox.

    ``free`` is the list of workspaces that are not in use.
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
        """Whether the shared folders contain files or folders that tests created."""
        return bool(self._leftovers())

    def remove_leftovers(self) -> None:
        """Remove the files and folders that tests created in the shared folders. No test may be running.

        Raises:
            CleanupError: if files remain.
        """
        for path in self._leftovers():
            remove(path)
        if self._leftovers():
            raise CleanupError

    def _leftovers(self) -> list[str]:
        return [f"{folder}/{name}" for folder in self.shared for name in os.listdir(folder) if name not in self.names]


def remove(path: str) -> None:
    """Remove a file or a folder. Errors are ignored."""
    with contextlib.suppress(OSError):
        os.unlink(path)
        return
    remove_tree(path)


def warm_up(times: int) -> None:
    """Enter a workspace several times, and restore sys.path and the environment afterwards."""
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
