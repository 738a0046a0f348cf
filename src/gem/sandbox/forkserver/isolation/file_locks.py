"""Replacements for functions of Python whose system calls have no effect in sandboxes; see docs/design/sandbox.md.

fcntl.flock() locks files that the program can write, by means of record locks. Unlike the original, a lock is not
inherited by a forked process, and a process loses its lock when it closes any descriptor of the file. os.utime() sets
the times of a path through a descriptor.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import time
from typing import Any, NamedTuple

POLL_S = 0.001  # while another descriptor of this process holds the lock; record locks do not exclude each other then
_File = tuple[int, int]  # device and inode


class _Lock(NamedTuple):
    """A lock of a process.

    Args:
        fd: descriptor by which the program locked the file.
        own: our descriptor of the file, which is open for reading and writing, as record locks require.
    """

    pid: int
    fd: int
    kind: int
    own: int


_held: dict[_File, _Lock] = {}


def install() -> None:
    """Replace fcntl.flock() in this process and its children."""
    fcntl.flock = flock


def install_times() -> None:
    """Replace os.utime() in this process and its children."""
    original = os.utime

    def utime(path: Any, *times: Any, dir_fd: int | None = None, follow_symlinks: bool = True, **more: Any) -> None:
        if isinstance(path, int):
            return original(path, *times, **more)
        if not follow_symlinks and stat.S_ISLNK(os.lstat(path, dir_fd=dir_fd).st_mode):
            return None  # a link has no descriptor
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=dir_fd)
        try:
            return original(fd, *times, **more)
        finally:
            os.close(fd)

    for functions in (os.supports_fd, os.supports_dir_fd):
        functions.add(utime)
    os.utime = utime


def flock(fd: Any, operation: int) -> None:
    """Lock or unlock a file. See fcntl.flock().

    Raises:
        BlockingIOError: if LOCK_NB is given and the lock is held through another descriptor.
        PermissionError: if the program cannot write the file. A lock on a shared file would block others.
    """
    number = fd if isinstance(fd, int) else fd.fileno()
    kind = operation & ~fcntl.LOCK_NB
    if kind not in (fcntl.LOCK_SH, fcntl.LOCK_EX, fcntl.LOCK_UN):
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
    status = os.fstat(number)
    file = status.st_dev, status.st_ino
    while (lock := _found(file)) is not None and lock.fd != number and kind != fcntl.LOCK_UN:
        if kind == lock.kind == fcntl.LOCK_SH:
            return
        if operation & fcntl.LOCK_NB:
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        time.sleep(POLL_S)
    if kind == fcntl.LOCK_UN:
        if lock is not None and lock.fd == number:
            del _held[file]
            os.close(lock.own)  # this unlocks the file
        return
    own = lock.own if lock is not None else _opened(number, status.st_mode)
    try:
        fcntl.lockf(own, operation)
    except OSError:
        if lock is None:
            os.close(own)
        raise
    _held[file] = _Lock(os.getpid(), number, kind, own)


def _found(file: _File) -> _Lock | None:
    """Return the lock of this process on a file. Forget locks of the parent and of closed descriptors."""
    for locked, lock in list(_held.items()):
        if lock.pid != os.getpid() or not _is_open(lock.fd, locked):
            del _held[locked]
            if _is_open(lock.own, locked):
                os.close(lock.own)
    return _held.get(file)


def _is_open(fd: int, file: _File) -> bool:
    try:
        status = os.fstat(fd)
    except OSError:
        return False
    return (status.st_dev, status.st_ino) == file


def _opened(fd: int, mode: int) -> int:
    """Open the file of a descriptor for reading and writing."""
    if stat.S_ISREG(mode):
        try:
            return os.open(f"/proc/self/fd/{fd}", os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            pass
    raise PermissionError(errno.EPERM, "in this sandbox a program can lock only its own files")
