"""Requests that were sent to an AsyncPolicy and wait for their replies."""

from __future__ import annotations

import time
import weakref
from collections.abc import Sequence
from concurrent.futures import Future
from typing import NamedTuple

from gem.policies import AsyncPolicy, Reply, Request
from gem.rollout.episode import ActiveEpisode, ReplyBatch
from gem.vector.engine import OutcomeQueue


class _Sent(NamedTuple):
    episode: ActiveEpisode
    future: Future[Reply]
    version: int
    sent_at: float


class PendingRequests:
    """The requests in flight at one policy, at most one per slot.

    Attributes:
        policy: the policy that got the requests. None before the first request.
        sent: the requests by slot.
    """

    def __init__(self) -> None:
        self.policy: AsyncPolicy | None = None
        self.sent: dict[int, _Sent] = {}
        self._done: OutcomeQueue[tuple[int, Future[Reply]]] = OutcomeQueue()
        weakref.finalize(self, self._done.close)

    def send(self, policy: AsyncPolicy, episode: ActiveEpisode, request: Request) -> None:
        """Send the request of an episode. Raises the exceptions of policy.submit()."""
        self.policy = policy
        slot, done = episode.slot, self._done
        future = policy.submit(request)
        self.sent[slot] = _Sent(episode, future, policy.version, time.perf_counter())
        future.add_done_callback(lambda future: done.put((slot, future)))  # from any thread

    def take(self) -> list[tuple[ActiveEpisode, Reply]]:
        """Remove and return the episodes whose replies have arrived, in the order of their slots.

        Sets the batch of each episode. Raises the exception of a request, and removes nothing in this case.
        """
        done = {slot for slot, future in self._done.take() if slot in self.sent and self.sent[slot].future is future}
        replies = {slot: self.sent[slot].future.result() for slot in sorted(done)}
        now = time.perf_counter()
        taken = []
        for slot, reply in replies.items():
            sent = self.sent.pop(slot)
            sent.episode.batch = ReplyBatch(sent.version, now - sent.sent_at, now)
            taken.append((sent.episode, reply))
        return taken

    def withdraw(self) -> Sequence[ActiveEpisode]:
        """Cancel all requests and return their episodes."""
        withdrawn, self.sent = list(self.sent.values()), {}
        for sent in withdrawn:
            sent.future.cancel()
        return [sent.episode for sent in withdrawn]

    def fileno(self) -> int:
        """Return a file descriptor that is readable while there are replies to take."""
        return self._done.fileno()
