"""Trajectories: token-exact records of episodes, turn by turn, and their JSON Lines files.

A turn records the ids fed to the model and the ids sampled from it, so text is never tokenized again.
Axes: K turns of an episode, T tokens of a sequence.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields
from enum import Enum
from pathlib import Path
from typing import Any

from gem._internal.inbound import loads, read_lines
from gem._internal.json_codec import decode, encode
from gem._internal.text import short_repr, shorten
from gem.core import StopReason
from gem.errors import BadValue
from gem.messages import Role
from gem.token_ids import NO_TOKENS, TokenIds

__all__ = [
    "ScoreCheck",
    "TokenSequence",
    "Trajectory",
    "Turn",
    "read_jsonl",
    "write_jsonl",
]


MAX_CHECKS = 100
MAX_TEXT = 2_000  # characters of an explanation, and of the name and the detail of a check


@dataclass(slots=True, frozen=True)
class ScoreCheck:
    """One thing that an environment checked to score an episode.

    Args:
        name: what was checked.
        passed: whether it passed.
        detail: what was found, in a few words; "" if there is nothing to add.
    """

    name: str
    passed: bool
    detail: str = ""

    @classmethod
    def read(cls, checks: Any) -> list[ScoreCheck]:
        """Read ``info["checks"]`` (see gem.core.Step), with at most MAX_CHECKS checks, the failed ones first if there
        are more, and texts of at most MAX_TEXT characters. Raises BadValue for any other value.
        """
        import msgspec

        if isinstance(checks, Mapping):
            checks = [{"name": name, "passed": passed} for name, passed in checks.items()]
        try:
            found = msgspec.convert(checks, list[ScoreCheck])
        except msgspec.ValidationError as e:
            raise BadValue(f"not checks: {e}; got {short_repr(checks)}") from e
        if len(found) > MAX_CHECKS:
            found = sorted(found, key=lambda check: check.passed)[:MAX_CHECKS]
        return [cls(shorten(check.name, MAX_TEXT), check.passed, shorten(check.detail, MAX_TEXT)) for check in found]


@dataclass(slots=True)
class Turn:
    """One action of the agent and its result. Rollouts share empty lists and dicts between turns, so do not modify
    them in place.

    ``prompt_ids`` is the whole context as a list, which each access copies. The contexts of an episode share their
    storage in ``context``.

    Args:
        observation: the last observation before the action.
        action: the text sent to the environment.
        context: token ids of the whole context, as fed to the model, or a list of them; empty for a text policy.
        sampled_ids, logprobs, loss_mask: one entry per sampled token, including the stop token. logprobs are those of
            the sampling distribution (after temperature and top-p); loss_mask is 1 on tokens to train.
        finish: "stop" if the model ended its reply, "length" at its token limit, "refusal" if it refused to reply (the
            action is then the text of the refusal, which was not sent), "context_overflow" if an endpoint refused the
            conversation as too long (the action is then empty and was not sent), or as an endpoint reports it; None for
            a policy without a model.
        reward: reward of this turn; None if the environment failed in this turn.
        reward_parts: named components that sum to reward; empty if the environment reports none.
        invalid: why the action was invalid; None for a valid action.
        seconds: wall-clock seconds that the policy took for the batch and the environment for the step, as
            {"policy": …, "env": …}. Turns of the same batch may share the dict.
        policy_version: number of policy updates before the action.
        role: role of a text observation: "user", or "tool" for a tool result.
        dropped: number of the oldest turns omitted from the context.
        usage: token counts that an endpoint reported, as gem.policies.usage names them; and under "retries" how often
            the request was sent again, by cause. Empty if there is nothing.
        message: the reply as a message, where an endpoint returned tool calls or reasoning; else None.
        tool_calls: the calls that ToolEnvWrapper found in the action, each with its name, arguments and fault (a
            ToolErrorType, or None for a successful call). The results are in the next observation.
        state_key: ``info["state_key"]`` of the observation: equal states of a task have equal keys. None if the
            environment gives none; equal observations then stand for equal states.
        model: name of the model that replied, as an endpoint reports it; None if it reports none.
        explanation: of the last turn, why the episode has its score, in one or a few sentences; None if the environment
            gives no reason.
        checks: of the last turn, what the environment checked to score the episode; see gem.core.Step.
    """

    observation: Any
    action: str
    context: TokenIds = NO_TOKENS
    sampled_ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    loss_mask: list[int] = field(default_factory=list)
    finish: str | None = None
    reward: float | None = 0.0
    reward_parts: dict[str, float] = field(default_factory=dict)
    invalid: str | None = None
    seconds: dict[str, float] = field(default_factory=dict)
    policy_version: int = 0
    role: Role = "user"
    dropped: int = 0
    usage: dict[str, Any] = field(default_factory=dict)
    message: dict[str, Any] | None = None
    tool_calls: list[dict[str, Any]] = field(default_factory=list)
    state_key: Any = None
    model: str | None = None
    explanation: str | None = None
    checks: list[ScoreCheck] = field(default_factory=list)

    def __post_init__(self) -> None:
        if type(self.context) is not TokenIds:
            self.context = TokenIds(self.context)

    @property
    def prompt_ids(self) -> list[int]:
        return self.context.tolist()

    def explain(self, info: Mapping[str, Any]) -> None:
        """Keep ``explanation`` and ``checks`` of an info, where they have the types that gem.core.Step names."""
        said = info.get("explanation")
        self.explanation = shorten(said, MAX_TEXT) if said and isinstance(said, str) else None
        if "checks" in info:
            with suppress(BadValue):
                self.checks = ScoreCheck.read(info["checks"])


class Continuation(str, Enum):
    """How the context of a turn continues the tokens of the turn before."""

    CLEAN = "clean"  # it extends them
    REALIGN = "realign"  # it replaces the last few tokens of the reply, as when a server encodes the text again
    FORK = "fork"  # it differs earlier or by more, as when old turns are dropped; a new sequence starts


@dataclass(slots=True)
class TokenSequence:
    """A packed training sequence of T tokens. The context of each of its turns extends that of the previous turn.

    Args:
        ids_T: token ids.
        loss_mask_T: 1 on tokens to train, else 0.
        logprobs_T: log-probabilities of sampled tokens; 0.0 on fed tokens.
        turn_T: index of the turn that sampled the token; -1 for fed tokens.
    """

    ids_T: list[int]
    loss_mask_T: list[int]
    logprobs_T: list[float]
    turn_T: list[int]


@dataclass(slots=True)
class Trajectory:
    """An episode from reset to end.

    Args:
        env_id: id of the environment; None if the environment was not made by id.
        slot: slot of the vector environment.
        episode: number of the episode in that slot.
        seed: seed of the reset that started the episode; None if the reset had no seed and continued a
            sequence of episodes.
        turns: K >= 1 turns; empty only if the environment failed on reset.
        final_observation: the observation of the last step.
        terminated, truncated, stop_reason: how the episode ended; see gem.core.StopReason.
        failure: the infrastructure failure that ended the episode; None if there was none.
        row_id: number of the dataset row, from ``info["idx"]`` of the reset; None if info has no such key.
        group_id: identifies the episodes of one task, for estimators that compare them; play_seeds() uses the seed.
        branch: (turn, number) of a continuation that BranchCollector played from the state before this turn of another
            episode, whose earlier turns it repeats; None for an episode from its reset.
        model: name of the model that the policy uses; None if it names none.
        sampling: sampling settings of the policy; empty if it names none.
        tools: schemas of the tools for native calls, at the end of the episode.
        agent: the agent whose observations and actions these are, in a game of several; None elsewhere.
        outside_limit: whether a limit outside the task ended the episode: of tokens, or of turns that the rules of the
            environment do not state.
    """

    env_id: str | None = None
    slot: int = 0
    episode: int = 0
    seed: int | None = None
    turns: list[Turn] = field(default_factory=list)
    final_observation: Any = None
    terminated: bool = False
    truncated: bool = False
    stop_reason: str | None = None
    failure: str | None = None
    row_id: Any = None
    group_id: Any = None
    branch: tuple[int, int] | None = None
    model: str | None = None
    sampling: dict[str, Any] = field(default_factory=dict)
    tools: list[Any] = field(default_factory=list)
    agent: str | None = None
    outside_limit: bool = False

    @property
    def solved(self) -> bool:
        """Whether the environment reported success. Rewards cannot be used for this, because they may be dense."""
        return self.stop_reason == StopReason.SOLVED

    @property
    def rewards_K(self) -> list[float]:
        """Rewards per turn. Raises BadValue for a failed trajectory."""
        rewards_K = [turn.reward for turn in self.turns if turn.reward is not None]
        if self.failure is not None or len(rewards_K) < len(self.turns):
            raise BadValue(f"a failed trajectory has no rewards ({self.failure}); drop it or play it again")
        return rewards_K

    @property
    def total_reward(self) -> float:
        return sum(self.rewards_K)

    def sequences(self, realign_tokens: int = 0) -> list[TokenSequence]:
        """Pack the episode for training. A context that does not extend the previous one starts a new sequence.

        Args:
            realign_tokens: see continuation(). Replies that a server encoded differently then stay in one sequence; the
                tokens that replace the sampled ones are not trained.

        Raises:
            BadValue: a turn has no token ids, or not one log-probability per sampled token.
        """
        for k, turn in enumerate(self.turns):
            if not turn.context:
                what, why = ("ids of its prompt", "") if turn.sampled_ids else ("ids", ": the policy works with text")
                raise BadValue(
                    f"turn {k} has no token {what}{why}. EndpointPolicy(tokenizer=…) records them; so does "
                    "return_token_ids=True with a server that returns them (vLLM, SGLang)"
                )
            if turn.logprobs and not turn.sampled_ids:
                raise BadValue(
                    f"turn {k} has {len(turn.logprobs)} log-probabilities and no token ids of its reply; request them "
                    "from the endpoint with return_token_ids=True"
                )
            if len(turn.logprobs) != len(turn.sampled_ids):
                raise BadValue(
                    f"turn {k} has {len(turn.sampled_ids)} tokens and {len(turn.logprobs)} log-probabilities; request "
                    "them from the endpoint with logprobs=True"
                )
        packed: list[TokenSequence] = []
        for k, turn in enumerate(self.turns):
            kind, kept = (Continuation.FORK, 0) if k == 0 else continuation(self.turns[k - 1], turn, realign_tokens)
            if kind is Continuation.FORK:
                packed.append(TokenSequence([], [], [], []))
            last = packed[-1]
            if kind is Continuation.REALIGN:
                for field_T in (last.ids_T, last.loss_mask_T, last.logprobs_T, last.turn_T):
                    del field_T[kept:]
            fed = turn.context[len(last.ids_T) :]
            last.ids_T += fed + turn.sampled_ids
            last.loss_mask_T += [0] * len(fed) + turn.loss_mask
            last.logprobs_T += [0.0] * len(fed) + turn.logprobs
            last.turn_T += [-1] * len(fed) + [k] * len(turn.sampled_ids)
        return packed

    def to_json(self) -> dict[str, Any]:
        """Convert to plain data, without loss. Each context is stored as its difference from the preceding tokens.

        Raises:
            BadValue: for a value that cannot be kept; see gem._internal.json_codec.
        """
        data = {name: _plain(getattr(self, name), name) for name in _FIELDS if name != "turns"}
        before = Turn("", "")
        turns = []
        for k, turn in enumerate(self.turns):
            try:
                turns.append(_turn_to_json(turn, before, f"turns[{k}]"))
            except (TypeError, ValueError, RecursionError) as e:  # BadValue is a ValueError
                raise e if isinstance(e, BadValue) else BadValue(f"turns[{k}] cannot be kept: {e}") from e
            before = turn
        return {**data, "turns": turns}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Trajectory:
        """Restore a trajectory from the result of to_json(). Raises BadValue for any other data."""
        import msgspec

        try:
            before = Turn("", "")
            turns = []
            for turn in data["turns"]:
                before = msgspec.convert(_decoded_turn(turn, before), Turn)
                turns.append(before)
            rest = {name: decode(value) for name, value in data.items() if name != "turns"}
            return msgspec.convert({**rest, "turns": turns}, cls)
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as e:
            raise BadValue(f"not a trajectory: {type(e).__name__}: {e}") from e


def continuation(before: Turn, turn: Turn, realign_tokens: int = 0) -> tuple[Continuation, int]:
    """Classify the context of a turn, and return the number of tokens that it keeps of those before.

    Args:
        before: the turn before.
        turn: the turn.
        realign_tokens: REALIGN is allowed if at most so many tokens at the end of the reply are replaced, and at least
            its first token is kept, on which its reward is placed; 0 never realigns.
    """
    held = len(before.context) + len(before.sampled_ids)
    if turn.context.starts_with(before.context, before.sampled_ids):
        return Continuation.CLEAN, held
    kept = _common_prefix(before.context + before.sampled_ids, turn.context.tolist())
    realigns = kept > len(before.context) and held - kept <= realign_tokens
    return (Continuation.REALIGN if realigns else Continuation.FORK), kept


def _turn_to_json(turn: Turn, before: Turn, where: str) -> dict[str, Any]:
    data = {name: _plain(getattr(turn, name), f"{where}.{name}") for name in _TURN_FIELDS if name not in _NUMBERS}
    data |= {name: list(map(to_number, getattr(turn, name))) for name, to_number in _NUMBERS.items()}
    data["reward"] = None if turn.reward is None else float(turn.reward)  # a numpy scalar becomes a number
    parts = {name: float(part) for name, part in turn.reward_parts.items()}
    data["reward_parts"] = encode(parts, f"{where}.reward_parts")
    data["checks"] = encode([asdict(check) for check in turn.checks], f"{where}.checks")
    _, keeps = continuation(before, turn)
    return {**data, "prompt_ids": {"keeps": keeps, "adds": turn.context[keeps:]}}


def _plain(value: Any, name: str) -> Any:
    """Encode the value of a field. Enums and numpy scalars in typed fields become text and numbers."""
    if name.rpartition(".")[2] in _ANY_FIELDS:
        return encode(value, name)
    if isinstance(value, str):
        return str.__str__(value)
    return encode(value.item() if hasattr(value, "item") else value, name)


def _decoded_turn(data: dict[str, Any], before: Turn) -> dict[str, Any]:
    keeps, adds = data["prompt_ids"]["keeps"], data["prompt_ids"]["adds"]
    if keeps == len(before.context) + len(before.sampled_ids):
        context = before.context.extended(before.sampled_ids, adds)
    else:
        context = TokenIds((before.context + before.sampled_ids)[:keeps] + adds)
    return {"context": context, **{name: decode(value) for name, value in data.items() if name != "prompt_ids"}}


def write_jsonl(path: str | os.PathLike[str], trajectories: Iterable[Trajectory]) -> None:
    """Append trajectories to a JSON Lines file. Raises BadValue for a trajectory that cannot be kept without loss."""
    with open(path, "a", encoding="ascii") as file:
        for trajectory in trajectories:
            file.write(json.dumps(trajectory.to_json()) + "\n")
            file.flush()


def read_jsonl(path: str | os.PathLike[str]) -> Iterator[Trajectory]:
    """Yield the trajectories of a JSON Lines file. Raises BadValue with file and line number for an invalid line."""
    with Path(path).open("rb") as file:
        for number, line in enumerate(read_lines(file, str(path)), start=1):
            try:
                yield Trajectory.from_json(loads(line, "it", keep_surrogates=True))
            except ValueError as e:  # not JSON, or not a trajectory
                raise BadValue(f"{path}, line {number}: {e}") from e


def _common_prefix(a: list[int], b: list[int]) -> int:
    if a == b[: len(a)]:  # the common case, compared in C
        return len(a)
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


# Their values keep their types.
_ANY_FIELDS = frozenset({"observation", "final_observation", "row_id", "group_id", "state_key"})
_FIELDS = tuple(field.name for field in fields(Trajectory))
_NUMBERS: dict[str, Callable[[Any], float]] = {"sampled_ids": int, "logprobs": float, "loss_mask": int}
_CONVERTED = ("context", "reward", "reward_parts", "checks")
_TURN_FIELDS = tuple(field.name for field in fields(Turn) if field.name not in _CONVERTED)
