"""Admission control: limit how many untrusted programs of this process run at the same time.

A program that competes with hundreds of others can exceed its wall-clock limit although it is fast. Therefore programs
wait here until a slot is free; the wait is not part of their time limits. Each process has its own slots.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

PER_CORE = 4  # programs that may run at the same time per core; more than one, because programs also wait and sleep


class Admission:
    """Slots for running programs, given out in the order in which threads ask. Thread-safe.

    A thread that already holds a slot gets no second one, so a callback of a running program can run another program.
    A thread that holds a slot must not wait for another thread that needs one, because all slots may be taken.

    Args:
        cores: number of cores.
        per_core: number of slots per core.
    """

    def __init__(self, cores: int, per_core: int = PER_CORE) -> None:
        self.per_core, self.free = per_core, cores * per_core
        self._changed = threading.Condition()
        self._thread = threading.local()  # ``holds``: whether the thread holds a slot
        self._waiting: deque[object] = deque()  # in order, or threads that run one program after another starve others

    @contextmanager
    def slot(self, count: int = 1) -> Iterator[None]:
        """Hold ``count`` slots. Waits until they are free."""
        if getattr(self._thread, "holds", False):
            yield
            return
        self._take(count)
        self._thread.holds = True
        try:
            yield
        finally:
            self._thread.holds = False
            self.release(count)

    def reserved(self) -> AbstractContextManager[None]:
        """Hold all slots of one core, so that the others share the remaining cores. Waits until they are free."""
        return self.slot(self.per_core)

    def extra(self, count: int) -> int:
        """Take up to ``count`` free slots without waiting. Returns how many were taken; release() returns them."""
        with self._changed:
            taken = 0 if self._waiting else min(count, self.free)
            self.free -= taken
            return taken

    def release(self, count: int) -> None:
        with self._changed:
            self.free += count
            self._changed.notify_all()

    def _take(self, count: int) -> None:
        ticket = object()
        with self._changed:
            self._waiting.append(ticket)
            try:
                self._changed.wait_for(lambda: self._waiting[0] is ticket and self.free >= count)
                self.free -= count
            finally:
                self._waiting.remove(ticket)
                if self.free:  # the next may go as well
                    self._changed.notify_all()


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


_admission = Admission(_cores())


def admission() -> Admission:
    """Return the slots of this process."""
    return _admission


def _replace() -> None:
    global _admission
    _admission = Admission(_cores())  # threads of the parent process hold the old slots


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_replace)
