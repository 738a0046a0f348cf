"""Slots in actors of a Ray cluster: for more environments than one machine steps."""

from __future__ import annotations

import socket
import sys
import time
import weakref
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from gem.errors import BadValue, require
from gem.vector.base import Autoreset, VectorEnv
from gem.vector.crew import Crew
from gem.vector.share import Worker, WorkerDied
from gem.vector.slots import Factory, OnFailure, Outcome
from gem.vector.sync import check_slots
from gem.vector.wire import unpack
from gem.vector.worker import STAGES, Player, Report, Task, build

CLOSING = 3.0  # seconds that actors have to close their environments, before they are killed
# Seconds that an actor plays before it hands over what ended. Calling an actor takes about 1 ms, so that a tenth of the
# time at most goes into calls, and outcomes wait no longer than this for the slots that are played after them.
SLICE = 0.01
_REACHING = 10.0  # seconds for a node at an address to take a connection


class RayVectorEnv(VectorEnv):
    """Slots shared out to actors, each of which steps its own one after another.

    Args:
        env_fns: one callable per slot that builds its environment in an actor.
        autoreset: see Autoreset.
        timeout: seconds for one call of one environment, from when it starts. A hang in Python is interrupted and costs
            its slot alone. Where that is of no use the actor is killed after worker.STAGES times as long and crew.GRACE
            seconds, and all its slots lose the episodes they were in. None waits.
        on_failure: see SlotGroup; an actor that dies is an environment that failed, for each of its slots.
        num_workers: actors; None takes one per CPU of the cluster; never more than slots.
        address: of the cluster. None takes what ray.init was called with, or finds a cluster, or starts one here.

    gem has to be installed on every node. What this connects to or starts is let go of with the last vector that uses
    it; where ray.init was called before, it stays as it is. Raises MissingDependency without Ray, BadValue where Ray is
    connected to another address.
    """

    def __init__(
        self,
        env_fns: Sequence[Factory],
        autoreset: str | Autoreset = Autoreset.SAME_STEP,
        *,
        timeout: float | None = None,
        on_failure: OnFailure = "raise",
        num_workers: int | None = None,
        address: str | None = None,
    ) -> None:
        mode = Autoreset.of(autoreset)
        check_slots(env_fns, on_failure, timeout)
        engine = RayEngine(
            dict(enumerate(env_fns)),
            same_step=mode is Autoreset.SAME_STEP,
            on_failure=on_failure,
            timeout=timeout,
            num_workers=num_workers,
            address=address,
        )
        super().__init__(engine, mode)


class Connection:
    """What all vectors of this process reach Ray through."""

    def __init__(self) -> None:
        self._users = 0
        self._address: str | None = None
        self._ours = False

    def take(self, address: str | None) -> Any:
        """The ray module, connected. Raises MissingDependency, BadValue."""
        ray = require("ray", extra="ray")
        if not ray.is_initialized():
            _connect(ray, address)
            self._users, self._address, self._ours = 0, address, True
        elif address is not None and (address != self._address or not self._ours):
            raise BadValue(f"Ray is connected already, so address={address!r} cannot be taken; leave it out")
        self._users += 1
        return ray

    def release(self, ray: Any) -> None:
        self._users -= 1
        if self._users == 0 and self._ours and ray.is_initialized():
            self._ours = False
            ray.shutdown()


CONNECTION = Connection()


class RayEngine(Crew):
    """See RayVectorEnv."""

    def __init__(
        self,
        factories: Mapping[int, Factory],
        *,
        same_step: bool,
        on_failure: OnFailure,
        timeout: float | None,
        num_workers: int | None = None,
        address: str | None = None,
    ) -> None:
        self._ray = CONNECTION.take(address)
        self._hired: list[RayWorker] = []
        self._finalizer = weakref.finalize(self, _let_go, self._ray, self._hired)
        if num_workers is None:
            num_workers = max(1, int(self._ray.cluster_resources().get("CPU", 1)))
        super().__init__(factories, same_step=same_step, on_failure=on_failure, timeout=timeout, count=num_workers)

    def hire(self, task: Task) -> RayWorker:
        self._hired[:] = [worker for worker in self._hired if worker.alive]
        self._hired.append(RayWorker(self._ray, task))
        return self._hired[-1]

    def await_news(self, timeout: float) -> None:
        if refs := [worker.answer for worker in self._hired if worker.answer is not None]:
            self._ray.wait(refs, num_returns=1, timeout=timeout)
        else:
            time.sleep(timeout)

    def close(self) -> None:
        """Let the actors close their environments; kill what has not after CLOSING seconds, and let go of Ray."""
        alive = [worker for worker in self._hired if worker.alive] if self._ray.is_initialized() else []
        if closing := [worker.dismiss() for worker in alive]:
            self._ray.wait(closing, num_returns=len(closing), timeout=CLOSING)
        self._finalizer()


class RayWorker(Worker):
    """An actor, and the one call of it that is under way."""

    stages = STAGES  # it gives no sign of life before its call is over

    def __init__(self, ray: Any, task: Task) -> None:
        self._ray = ray
        self._actor = ray.remote(Actor).options(scheduling_strategy="SPREAD").remote(sys.path)
        self.answer: Any = self._actor.build.remote(task)  # what the call under way will return
        self.alive = True
        self._left = 0  # calls that it has yet to perform

    def send(self, batch: list[tuple[int, bytes]]) -> None:
        self._left = len(batch)
        self.answer = self._actor.play.remote(batch)

    def receive(self) -> list[Outcome] | None:
        if self.answer is None or not self._ray.wait([self.answer], timeout=0)[0]:
            return None
        try:
            answer = self._ray.get(self.answer)
        except self._ray.exceptions.RayError as e:
            raise WorkerDied(f"{type(e).__name__}: {' '.join(str(e).split()):.500}") from None
        self.answer = None
        if isinstance(answer, Report):
            self.learn(answer)
            return []
        self._left -= len(answer)
        if self._left:
            self.answer = self._actor.play.remote([])
        return [unpack(slot, packed) for slot, packed in answer]

    def dismiss(self) -> Any:
        """Ask it to close its environments. Returns what to wait for."""
        return self._actor.close.remote()

    def kill(self) -> None:
        if self.alive and self._ray.is_initialized():
            self._ray.kill(self._actor)
        self.alive, self.answer = False, None


class Actor:
    """What runs in the cluster: a Player, and the calls that it has yet to perform."""

    def __init__(self, path: list[str]) -> None:
        sys.path += [entry for entry in path if entry not in sys.path]  # modules beside a script
        self._player: Player | None = None
        self._waiting: deque[tuple[int, bytes]] = deque()
        self._slow: set[int] = set()  # slots whose last call took longer than a slice

    def build(self, task: Task) -> Report:
        self._player, report = build(task)
        return report

    def play(self, batch: list[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
        """Take on calls, and play for SLICE seconds, until a slow slot is next or none is left.

        Returns (slot, packed outcome) pairs.
        """
        self._waiting += batch
        started = now = time.monotonic()
        answers: list[tuple[int, bytes]] = []
        while self._player and self._waiting:
            slot, packed = self._waiting[0]
            if answers and (slot in self._slow or now - started > SLICE):
                break
            self._waiting.popleft()
            before = now
            answers.append((slot, self._player.play(slot, packed)))
            now = time.monotonic()
            (self._slow.add if now - before > SLICE else self._slow.discard)(slot)
        return answers

    def close(self) -> None:
        if self._player is not None:
            self._player.group.close()


def _connect(ray: Any, address: str | None) -> None:
    host, _, port = (address or "").rpartition(":")
    try:
        if host and port.isdigit() and "/" not in host:  # where nobody listens, Ray itself tries for minutes
            socket.create_connection((host, int(port)), timeout=_REACHING).close()
        ray.init(address=address, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    except (OSError, ValueError, RuntimeError) as e:
        raise BadValue(f"cannot connect to a Ray cluster with address={address!r}: {e}") from e


def _let_go(ray: Any, workers: list[RayWorker]) -> None:
    for worker in workers:
        worker.kill()
    CONNECTION.release(ray)
