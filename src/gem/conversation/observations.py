"""What an environment shows, as messages: the one place that says which role an observation has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from gem.core import Info
from gem.errors import BadValue
from gem.messages import Message, Observation, Role


def role_of(info: Info) -> Role:
    """Who says an observation that is text: a tool where ``info["use_tool"]`` is true, else the user."""
    return "tool" if info.get("use_tool") else "user"


def observation_text(observation: Observation, info: Info) -> str:
    """An observation as the text of one message: info["prefix"], the text, info["suffix"].

    Raises BadValue for an observation that is not text.
    """
    text = observation["text"] if isinstance(observation, dict) and set(observation) == {"text"} else observation
    if not isinstance(text, str):
        raise BadValue(f"a text policy needs text observations, got {type(observation).__name__}")
    return "\n".join(part for part in (info.get("prefix"), text, info.get("suffix")) if part)


def with_prefix_and_suffix(observation: Observation, info: Info) -> Observation:
    """An observation with its prefix and suffix put in: around its text or, in a list, around its last message.

    What is no observation is returned as it is.
    """
    if isinstance(observation, str):
        return observation_text(observation, info)
    if isinstance(observation, Mapping) and isinstance(observation.get("text"), str):
        return {**observation, "text": observation_text(observation["text"], info)}
    if isinstance(observation, list) and observation and isinstance(observation[-1], Mapping):
        last = observation[-1]
        if isinstance(last.get("content"), str):
            return [*observation[:-1], {**last, "content": observation_text(last["content"], info)}]
    return observation


def as_messages(observation: Observation, role: Role = "user") -> list[Message]:
    """An observation as messages: those it holds, or one of the role given.

    The content of a message with images is a list of parts, images first: {"type": "image", "image": …} and
    {"type": "text", "text": …}. Raises BadValue for what is no observation.
    """
    if isinstance(observation, str):
        return [{"role": role, "content": observation}]
    if isinstance(observation, Mapping) and isinstance(observation.get("text"), str):
        parts: list[Any] = [{"type": "image", "image": image} for image in observation.get("images", ())]
        content: Any = [*parts, {"type": "text", "text": observation["text"]}] if parts else observation["text"]
        return [{"role": role, "content": content}]
    if isinstance(observation, list) and all(isinstance(message, Mapping) for message in observation):
        return cast(list[Message], [dict(message) for message in observation])
    raise BadValue(f"a policy takes text, text with images or messages, got {type(observation).__name__}")


def text_messages(observation: Observation, role: Role = "user") -> list[Message]:
    """as_messages(), for whoever reads nothing but text. Raises BadValue for images, and for other contents."""
    messages = as_messages(observation, role)
    if not messages or any(not isinstance(message.get("content"), str) for message in messages):
        raise BadValue(f"a text policy needs text observations, got {type(observation).__name__}")
    return messages


def joined(messages: Sequence[Message]) -> str:
    """The contents of text messages, one after the other on lines of their own."""
    return "\n".join(message["content"] for message in messages)
