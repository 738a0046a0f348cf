"""One running episode: its next context, its requests to the policy, and its record."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from gem.conversation.chat import ChatFormat
from gem.conversation.history import History, RepliesAtRisk
from gem.conversation.observations import role_of, text_messages, with_prefix_and_suffix
from gem.core import Info, StopReason
from gem.messages import Observation, Role
from gem.policies import Policy, Reply, Request
from gem.registry import ENV_REGISTRY
from gem.seeding import derive
from gem.token_ids import NO_TOKENS, TokenIds
from gem.trajectory import Trajectory, Turn

NO_PARTS: dict[str, float] = {}  # shared by the turns whose reward has no parts; never modified
_NO_ITEMS: list[Any] = []  # likewise for their token fields
_NO_INFO: Info = {}
# Explanations of episodes that a limit ended, for which the environment gives none.
_LIMITS = {
    StopReason.MAX_TURNS.value: "The turn limit was reached.",
    StopReason.MAX_TOKENS.value: "The context limit was reached.",
    StopReason.REFUSED.value: "The model or a content filter refused to reply.",
}
_CALL_KEYS = frozenset({"name", "arguments", "fault"})
# The only keys of info that are kept: those that affect what the policy is shown, and the key of the state.
_KEPT_INFO = frozenset({"prefix", "suffix", "use_tool", "state_key"})


class ReplyBatch(NamedTuple):
    """Data shared by all turns of one act() call.

    Args:
        version: version of the policy.
        policy_seconds: duration of the act() call.
        sent_at: time.perf_counter() when act() returned.
    """

    version: int
    policy_seconds: float
    sent_at: float


NO_BATCH = ReplyBatch(0, 0.0, 0.0)


class EnvView(NamedTuple):
    """What requests to a policy need to know of the environment.

    Args:
        sample_random_action: returns a random legal action.
        shows_prompt: whether its observations are complete prompts, written with a chat template.
        shows_history: whether its observations contain the whole history.
    """

    sample_random_action: Callable[[], str]
    shows_prompt: bool = False
    shows_history: bool = False


class ActiveEpisode:
    """A running episode: its latest observation, the context to feed next, and its record so far.

    Args:
        trajectory: the record, extended in place.
        observation, info: the latest observation of the environment and its info; observe() sets them later.
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
        "at_risk",
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
        self,
        trajectory: Trajectory,
        observation: Any = "",
        info: Info | None = None,
        tools: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        self.trajectory, self.turns, self.slot = trajectory, trajectory.turns, trajectory.slot
        # A seeded episode samples the same tokens on every slot, so its key does not contain the slot.
        self.key_slot = trajectory.slot if trajectory.seed is None else 0
        if trajectory.branch is not None:  # samples other tokens than the episode that it left
            self.key_slot = derive("branch", *trajectory.branch)
        self.tools = tools
        self.prompt_ids = NO_TOKENS
        self.at_risk = RepliesAtRisk()
        self.dropped = self.turns[-1].dropped if self.turns else 0
        self.exceeded: StopReason | None = None
        self.reply: Reply | None = None
        self.batch = NO_BATCH
        self.observe(observation, info)

    def observe(self, observation: Any, info: Info | None) -> None:
        """Set the latest observation."""
        self.observation, self.info, self.role = observation, _NO_INFO, "user"
        self.shown = observation if type(observation) is str else with_prefix_and_suffix(observation, {})
        if info:
            if "tools" in info:
                self.tools = info["tools"]
            if "idx" in info and not self.turns:
                self.trajectory.row_id = info["idx"]
            if not _KEPT_INFO.isdisjoint(info):
                self.info = {key: info[key] for key in sorted(_KEPT_INFO) if key in info}
                self.role = role_of(self.info)
                self.shown = with_prefix_and_suffix(observation, self.info)

    def prepare(self, policy: Policy, history: History, env: EnvView) -> None:
        """Compute the next context and check it against the limits."""
        if self.prompt_ids is not NO_TOKENS:
            return
        chat, limit = policy.chat, policy.max_prompt_tokens
        if chat is None:
            if not (env.shows_prompt or env.shows_history):
                self.dropped, self.exceeded = history.dropped(self.turns), history.exceeded(self.turns)
            return
        if env.shows_prompt:
            self.prompt_ids = self._prompt_context(chat)
        else:
            new = text_messages(self.shown, self.role, images=chat.reads_images)
            if not env.shows_history:
                context = history.context(chat, self.turns, new, limit, self.at_risk)
                self.prompt_ids, self.dropped, self.exceeded = context
                return
            self.prompt_ids = TokenIds(chat.prompt(new))
        too_long = bool(self.turns) and limit is not None and len(self.prompt_ids) > limit
        self.dropped, self.exceeded = 0, StopReason.MAX_TOKENS if too_long else None

    def _prompt_context(self, chat: ChatFormat) -> TokenIds:
        """Encode the observation, a complete prompt, keeping the ids of the previous turn if it begins with them."""
        if self.turns:
            last = self.turns[-1]
            new = chat.raw_new_ids(str(last.observation), last.sampled_ids, self.observation)
            if new is not None:
                return last.context.extended(last.sampled_ids, new)
        return TokenIds(chat.raw(self.observation))

    def request(self, policy: Policy, env: EnvView) -> Request:
        """Build the request for the next action. Policies with a chat template need a prepare() call first.

        At the first turn, the record takes the model and the sampling settings of the policy.
        """
        if not self.turns:
            record = self.trajectory
            record.model, record.sampling = getattr(policy, "model_name", None), getattr(policy, "settings", {})
        return Request(
            self.shown,
            self.prompt_ids,
            (self.key_slot, self.trajectory.episode, len(self.turns)),
            env.sample_random_action,
            () if env.shows_history else self.turns,
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
        fed = self.prompt_ids
        if reply.prompt_ids and fed != reply.prompt_ids:
            fed = (self.turns[-1].context if self.turns else NO_TOKENS).continued(reply.prompt_ids)
        turn = object.__new__(Turn)  # a call with keywords takes several times as long as these assignments
        turn.observation, turn.role, turn.dropped = self.shown, self.role, self.dropped
        turn.state_key = self.info.get("state_key")
        turn.action, turn.finish, turn.message, turn.model = reply.text, reply.finish, reply.message, reply.model
        turn.usage = reply.usage or NO_PARTS
        turn.context = fed
        if fed is not NO_TOKENS or reply.sampled_ids or reply.logprobs:
            turn.sampled_ids, turn.logprobs = list(reply.sampled_ids), list(reply.logprobs)
            turn.loss_mask, self.prompt_ids = [1] * len(reply.sampled_ids), NO_TOKENS
        else:  # turns share one list, which makes garbage collection cheaper
            turn.sampled_ids = turn.logprobs = turn.loss_mask = _NO_ITEMS
        turn.policy_version, turn.seconds = version, seconds
        turn.reward, turn.invalid = None if "failure" in info else reward, info.get("invalid")
        turn.reward_parts = dict(info["reward_parts"]) if "reward_parts" in info else NO_PARTS
        turn.tool_calls = _recorded_calls(info["tool_calls"]) if "tool_calls" in info else _NO_ITEMS
        turn.explanation, turn.checks = None, _NO_ITEMS  # finish() sets them
        self.turns.append(turn)

    def finish(self, observation: Any, info: Info, terminated: bool, truncated: bool) -> Trajectory:
        """Complete the record with the last observation and the info of the last step."""
        record = self.trajectory
        record.final_observation, record.terminated, record.truncated = observation, terminated, truncated
        reason = info.get("stop_reason")
        record.stop_reason = None if reason is None else str(reason)
        record.outside_limit = _is_outside_limit(record.env_id, info)
        record.failure = info.get("failure")
        record.tools = list(self.tools)
        if self.turns:
            self.turns[-1].explain({"explanation": _LIMITS.get(str(record.stop_reason)), **info})
        return record

    def truncate(self, reason: StopReason, failure: str | None = None, explanation: str | None = None) -> Trajectory:
        """End the episode as truncated after its latest observation, without stepping the environment."""
        said = {"failure": failure, "explanation": explanation}
        info: Info = {"stop_reason": reason, **{name: text for name, text in said.items() if text is not None}}
        info["outside_limit"] = reason is StopReason.MAX_TURNS  # that of a History
        return self.finish(self.observation, info, False, True)


def _is_outside_limit(env_id: str | None, info: Info) -> bool:
    """Return whether a limit outside the task ended an episode, from the info of its last step."""
    reason = info.get("stop_reason")
    if info.get("outside_limit") or reason == StopReason.MAX_TOKENS:
        return True
    spec = ENV_REGISTRY.get(env_id) if env_id and reason == StopReason.MAX_TURNS else None
    return spec is not None and spec.turn_limit == "outside"


def _recorded_calls(calls: Any) -> list[dict[str, Any]]:
    """Return the calls as ToolEnvWrapper reports them in info, without their results."""
    known = [call for call in calls if isinstance(call, Mapping)] if isinstance(calls, list) else []
    return [{key: call[key] for key in sorted(_CALL_KEYS)} for call in known if call.keys() >= _CALL_KEYS]
