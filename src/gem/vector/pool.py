"""Threads that play slots, some of which never come back."""

from __future__ import annotations

import itertools
import logging
import queue
import threading
import time
from collections.abc import Callable, Iterable, Sequence

from gem.errors import EnvFailed, InfraError
from gem.vector.mailbox import Mailbox
from gem.vector.slots import Call, Outcome, SlotGroup, describe

CLOSING = 4.0  # seconds that environments have to end their calls and to close, before their threads are left behind
_log = logging.getLogger(__name__)


class Job:
    """A call of a slot, and the group of this slot alone that is to perform it; or "close", for the group itself.

    why: of a call that was given up: what the group is to fail it with instead.
    """

    def __init__(self, call: Call, group: SlotGroup, why: str | None = None) -> None:
        self.call, self.group, self.why = call, group, why
        self.began = 0.0  # by time.monotonic(), once it has
        self.thread: threading.Thread | None = None  # that runs it, where one does
        self.given_up = False  # nobody waits for its outcome, and whoever holds it closes the group

    def run(self) -> Outcome:
        slot = self.call.slot
        try:
            if self.call.what == "close":
                self.group.close()
                return Outcome(slot, None)
            return self.group.perform(self.call) if self.why is None else self.group.fail(self.call, self.why)
        except BaseException as e:  # KeyboardInterrupt, say, raised by the environment: no reason to end this thread
            return Outcome(slot, None, EnvFailed(f"{self.group.name(slot)}: {describe(e)}"))


class Pool:
    """Daemon threads, started as jobs need them and reused. A job holds one until it ends; the others wait their turn.

    The threads hold the pool and nothing that holds it, so that an engine which nobody uses any more can be closed.

    Args:
        limit: threads at most, not counting those that are stuck.
    """

    def __init__(self, limit: int) -> None:
        self.mailbox = Mailbox()
        self.stuck = 0  # threads whose job was given up and has not come back
        self._limit = limit
        self._lock = threading.Lock()
        self._queue: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._waiting: set[Job] = set()  # those in the queue
        self._begun: dict[Job, None] = {}  # in the order in which they began; also those that wait on no thread
        self._closing = False
        self._busy = 0  # how many of them are on threads
        self._threads: set[threading.Thread] = set()  # but for those that are stuck

    def put(self, jobs: Sequence[Job]) -> None:
        """Run jobs as threads are free. Raises InfraError when not a single thread can be had."""
        with self._lock:
            self._waiting.update(jobs)
        for job in jobs:
            self._queue.put(job)
        self._hire()

    def begin(self, job: Job, thread: threading.Thread | None = None) -> bool:
        """Note that a job begins, or goes on, on that thread. False where nobody wants it any more."""
        with self._lock:
            self._waiting.discard(job)
            if job.given_up or (self._closing and job.call.what != "close"):
                return False
            if job not in self._begun:
                job.began = time.monotonic()
                self._begun[job] = None
            job.thread = thread
            self._busy += thread is not None
            return True

    def finish(self, job: Job, outcome: Outcome) -> bool:
        """Deliver what came of a job. False where it was given up and this is too late."""
        with self._lock:
            if job.given_up:
                return False
            del self._begun[job]
            self._busy -= job.thread is not None
        self.mailbox.put(outcome)
        return True

    def give_up(self, *, begun_by: float) -> list[Job]:
        """Give up the jobs that began by that time. Their threads are stuck until they come back, and end then."""
        with self._lock:
            late = list(itertools.takewhile(lambda job: job.began <= begun_by, self._begun))
            self._give_up(late)
        return late

    def oldest(self) -> float | None:
        """When the job began that has been running for longest."""
        with self._lock:
            return next((job.began for job in self._begun), None)

    def close(self, groups: Iterable[SlotGroup], stop: Callable[[], None] = lambda: None) -> None:
        """Close the groups, each once its job has ended, and end the threads.

        What has not ended after CLOSING seconds is left behind. stop: ends the jobs that wait on no thread.
        """
        deadline = time.monotonic() + CLOSING
        with self._lock:
            self._closing = True
            begun = list(self._begun)
            self._give_up(begun)
            for job in self._waiting:
                job.call, job.why = Call(job.call.slot, "close"), None
            closed_there = {job.group for job in [*begun, *self._waiting]}
        stop()
        self._close_all([group for group in groups if group not in closed_there])
        with self._lock:
            threads = [*self._threads, *(job.thread for job in begun if job.thread is not None)]
        self._queue.put(None)
        for thread in threads:
            if thread.is_alive():  # one that is only being started ends by itself
                thread.join(max(0.0, deadline - time.monotonic()))
        if left := sum(thread.is_alive() for thread in threads):
            _log.warning("%d environments are busy still, and their threads were left behind", left)
        self.mailbox.close()

    def _close_all(self, groups: list[SlotGroup]) -> None:
        jobs = [Job(Call(slot, "close"), group) for group in groups for slot in group.envs]
        try:
            self.put(jobs)
        except InfraError:  # the interpreter is ending, and there is no thread yet
            for job in jobs:
                job.run()

    def _give_up(self, jobs: Iterable[Job]) -> None:
        for job in jobs:
            job.given_up = True
            del self._begun[job]
            if job.thread is not None:
                self._busy -= 1
                self._part_with(job.thread)

    def _part_with(self, thread: threading.Thread) -> None:
        self._threads.discard(thread)
        self.stuck += 1

    def _hire(self) -> None:
        while True:  # looking anew each time: threads that started may have done it all
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
        while (job := self._next(me)) is not None:
            if not self.begin(job, me):
                with self._lock:
                    self._part_with(me)
                self._hire()
            elif self.finish(job, job.run()):
                continue
            job.group.close()
            with self._lock:
                self.stuck -= 1
            return

    def _next(self, me: threading.Thread) -> Job | None:
        """The next job; None when there will be none any more."""
        while (job := self._queue.get()) is None:
            self._queue.put(None)  # for the others, and for those that come later
            with self._lock:
                if not self._waiting:
                    self._threads.discard(me)
                    return None
        return job
