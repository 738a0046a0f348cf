"""Messages of a conversation, tool calls and tool results."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Literal, TypeAlias, TypedDict

__all__ = [
    "Message",
    "ToolCall",
    "ToolErrorType",
    "ToolResult",
    "assistant",
    "tool",
    "user",
]

Role: TypeAlias = Literal["system", "user", "assistant", "tool"]


class Message(TypedDict):
    """A chat message as chat templates and OpenAI-compatible endpoints expect it."""

    role: Role
    content: str


# An environment's observation: text, {"text": …, "images": […], "audio": […]}, or a list of messages.
Observation: TypeAlias = str | dict[str, Any] | list[Any]


def user(text: str) -> Message:
    """Return a message with the role "user"."""
    return {"role": "user", "content": text}


def assistant(text: str) -> Message:
    """Return a message with the role "assistant"."""
    return {"role": "assistant", "content": text}


def tool(text: str) -> Message:
    """Return a message with the role "tool"."""
    return {"role": "tool", "content": text}


def without_thinking(text: str) -> str:
    """Return what an answer says: what follows its last ``</think>``, nothing if a ``<think>`` is not closed.

    >>> without_thinking("<think>It is 4.</think> Four."), without_thinking("<think>It is")
    ('Four.', '')
    """
    said = text.rpartition("</think>")[2]
    return "" if "<think>" in said else said.strip()


def media_parts(images: Iterable[Any] = (), audio: Iterable[Any] = ()) -> list[Any]:
    """Return images and audio as parts of the content of a message; see ToolResult for their types."""
    shown = [{"type": "image", "image": image} for image in images]
    return shown + [{"type": "input_audio", "input_audio": recording} for recording in audio]


@dataclass(frozen=True)
class ToolCall:
    """A call of a tool function.

    Args:
        name: name of the function.
        arguments: argument values by name.
        id: links a result to its call; None in formats without ids.
    """

    name: str
    arguments: dict[str, Any]
    id: str | int | None = None


class ToolErrorType(str, Enum):
    """Why a tool call failed. Every member is a mistake of the agent and is reported in an observation.

    MALFORMED: the call cannot be parsed (broken JSON, no name). EMPTY: the call contains nothing to do.
    UNKNOWN_TOOL: no tool has that name. BAD_ARGUMENTS: the arguments do not match the tool's schema.
    OVER_BUDGET: no tool calls are left. ERROR: the tool ran and reported an error. TIMEOUT: the tool ran past its
    time limit.
    """

    MALFORMED = "malformed"
    EMPTY = "empty"
    UNKNOWN_TOOL = "unknown_tool"
    BAD_ARGUMENTS = "bad_arguments"
    OVER_BUDGET = "over_budget"
    ERROR = "error"
    TIMEOUT = "timeout"

    __str__ = str.__str__


@dataclass(frozen=True)
class ToolResult:
    """The result of a tool call.

    Args:
        text: the text shown to the agent.
        error: None for a successful call.
        images: PIL images, shown to a vision model besides the text.
        audio: recordings in OpenAI's format, {"data": base64 text, "format": "wav"}, for models with audio input.
    """

    text: str
    error: ToolErrorType | None = None
    images: tuple[Any, ...] = ()
    audio: tuple[dict[str, str], ...] = ()

    @property
    def ok(self) -> bool:
        return self.error is None
