"""Schedule in-flight episodes between a policy and a vector environment, without waiting for the slowest of either.

An episode is ready (the agent's turn), asked (its request is with an AsyncPolicy) or in flight (sent to the
environment). The requests of ready episodes form one batch for a policy that computes replies together, such as a local
model. An AsyncPolicy, such as an endpoint, gets each request alone, and each slot continues when its reply arrives.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from operator import attrgetter
from typing import Any

from gem._internal.json_codec import decode, encode
from gem._internal.text import short_repr
from gem.conversation.history import FULL_HISTORY, History
from gem.core import Info, StopReason
from gem.errors import BadValue, GemError
from gem.policies import AsyncPolicy, Policy, Reply, is_async
from gem.rollout.episode import NO_BATCH, ActiveEpisode, EnvView, ReplyBatch
from gem.rollout.requests import PendingRequests
from gem.trajectory import Trajectory
from gem.vector import Autoreset, VecStep, VectorEnv

# Replies that are not sent to the environment: finish → stop reason. They are outcomes of the model, not failures.
ENDINGS = {
    "refusal": StopReason.REFUSED,
    "content_filter": StopReason.REFUSED,
    "context_overflow": StopReason.MAX_TOKENS,
}
BATCH_WAIT = 0.02  # seconds; a few times the cost of sampling one turn, so that most slots are back by then


class RolloutScheduler:
    """Runs the episodes of a vector environment under a policy.

    Args:
        vec_env: with autoreset "same_step" (the environment starts the next episode of a slot itself) or "disabled".
        batch_wait: seconds to wait for all slots after sending actions. The slots that have finished by then form the
            next batch for the policy. Slots that run inline all finish together. Not used for an AsyncPolicy.
        history: limits on the part of an episode shown to the policy.

    Attributes:
        ready: the episodes in which it is the agent's turn, in the order of their slots.
    """

    def __init__(self, vec_env: VectorEnv, batch_wait: float = BATCH_WAIT, history: History = FULL_HISTORY) -> None:
        self.vec_env, self.batch_wait, self.history = vec_env, batch_wait, history
        self.ready: list[ActiveEpisode] = []
        self._in_flight: dict[int, ActiveEpisode] = {}  # by slot
        self._requests = PendingRequests()
        self._ended: list[Trajectory] = []  # not returned by step() or drain() yet
        self._envs = [
            EnvView(partial(vec_env.sample_random_action, i), vec_env.shows_prompt(i), vec_env.shows_history(i))
            for i in range(vec_env.num_envs)
        ]
        self._same_step = vec_env.autoreset is Autoreset.SAME_STEP

    @property
    def empty(self) -> bool:
        """Whether no episode is running."""
        return not self.ready and not self._in_flight and not self._requests.sent

    def begin(self, trajectories: Sequence[Trajectory]) -> None:
        """Start an episode on each trajectory's slot, from the trajectory's seed if it has one."""
        if trajectories:
            self.vec_env.send_reset([t.slot for t in trajectories], [t.seed for t in trajectories])
            self._in_flight |= {t.slot: ActiveEpisode(t) for t in trajectories}

    def resume(self, episodes: Mapping[int, ActiveEpisode], states: Mapping[int, Any]) -> None:
        """Continue an episode on each of these free slots, from states of VectorEnv.get_slot_states()."""
        with self._discard_on_error():
            self.vec_env.set_slot_states(states)
        self.ready = sorted([*self.ready, *episodes.values()], key=attrgetter("slot"))

    def step(self, policy: Policy) -> list[Trajectory]:
        """Query the policy for all ready episodes, send its actions, and receive the slots that have finished.

        With an AsyncPolicy, waits until one reply or one slot has arrived, and takes all that have arrived.

        Returns:
            The episodes that ended.

        Raises:
            GemError: an error of the vector environment. All running episodes are discarded.
            Exception: any exception of the policy. The episodes are unchanged, and the next call queries it again.
        """
        if self._requests.sent and policy is not self._requests.policy:
            self._withdraw()
        if policy.chat is not None or self.history is not FULL_HISTORY:
            self._end_overflowing(policy)
        if is_async(policy):
            self._exchange(policy)
        else:
            if self.ready:
                self._act(policy)
            self._receive(self.batch_wait)
        return self._take_ended()

    def drain(self) -> list[Trajectory]:
        """Withdraw the requests in flight, and wait until no slot is in flight.

        Returns:
            The episodes that ended and were not returned before.
        """
        self._withdraw()
        while self._in_flight:
            self._receive(None)
        return self._take_ended()

    def get_state(self) -> dict[str, Any]:
        """Return the state of the vector environment and of the ready episodes. Call drain() before."""
        return {
            "vec_env": self.vec_env.get_state(),
            "slots": [
                {
                    "trajectory": e.trajectory.to_json(),
                    "observation": encode(e.observation, "observation"),
                    "info": encode(e.info, "info"),
                    "tools": encode(list(e.tools), "tools"),
                }
                for e in self.ready
            ],
        }

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Replace the running episodes by those of a state that get_state() returned."""
        self.drain()
        self.vec_env.set_state(state["vec_env"])
        self.ready = [
            ActiveEpisode(
                Trajectory.from_json(s["trajectory"]), *(decode(s[k]) for k in ("observation", "info", "tools"))
            )
            for s in state["slots"]
        ]

    def _take_ended(self) -> list[Trajectory]:
        ended, self._ended = self._ended, []
        return ended

    def _end_overflowing(self, policy: Policy) -> None:
        """Prepare the contexts of all ready episodes and end the episodes that exceed a limit."""
        for e in self.ready:
            e.prepare(policy, self.history, self._envs[e.slot])
        self._end({e.slot: e.truncate(e.exceeded) for e in self.ready if e.exceeded is not None})

    def _end(self, ended: Mapping[int, Trajectory]) -> None:
        """End episodes early. With same-step autoreset, also start the next episodes of their slots."""
        if not ended:
            return
        self._ended += ended.values()
        self.ready = [e for e in self.ready if e.slot not in ended]
        if self._same_step:
            with self._discard_on_error():
                self.begin([_next(trajectory) for trajectory in ended.values()])

    def _act(self, policy: Policy) -> None:
        """Query the policy for all ready episodes together, and use its replies."""
        started = time.perf_counter()
        replies = policy.act([e.request(policy, self._envs[e.slot]) for e in self.ready])
        now = time.perf_counter()
        batch = ReplyBatch(policy.version, now - started, now)
        for episode in self.ready:
            episode.batch = batch
        self._use(self.ready, replies)

    def _exchange(self, policy: AsyncPolicy) -> None:
        """Send the requests of all ready episodes. Use the replies and receive the slots that have arrived since."""
        requests, vec_env = self._requests, self.vec_env
        try:
            while self.ready:
                episode = self.ready[0]
                requests.send(policy, episode, episode.request(policy, self._envs[episode.slot]))
                del self.ready[0]
            if requests.sent or self._in_flight:
                vec_env.wait(requests.fileno())
            taken = requests.take()
            self.ready = [episode for episode, _ in taken]  # until their actions are sent
            self._use(self.ready, [reply for _, reply in taken])
        except BaseException:
            self._withdraw()
            raise
        self._receive(0.0, at_least=0)

    def _withdraw(self) -> None:
        """Cancel all requests to the policy. Their episodes become ready, and the next step() sends them again."""
        ready = {episode.slot: episode for episode in (*self.ready, *self._requests.withdraw())}
        self.ready = [ready[slot] for slot in sorted(ready)]

    def _use(self, episodes: Sequence[ActiveEpisode], replies: Sequence[Reply]) -> None:
        """Send the actions of replies, in the order of their slots. End the episodes with a failure or a refusal."""
        _check_replies(replies, len(episodes))
        acting: list[ActiveEpisode] = []
        texts: list[str] = []
        ended: dict[int, Trajectory] = {}
        for episode, reply in zip(episodes, replies, strict=True):
            episode.reply = reply
            if reply.failure:
                ended[episode.slot] = episode.truncate(StopReason.FAILED, reply.failure)
            elif reply.finish in ENDINGS:
                seconds = {"policy": episode.batch.policy_seconds, "env": 0.0}
                episode.record(reply, episode.batch.version, 0.0, {}, seconds)
                ended[episode.slot] = episode.truncate(ENDINGS[reply.finish], explanation=reply.explanation)
            else:
                acting.append(episode)
                texts.append(reply.text)
        self._end(ended)
        if acting:
            self._send(acting, texts)

    def _send(self, episodes: Sequence[ActiveEpisode], texts: list[str]) -> None:
        """Send one action per episode. If they are all slots and run inline, step them immediately."""
        slots = [e.slot for e in episodes]
        in_flight = dict(zip(slots, episodes, strict=True))
        with self._discard_on_error():
            if self.vec_env.is_inline and len(slots) == self.vec_env.num_envs:
                # Mark the slots as in flight before the step, so that they can be received after an interrupt.
                self.ready, self._in_flight = [], in_flight
                step = self.vec_env.step(texts)
                self._in_flight = {}
                self._take(episodes, step)
            else:
                self.vec_env.send(texts, slots)
                self._in_flight |= in_flight
                self.ready = []

    def _receive(self, timeout: float | None, at_least: int = 1) -> None:
        """Receive all slots in flight. After timeout seconds, receive the finished slots, at least at_least."""
        if not self._in_flight:
            return
        with self._discard_on_error():
            ids, step = self.vec_env.recv(min_envs=len(self._in_flight), timeout=timeout)
            if len(ids) < at_least:
                ids, step = self.vec_env.recv()
        self._take([self._in_flight.pop(slot) for slot in ids], step)
        self.ready.sort(key=attrgetter("slot"))  # the order of lock-step, regardless of which slot was back first

    def _take(self, episodes: Sequence[ActiveEpisode], step: VecStep) -> None:
        """Record one step of each episode. Episodes that are not over become ready; the others end."""
        now = time.perf_counter()
        same_step, ready = self._same_step, self.ready
        ended: list[Trajectory] = []
        batch, seconds = NO_BATCH, {}
        flags = step.terminated_B.tolist(), step.truncated_B.tolist()
        rows = zip(episodes, step.observations_B, step.rewards_B.tolist(), *flags, step.infos_B, strict=True)
        for episode, observation, reward, terminated, truncated, info in rows:
            over = terminated or truncated
            last: Info = info["final_info"] if over and same_step else info
            if episode.reply is not None:
                if episode.batch is not batch:  # turns with the same times share the dict
                    batch = episode.batch
                    seconds = {"policy": batch.policy_seconds, "env": now - batch.sent_at}
                episode.record(episode.reply, batch.version, reward, last, seconds)
            if not over:
                episode.observe(observation, info)
                ready.append(episode)
                continue
            if same_step:
                ready.append(ActiveEpisode(_next(episode.trajectory), observation, info))
                observation = info["final_obs"]
            ended.append(episode.finish(observation, last, terminated, truncated))
        self._ended += sorted(ended, key=attrgetter("slot"))

    @contextmanager
    def _discard_on_error(self) -> Iterator[None]:
        """Discard all running episodes if the vector environment raises GemError: slot states are then unknown."""
        try:
            yield
        except GemError:
            self._requests.withdraw()
            self.ready, self._in_flight = [], {}
            raise


def _check_replies(replies: Any, count: int) -> None:
    """Raise BadValue unless a policy returned one Reply with a text per request."""
    if not isinstance(replies, Sequence) or len(replies) != count:
        given = f"{len(replies)} replies" if isinstance(replies, Sequence) else short_repr(replies)
        raise BadValue(f"act() must return one Reply per request, got {given} for {count}")
    for reply in replies:
        if not isinstance(reply, Reply) or not isinstance(reply.text, str):
            raise BadValue(f"act() must return Reply objects with a text, got {short_repr(reply)}")


def _next(trajectory: Trajectory) -> Trajectory:
    return Trajectory(trajectory.env_id, slot=trajectory.slot, episode=trajectory.episode + 1)
