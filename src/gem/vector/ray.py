"""Run slots in the actors of a Ray cluster: for more environments than one machine can run."""

from __future__ import annotations

import socket
import sys
import time
import weakref
from collections import deque
from collections.abc import Mapping
from typing import Any

from gem._internal.worker_process import WorkerDied
from gem.errors import BadValue, require
from gem.vector.slots import Factory, SlotOutcome, SlotSettings, close_slots
from gem.vector.worker import BuildReport, PackedCall, SlotRunner, WorkerSpec, build, unpack_messages
from gem.vector.worker_engine import SlotWorker, WorkerEngine

CLOSE_TIMEOUT = 3.0  # seconds that actors have to close their environments; afterwards, they are killed
# Seconds for which an actor runs queued calls before it returns their outcomes. A Ray actor call takes about 1 ms, so
# the overhead is about 10 %, and outcomes are not delayed much by the calls that follow in the queue.
SLICE = 0.01
_CONNECT_TIMEOUT = 10.0  # seconds that a node has to accept a connection


class RayConnection:
    """The connection to Ray that all vector environments of this process share."""

    def __init__(self) -> None:
        self._users = 0
        self._address: str | None = None
        self._owned = False  # whether acquire() opened the connection, not the caller

    def acquire(self, address: str | None) -> Any:
        """Connect to Ray if necessary and return the ray module. Call release() when the connection is not needed.

        Raises:
            MissingDependency: Ray is not installed.
            BadValue: the cluster cannot be reached, or Ray is already connected to another address.
        """
        ray = require("ray", extra="ray")
        if not ray.is_initialized():
            _connect(ray, address)
            self._users, self._address, self._owned = 0, address, True
        elif address is not None and (address != self._address or not self._owned):
            raise BadValue(f"Ray is already connected, so address={address!r} cannot be used; omit it")
        self._users += 1
        return ray

    def release(self, ray: Any) -> None:
        self._users -= 1
        if self._users == 0 and self._owned and ray.is_initialized():
            self._owned = False
            ray.shutdown()


CONNECTION = RayConnection()


class RayEngine(WorkerEngine):
    """Run slots in Ray actors. Each actor steps its slots one after another.

    Args:
        factories: slot → callable that builds its environment in an actor.
        settings: of the slots. A call that exceeds the timeout in Python code is interrupted, and only its slot fails.
            If a call cannot be interrupted, its actor is killed after twice the limit plus worker_engine.KILL_DELAY
            seconds, and the episodes of all slots of that actor fail. If an actor dies, all of its environments count
            as failed.
        num_workers: number of actors, at most one per slot. None uses one per CPU of the cluster.
        address: address of the cluster. None uses an existing connection, or else finds a running cluster or starts
            a local one.

    gem must be installed on every node. If the engine opened the connection or started the cluster, it is shut down
    when the last vector environment that uses Ray is closed. A connection opened by the caller stays open.

    Raises:
        MissingDependency: Ray is not installed.
        BadValue: the cluster cannot be reached, or Ray is already connected to another address.
    """

    def __init__(
        self,
        factories: Mapping[int, Factory],
        settings: SlotSettings,
        *,
        num_workers: int | None = None,
        address: str | None = None,
    ) -> None:
        self._ray = CONNECTION.acquire(address)
        self._actors: list[RayWorker] = []
        self._finalizer = weakref.finalize(self, _release, self._ray, self._actors)
        if num_workers is None:
            num_workers = max(1, int(self._ray.cluster_resources().get("CPU", 1)))
        super().__init__(factories, settings, num_workers)

    def start_worker(self, spec: WorkerSpec) -> RayWorker:
        self._actors[:] = [worker for worker in self._actors if worker.alive]
        self._actors.append(RayWorker(self._ray, spec))
        return self._actors[-1]

    def wait_for_workers(self, timeout: float) -> None:
        if refs := [worker.result for worker in self._actors if worker.result is not None]:
            self._ray.wait(refs, num_returns=1, timeout=timeout)
        else:
            time.sleep(timeout)

    def close(self) -> None:
        """Ask the actors to close their environments, wait up to CLOSE_TIMEOUT seconds, then kill the actors."""
        alive = [worker for worker in self._actors if worker.alive] if self._ray.is_initialized() else []
        if closing := [worker.stop() for worker in alive]:
            self._ray.wait(closing, num_returns=len(closing), timeout=CLOSE_TIMEOUT)
        self._finalizer()


class RayWorker(SlotWorker):
    """A Ray actor and the actor call in progress. There is at most one."""

    # An actor returns nothing before its actor call has ended: the call may hang, and closing or rebuilding take long.
    stages = 2

    def __init__(self, ray: Any, spec: WorkerSpec) -> None:
        self._ray = ray
        self._actor = ray.remote(RayActor).options(scheduling_strategy="SPREAD").remote(sys.path)
        self.result: Any = self._actor.build.remote(spec)  # reference to the result of the actor call in progress
        self.alive = True
        self._left = 0  # number of slot calls in the batch whose outcomes have not been received

    def send(self, batch: list[PackedCall]) -> None:
        self._left = len(batch)
        self.result = self._actor.run.remote(batch)

    def receive(self) -> list[SlotOutcome] | None:
        if self.result is None or not self._ray.wait([self.result], timeout=0)[0]:
            return None
        try:
            result = self._ray.get(self.result)
        except self._ray.exceptions.RayError as e:
            raise WorkerDied(f"{type(e).__name__}: {' '.join(str(e).split()):.500}") from None
        self.result = None
        if isinstance(result, BuildReport):
            self.accept(result)
            return []
        self._left -= len(result)
        if self._left:
            self.result = self._actor.run.remote([])
        return unpack_messages(result)[0]

    def stop(self) -> Any:
        """Ask the actor to close its environments. Return the Ray reference that is ready when they are closed."""
        return self._actor.close.remote()

    def kill(self) -> None:
        if self.alive and self._ray.is_initialized():
            self._ray.kill(self._actor)
        self.alive, self.result = False, None


class RayActor:
    """The class of the actors in the cluster: a SlotRunner and a queue of calls."""

    def __init__(self, path: list[str]) -> None:
        sys.path += [entry for entry in path if entry not in sys.path]  # for modules next to the main script
        self._runner: SlotRunner | None = None
        self._waiting: deque[PackedCall] = deque()
        self._slow: set[int] = set()  # slots whose last call took longer than a slice

    def build(self, spec: WorkerSpec) -> BuildReport:
        self._runner, report = build(spec)
        return report

    def run(self, batch: list[PackedCall]) -> list[bytes]:
        """Append calls to the queue, then run calls from the queue for about SLICE seconds.

        At least one call is run if the queue is not empty. After that, run() returns before a slot whose last call took
        longer than SLICE.

        Returns:
            The packed outcomes of the calls that were run.
        """
        self._waiting += batch
        started = now = time.monotonic()
        outcomes: list[bytes] = []
        while self._runner and self._waiting:
            slot = self._waiting[0][0]
            if outcomes and (slot in self._slow or now - started > SLICE):
                break
            before = now
            outcomes.append(self._runner.run(self._waiting.popleft()))
            now = time.monotonic()
            (self._slow.add if now - before > SLICE else self._slow.discard)(slot)
        return outcomes

    def close(self) -> None:
        if self._runner is not None:
            close_slots(self._runner.slots.values())


def _connect(ray: Any, address: str | None) -> None:
    host, _, port = (address or "").rpartition(":")
    try:
        if host and port.isdigit() and "/" not in host:  # fail early, because ray.init retries for minutes
            socket.create_connection((host, int(port)), timeout=_CONNECT_TIMEOUT).close()
        ray.init(address=address, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    except (OSError, ValueError, RuntimeError) as e:
        raise BadValue(f"cannot connect to a Ray cluster with address={address!r}: {e}") from e


def _release(ray: Any, workers: list[RayWorker]) -> None:
    for worker in workers:
        worker.kill()
    CONNECTION.release(ray)
