"""Where tests run, one in each workspace, and how a fork becomes the test there."""

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
# The C library's, which keeps what it is given and copies nothing.
_putenv = ctypes.CDLL(None).putenv


class CleanupError(Exception):
    """A test left something that could not be cleared away."""


@dataclass(frozen=True)
class ProcessLimits:
    """What a test sets for itself.

    Args:
        cpu_s: seconds to a signal, and to death.
        last_fd: above all descriptors that there may be.
    """

    cpu_s: tuple[int, int]
    last_fd: int


class Workspace:
    """A folder that is empty when a test starts, a confinement for_folder it, and a start_event at which it starts."""

    def __init__(self, folder: str, confinement: Confinement) -> None:
        self.folder, self.confinement, self.start_event = folder, confinement, os.eventfd(0)
        self.variables = {name: os.fsencode(folder) for name in (b"HOME", b"TMPDIR")}
        self.entries = [ctypes.create_string_buffer(b"=".join(pair)) for pair in self.variables.items()]

    def enter(self, limits: ProcessLimits, fds: Sequence[int]) -> None:
        """Become the one test here, with nothing but these descriptors, once the start_event rings. Raises OSError.

        All is done in what little of Python this takes, since what is touched is copied.
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
        """Where nobody may have heard it ring."""
        os.close(self.start_event)
        self.start_event = os.eventfd(0)

    def clear(self) -> None:
        """Raises CleanupError."""
        try:
            os.chmod(self.folder, 0o700)
            if os.listdir(self.folder):
                empty_folder(self.folder)
                if os.listdir(self.folder):
                    raise CleanupError
        except OSError as e:
            raise CleanupError from e


class Workspaces:
    """The workspaces of one program's tests, and what all tests may write to.

    level: of the sandbox.

    free: workspaces that are no test's.
    """

    def __init__(self, level: str) -> None:
        self.home, self.confinements = os.getcwd(), Confinements(level)
        self.free: list[Workspace] = []
        self.names: set[str] = set()  # of workspaces
        self.shared = [SHARED] if level == "ns" else []  # folders that all tests may write to, and none of the host's
        if not self.confinements.restricts_writes:
            self.shared.append(self.home)

    def ensure_free(self, count: int) -> None:
        """Make workspaces until so many are free."""
        while len(self.free) < count:
            folder = f"{self.home}/{len(self.names)}"
            os.mkdir(folder, 0o700)
            self.names.add(os.path.basename(folder))
            self.free.append(Workspace(folder, self.confinements.for_folder(folder)))

    def has_leftovers(self) -> bool:
        """Whether something lies where all tests may write."""
        return bool(self._leftovers())

    def remove_leftovers(self) -> None:
        """Remove that; no test may be running. Raises CleanupError."""
        for path in self._leftovers():
            remove(path)
        if self._leftovers():
            raise CleanupError

    def _leftovers(self) -> list[str]:
        return [f"{folder}/{name}" for folder in self.shared for name in os.listdir(folder) if name not in self.names]


def remove(path: str) -> None:
    """A file or a folder, as far as possible."""
    with contextlib.suppress(OSError):
        os.unlink(path)
        return
    remove_tree(path)


def warm_up(times: int) -> None:
    """Take a workspace as often, with no effect on this process."""
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
