"""Semaphores for multiprocessing that do not need /dev/shm, which level "lsm" does not allow.

A semaphore is stored in memory that is shared with forked processes, or, for other start methods, in a file.
Interpreters that multiprocessing starts execute this file first, so it uses only the standard library.
"""

from __future__ import annotations

import ctypes
import errno
import importlib
import os
import threading
import time
from typing import Any

_libc = ctypes.CDLL(None, use_errno=True)
_SIZE = 32  # size of sem_t on 64-bit Linux
_RECURSIVE = 0  # multiprocessing.synchronize.RECURSIVE_MUTEX
_CLOCK_STEP_S = 3600.0 * 24 * 365


class _Time(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


class SemLock:
    """Replacement for _multiprocessing.SemLock."""

    SEM_VALUE_MAX = 2**31 - 1

    def __init__(self, kind: int, value: int, maxvalue: int, name: str, unlink: bool) -> None:
        fd, path = (-1, None) if unlink else _new_file(name)
        self._map(kind, maxvalue, path, fd)
        if _libc.sem_init(self._sem, 1, value) < 0:
            raise OSError(ctypes.get_errno(), "sem_init")

    def _map(self, kind: int, maxvalue: int, name: str | None, fd: int) -> None:
        """Map the semaphore in a file, and close the file. The descriptor -1 stands for a new anonymous file."""
        import mmap  # imported here, because only level "lsm" needs it

        self.kind, self.maxvalue, self.name, self.handle = kind, maxvalue, name, 0
        self._memory = mmap.mmap(fd, mmap.PAGESIZE)
        self._sem = (ctypes.c_char * _SIZE).from_buffer(self._memory)
        self._held, self._owner = 0, 0
        if fd >= 0:
            os.close(fd)

    def acquire(self, block: bool = True, timeout: float | None = None) -> bool:
        if self.kind == _RECURSIVE and self._is_mine():
            self._held += 1
            return True
        if not self._wait(block, timeout):
            return False
        self._held, self._owner = self._held + 1, threading.get_ident()
        return True

    def _wait(self, block: bool, timeout: float | None) -> bool:
        if not block or (timeout is not None and timeout <= 0):
            return bool(_libc.sem_trywait(self._sem) == 0)
        until = time.time() + (_CLOCK_STEP_S if timeout is None else min(timeout, _CLOCK_STEP_S))
        limit = _Time(int(until), int(until % 1 * 1e9))
        while _libc.sem_timedwait(self._sem, ctypes.byref(limit)) < 0:
            if ctypes.get_errno() == errno.ETIMEDOUT and timeout is not None:
                return False
            if ctypes.get_errno() not in (errno.EINTR, errno.ETIMEDOUT):
                raise OSError(ctypes.get_errno(), "sem_timedwait")
        return True

    def release(self) -> None:
        if self.kind == _RECURSIVE:
            if not self._is_mine():
                raise AssertionError("attempt to release recursive lock not owned by thread")
            if self._held > 1:
                self._held -= 1
                return
        elif self._get_value() >= self.maxvalue:
            raise ValueError("semaphore or lock released too many times")
        self._held -= 1
        _libc.sem_post(self._sem)

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()

    def _get_value(self) -> int:
        value = ctypes.c_int()
        _libc.sem_getvalue(self._sem, ctypes.byref(value))
        return max(0, value.value)

    def _is_zero(self) -> bool:
        return self._get_value() == 0

    def _count(self) -> int:
        return self._held

    def _is_mine(self) -> bool:
        return self._held > 0 and self._owner == threading.get_ident()

    def _after_fork(self) -> None:
        self._held = 0

    @classmethod
    def _rebuild(cls, _: int, kind: int, maxvalue: int, name: str) -> SemLock:
        """Open the semaphore of another process."""
        opened = cls.__new__(cls)
        opened._map(kind, maxvalue, name, os.open(name, os.O_RDWR | os.O_CLOEXEC))
        return opened


def _new_file(name: str) -> tuple[int, str]:
    """Create the file of a semaphore. Returns its descriptor and path. Raises FileExistsError."""
    util: Any = importlib.import_module("multiprocessing.util")
    path = os.path.join(util.get_temp_dir(), name.lstrip("/"))
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    os.ftruncate(fd, os.sysconf("SC_PAGE_SIZE"))
    return fd, path


def install(source: str) -> None:
    """Make multiprocessing use SemLock, and use temporary files for shared values.

    Also applies to forked processes and to the interpreters that multiprocessing starts.

    Args:
        source: the source of this module.
    """
    importlib.import_module("mmap")
    c_module: Any = importlib.import_module("_multiprocessing")
    c_module.SemLock, c_module.sem_unlink = SemLock, os.unlink
    heap: Any = importlib.import_module("multiprocessing.heap")
    heap.Arena._dir_candidates = []
    util: Any = importlib.import_module("multiprocessing.util")
    spawn = util.spawnv_passfds
    install_here = f"import types; m = types.ModuleType({__name__!r}); s = {source!r}; exec(s, vars(m)); m.install(s); "

    def spawn_with_semaphores(path: Any, args: Any, passfds: Any) -> int:
        code = list(args).index("-c") + 1
        return int(spawn(path, [*args[:code], install_here + args[code], *args[code + 1 :]], passfds))

    util.spawnv_passfds = spawn_with_semaphores
