"""The engine of all backends with workers. Divides slots into shards, one per worker, and replaces dead workers.

A worker has at most one batch of calls in progress. Later calls wait in the parent, so that neither the parent nor the
worker blocks on a full socket buffer. If a worker dies, the episodes of its slots are lost, and a new worker runs the
slots. Backends define whether a worker is a process or a Ray actor.
"""

from __future__ import annotations

import pickle
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from itertools import pairwise

from gem._internal.counts import check_count
from gem._internal.framing import describe_error, dumps
from gem._internal.worker_process import WorkerDied
from gem.errors import BadAction, BadValue, EnvFailed, MissingDependency
from gem.vector.engine import POLL_INTERVAL, Engine
from gem.vector.slots import (
    MAX_FAILURES,
    Factory,
    Position,
    SlotCall,
    SlotMetadata,
    SlotOutcome,
    SlotSettings,
)
from gem.vector.worker import BuildReport, PackedCall, WorkerSpec, pack_call

MAX_DEATHS = 3  # number of workers in a row that die without an outcome before the slots of a shard are disabled
KILL_DELAY = 1.0  # seconds after the time limit at which a worker that has sent nothing is killed
START_TIMEOUT = 60.0  # seconds for a replacement worker to start, in addition to the time limit of each slot


class BuildFailed(WorkerDied):
    """A worker could not build its environments. ``cause`` is the exception that was raised in the worker."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(f"cannot build its environments: {describe_error(cause)}")
        self.cause = cause


class RemoteTraceback(Exception):
    """The traceback of an exception that was raised in a worker."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}"


class SlotWorker(ABC):
    """A worker that runs the slots of one WorkerSpec. It must not be used after it has died.

    Attributes:
        metadata: metadata of its slots. None until their environments are built.
        stages: number of time limits that may expire during one call before a worker that sends nothing is killed.
    """

    metadata: dict[int, SlotMetadata] | None = None
    stages = 1

    @abstractmethod
    def send(self, batch: list[PackedCall]) -> None:
        """Start a batch of calls without waiting. No other batch may be in progress. Raises WorkerDied."""

    @abstractmethod
    def receive(self) -> list[SlotOutcome] | None:
        """Return the outcomes that have arrived since the previous receive. Does not wait.

        Returns:
            None if the worker has sent no message. An empty list if it has sent only messages without an outcome.

        Raises:
            WorkerDied: the worker has died.
        """

    def check_alive(self) -> None:
        """Raise WorkerDied if the worker has ended in a way that receive() does not notice."""
        return

    @abstractmethod
    def kill(self) -> None:
        """Kill the worker immediately. May be called twice."""

    def accept(self, report: BuildReport) -> None:
        """Store the metadata of a report. Raises BuildFailed if the worker could not build its environments."""
        if report.metadata is None:
            raise BuildFailed(pickle.loads(report.error)) from RemoteTraceback(report.trace)
        self.metadata = report.metadata


class Shard:
    """The slots of one worker, with their current worker and their calls."""

    def __init__(self, factories: dict[int, Factory]) -> None:
        self.slots = list(factories)
        self.factories = _pack_factories(factories)
        self.worker: SlotWorker | None = None  # None if all slots are disabled
        self.last_active = 0.0  # time.monotonic() of the last message from or to the worker
        self.waiting: list[SlotCall] = []
        self.running: dict[int, SlotCall] = {}
        self.positions: dict[int, Position] = {}  # last known position of each slot's episode
        self.deaths = 0  # number of workers in a row that died without an outcome
        self.deaths_alone: dict[int, int] = {}  # slot → deaths in a row while only its call was running
        # Slots without a successful step since a worker died. Their calls run one at a time, so that a slot whose calls
        # crash the worker can be identified.
        self.quarantined: set[int] = set()

    def __str__(self) -> str:
        return f"slot {self.slots[0]}" if len(self.slots) == 1 else f"slots {self.slots[0]} to {self.slots[-1]}"

    def next_batch(self) -> list[SlotCall]:
        """Remove the next batch from the queue and return the batch.

        If the first call is on a quarantined slot, the batch is this call alone. Otherwise, the batch contains all
        calls on slots that are not quarantined.
        """
        if not self.quarantined:
            batch, self.waiting = self.waiting, []
            return batch
        batch = self.waiting[:1]
        if batch and batch[0].slot not in self.quarantined:
            batch = [call for call in self.waiting if call.slot not in self.quarantined]
        chosen = {call.slot for call in batch}
        self.waiting = [call for call in self.waiting if call.slot not in chosen]
        return batch

    def record(self, outcome: SlotOutcome) -> None:
        """Update the state of the shard after a call has finished."""
        call = self.running.pop(outcome.slot)
        self.deaths = 0
        if outcome.position is not None:
            self.positions[outcome.slot] = outcome.position
        if self.quarantined and call.method == "step" and outcome.error is None and not _has_failed(outcome):
            self.quarantined.discard(outcome.slot)
            self.deaths_alone.pop(outcome.slot, None)

    def record_death(self) -> list[SlotCall]:
        """Quarantine all slots after the worker died. Return the calls that were running."""
        running = list(self.running.values())
        self.running.clear()
        self.quarantined = set(self.slots)
        self.deaths += 1
        if len(running) == 1:
            slot = running[0].slot
            self.deaths_alone[slot] = self.deaths_alone.get(slot, 0) + 1
        return running


class WorkerEngine(Engine):
    """Runs slots in workers. See the module docstring.

    Args:
        factories: slot → callable that builds its environment.
        settings: of the slots.
        num_workers: number of workers. If it exceeds the number of slots, there is one worker per slot.

    Raises:
        Exception: any exception raised while an environment was built.
        BadValue: num_workers < 1, or a factory cannot be sent to a worker.
        MissingDependency: a factory needs cloudpickle.
        EnvFailed: a worker died while it was building its environments.
    """

    def __init__(self, factories: Mapping[int, Factory], settings: SlotSettings, num_workers: int) -> None:
        check_count("num_workers", num_workers)
        self._settings = settings
        self._outcomes: list[SlotOutcome] = []
        self._given_up: dict[int, str] = {}  # slot → reason
        self._shards = [Shard(own) for own in split_slots(factories, num_workers)]
        self._shard_of = {slot: shard for shard in self._shards for slot in shard.slots}
        try:
            self._build()
        except BaseException:
            self.close()
            raise
        self.metadata = {slot: own for worker in self.workers for slot, own in (worker.metadata or {}).items()}

    @abstractmethod
    def start_worker(self, spec: WorkerSpec) -> SlotWorker:
        """Start a new worker for a WorkerSpec without waiting. Raises WorkerDied if the worker cannot be started."""

    @abstractmethod
    def wait_for_workers(self, timeout: float) -> None:
        """Block until a worker may have sent something, or until timeout seconds have passed."""

    @property
    def workers(self) -> list[SlotWorker]:
        """The current workers."""
        return [shard.worker for shard in self._shards if shard.worker is not None]

    def submit(self, calls: Sequence[SlotCall]) -> None:
        for call in calls:
            self._shard_of[call.slot].waiting.append(call)
        for shard in self._shards:
            self._send_next(shard)

    def collect(self) -> list[SlotOutcome]:
        for shard in self._shards:
            if shard.worker is not None:
                self._receive(shard, shard.worker)
        outcomes, self._outcomes = self._outcomes, []
        return outcomes

    def wait(self, timeout: float | None) -> None:
        self.wait_for_workers(self.poll_timeout() if timeout is None else min(timeout, self.poll_timeout()))

    def poll_timeout(self) -> float:
        if self._outcomes:
            return 0.0
        now = time.monotonic()
        limits = [shard.last_active + limit for shard in self._shards if (limit := self._silence_limit(shard))]
        return min([POLL_INTERVAL, *(max(0.0, limit - now) for limit in limits)])

    def _build(self) -> None:
        """Start all workers and wait until they have built their slots."""
        for shard in self._shards:
            try:
                self._start(shard)
            except WorkerDied as e:
                raise EnvFailed(f"{shard}: {e}") from e
        while building := [(s, s.worker) for s in self._shards if s.worker is not None and s.worker.metadata is None]:
            self.wait_for_workers(POLL_INTERVAL)
            for shard, worker in building:
                try:
                    worker.receive()
                except BuildFailed as e:
                    raise e.cause from e.__cause__
                except WorkerDied as e:
                    raise EnvFailed(f"{shard}: the worker died while building the environments: {e}") from e

    def _start(self, shard: Shard, lost: str | None = None) -> None:
        """Start a shard's worker. Raises WorkerDied.

        Args:
            lost: reason why the running episodes of the slots are lost. None if there are no running episodes.
        """
        slots = [slot for slot in shard.slots if slot not in self._given_up]
        spec = WorkerSpec(
            shard.factories,
            slots,
            self._settings,
            {slot: (lost, shard.positions.get(slot)) for slot in slots} if lost is not None else {},
        )
        shard.worker = self.start_worker(spec) if slots else None
        shard.last_active = time.monotonic()

    def _send_next(self, shard: Shard) -> None:
        """Send the next batch to a shard's worker if it is ready and idle."""
        self._refuse_given_up(shard)
        while shard.waiting and not shard.running and shard.worker is not None and shard.worker.metadata is not None:
            if batch := self._pack_batch(shard):
                shard.last_active = time.monotonic()
                try:
                    shard.worker.send(batch)
                except WorkerDied as e:
                    self._replace(shard, shard.worker, str(e))

    def _pack_batch(self, shard: Shard) -> list[PackedCall]:
        """Pack the next batch and mark its calls as running. Calls that cannot be pickled fail with BadAction."""
        batch = []
        for call in shard.next_batch():
            try:
                batch.append(pack_call(call))
            except Exception as e:
                why = f"slot {call.slot}: the argument of {call.method} cannot be pickled: {describe_error(e)}"
                self._outcomes.append(SlotOutcome(call.slot, None, BadAction(why)))
            else:
                shard.running[call.slot] = call
        return batch

    def _refuse_given_up(self, shard: Shard) -> None:
        """Fail the waiting calls of disabled slots with EnvFailed."""
        if self._given_up:
            refused = [call.slot for call in shard.waiting if call.slot in self._given_up]
            self._outcomes += [SlotOutcome(slot, None, EnvFailed(self._given_up[slot])) for slot in refused]
            shard.waiting = [call for call in shard.waiting if call.slot not in self._given_up]

    def _receive(self, shard: Shard, worker: SlotWorker) -> None:
        try:
            outcomes = worker.receive()
            if outcomes is None:
                self._check_responsive(shard, worker)
                return
        except WorkerDied as e:
            self._replace(shard, worker, str(e))
            return
        shard.last_active = time.monotonic()
        for outcome in outcomes:
            shard.record(outcome)
        self._outcomes += outcomes
        self._send_next(shard)

    def _check_responsive(self, shard: Shard, worker: SlotWorker) -> None:
        """Raise WorkerDied if a worker has exited, or if it is busy and has sent nothing for too long."""
        silent = time.monotonic() - shard.last_active
        if silent >= POLL_INTERVAL:
            worker.check_alive()
        limit = self._silence_limit(shard)
        if limit is None or silent < limit:
            return
        if worker.metadata is None:
            raise WorkerDied(f"building its environments timed out after {silent:.0f} s")
        raise WorkerDied(f"a call timed out after {self._settings.timeout:g} s and could not be interrupted")

    def _silence_limit(self, shard: Shard) -> float | None:
        """Return after how many seconds a worker that has sent nothing is killed. None sets no limit."""
        if self._settings.timeout is None or shard.worker is None:
            return None
        if shard.worker.metadata is None:
            return START_TIMEOUT + self._settings.timeout * len(shard.slots)
        return self._settings.timeout * shard.worker.stages + KILL_DELAY if shard.running else None

    def _replace(self, shard: Shard, worker: SlotWorker, why: str) -> None:
        """Replace a dead worker. Running calls fail (on_failure "raise") or are sent again ("restart")."""
        worker.kill()
        running = shard.record_death()
        if self._settings.on_failure == "restart":
            shard.waiting[:0] = running
        else:
            failures = [(call.slot, f"{self._name(call.slot)} failed: its worker died: {why}") for call in running]
            self._outcomes += [SlotOutcome(slot, None, EnvFailed(failure)) for slot, failure in failures]
        self._give_up(shard, why)
        try:
            self._start(shard, f"its worker died: {why}")
        except WorkerDied as e:
            self._replace(shard, worker, str(e))
        self._refuse_given_up(shard)

    def _give_up(self, shard: Shard, why: str) -> None:
        """Disable slots whose calls crashed MAX_FAILURES workers in a row, or all slots after MAX_DEATHS deaths."""
        for slot, times in shard.deaths_alone.items():
            if times >= MAX_FAILURES:
                reason = f"{times} workers in a row died in its calls, the last one: {why}"
                self._given_up.setdefault(slot, f"{self._name(slot)} was given up: {reason}")
        if shard.deaths >= MAX_DEATHS:
            reason = f"{shard.deaths} workers in a row died without returning a result, the last one: {why}"
            for slot in shard.slots:
                self._given_up.setdefault(slot, f"{shard} given up: {reason}")

    def _name(self, slot: int) -> str:
        env_id = self.metadata[slot].env_id
        return f"slot {slot} ({env_id})" if env_id else f"slot {slot}"


def split_slots(factories: Mapping[int, Factory], count: int) -> list[dict[int, Factory]]:
    """Divide slots into contiguous, non-empty shards of nearly equal size for count workers."""
    items = list(factories.items())
    count = min(count, len(items))
    bounds = [len(items) * i // count for i in range(count + 1)]
    return [dict(items[low:high]) for low, high in pairwise(bounds)]


def _pack_factories(factories: dict[int, Factory]) -> bytes:
    """Pickle factories together, so that shared objects are sent once. Raises BadValue if one cannot be pickled."""
    try:
        return dumps(factories)
    except Exception as error:
        for slot, factory in factories.items():
            try:
                dumps(factory)
            except MissingDependency:
                raise
            except Exception as e:
                why = f"slot {slot}: {factory!r:.200} cannot be sent to a worker: {describe_error(e)}"
                raise BadValue(why) from e
        raise error


def _has_failed(outcome: SlotOutcome) -> bool:
    """Return whether the outcome of a step is the last step of a failed episode."""
    info = outcome.value.info or {}
    return "failure" in (info.get("final_info") or info)
