"""A simulated customer played by a model behind an OpenAI-compatible endpoint. Needs the extra [eval].

An outage, a refusal or an empty reply of the model raises EndpointError, so the episode fails and gets no reward.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from gem._internal.inbound import REPLY, loads
from gem._internal.text import escaped
from gem.errors import BadValue, EndpointError
from gem.messages import without_thinking
from gem.policies.chat_requests import as_sent
from gem.policies.completion import Completion
from gem.policies.endpoint import Endpoint

Event = dict[str, Any]  # {"by", "say"}, or {"by", "call", "arguments", "result", "error"}; by is "agent" or "customer"
CustomerCall = Callable[[str, dict[str, Any]], tuple[str, bool]]  # name and arguments → result, and if it failed
MAX_CALLS = 50  # of the customer's own tools, before it says something
_CLIENT = ("base_url", "model", "api_key_env", "timeout", "concurrency", "retries", "backoff")
_OPENING = "Hi! How can I help you today?"  # with what the agent's side opens the conversation, so the model begins


class ModelCustomer:
    """The model that plays the customers of an environment.

    Args:
        settings: ``base_url`` and ``model``, optionally ``api_key_env``, ``timeout``, ``concurrency``, ``retries`` and
            ``backoff`` of gem.policies.endpoint.Endpoint; all others, such as ``temperature``, are sampling options of
            each request.

    Raises:
        BadValue: ``settings`` is not a dict, ``base_url`` or ``model`` is missing, or a value is out of range.
    """

    def __init__(self, settings: Mapping[str, Any]) -> None:
        if not isinstance(settings, Mapping):
            raise BadValue(f"the settings of a model customer are a dict with base_url and model, got {settings!r}")
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
        """Return what the customer says next, without its thinking, or which of its own tools it calls.

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
        reply = self.endpoint.complete(as_sent(messages), **options)
        if reply.refusal or reply.finish in ("length", "content_filter"):
            raise EndpointError(f"{self.endpoint!r} did not finish the customer's message: {reply.finish}")
        reply = replace(reply, text=without_thinking(reply.text))  # which knows the hidden goal
        if not reply.text and not reply.tool_calls:
            raise EndpointError(f"{self.endpoint!r} returned an empty message of the customer")
        return reply

    def turn(
        self,
        prompt: str,
        events: Sequence[Event],
        tools: Sequence[Mapping[str, Any]] = (),
        call: CustomerCall | None = None,
    ) -> list[Event]:
        """Let the customer call its tools until it says something. Return these events; the last is what it says.

        Args:
            prompt, tools: see reply().
            events: the conversation so far.
            call: executes a call of the customer; returns the result, and whether it is an error. None without tools.

        Raises:
            EndpointError: see reply(); or the customer makes a malformed call, or over 50 calls.
        """
        new: list[Event] = []
        while len(new) < MAX_CALLS:
            reply = self.reply(prompt, seen_by_customer([*events, *new]), tools)
            if not reply.tool_calls:
                return [*new, {"by": "customer", "say": reply.text}]
            for name, arguments in map(_native, reply.tool_calls):
                if call is None:
                    raise EndpointError(f"{self.endpoint!r} called {name!r}, but the customer has no tools")
                result, error = call(name, arguments)
                called = {"call": name, "arguments": arguments, "result": result, "error": error}
                new.append({"by": "customer", **called})
        raise EndpointError(f"the customer called {MAX_CALLS} functions without saying anything")

    def close(self) -> None:
        """Close the connections."""
        self.endpoint.close()


def seen_by_customer(events: Sequence[Event]) -> list[dict[str, Any]]:
    """Return a conversation as the messages of a model that plays the customer: it sees no call of the agent.

    Control tokens of chat templates in the agent's messages are changed.
    """
    messages: list[dict[str, Any]] = []
    for number, event in enumerate(events):
        if "say" in event:
            by_agent = event["by"] == "agent"
            text = escaped(event["say"]) if by_agent else event["say"]
            messages.append({"role": "user" if by_agent else "assistant", "content": text})
        elif event["by"] == "customer":
            messages += _call_messages(f"call_{number}", event)
    return messages


def _call_messages(call_id: str, event: Event) -> list[dict[str, Any]]:
    function = {"name": event["call"], "arguments": json.dumps(event["arguments"])}
    call = {"id": call_id, "type": "function", "function": function}
    result = {"role": "tool", "tool_call_id": call_id, "content": event["result"]}
    return [{"role": "assistant", "content": None, "tool_calls": [call]}, result]


def _native(call: Any) -> tuple[str, dict[str, Any]]:
    """Return the name and the arguments of a native call of the customer's model."""
    try:
        arguments = loads(call["function"]["arguments"] or "{}", "a call", REPLY)
        if not isinstance(arguments, dict):
            raise TypeError
        return str(call["function"]["name"]), arguments
    except (KeyError, TypeError, ValueError, AttributeError) as e:
        raise EndpointError(f"the customer's model wrote a malformed call: {str(call)[:200]}") from e
