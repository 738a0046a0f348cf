"""A simulated customer played by a model behind an OpenAI-compatible endpoint. Needs the extra [eval].

An outage, a refusal or an empty reply of the model raises EndpointError, so the episode fails and gets no reward.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gem.errors import BadValue, EndpointError
from gem.policies.completion import Completion
from gem.policies.endpoint import Endpoint

_CLIENT = ("base_url", "model", "api_key_env", "timeout", "concurrency", "retries", "backoff")
_OPENING = "Hi! How can I help you today?"  # with what the agent's side opens the conversation, so the model begins


class ModelCustomer:
    """The model that plays the customers of an environment.

    Args:
        settings: ``base_url`` and ``model``, optionally ``api_key_env``, ``timeout``, ``concurrency``, ``retries`` and
            ``backoff`` of gem.policies.endpoint.Endpoint; all others, such as ``temperature``, are sampling options of
            each request.

    Raises:
        BadValue: ``base_url`` or ``model`` is missing, or a value is out of range.
    """

    def __init__(self, settings: Mapping[str, Any]) -> None:
        if missing := [name for name in ("base_url", "model") if not settings.get(name)]:
            raise BadValue(
                f"a model customer needs {' and '.join(missing)}, such as "
                '{"base_url": "http://127.0.0.1:8000/v1", "model": "NAME"}'
            )
        self.endpoint = Endpoint(**{name: value for name, value in settings.items() if name in _CLIENT})
        self.sampling = {name: value for name, value in settings.items() if name not in _CLIENT}

    def reply(
        self, prompt: str, conversation: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]] = ()
    ) -> Completion:
        """Return what the customer says next, or which of its own tools it calls.

        Args:
            prompt: the system message, with the hidden goal.
            conversation: messages in OpenAI's format as the customer sees them: its own have the role "assistant",
                those of the agent "user", results of its tools "tool".
            tools: schemas of the customer's own tools.

        Raises:
            EndpointError: the endpoint failed, or the reply is empty, cut off or a refusal.
        """
        messages = [{"role": "system", "content": prompt}, {"role": "user", "content": _OPENING}, *conversation]
        options = {**self.sampling, "tools": list(tools)} if tools else self.sampling
        reply = self.endpoint.complete(messages, **options)
        if reply.refusal or reply.finish in ("length", "content_filter"):
            raise EndpointError(f"{self.endpoint!r} did not finish the customer's message: {reply.finish}")
        if not reply.text.strip() and not reply.tool_calls:
            raise EndpointError(f"{self.endpoint!r} returned an empty message of the customer")
        return reply

    def close(self) -> None:
        """Close the connections."""
        self.endpoint.close()
