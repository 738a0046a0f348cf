"""The engine of every backend with workers: slots are dealt out to them, and who dies is replaced.

A worker has at most one batch of calls under way, and what is sent meanwhile waits, so that neither side ever waits
for the other to read. When a worker dies, the episodes of its slots are lost and another takes the slots over.
"""

from __future__ import annotations

import os
import time
from abc import abstractmethod
from collections.abc import Mapping, Sequence

from gem.errors import BadAction, BadValue, EnvFailed
from gem.vector.engine import GLANCE, Engine
from gem.vector.share import CannotBuild, Share, Worker, WorkerDied, deal
from gem.vector.slots import MAX_FAILURES, Call, Factory, OnFailure, Outcome, describe
from gem.vector.wire import pack_call
from gem.vector.worker import Task

MAX_DEATHS = 3  # of a share's workers in a row without one outcome, before its slots are given up
GRACE = 5.0  # seconds over the time limit that a silent worker has before it is killed
START = 60.0  # seconds for a worker to start anew, besides the time limit for each slot that it builds


class Crew(Engine):
    """See the module docstring.

    Args:
        factories: slot → what builds its environment. They are dealt out to the workers in contiguous shares.
        same_step, on_failure: see SlotGroup.
        timeout: seconds for one call of one environment from when it starts; None waits.
        count: how many workers, at most one per slot.

    Raises what building an environment raised; BadValue and MissingDependency for factories that cannot be sent to a
    worker; BadValue for a count below 1; EnvFailed where a worker died while it was building.
    """

    def __init__(
        self,
        factories: Mapping[int, Factory],
        *,
        same_step: bool,
        on_failure: OnFailure,
        timeout: float | None,
        count: int,
    ) -> None:
        if count < 1:
            raise BadValue(f"num_workers must be an integer >= 1, got {count!r}")
        self._same_step, self._on_failure, self._timeout = same_step, on_failure, timeout
        self._ended: list[Outcome] = []
        self._given_up: dict[int, str] = {}  # slot → why
        self._shares = [Share(own) for own in deal(factories, count)]
        self._share_of = {slot: share for share in self._shares for slot in share.slots}
        try:
            self._build()
        except BaseException:
            self.close()
            raise
        self.facts = {slot: facts for worker in self.workers for slot, facts in (worker.facts or {}).items()}

    @abstractmethod
    def hire(self, task: Task) -> Worker:
        """A new worker, which starts on its task. Waits for nothing. Raises WorkerDied."""

    @abstractmethod
    def await_news(self, timeout: float) -> None:
        """Return when one of the workers may have news, or after timeout seconds."""

    @property
    def workers(self) -> list[Worker]:
        """Those alive, as far as is known."""
        return [share.worker for share in self._shares if share.worker is not None]

    def submit(self, calls: Sequence[Call]) -> None:
        for call in calls:
            self._share_of[call.slot].waiting.append(call)
        for share in self._shares:
            self._hand_over(share)

    def collect(self) -> list[Outcome]:
        for share in self._shares:
            if share.worker is not None:
                self._listen(share, share.worker)
        ended, self._ended = self._ended, []
        return ended

    def wait(self, timeout: float | None) -> None:
        self.await_news(self.patience() if timeout is None else min(timeout, self.patience()))

    def patience(self) -> float:
        return 0.0 if self._ended else GLANCE

    def _build(self) -> None:
        """Start every worker and wait until all have built their slots."""
        for share in self._shares:
            try:
                self._start(share)
            except WorkerDied as e:
                raise EnvFailed(f"{share}: {e}") from e
        while building := [(share, share.worker) for share in self._shares if share.worker and not share.worker.facts]:
            self.await_news(GLANCE)
            for share, worker in building:
                try:
                    worker.receive()
                except CannotBuild as e:
                    raise e.cause from e.__cause__
                except WorkerDied as e:
                    raise EnvFailed(f"{share}: the worker died while it built them: {e}") from e

    def _start(self, share: Share, lost: str | None = None) -> None:
        """Start a share's worker. lost: why the episodes of its slots are lost, where they are. Raises WorkerDied."""
        slots = [slot for slot in share.slots if slot not in self._given_up]
        task = Task(
            share.packed,
            slots,
            self._same_step,
            self._on_failure,
            self._timeout,
            {slot: (lost, share.positions.get(slot)) for slot in slots} if lost is not None else {},
        )
        share.worker = self.hire(task) if slots else None
        share.heard = time.monotonic()

    def _hand_over(self, share: Share) -> None:
        """Give a worker that has nothing under way its next batch."""
        self._refuse(share)
        while share.waiting and not share.running and share.worker is not None and share.worker.facts is not None:
            if batch := self._pack(share):
                share.heard = time.monotonic()
                try:
                    share.worker.send(batch)
                except WorkerDied as e:
                    self._replace(share, share.worker, str(e))

    def _pack(self, share: Share) -> list[tuple[int, bytes]]:
        """The next batch, all of it running now but for what cannot be pickled."""
        batch = []
        for call in share.next_batch():
            try:
                batch.append((call.slot, pack_call(call)))
            except Exception as e:
                error = BadAction(f"slot {call.slot}: what was sent cannot be pickled: {describe(e)}")
                self._ended.append(Outcome(call.slot, None, error))
            else:
                share.running[call.slot] = call
        return batch

    def _refuse(self, share: Share) -> None:
        """Fail what waits for slots that are given up."""
        if self._given_up:
            refused = [call.slot for call in share.waiting if call.slot in self._given_up]
            self._ended += [Outcome(slot, None, EnvFailed(self._given_up[slot])) for slot in refused]
            share.waiting = [call for call in share.waiting if call.slot not in self._given_up]

    def _listen(self, share: Share, worker: Worker) -> None:
        try:
            outcomes = worker.receive()
            if outcomes is None:
                self._check_silence(share, worker)
                return
        except WorkerDied as e:
            self._replace(share, worker, str(e))
            return
        share.heard = time.monotonic()
        for outcome in outcomes:
            share.note(outcome)
        self._ended += outcomes
        self._hand_over(share)

    def _check_silence(self, share: Share, worker: Worker) -> None:
        """Raises WorkerDied for one that has been silent for too long while it had something to do."""
        silent = time.monotonic() - share.heard
        if self._timeout is None:
            return
        if worker.facts is None and silent > START + self._timeout * len(share.slots):
            raise WorkerDied(f"it built nothing within {silent:.0f} s")
        if worker.facts is not None and share.running and silent > self._timeout * worker.stages + GRACE:
            raise WorkerDied(f"a call was over the time limit of {self._timeout:g} s, and could not be interrupted")

    def _replace(self, share: Share, worker: Worker, why: str) -> None:
        """A share's worker died: settle what it had under way, and start another."""
        worker.kill()
        under_way = share.lose_worker()
        if self._on_failure == "restart":
            share.waiting[:0] = under_way
        else:
            failures = [(slot, f"{self._name(slot)} failed: its worker died: {why}") for slot, *_ in under_way]
            self._ended += [Outcome(slot, None, EnvFailed(failure)) for slot, failure in failures]
        self._give_up(share, why)
        try:
            self._start(share, f"its worker died: {why}")
        except WorkerDied as e:
            self._replace(share, worker, str(e))
        self._refuse(share)

    def _give_up(self, share: Share, why: str) -> None:
        """Give up the slots that keep losing workers."""
        for slot, times in share.blame.items():
            if times >= MAX_FAILURES:
                last = f"{times} workers in a row died in its calls, the last: {why}"
                self._given_up.setdefault(slot, f"{self._name(slot)} is given up: {last}")
        if share.deaths >= MAX_DEATHS:
            last = f"{share.deaths} workers in a row died without an answer, the last: {why}"
            for slot in share.slots:
                self._given_up.setdefault(slot, f"{share} given up: {last}")

    def _name(self, slot: int) -> str:
        env_id = self.facts[slot].env_id
        return f"slot {slot} ({env_id})" if env_id else f"slot {slot}"


def usable_cpus() -> int:
    """The CPUs that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
