"""Schedule in-flight episodes: batch requests to the policy without waiting for the slowest environment.

ActiveEpisode holds one running episode and builds its requests and its record. RolloutScheduler moves the episodes of
a vector environment between two states: ready (the agent's turn) and in flight (sent to the environment).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from operator import attrgetter
from typing import Any, NamedTuple

from gem.conversation.history import FULL_HISTORY, History
from gem.conversation.observations import role_of, text_messages, with_prefix_and_suffix
from gem.core import Info, StopReason
from gem.errors import GemError
from gem.messages import Observation, Role
from gem.policies import Policy, Reply, Request
from gem.trajectory import Trajectory, Turn
from gem.vector import Autoreset, VecStep, VectorEnv

NO_PARTS: dict[str, float] = {}  # shared by the turns whose reward has no parts; never modified
BATCH_WAIT = 0.02  # seconds; a few times the cost of sampling one turn, so that most slots are back by then
_SHOWN_INFO = frozenset({"prefix", "suffix", "use_tool"})  # the only keys of info that affect what the policy is shown


class Batch(NamedTuple):
    """Data shared by all turns of one act() call.

    Args:
        version: version of the policy.
        policy_seconds: duration of the act() call.
        sent_at: time.perf_counter() when act() returned.
    """

    version: int
    policy_seconds: float
    sent_at: float


NO_BATCH = Batch(0, 0.0, 0.0)


class ActiveEpisode:
    """A running episode: its latest observation, the context to feed next, and its record so far.

    Args:
        trajectory: the record, extended in place.
        observation, info: the latest observation of the environment and its info.
        tools: schemas for native tool calls; info["tools"] replaces them.

    Attributes:
        shown: the observation with its prefix and suffix, as the policy receives it.
        role: role of the observation if it is text.
        prompt_ids: tokens of the next context. Empty before prepare(), and always empty for text policies.
        dropped: number of oldest turns left out of that context.
        exceeded: the limit that the context exceeds. None if it exceeds no limit.
        reply: the reply whose action the environment is executing. None during a reset.
        batch: the batch of that reply.
    """

    __slots__ = (
        "batch",
        "dropped",
        "exceeded",
        "info",
        "key_slot",
        "observation",
        "prompt_ids",
        "reply",
        "role",
        "shown",
        "slot",
        "tools",
        "trajectory",
        "turns",
    )

    observation: Any
    info: Info
    shown: Observation
    role: Role

    def __init__(
        self, trajectory: Trajectory, observation: Any, info: Info | None, tools: Sequence[Mapping[str, Any]] = ()
    ) -> None:
        self.trajectory, self.turns, self.slot = trajectory, trajectory.turns, trajectory.slot
        # A seeded episode samples the same tokens on every slot, so its key does not contain the slot.
        self.key_slot = trajectory.slot if trajectory.seed is None else 0
        self.tools = tools
        self.prompt_ids: list[int] = []
        self.dropped = self.turns[-1].dropped if self.turns else 0
        self.exceeded: StopReason | None = None
        self.reply: Reply | None = None
        self.batch = NO_BATCH
        self.observe(observation, info)

    def observe(self, observation: Any, info: Info | None) -> None:
        """Set the latest observation."""
        self.observation = observation
        if info and "tools" in info:
            self.tools = info["tools"]
        if not info or _SHOWN_INFO.isdisjoint(info):
            self.info, self.role = {}, "user"
            self.shown = observation if type(observation) is str else with_prefix_and_suffix(observation, {})
        else:
            self.info = {key: info[key] for key in sorted(_SHOWN_INFO) if key in info}
            self.role = role_of(self.info)
            self.shown = with_prefix_and_suffix(observation, self.info)

    def prepare(self, policy: Policy, history: History, *, is_prompt: bool, is_history: bool) -> None:
        """Compute the next context and check it against the limits.

        Args:
            is_prompt: the observation is a complete prompt, written with a chat template.
            is_history: the observation contains the whole history.
        """
        if self.prompt_ids:
            return
        if policy.chat is None:
            if not (is_prompt or is_history):
                self.dropped, self.exceeded = history.dropped(self.turns), history.exceeded(self.turns)
        elif is_prompt or is_history:
            self.prompt_ids = (
                policy.chat.raw(self.observation)
                if is_prompt
                else policy.chat.prompt(text_messages(self.shown, self.role))
            )
            limit = policy.max_prompt_tokens
            too_long = bool(self.turns) and limit is not None and len(self.prompt_ids) > limit
            self.dropped, self.exceeded = 0, StopReason.MAX_TOKENS if too_long else None
        else:
            new = text_messages(self.shown, self.role)
            context = history.context(policy.chat, self.turns, new, policy.max_prompt_tokens)
            self.prompt_ids, self.dropped, self.exceeded = context

    def request(self, sample_random_action: Callable[[], str], is_history: bool) -> Request:
        """Build the request for the next action. Policies with a chat template need a prepare() call first."""
        return Request(
            self.shown,
            self.prompt_ids,
            (self.key_slot, self.trajectory.episode, len(self.turns)),
            sample_random_action,
            () if is_history else self.turns,
            self.role,
            self.dropped,
            self.tools,
        )

    def record(self, reply: Reply, version: int, reward: float, info: Info, seconds: dict[str, float]) -> None:
        """Append a turn.

        Args:
            version: version of the policy that replied.
            reward: reward of the step; ignored if info contains ``failure``.
            info: of the step that the reply caused (``final_info`` where the slot was reset in the same step).
            seconds: see Turn.
        """
        fed: list[Any] = self.prompt_ids
        sampled: list[Any] = reply.sampled_ids
        if fed or sampled:
            logprobs, loss_mask, self.prompt_ids = reply.logprobs, [1] * len(sampled), []
        else:  # all turns of a text policy share one empty list, which makes garbage collection cheaper
            sampled = logprobs = loss_mask = fed
        turn = Turn(
            self.shown,
            reply.text,
            fed,
            sampled,
            logprobs,
            loss_mask,
            reply.finish,
            reward,
            NO_PARTS,
            None,
            seconds,
            version,
            self.role,
            self.dropped,
        )
        if info:
            turn.reward = None if "failure" in info else reward
            turn.reward_parts = dict(info["reward_parts"]) if "reward_parts" in info else NO_PARTS
            turn.invalid = info.get("invalid")
        self.turns.append(turn)

    def finish(self, observation: Any, info: Info, terminated: bool, truncated: bool) -> Trajectory:
        """Complete the record with the last observation and the info of the last step."""
        record = self.trajectory
        record.final_observation, record.terminated, record.truncated = observation, terminated, truncated
        reason = info.get("stop_reason")
        record.stop_reason = None if reason is None else str(reason)
        record.failure = info.get("failure")
        return record

    def truncate(self, reason: StopReason, failure: str | None = None) -> Trajectory:
        """End the episode as truncated after its latest observation, without stepping the environment."""
        info: Info = {"stop_reason": reason} if failure is None else {"stop_reason": reason, "failure": failure}
        return self.finish(self.observation, info, False, True)


class RolloutScheduler:
    """Runs the episodes of a vector environment under a policy.

    Args:
        vec_env: with autoreset "same_step" (the environment starts the next episode of a slot itself) or "disabled".
        batch_wait: seconds to wait for all slots after sending actions. The slots that have finished by then form the
            next batch for the policy. Slots that run inline all finish together.
        history: limits on the part of an episode shown to the policy.

    Attributes:
        ready: the episodes in which it is the agent's turn, in the order of their slots.
    """

    def __init__(self, vec_env: VectorEnv, batch_wait: float = BATCH_WAIT, history: History = FULL_HISTORY) -> None:
        self.vec_env, self.batch_wait, self.history = vec_env, batch_wait, history
        self.ready: list[ActiveEpisode] = []
        self._in_flight: dict[int, ActiveEpisode] = {}  # by slot
        self._ended: list[Trajectory] = []  # not returned by step() or drain() yet
        slots = range(vec_env.num_envs)
        self._samplers = [partial(vec_env.sample_random_action, slot) for slot in slots]
        self._is_history = [vec_env.shows_history(slot) for slot in slots]
        self._is_prompt = [vec_env.shows_prompt(slot) for slot in slots]
        self._same_step = vec_env.autoreset is Autoreset.SAME_STEP

    @property
    def empty(self) -> bool:
        """Whether no episode is running."""
        return not self.ready and not self._in_flight

    def begin(self, trajectories: Sequence[Trajectory]) -> None:
        """Start an episode on each trajectory's slot, from the trajectory's seed if it has one."""
        if trajectories:
            self.vec_env.send_reset([t.slot for t in trajectories], [t.seed for t in trajectories])
            self._in_flight |= {t.slot: ActiveEpisode(t, "", None) for t in trajectories}

    def step(self, policy: Policy) -> list[Trajectory]:
        """Query the policy for all ready episodes, send its actions, and receive the slots that have finished.

        Returns:
            The episodes that ended.

        Raises:
            GemError: an error of the vector environment. All running episodes are discarded.
            Exception: any exception of the policy. The episodes are unchanged, and the next call queries it again.
        """
        if policy.chat is not None or self.history is not FULL_HISTORY:
            self._end_overflowing(policy)
        if self.ready:
            self._act(policy)
        self._receive(self.batch_wait)
        return self._take_ended()

    def drain(self) -> list[Trajectory]:
        """Wait until no slot is in flight. Return the episodes that ended and were not returned before."""
        while self._in_flight:
            self._receive(None)
        return self._take_ended()

    def _take_ended(self) -> list[Trajectory]:
        ended, self._ended = self._ended, []
        return ended

    def _end_overflowing(self, policy: Policy) -> None:
        """Prepare the contexts of all ready episodes and end the episodes that exceed a limit."""
        for e in self.ready:
            e.prepare(policy, self.history, is_prompt=self._is_prompt[e.slot], is_history=self._is_history[e.slot])
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
        """Query the policy for all ready episodes, send its actions, and end the episodes whose request failed."""
        started = time.perf_counter()
        is_history, samplers = self._is_history, self._samplers
        replies = policy.act([e.request(samplers[e.slot], is_history[e.slot]) for e in self.ready])
        now = time.perf_counter()
        batch = Batch(policy.version, now - started, now)
        failed: dict[int, Trajectory] = {}
        for episode, reply in zip(self.ready, replies, strict=True):
            episode.reply, episode.batch = reply, batch
            if reply.failure:
                failed[episode.slot] = episode.truncate(StopReason.FAILED, reply.failure)
        self._end(failed)
        if self.ready:
            self._send([reply.text for reply in replies if not reply.failure])

    def _send(self, actions: list[str]) -> None:
        """Send one action per ready episode. If all slots are ready and run inline, step them immediately."""
        slots = [e.slot for e in self.ready]
        with self._discard_on_error():
            if self.vec_env.is_inline and len(slots) == self.vec_env.num_envs:
                # Mark the slots as in flight before the step, so that they can be received after an interrupt.
                episodes, self.ready = self.ready, []
                self._in_flight = dict(zip(slots, episodes, strict=True))
                step = self.vec_env.step(actions)
                self._in_flight = {}
                self._take(episodes, step)
            else:
                self.vec_env.send(actions, slots)
                self._in_flight |= zip(slots, self.ready, strict=True)
                self.ready = []

    def _receive(self, timeout: float | None) -> None:
        """Receive all slots in flight. After timeout seconds, receive the finished slots, waiting for at least one."""
        if not self._in_flight:
            return
        with self._discard_on_error():
            ids, step = self.vec_env.recv(min_envs=len(self._in_flight), timeout=timeout)
            if not ids:
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
            self.ready, self._in_flight = [], {}
            raise


def _next(trajectory: Trajectory) -> Trajectory:
    return Trajectory(trajectory.env_id, slot=trajectory.slot, episode=trajectory.episode + 1)
