"""Run slots on threads of this process: for environments that wait for I/O.

ThreadEngine runs each call as a task of a ThreadPool. A thread cannot be stopped. A call that exceeds its time limit is
therefore abandoned: its thread is no longer used, and the call fails as if the environment had raised.
"""

from __future__ import annotations

import itertools
import logging
import os
import queue
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from gem.errors import EnvFailed, InfraError
from gem.vector.engine import Engine, OutcomeQueue, wait_readable
from gem.vector.slots import (
    Factory,
    Slot,
    SlotCall,
    SlotOutcome,
    SlotSettings,
    build_slots,
    describe,
)

MAX_ABANDONED = 32  # number of stuck threads above which the vector environment raises InfraError
MAX_THREADS = 1024  # maximum number of threads if num_workers is None
CLOSE_TIMEOUT = 4.0  # seconds that environments have to finish their calls and close; then their threads are abandoned
_log = logging.getLogger(__name__)


def thread_engine(
    factories: Mapping[int, Factory], settings: SlotSettings, *, num_workers: int | None = None
) -> ThreadEngine:
    """Return an engine that runs the calls of different slots on different threads. See ThreadEngine.

    All environments are built in the thread of the caller.
    """
    return ThreadEngine(build_slots(factories, settings), timeout=settings.timeout, num_workers=num_workers)


class ThreadEngine(Engine):
    """Run each call as a task of a thread pool, so that slots do not wait for each other.

    Args:
        slots: the slots, by number.
        timeout: seconds for one call of one environment, including autoreset, measured from the start of the call.
            Rebuilding and resetting a failed environment has the same limit. A call that exceeds the limit is abandoned
            with its environment, which is closed when the call returns. While more than MAX_ABANDONED abandoned calls
            have not returned, step(), reset() and recv() raise InfraError. None sets no limit.
        num_workers: maximum number of threads. Threads are started on demand. If all threads are busy, calls wait. None
            uses one thread per slot, up to MAX_THREADS.
        stop: called by close() to end the tasks that do not run on a thread of the pool.
    """

    def __init__(
        self,
        slots: Mapping[int, Slot],
        *,
        timeout: float | None,
        num_workers: int | None,
        stop: Callable[[], None] = lambda: None,
    ) -> None:
        self.metadata = {number: slot.metadata for number, slot in slots.items()}
        self._slots = dict(slots)
        self._timeout = timeout
        self._pool = ThreadPool(num_workers or min(len(slots), MAX_THREADS))
        self._finalizer = weakref.finalize(self, _close, self._pool, self._slots, stop, os.getpid())

    def submit(self, calls: Sequence[SlotCall]) -> None:
        self._start([ThreadTask(call, self._slots[call.slot]) for call in calls])

    def collect(self) -> list[SlotOutcome]:
        if self._timeout is not None:
            latest = time.monotonic() - self._timeout
            for task in self._pool.abandon(started_by=latest):
                self._replace(task, f"timed out after {self._timeout:g} s")
            if (stuck := self._pool.stuck(started_by=latest)) > MAX_ABANDONED:
                raise InfraError(
                    f"{stuck} threads are stuck in environments that hang, and at most {MAX_ABANDONED} are "
                    "abandoned; use backend 'process', whose workers can be killed"
                )
        return self._pool.outcomes.take()

    def envs(self) -> dict[int, Any]:
        return {number: slot.env for number, slot in self._slots.items()}

    def wait(self, timeout: float | None) -> None:
        wait_readable(self.filenos(), self.poll_timeout() if timeout is None else min(timeout, self.poll_timeout()))

    def filenos(self) -> list[int]:
        return [self._pool.outcomes.fileno()]

    def poll_timeout(self) -> float:
        if self._timeout is None:
            return super().poll_timeout()
        oldest = self._pool.oldest()
        now = time.monotonic()
        return max(0.0, (now if oldest is None else oldest) + self._timeout - now)

    def close(self) -> None:
        self._finalizer()

    def _start(self, tasks: Sequence[ThreadTask]) -> None:
        self._pool.put(tasks)

    def _replace(self, task: ThreadTask, why: str) -> None:
        """Replace the slot of an abandoned task, and queue a task that fails the call."""
        number = task.call.slot
        self._slots[number] = task.slot.detach_hung()
        self._pool.put([ThreadTask(task.call, self._slots[number], why)])


def _close(pool: ThreadPool, slots: Mapping[int, Slot], stop: Callable[[], None], owner: int) -> None:
    if os.getpid() == owner:  # a fork of the process has no threads to stop
        pool.close(slots.values(), stop)


class ThreadTask:
    """One call on a slot, to be run on a thread or on an event loop.

    Args:
        call: the call to run. The method "close" closes the slot.
        slot: the slot.
        why: None to run the call. Otherwise, the call was abandoned before and is failed for this reason.
    """

    def __init__(self, call: SlotCall, slot: Slot, why: str | None = None) -> None:
        self.call, self.slot, self.why = call, slot, why
        self.started = 0.0  # time.monotonic() when the task started
        self.thread: threading.Thread | None = None  # the thread that runs the task; None if no thread does
        self.abandoned = False  # if so, the outcome is ignored, and the thread that runs the task closes the slot

    def run(self) -> SlotOutcome:
        slot = self.slot
        try:
            if self.call.method == "close":
                slot.close()
                return SlotOutcome(slot.number, None)
            return slot.perform(self.call) if self.why is None else slot.abandon(self.call, self.why)
        except BaseException as e:  # such as a KeyboardInterrupt raised by the environment; the thread continues
            return SlotOutcome(slot.number, None, EnvFailed(f"{slot.name}: {describe(e)}"))


class ThreadPool:
    """A pool of daemon threads, which are started on demand. A task occupies its thread until the task ends.

    The threads hold a reference to the pool but not to the engine, so that the engine can be garbage-collected.

    Args:
        limit: maximum number of threads, not counting those of abandoned tasks.
    """

    def __init__(self, limit: int) -> None:
        self.outcomes: OutcomeQueue[SlotOutcome] = OutcomeQueue()
        self._limit = limit
        self._lock = threading.Lock()
        self._queue: queue.SimpleQueue[ThreadTask | None] = queue.SimpleQueue()
        self._waiting: set[ThreadTask] = set()  # tasks in the queue
        self._running: dict[ThreadTask, None] = {}  # in order of start; includes tasks awaited on an event loop
        self._busy = 0  # number of running tasks that occupy a thread
        self._threads: set[threading.Thread] = set()  # without those of abandoned tasks
        # Threads with an abandoned task, or that close its environment, and when they started that.
        self._abandoned: dict[threading.Thread, float] = {}
        self._closing = False

    def put(self, tasks: Sequence[ThreadTask]) -> None:
        """Queue tasks for the threads. Raises InfraError if the pool has no thread and none can be started."""
        with self._lock:
            self._waiting.update(tasks)
        for task in tasks:
            self._queue.put(task)
        self._start_threads()

    def begin(self, task: ThreadTask, thread: threading.Thread | None = None) -> bool:
        """Record that a task starts or continues.

        Args:
            thread: the thread that runs the task. None if the task runs on an event loop.

        Returns:
            False if the task must not run, because it was abandoned or the pool is closing; else True.
        """
        with self._lock:
            self._waiting.discard(task)
            if task.abandoned or (self._closing and task.call.method != "close"):
                return False
            if task not in self._running:
                task.started = time.monotonic()
                self._running[task] = None
            task.thread = thread
            self._busy += thread is not None
            return True

    def finish(self, task: ThreadTask, outcome: SlotOutcome) -> bool:
        """Add the outcome of a task to the queue of outcomes and return True.

        If the task was abandoned while it was running, ignore the outcome and return False.
        """
        with self._lock:
            if task.abandoned:
                return False
            del self._running[task]
            self._busy -= task.thread is not None
        self.outcomes.put(outcome)
        return True

    def abandon(self, *, started_by: float) -> list[ThreadTask]:
        """Abandon and return the running tasks that started at or before a time.

        Their threads count as stuck until the tasks return and their environments are closed. Then the threads end.
        """
        with self._lock:
            late = list(itertools.takewhile(lambda task: task.started <= started_by, self._running))
            self._abandon(late)
        return late

    def stuck(self, *, started_by: float) -> int:
        """Return the number of threads that started their abandoned task, or to close its environment, by a time."""
        with self._lock:
            return sum(started <= started_by for started in self._abandoned.values())

    def oldest(self) -> float | None:
        """Return the start time of the task that has been running longest. None if no task is running."""
        with self._lock:
            return next((task.started for task in self._running), None)

    def close(self, slots: Iterable[Slot], stop: Callable[[], None] = lambda: None) -> None:
        """Close the slots and end the threads. A slot with a running task is closed when the task returns.

        Threads that still run after CLOSE_TIMEOUT seconds are abandoned.

        Args:
            stop: called to end the tasks that do not run on a thread of the pool.
        """
        deadline = time.monotonic() + CLOSE_TIMEOUT
        with self._lock:
            self._closing = True
            running = list(self._running)
            self._abandon(running)
            for task in self._waiting:
                task.call, task.why = SlotCall(task.call.slot, "close"), None
            closed_by_task = {task.slot for task in [*running, *self._waiting]}
        stop()
        self._close_slots([slot for slot in slots if slot not in closed_by_task])
        with self._lock:
            threads = [*self._threads, *(task.thread for task in running if task.thread is not None)]
        self._queue.put(None)
        for thread in threads:
            if thread.is_alive():  # a thread that has not started yet cannot be joined; it ends without help
                thread.join(max(0.0, deadline - time.monotonic()))
        if left := sum(thread.is_alive() for thread in threads):
            _log.warning("abandoned %d threads whose environments are still busy", left)
        self.outcomes.close()

    def _close_slots(self, slots: list[Slot]) -> None:
        tasks = [ThreadTask(SlotCall(slot.number, "close"), slot) for slot in slots]
        try:
            self.put(tasks)
        except InfraError:  # no thread can be started while the interpreter is shutting down
            for task in tasks:
                task.run()

    def _abandon(self, tasks: Iterable[ThreadTask]) -> None:
        for task in tasks:
            task.abandoned = True
            del self._running[task]
            if task.thread is not None:
                self._busy -= 1
                self._set_aside(task.thread, task.started)

    def _set_aside(self, thread: threading.Thread, started: float) -> None:
        self._threads.discard(thread)
        self._abandoned[thread] = started

    def _start_threads(self) -> None:
        while True:  # check again after each start, because the new thread may have emptied the queue
            with self._lock:
                if len(self._threads) >= min(self._limit, len(self._waiting) + self._busy):
                    return
                thread = threading.Thread(target=self._work, name="gem-slots", daemon=True)
                self._threads.add(thread)
            try:
                thread.start()
            except RuntimeError as e:
                with self._lock:
                    self._threads.discard(thread)
                    if self._threads:
                        return
                raise InfraError(f"no thread can be started for the environments: {e}") from e

    def _work(self) -> None:
        me = threading.current_thread()
        while (task := self._next(me)) is not None:
            if not self.begin(task, me):
                with self._lock:
                    self._set_aside(me, time.monotonic())
                self._start_threads()
            elif self.finish(task, task.run()):
                continue
            task.slot.close()
            with self._lock:
                del self._abandoned[me]
            return

    def _next(self, me: threading.Thread) -> ThreadTask | None:
        """Wait for a task and return it. Return None if the pool is closing and no task is waiting."""
        while (task := self._queue.get()) is None:
            self._queue.put(None)  # so that all other threads of the pool end as well
            with self._lock:
                if not self._waiting:
                    self._threads.discard(me)
                    return None
        return task
