"""Episodes in flight: asks the policy for every slot whose turn it is, and never waits for the slowest environment."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from gem.conversation.history import WHOLE, History
from gem.core import Info
from gem.errors import GemError
from gem.policies import Policy, Reply
from gem.rollout.slot import Slot
from gem.trajectory import Trajectory
from gem.vector import Autoreset, Received, VectorEnv

BATCH_WAIT = 0.02  # seconds; a few times what sampling one turn takes, so that most slots are back


class Sent(NamedTuple):
    """A slot that its environment has. reply: what was sent to it; None where it is being reset. at: perf_counter."""

    slot: Slot
    reply: Reply | None
    version: int
    acting: float
    at: float


class Flight:
    """The episodes under way on a vector environment.

    Args:
        vec_env: with autoreset in the same step, which starts the next episode of a slot by itself; or disabled.
        batch_wait: seconds to wait, after something has been sent, for slots that are not back yet. What is back then
            goes to the policy as one batch. Slots that run inline are all back at once, in lock-step.
        history: limits on what the policy is shown of an episode.
    """

    def __init__(self, vec_env: VectorEnv, batch_wait: float = BATCH_WAIT, history: History = WHOLE) -> None:
        self.vec_env, self.batch_wait, self.history = vec_env, batch_wait, history
        self.ready: list[Slot] = []  # their turn to act
        self._sent: dict[int, Sent] = {}
        self._ended: list[Trajectory] = []  # and not handed out yet

    @property
    def empty(self) -> bool:
        return not self.ready and not self._sent

    def begin(self, trajectories: Sequence[Trajectory]) -> None:
        """Start an episode on each trajectory's slot, from its seed where it has one."""
        if trajectories:
            self.vec_env.send_reset([t.slot for t in trajectories], [t.seed for t in trajectories])
            now = time.perf_counter()
            self._sent |= {t.slot: Sent(Slot(t, ""), None, 0, 0.0, now) for t in trajectories}

    def step(self, policy: Policy) -> list[Trajectory]:
        """Act wherever it is an agent's turn, and take in what is back. Returns the episodes that ended.

        An error of the vector environment gives up all episodes under way. Whatever the policy raises leaves them as
        they are, so that the next step asks it again.
        """
        self._end({slot.trajectory.slot: slot.overflow() for slot in self._overflowing(policy)})
        started = time.perf_counter()
        slots = list(self.ready)
        replies = policy.act([slot.request(policy, self.vec_env) for slot in slots]) if slots else []
        answered = list(zip(slots, replies, strict=True))
        self._end({slot.trajectory.slot: slot.fail(reply.failure) for slot, reply in answered if reply.failure})
        self._send([(slot, reply) for slot, reply in answered if not reply.failure], policy.version, started)
        self._receive(self.batch_wait)
        return self._take_ended()

    def land(self) -> list[Trajectory]:
        """Wait until every slot is back. Returns the episodes that ended meanwhile."""
        while self._sent:
            self._receive(None)
        return self._take_ended()

    def _take_ended(self) -> list[Trajectory]:
        ended, self._ended = self._ended, []
        return ended

    def _overflowing(self, policy: Policy) -> list[Slot]:
        return [slot for slot in self.ready if slot.overflows(policy, self.vec_env, self.history)]

    def _end(self, ended: Mapping[int, Trajectory]) -> None:
        """End episodes that the environment would go on with; with autoreset, the next ones begin."""
        if not ended:
            return
        self._ended += ended.values()
        self.ready = [slot for slot in self.ready if slot.trajectory.slot not in ended]
        if self.vec_env.autoreset is Autoreset.SAME_STEP:
            with self._giving_up():
                self.begin([_next(trajectory) for trajectory in ended.values()])

    def _send(self, answered: Sequence[tuple[Slot, Reply]], version: int, started: float) -> None:
        if not answered:
            return
        now = time.perf_counter()
        with self._giving_up():
            self.vec_env.send({slot.trajectory.slot: reply.text for slot, reply in answered})
        self.ready = []
        for slot, reply in answered:
            self._sent[slot.trajectory.slot] = Sent(slot, reply, version, now - started, now)

    def _receive(self, timeout: float | None) -> None:
        if not self._sent:
            return
        with self._giving_up():
            received = self.vec_env.recv(min_envs=len(self._sent), timeout=timeout)
            if not received.ids_B:
                received = self.vec_env.recv()
        now = time.perf_counter()
        for i in sorted(range(len(received.ids_B)), key=lambda i: received.ids_B[i]):
            self._take(received, i, now)
        self.ready.sort(key=lambda slot: slot.trajectory.slot)  # the order of lock-step, whichever was back first

    @contextmanager
    def _giving_up(self) -> Iterator[None]:
        """Where the vector environment raises, nobody knows any more what its slots are at."""
        try:
            yield
        except GemError:
            self.ready, self._sent = [], {}
            raise

    def _take(self, received: Received, i: int, now: float) -> None:
        """Take in the i-th step received."""
        slot, reply, version, acting, at = self._sent.pop(received.ids_B[i])
        observations, rewards, terminated, truncated, infos = received.step
        observation, info = observations[i], infos[i]
        ended = bool(terminated[i] or truncated[i])
        same_step = self.vec_env.autoreset is Autoreset.SAME_STEP
        last: Info = info["final_info"] if ended and same_step else info
        if reply is not None:
            slot.record(reply, version, rewards[i], last, {"policy": acting, "env": now - at})
        if not ended:
            slot.see(observation, info)
            self.ready.append(slot)
            return
        if same_step:
            self.ready.append(Slot(_next(slot.trajectory), observation, info))
            observation = info["final_obs"]
        self._ended.append(slot.finish(observation, last, bool(terminated[i]), bool(truncated[i])))


def _next(trajectory: Trajectory) -> Trajectory:
    return Trajectory(trajectory.env_id, slot=trajectory.slot, episode=trajectory.episode + 1)
