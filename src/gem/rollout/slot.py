"""One slot's running episode: what it has seen, what it will be fed next, and its record so far."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gem.conversation import ChatFormat, History, role_of
from gem.conversation.history import WHOLE
from gem.conversation.observations import shown, text_messages
from gem.core import Info, StopReason
from gem.messages import Observation, Role
from gem.policies import Policy, Reply, Request
from gem.trajectory import Trajectory, Turn
from gem.vector import VectorEnv


@dataclass
class Slot:
    """An episode under way.

    observation: the newest. info: its prefix and suffix, all that is shown of an info, and use_tool, which says who
    speaks. prompt_ids: the context to feed next; empty until it is prepared, and for text policies. dropped: how many
    of the oldest turns it leaves out. exceeded: the limit past which it is, None when it is not. tools: what the
    reset's info offered for native calls.
    """

    trajectory: Trajectory
    observation: Any
    info: Info = field(default_factory=dict)
    prompt_ids: list[int] = field(default_factory=list)
    dropped: int = 0
    exceeded: StopReason | None = None
    tools: Sequence[Mapping[str, Any]] = ()

    def __post_init__(self) -> None:
        self.see(self.observation, self.info)

    def see(self, observation: Any, info: Info | None) -> None:
        """Take what the environment shows next."""
        self.observation = observation
        self.info = {key: info[key] for key in ("prefix", "suffix", "use_tool") if key in info} if info else {}
        self.tools = info.get("tools", self.tools) if info else self.tools

    def overflows(self, policy: Policy, vec_env: VectorEnv, history: History = WHOLE) -> bool:
        """Prepare what is shown next. Returns whether the episode has to end because that is past a limit.

        Never so for a first prompt: that is nobody's episode, and the policy refuses it with its own error.
        """
        self._prepare(policy, vec_env, history)
        return self.exceeded is not None

    def request(self, policy: Policy, vec_env: VectorEnv) -> Request:
        """What the policy is asked, once overflows() has prepared it."""
        record = self.trajectory
        # An episode from a seed of its own samples alike on every slot, so its key does not name one.
        slot = record.slot if record.seed is None else 0
        return Request(
            self._shown(),
            self.prompt_ids,
            (slot, record.episode, len(record.turns)),
            lambda: vec_env.sample_random_action(record.slot),
            () if vec_env.shows_history(record.slot) else record.turns,
            self._role,
            self.dropped,
            self.tools,
        )

    def record(self, reply: Reply, version: int, reward: float, info: Info, seconds: dict[str, float]) -> None:
        """Add a turn, by the policy of this version.

        info is of the step that the action caused, final_info where the slot was reset at once.
        """
        self.trajectory.turns.append(
            Turn(
                observation=self._shown(),
                action=reply.text,
                prompt_ids=self.prompt_ids,
                sampled_ids=reply.sampled_ids,
                logprobs=reply.logprobs,
                loss_mask=[1] * len(reply.sampled_ids),
                finish=reply.finish,
                reward=None if "failure" in info else float(reward),
                reward_parts=dict(info.get("reward_parts", {})),
                invalid=info.get("invalid"),
                seconds=seconds,
                policy_version=version,
                role=self._role,
                dropped=self.dropped,
            )
        )
        self.prompt_ids = []

    def finish(self, observation: Any, info: Info, terminated: bool, truncated: bool) -> Trajectory:
        record = self.trajectory
        record.final_observation, record.terminated, record.truncated = observation, terminated, truncated
        reason = info.get("stop_reason")
        record.stop_reason = None if reason is None else str(reason)
        record.failure = info.get("failure")
        return record

    def overflow(self) -> Trajectory:
        """End the episode because what would be shown next is past a limit."""
        return self.finish(self.observation, {"stop_reason": self.exceeded}, False, True)

    def fail(self, failure: str) -> Trajectory:
        """End the episode because the policy could not answer."""
        return self.finish(self.observation, {"stop_reason": StopReason.FAILED, "failure": failure}, False, True)

    def _shown(self) -> Observation:
        """The observation with its prefix and suffix."""
        return shown(self.observation, self.info)

    @property
    def _role(self) -> Role:
        return role_of(self.info)

    def _prepare(self, policy: Policy, vec_env: VectorEnv, history: History) -> None:
        """Find the next context, and whether it is past a limit."""
        if self.prompt_ids:
            return
        turns, slot = self.trajectory.turns, self.trajectory.slot
        alone = vec_env.shows_prompt(slot) or vec_env.shows_history(slot)
        if policy.chat is not None and alone:
            self.prompt_ids = self._prompt(policy.chat, vec_env.shows_prompt(slot))
            limit = policy.max_prompt_tokens
            outgrown = bool(turns) and limit is not None and len(self.prompt_ids) > limit
            self.dropped, self.exceeded = 0, StopReason.MAX_TOKENS if outgrown else None
        elif policy.chat is not None:
            new = text_messages(self._shown(), self._role)
            context = history.context(policy.chat, turns, new, policy.max_prompt_tokens)
            self.prompt_ids, self.dropped, self.exceeded = context
        elif not alone:
            self.dropped, self.exceeded = history.dropped(turns), history.exceeded(turns)

    def _prompt(self, chat: ChatFormat, written: bool) -> list[int]:
        """The context of an observation that shows the history itself. written: with the template already."""
        return chat.raw(self.observation) if written else chat.prompt(text_messages(self._shown(), self._role))
