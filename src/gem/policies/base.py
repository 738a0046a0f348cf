"""The policy interface, and policies without a model: random, scripted, and the oracles of environments."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeGuard, cast

from gem.conversation import ChatFormat
from gem.errors import BadValue
from gem.messages import Observation, Role
from gem.registry import ENV_REGISTRY, resolve
from gem.trajectory import Turn

if TYPE_CHECKING:
    from concurrent.futures import Future


@dataclass(slots=True)
class Request:
    """A request for the next action of one slot. Do not modify.

    Args:
        observation: the latest observation.
        prompt_ids: token ids of the whole context; empty for a policy whose ``chat`` is None.
        key: (slot, episode, turn).
        sample_random_action: returns a random legal action of the environment.
        turns: the turns of the episode so far; empty if the observation contains the history.
        role: role of a text observation: "user", or "tool" for a tool result.
        dropped: number of oldest turns to leave out; see gem.conversation.History.
        tools: schemas of the functions available for native calls, from ``info["tools"]`` of the reset; empty if
            tool calls are written in the text.
        stream: a policy that samples derives its random stream from these numbers. Evaluations identify the task, the
            rollout and the turn by them. None for ``key``.
    """

    observation: Observation
    prompt_ids: Sequence[int]
    key: tuple[int, int, int]
    sample_random_action: Callable[[], str]
    turns: Sequence[Turn] = ()
    role: Role = "user"
    dropped: int = 0
    tools: Sequence[Mapping[str, Any]] = ()
    stream: tuple[int, ...] | None = None


@dataclass(slots=True)
class Reply:
    """A policy's reply to one request. The token fields are empty for a text policy. See gem.trajectory.Turn.

    failure: error message if the request failed, else None. A failed request ends the episode as failed.
    finish: see Turn. "refusal" and "content_filter" end the episode as refused.
    prompt_ids: the context that a server reports to have fed; empty if it is that of the request.
    explanation: why a request was refused, in the words of the server; None for other replies.
    """

    text: str
    sampled_ids: Sequence[int] = ()
    logprobs: Sequence[float] = ()
    finish: str | None = None
    failure: str | None = None
    prompt_ids: Sequence[int] = ()
    usage: dict[str, Any] | None = None
    message: dict[str, Any] | None = None
    model: str | None = None
    explanation: str | None = None


class Policy(Protocol):
    """Replies to batches of requests.

    A policy may also have ``model_name`` (str) and ``settings`` (a dict of sampling settings), which are recorded, and
    ``backend()``, which returns what else decides its replies and may change in a resumed evaluation, by name, such as
    the host of the endpoint and the format of the weights.
    """

    @property
    def chat(self) -> ChatFormat | None:
        """The format that encodes conversations as tokens; None for a text policy."""

    @property
    def max_prompt_tokens(self) -> int | None:
        """Maximum length of a context in tokens; None for no limit."""

    @property
    def version(self) -> int:
        """Number of updates so far."""

    def act(self, requests: Sequence[Request]) -> list[Reply]:
        """Return one reply per request, in order."""
        ...


class AsyncPolicy(Policy, Protocol):
    """A policy whose replies arrive independently of each other, such as a model at an endpoint.

    Rollouts call submit() instead of act(), so that a slot with its reply continues while others wait for theirs.
    """

    def submit(self, request: Request) -> Future[Reply]:
        """Start a request and return a future of its reply. Canceling the future aborts the request."""
        ...


def is_async(policy: Policy) -> TypeGuard[AsyncPolicy]:
    """Return whether a policy has submit()."""
    return hasattr(policy, "submit")


class _TextPolicy:
    chat = None
    max_prompt_tokens = None
    version = 0


class RandomPolicy(_TextPolicy):
    """Takes random legal actions, sampled by the environment."""

    def act(self, requests: Sequence[Request]) -> list[Reply]:
        return [Reply(request.sample_random_action()) for request in requests]


class ScriptedPolicy(_TextPolicy):
    """Takes the same actions in every episode: line k at turn k; after the last line, the last line is repeated.

    Raises:
        BadValue: for an empty script.
    """

    def __init__(self, lines: Sequence[str]) -> None:
        if isinstance(lines, str) or not lines:
            raise BadValue(f"a script is a list of at least one line, got {lines!r}")
        self.lines = list(lines)

    def act(self, requests: Sequence[Request]) -> list[Reply]:
        lines, last = self.lines, len(self.lines) - 1
        return [Reply(lines[min(request.key[2], last)]) for request in requests]


class Oracle(Protocol):
    """An optimal or reference player of one environment."""

    def act(self, observation: str) -> str:
        """Return the action for an observation. An observation from reset() starts a new episode."""
        ...


def oracle(env: Any) -> Oracle:
    """Return the oracle of an environment created by id. EnvSpec.oracle_sees says what the oracle reads.

    Raises:
        BadValue: if the spec has no oracle.
    """
    spec = None if env.env_id is None else ENV_REGISTRY[env.env_id]
    if spec is None or spec.oracle is None:
        raise BadValue(f"no oracle is known for {env!r}; EnvSpec.oracle names one")
    return cast(Oracle, resolve(spec.oracle)(env.unwrapped))
