"""Semaphores for multiprocessing that do not need /dev/shm, which level "lsm" does not allow.

The semaphores are stored in memory that is shared with forked processes, so they require the start method "fork".
"""

from __future__ import annotations

import ctypes
import errno
import importlib
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
        self.kind, self.maxvalue, self.name, self.handle = kind, maxvalue, None, 0
        import mmap  # imported here, because only level "lsm" needs it

        self._memory = mmap.mmap(-1, mmap.PAGESIZE)
        self._sem = (ctypes.c_char * _SIZE).from_buffer(self._memory)
        self._held, self._owner = 0, 0
        if _libc.sem_init(self._sem, 1, value) < 0:
            raise OSError(ctypes.get_errno(), "sem_init")

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

    @staticmethod
    def _rebuild(*_: Any) -> SemLock:
        raise OSError(errno.EPERM, "in this sandbox semaphores can only be shared by forking")


def install() -> None:
    """Make multiprocessing use SemLock, and use temporary files for shared values. Also applies to forked processes."""
    importlib.import_module("mmap")
    synchronize: Any = importlib.import_module("_multiprocessing")
    synchronize.SemLock = SemLock
    heap: Any = importlib.import_module("multiprocessing.heap")
    heap.Arena._dir_candidates = []
