"""Convert observations to messages, and determine the role of each message."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, cast

from gem._internal.inbound import REPLY, loads, without_surrogates
from gem.core import Info
from gem.errors import BadValue
from gem.messages import Message, Observation, Role, media_parts


def role_of(info: Info) -> Role:
    """Return the role of a text observation: "tool" if ``info["use_tool"]`` is true, else "user"."""
    return "tool" if info.get("use_tool") else "user"


def observation_text(observation: Observation, info: Info) -> str:
    """Join info["prefix"], the text of an observation and info["suffix"] with newlines. Empty parts are omitted.

    Raises:
        BadValue: for an observation that is not text.
    """
    text = observation["text"] if isinstance(observation, dict) and set(observation) == {"text"} else observation
    if not isinstance(text, str):
        raise BadValue(f"a text policy needs text observations, got {type(observation).__name__}")
    return "\n".join(part for part in (info.get("prefix"), text, info.get("suffix")) if part)


def with_prefix_and_suffix(observation: Observation, info: Info) -> Observation:
    """Wrap the text of an observation in info["prefix"] and info["suffix"].

    In a list of messages, only the last message is wrapped. Observations without text are returned unchanged.
    """
    changed = map_text(observation, lambda text: observation_text(text, info))
    return observation if changed is None else changed


def encodable(observation: Any, info: Info) -> Any:
    """Return an observation with U+FFFD for each lone surrogate, which tokenizers and endpoints refuse.

    If there are any, also replaces those of the prefix, the suffix and the tools in ``info``, and counts all of them in
    ``info["surrogates"]``.
    """
    more = {key: info[key] for key in ("prefix", "suffix", "tools") if key in info} if info else {}
    if not more and type(observation) is str and observation.isascii():
        return observation
    (replaced, more), count = without_surrogates([observation, more])
    if not count:
        return observation
    info.update(more, surrogates=count)
    return replaced


def map_text(observation: Observation, change: Callable[[str], str]) -> Observation | None:
    """Return an observation with its text changed; of a list of messages, the text of the last. None without text."""
    if isinstance(observation, str):
        return change(observation)
    if isinstance(observation, Mapping) and isinstance(observation.get("text"), str):
        return {**observation, "text": change(observation["text"])}
    if isinstance(observation, list) and observation and isinstance(observation[-1], Mapping):
        last = observation[-1]
        if isinstance(last.get("content"), str):
            return [*observation[:-1], {**last, "content": change(last["content"])}]
    return None


def as_messages(observation: Observation, role: Role = "user") -> list[Message]:
    """Convert an observation to messages.

    A list of messages is copied. Any other observation becomes one message with the given role.

    The content of a message with images or audio is a list of parts, the text last: {"type": "image", "image": …},
    {"type": "input_audio", "input_audio": …} and {"type": "text", "text": …}.

    Raises:
        BadValue: for a value that is not an observation.
    """
    if isinstance(observation, str):
        return [{"role": role, "content": observation}]
    if isinstance(observation, Mapping) and isinstance(observation.get("text"), str):
        parts = media_parts(observation.get("images", ()), observation.get("audio", ()))
        content: Any = [*parts, {"type": "text", "text": observation["text"]}] if parts else observation["text"]
        return [{"role": role, "content": content}]
    if isinstance(observation, list) and all(isinstance(message, Mapping) for message in observation):
        return cast(list[Message], [dict(message) for message in observation])
    raise BadValue(f"a policy takes text, text with images or messages, got {type(observation).__name__}")


def images_of(observation: Observation) -> list[Any]:
    """Return the images of an observation, in order."""
    if isinstance(observation, str):
        return []
    contents: list[Any] = [message.get("content") for message in as_messages(observation)]
    parts = [part for content in contents if isinstance(content, list) for part in content]
    return [part["image"] for part in parts if part.get("type") == "image"]


def text_messages(observation: Observation, role: Role = "user", *, images: bool = False) -> list[Message]:
    """Convert an observation to messages for a policy that reads tokens.

    Args:
        images: whether the policy reads images too.

    Raises:
        BadValue: for images, unless the policy reads them, and other content that is not text.
    """
    messages = as_messages(observation, role)
    if images and messages:
        return messages
    if not messages or any(not isinstance(message.get("content"), str) for message in messages):
        raise BadValue(f"a text policy needs text observations, got {type(observation).__name__}")
    return messages


def action_text(action: Any) -> str:
    """Return the text of an action. Native ``tool_calls`` of a message follow its content, as JSON in tags."""
    if not isinstance(action, Mapping):
        return str(action)
    content = action.get("content") or ""
    if isinstance(content, list):
        content = "".join(str(part.get("text") or "") for part in content if isinstance(part, Mapping))
    calls = action.get("tool_calls") or []
    written = [_call_text(call) for call in (calls if isinstance(calls, list) else [calls])]
    return "\n".join(text for text in (str(content), *written) if text)


def _call_text(call: Any) -> str:
    function = call.get("function") if isinstance(call, Mapping) else None
    data = dict(function) if isinstance(function, Mapping) else call
    if isinstance(data, dict) and isinstance(data.get("arguments"), str):
        with suppress(ValueError):
            data["arguments"] = loads(data["arguments"], "the arguments", REPLY)
    return f"<tool_call>\n{json.dumps(data, ensure_ascii=False, default=str)}\n</tool_call>"


def join_contents(messages: Sequence[Message]) -> str:
    """Join the contents of text messages with newlines."""
    return "\n".join(message["content"] for message in messages)
