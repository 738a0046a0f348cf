"""What a policy is asked and what it answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from gem.conversation import ChatFormat
from gem.messages import Observation, Role
from gem.trajectory import Turn


@dataclass(frozen=True)
class Request:
    """One slot's question: what now?

    Args:
        observation: what the environment showed last.
        prompt_ids: the whole context in tokens; empty for a policy whose ``chat`` is None.
        key: (slot, episode, turn). Sampling draws from the stream of this key, so it depends on nothing else.
        sample_random_action: the environment's own sampler of legal actions.
        turns: of the episode so far; empty where the observation shows the history itself.
        role: who says the observation, where it is text: "user", or "tool" for the result of one.
        dropped: how many of the oldest turns are not to be shown; see gem.conversation.History.
        tools: schemas of the functions that may be called natively, from ``info["tools"]`` of the reset; empty where
            calls are written in the text.
    """

    observation: Observation
    prompt_ids: list[int]
    key: tuple[int, int, int]
    sample_random_action: Callable[[], str]
    turns: Sequence[Turn] = ()
    role: Role = "user"
    dropped: int = 0
    tools: Sequence[Mapping[str, Any]] = ()


@dataclass(frozen=True)
class Reply:
    """One slot's answer; the token fields are empty for a policy without tokens. See gem.trajectory.Turn.

    failure: what kept the policy from answering this one request; its episode ends as failed. None when it answered.
    """

    text: str
    sampled_ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    finish: str | None = None
    failure: str | None = None


class Policy(Protocol):
    """Answers batches of requests."""

    @property
    def chat(self) -> ChatFormat | None:
        """How it reads conversations in tokens; None for a policy of text."""

    @property
    def max_prompt_tokens(self) -> int | None:
        """The longest context it takes; None without a limit."""

    @property
    def version(self) -> int:
        """How often it has been updated."""

    def act(self, requests: Sequence[Request]) -> list[Reply]:
        """One reply per request, in order."""
        ...
