"""One slot's running episode: what it has seen, what it will be fed next, and its record so far."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from gem.conversation import observation_text
from gem.core import Info, StopReason
from gem.messages import user
from gem.policies import Policy, Reply, Request
from gem.trajectory import Trajectory, Turn
from gem.vector import VectorEnv


@dataclass
class Slot:
    """An episode under way.

    observation: the newest. info: its prefix and suffix, all that is shown of an info. prompt_ids: the context to feed
    next; empty until it is prepared, and for text policies.
    """

    trajectory: Trajectory
    observation: Any
    info: Info = field(default_factory=dict)
    prompt_ids: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.see(self.observation, self.info)

    def see(self, observation: Any, info: Info | None) -> None:
        """Take what the environment shows next."""
        self.observation = observation
        self.info = {key: info[key] for key in ("prefix", "suffix") if key in info} if info else {}

    def overflows(self, policy: Policy, vec_env: VectorEnv) -> bool:
        """Whether the episode has to end because its next context does not fit the model.

        Never so for a first prompt: that is nobody's episode, and the policy refuses it with its own error.
        """
        self._prepare(policy, vec_env)
        limit = policy.max_prompt_tokens
        return bool(self.trajectory.turns) and limit is not None and len(self.prompt_ids) > limit

    def request(self, policy: Policy, vec_env: VectorEnv) -> Request:
        self._prepare(policy, vec_env)
        record = self.trajectory
        # An episode from a seed of its own samples alike on every slot, so its key does not name one.
        slot = record.slot if record.seed is None else 0
        return Request(
            self._shown(),
            self.prompt_ids,
            (slot, record.episode, len(record.turns)),
            lambda: vec_env.sample_random_action(record.slot),
            () if vec_env.shows_history(record.slot) else record.turns,
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
        """End the episode because the next context would not fit the model."""
        return self.finish(self.observation, {"stop_reason": StopReason.MAX_TOKENS}, False, True)

    def fail(self, failure: str) -> Trajectory:
        """End the episode because the policy could not answer."""
        return self.finish(self.observation, {"stop_reason": StopReason.FAILED, "failure": failure}, False, True)

    def _shown(self) -> Any:
        """The observation with its prefix and suffix, where it is text."""
        return observation_text(self.observation, self.info) if isinstance(self.observation, str) else self.observation

    def _prepare(self, policy: Policy, vec_env: VectorEnv) -> None:
        if policy.chat is not None and not self.prompt_ids:
            self.prompt_ids = self._context(policy, vec_env)

    def _context(self, policy: Policy, vec_env: VectorEnv) -> list[int]:
        assert policy.chat is not None
        if vec_env.shows_prompt(self.trajectory.slot):
            return policy.chat.raw(self.observation)
        text = observation_text(self.observation, self.info)
        turns = self.trajectory.turns
        if not turns or vec_env.shows_history(self.trajectory.slot):
            return policy.chat.prompt([user(text)])
        return policy.chat.extend(turns[-1].prompt_ids, turns[-1].sampled_ids, text)
