"""A model behind a chat endpoint, playing."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Mapping, Sequence
from concurrent.futures import wait
from typing import Any, Literal, cast

from gem.conversation import as_messages, conversation
from gem.errors import BadValue, EndpointError
from gem.messages import Message, assistant
from gem.policies.base import Reply, Request
from gem.policies.endpoint import Completion, Endpoint, RequestRefused
from gem.seeding import check_seed, derive
from gem.trajectory import Turn


class EndpointPolicy:
    """Asks an endpoint for each action, all slots of a batch at once, with the episode so far as a conversation.

    Where an environment offers tools for native calls (``info["tools"]`` on reset, as ToolEnvWrapper gives it in the
    format "openai"), they are sent along, and a reply with ``tool_calls`` is, as an action, the JSON of its message.

    Args:
        endpoint: who answers. Whoever made it closes it.
        system: opens every conversation; None opens with the first observation.
        seed: each (slot, episode, turn) samples with a seed of its own derived from this one, for endpoints that take
            "seed"; None sends none.
        tool_role: of messages with the results of tools. Servers that write prompts with the model's own template take
            "tool"; those that want every such message to answer ``tool_calls`` refuse it: give "user" then.
        sampling: whatever else the endpoint takes: temperature, max_tokens, stop, …

    Raises BadValue for a seed that is none, and another tool_role.
    """

    chat = None
    max_prompt_tokens = None
    version = 0

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        system: str | None = None,
        seed: int | None = None,
        tool_role: Literal["tool", "user"] = "tool",
        **sampling: Any,
    ) -> None:
        if tool_role not in ("tool", "user"):
            raise BadValue(f"tool_role must be 'tool' or 'user', got {tool_role!r}")
        self.endpoint, self.system, self.tool_role, self.sampling = endpoint, system, tool_role, sampling
        self.seed = None if seed is None else check_seed(seed)

    def act(self, requests: Sequence[Request]) -> list[Reply]:
        """One reply per request, in order.

        A request that fails for good is a Reply with ``failure``, and the others have their answers. Raises
        EndpointError where the endpoint answers none of them, a refusal being an answer, and BadValue for an
        observation that it does not take.
        """
        asked = [(self.messages(request), self._options(request)) for request in requests]
        futures = [self.endpoint.submit(messages, **options) for messages, options in asked]
        try:
            wait(futures)
            errors = [future.exception() for future in futures]
        finally:
            for future in futures:  # where the wait was interrupted
                future.cancel()
        for error in errors:
            if error is not None and (not isinstance(error, EndpointError) or all(map(_is_outage, errors))):
                raise error
        return [
            Reply("", failure=str(error)) if error is not None else _reply(future.result())
            for future, error in zip(futures, errors, strict=True)
        ]

    def messages(self, request: Request) -> list[dict[str, Any]]:
        """The conversation that a request is sent as."""
        new = as_messages(request.observation, request.role)
        reply = _native if request.tools else None
        said = [self._sent(message) for message in conversation(request.turns, new, request.dropped, reply)]
        return said if self.system is None else [{"role": "system", "content": self.system}, *said]

    def _sent(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """A message in the endpoint's form."""
        sent = dict(message)
        if sent.get("role") == "tool" and "tool_call_id" not in sent:
            sent["role"] = self.tool_role
        if isinstance(sent.get("content"), list):
            sent["content"] = [_part(part) for part in sent["content"]]
        return sent

    def _options(self, request: Request) -> dict[str, Any]:
        options = {**self.sampling, "tools": list(request.tools)} if request.tools else self.sampling
        if self.seed is None:
            return options
        return {**options, "seed": derive(self.seed, *request.key) % 2**31}  # as wide as every server takes


def _is_outage(error: BaseException | None) -> bool:
    """Whether the endpoint itself failed."""
    return isinstance(error, EndpointError) and not isinstance(error, RequestRefused)


def _reply(completion: Completion) -> Reply:
    """A reply that calls tools natively is the JSON of its message."""
    text = completion.text
    if completion.tool_calls:
        message = {"role": "assistant", "content": text or None, "tool_calls": completion.tool_calls}
        text = json.dumps(message, ensure_ascii=False)
    return Reply(text, finish=completion.finish)


def _native(turn: Turn) -> Message:
    """A reply as the message that it was, calls and all."""
    try:
        message = json.loads(turn.action)
    except (ValueError, RecursionError):
        return assistant(turn.action)
    called = isinstance(message, dict) and message.get("role") == "assistant" and message.get("tool_calls")
    return cast(Message, message) if called else assistant(turn.action)


def _part(part: Any) -> Any:
    """A part of a message's content; images as data URLs."""
    ours = isinstance(part, Mapping) and part.get("type") == "image" and "image" in part
    return {"type": "image_url", "image_url": {"url": _url(part["image"])}} if ours else part


def _url(image: Any) -> str:
    """A PIL image as a data URL."""
    if not hasattr(image, "save"):
        raise BadValue(f"an image should be a PIL image, got {type(image).__name__}")
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()
