"""Where tests run, one in each place, and how a fork becomes the test there."""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from gem.sandbox.zygote.fence import Fence, Fences, opening
from gem.sandbox.zygote.removal import empty_folder, remove_tree

SHARED = "/dev/shm"
# The C library's, which keeps what it is given and copies nothing.
_putenv = ctypes.CDLL(None).putenv


class Unclean(Exception):
    """A test left something that could not be cleared away."""


@dataclass(frozen=True)
class Bounds:
    """What a test sets for itself.

    Args:
        cpu_s: seconds to a signal, and to death.
        last_fd: above all descriptors that there may be.
    """

    cpu_s: tuple[int, int]
    last_fd: int


class Place:
    """A folder that is empty when a test starts, a fence around it, and a bell at which it starts."""

    def __init__(self, folder: str, fence: Fence) -> None:
        self.folder, self.fence, self.bell = folder, fence, os.eventfd(0)
        self.variables = {name: os.fsencode(folder) for name in (b"HOME", b"TMPDIR")}
        self.entries = [ctypes.create_string_buffer(b"=".join(pair)) for pair in self.variables.items()]

    def take(self, bounds: Bounds, fds: Sequence[int]) -> None:
        """Become the one test here, with nothing but these descriptors, once the bell rings. Raises OSError.

        All is done in what little of Python this takes, since what is touched is copied.
        """
        resource.setrlimit(resource.RLIMIT_CPU, bounds.cpu_s)
        sys.path[0] = self.folder
        for entry in self.entries:
            _putenv(entry)
        os.environ._data.update(self.variables)  # type: ignore[attr-defined]
        os.chdir(self.folder)
        self.fence.close_behind()
        os.eventfd_read(self.bell)
        for number, fd in enumerate(fds):
            os.dup2(fd, number)
        os.closerange(len(fds), bounds.last_fd)

    def renew_bell(self) -> None:
        """Where nobody may have heard it ring."""
        os.close(self.bell)
        self.bell = os.eventfd(0)

    def clear(self) -> None:
        """Raises Unclean."""
        try:
            os.chmod(self.folder, 0o700)
            if os.listdir(self.folder):
                empty_folder(self.folder)
                if os.listdir(self.folder):
                    raise Unclean
        except OSError as e:
            raise Unclean from e


class Grounds:
    """The places of one program's tests, and what all tests may write to.

    level: of the sandbox.

    free: places that are no test's.
    """

    def __init__(self, level: str) -> None:
        self.home, self.fences = os.getcwd(), Fences(level)
        self.free: list[Place] = []
        self.names: set[str] = set()  # of places
        self.shared = [SHARED] if level == "ns" else []  # folders that all tests may write to, and none of the host's
        if not self.fences.surrounds:
            self.shared.append(self.home)

    def have_free(self, count: int) -> None:
        """Make places until so many are free."""
        while len(self.free) < count:
            folder = f"{self.home}/{len(self.names)}"
            os.mkdir(folder, 0o700)
            self.names.add(os.path.basename(folder))
            self.free.append(Place(folder, self.fences.around(folder)))

    def untidy(self) -> bool:
        """Whether something lies where all tests may write."""
        return bool(self._strays())

    def tidy(self) -> None:
        """Remove that; no test may be running. Raises Unclean."""
        for path in self._strays():
            remove(path)
        if self._strays():
            raise Unclean

    def _strays(self) -> list[str]:
        return [f"{folder}/{name}" for folder in self.shared for name in os.listdir(folder) if name not in self.names]


def remove(path: str) -> None:
    """A file or a folder, as far as possible."""
    with contextlib.suppress(OSError):
        os.unlink(path)
        return
    remove_tree(path)


def rehearse(times: int) -> None:
    """Take a place as often, with no effect on this process."""
    variables, path, folder = dict(os.environ), sys.path[0], os.getcwd()
    place = Place(folder, opening())
    bounds = Bounds(resource.getrlimit(resource.RLIMIT_CPU), last_fd=3)
    try:
        for _ in range(times):
            os.eventfd_write(place.bell, 1)
            place.take(bounds, (0, 1, 2))
    finally:
        os.close(place.bell)
        sys.path[0] = path
        for name in set(os.environ) - set(variables):
            del os.environ[name]
        os.environ.update(variables)
