"""What the participants of a conversation say to each other, and what they ask of tools."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
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


def tool(text: str) -> Message:
    return {"role": "tool", "content": text}


@dataclass(frozen=True)
class ToolCall:
    """What the agent asks of a tool.

    Args:
        name: of the function asked for.
        arguments: by name.
        id: links an answer to its call in formats that have ids; None in the others.
    """

    name: str
    arguments: dict[str, Any]
    id: str | None = None


class Fault(str, Enum):
    """What was wrong with a call, for whoever counts. All of them are the agent's doing, and told to it.

    MALFORMED: its structure cannot be read: broken JSON, a name that is missing. EMPTY: it asks for nothing.
    UNKNOWN_TOOL: no tool has that name. BAD_ARGUMENTS: readable, but not what the tool takes. OVER_BUDGET: no calls are
    left. ERROR: it ran, and what was asked failed. TIMEOUT: it took longer than it may.
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
    """What a tool answers.

    Args:
        text: what the agent is shown.
        fault: None for a call that succeeded.
    """

    text: str
    fault: Fault | None = None

    @property
    def ok(self) -> bool:
        return self.fault is None
