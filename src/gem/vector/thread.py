"""Slots on threads of this process: for environments that wait for something else."""

from __future__ import annotations

import os
import time
import weakref
from collections.abc import Callable, Mapping, Sequence

from gem.errors import InfraError
from gem.vector.base import Autoreset, VectorEnv
from gem.vector.engine import Engine
from gem.vector.mailbox import await_readable
from gem.vector.pool import Job, Pool
from gem.vector.slots import Call, Factory, OnFailure, Outcome, SlotGroup
from gem.vector.sync import build_group, check_slots

MAX_ABANDONED = 32  # threads stuck at once, before the vector refuses to go on
MAX_THREADS = 1024  # at once, where num_workers is None


class ThreadVectorEnv(VectorEnv):
    """Slots on threads: each call runs on one, and slots that wait hold up nobody.

    Args:
        env_fns: one callable per slot that builds its environment, called here one after another.
        autoreset: see Autoreset.
        timeout: seconds for one call of one environment, the autoreset included, from when it starts; building an
            environment anew and its reset are given as long again. None waits. A thread cannot be stopped: what hangs
            is left behind with its environment, which is closed if it ever comes back. With more than MAX_ABANDONED
            left behind at once, every use raises InfraError.
        on_failure: see SlotGroup.
        num_workers: threads, which start as they are needed; calls beyond that wait their turn. None takes one per
            slot, up to MAX_THREADS.
    """

    def __init__(
        self,
        env_fns: Sequence[Factory],
        autoreset: str | Autoreset = Autoreset.SAME_STEP,
        *,
        timeout: float | None = None,
        on_failure: OnFailure = "raise",
        num_workers: int | None = None,
    ) -> None:
        mode = Autoreset.of(autoreset)
        check_slots(env_fns, on_failure, timeout)
        whole = build_group(env_fns, mode, on_failure)
        groups = {slot: whole.part(slot) for slot in whole.envs}
        super().__init__(ThreadEngine(groups, timeout=timeout, num_workers=num_workers), mode)


class ThreadEngine(Engine):
    """Runs each call as a job of a pool. See ThreadVectorEnv.

    Args:
        groups: slot → the group of this slot alone.
        timeout, num_workers: see ThreadVectorEnv.
        stop: ends the jobs that run on no thread, when the engine closes.
    """

    def __init__(
        self,
        groups: Mapping[int, SlotGroup],
        *,
        timeout: float | None,
        num_workers: int | None,
        stop: Callable[[], None] = lambda: None,
    ) -> None:
        self.facts = {slot: group.facts(slot) for slot, group in groups.items()}
        self._groups = dict(groups)
        self._timeout = timeout
        self._pool = Pool(num_workers or min(len(groups), MAX_THREADS))
        self._finalizer = weakref.finalize(self, _close, self._pool, self._groups, stop, os.getpid())

    def submit(self, calls: Sequence[Call]) -> None:
        self._start([Job(call, self._groups[call.slot]) for call in calls])

    def collect(self) -> list[Outcome]:
        if self._timeout is not None:
            for job in self._pool.give_up(begun_by=time.monotonic() - self._timeout):
                self._abandon(job, f"took over {self._timeout:g} s")
        if self._pool.stuck > MAX_ABANDONED:
            raise InfraError(
                f"{self._pool.stuck} threads are stuck in environments that hang; at most {MAX_ABANDONED} are left "
                "behind. Workers that hang can be killed with backend 'process'"
            )
        return self._pool.mailbox.take()

    def wait(self, timeout: float | None) -> None:
        await_readable(self.filenos(), self.patience() if timeout is None else min(timeout, self.patience()))

    def filenos(self) -> list[int]:
        return [self._pool.mailbox.fileno()]

    def patience(self) -> float:
        if self._timeout is None:
            return super().patience()
        oldest = self._pool.oldest()
        now = time.monotonic()
        return max(0.0, (now if oldest is None else oldest) + self._timeout - now)

    def close(self) -> None:
        self._finalizer()

    def _start(self, jobs: Sequence[Job]) -> None:
        self._pool.put(jobs)

    def _abandon(self, job: Job, why: str) -> None:
        """Go on without a job that was given up: in a group of its own, which fails its call."""
        slot = job.call.slot
        self._groups[slot] = job.group.give_up(slot)
        self._pool.put([Job(job.call, self._groups[slot], why)])


def _close(pool: Pool, groups: Mapping[int, SlotGroup], stop: Callable[[], None], owner: int) -> None:
    if os.getpid() == owner:  # a fork of this process has neither the threads nor their environments
        pool.close(groups.values(), stop)
