"""What the participants of a conversation say to each other."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, TypedDict

Role: TypeAlias = Literal["system", "user", "assistant", "tool"]


class Message(TypedDict):
    """One message, in the shape that chat templates and OpenAI-compatible endpoints take."""

    role: Role
    content: str


# What an environment shows: text, {"text": …, "images": […]}, or a list of messages.
Observation: TypeAlias = str | dict[str, Any] | list[Any]


def user(text: str) -> Message:
    return {"role": "user", "content": text}


def assistant(text: str) -> Message:
    return {"role": "assistant", "content": text}
