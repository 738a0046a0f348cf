"""The contract of a call format: how an agent writes calls, how it is told to, and how it is answered."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gem.errors import BadAction
from gem.messages import Observation, ToolCall, ToolErrorType

if TYPE_CHECKING:
    from gem.tools.base_tool import BaseTool, Function

MAX_CALLS = 64  # read from one message; what stands behind them is not looked at
MAX_OPENINGS = 1024  # of tags that are looked into, in one message


@dataclass(frozen=True)
class Broken:
    """Something that was meant as a call and cannot be one.

    Args:
        reason: what is wrong with it, for the agent.
        error: MALFORMED where its structure cannot be read, UNKNOWN_TOOL where it can.
        name: of the function asked for; empty where it is not known.
        id: of the call, in formats that have ids.
    """

    reason: str
    error: ToolErrorType = ToolErrorType.MALFORMED
    name: str = ""
    id: str | None = None


@dataclass(frozen=True)
class Reading:
    """What a message says.

    Args:
        text: its words; what an environment is handed when there are no calls.
        calls: in their order.
        parsed: the message up to the end of the last call; all of it without one.
    """

    text: str
    calls: tuple[ToolCall | Broken, ...]
    parsed: str


class CallFormat(ABC):
    """A way of writing calls. It has no state: one object serves all wrappers.

    name: by which ToolEnvWrapper(format=…) finds it.
    """

    name: str

    @abstractmethod
    def find(self, text: str, tools: Sequence[BaseTool]) -> tuple[list[ToolCall | Broken], int]:
        """The calls in a text, and where the last one ends. Takes any text, in linear time, and never raises."""

    @abstractmethod
    def instructions(self, functions: Sequence[Function]) -> str:
        """How to call those functions, for the prompt."""

    def describe(self, tools: Sequence[BaseTool]) -> str:
        """How to call those tools, for the prompt."""
        functions = [function for tool in tools for function in tool.functions()]
        return self.instructions(functions) if functions else ""

    def read(self, action: Any, tools: Sequence[BaseTool]) -> Reading:
        """Read what an agent said: a text, or a message with ``content`` and, perhaps, native ``tool_calls``.

        Raises BadAction for what is neither.
        """
        if isinstance(action, Mapping):
            return read_message(action) or self._read_text(content_of(action), tools)
        if not isinstance(action, str):
            raise BadAction(f"an action is a text or a message, got {type(action).__name__}")
        return self._read_text(action, tools)

    def show(self, texts: Sequence[str]) -> str:
        """The answers to the calls of one message, as one observation."""
        return "\n".join(texts)

    def observe(self, calls: Sequence[ToolCall | Broken], texts: Sequence[str]) -> Observation:
        """What the agent is shown of the answers to its calls, which are in the same order."""
        return self.show(texts)

    def _read_text(self, text: str, tools: Sequence[BaseTool]) -> Reading:
        calls, end = self.find(text, tools)
        return Reading(text, tuple(calls[:MAX_CALLS]), text[:end] if calls else text)


def content_of(message: Mapping[str, Any]) -> str:
    """The words of a message. Raises BadAction where its content is no text."""
    content = message.get("content")
    if isinstance(content, list):  # parts, as endpoints have them
        parts = [part.get("text", "") for part in content if isinstance(part, Mapping)]
        content = "".join(part for part in parts if isinstance(part, str))
    if content is not None and not isinstance(content, str):
        raise BadAction(f"the content of a message is a text, got {type(content).__name__}")
    return content or ""


def read_message(message: Mapping[str, Any]) -> Reading | None:
    """Read a message with native tool calls; None where it has none."""
    native = message.get("tool_calls")
    if not native:
        return None
    content = content_of(message)
    entries = native[:MAX_CALLS] if isinstance(native, list) else [native]
    return Reading(content, tuple(_native(entry) for entry in entries), content)


def _native(entry: Any) -> ToolCall | Broken:
    if not isinstance(entry, Mapping) or not isinstance(entry.get("function"), Mapping):
        return Broken(
            'an entry of tool_calls is {"id": …, "type": "function", "function": {"name": …, "arguments": …}}'
        )
    call_id = entry.get("id")
    return call_of(entry["function"], call_id=call_id if isinstance(call_id, str) else None)


def call_of(data: Any, *, call_id: str | None = None) -> ToolCall | Broken:
    """The call that ``{"name": …, "arguments": {…}}`` stands for. The arguments may be JSON in a string."""
    if not isinstance(data, Mapping):
        return Broken(f'a call is {{"name": …, "arguments": {{…}}}}, not {_kind(data)}', id=call_id)
    name, arguments = data.get("name"), data.get("arguments")
    if not isinstance(name, str) or not name.strip():
        return Broken('the "name" of the function is missing', id=call_id)
    name = name.strip()
    if isinstance(arguments, str) and arguments.strip():
        text = arguments
        arguments, end, wrong = decode(text, 0)
        if not wrong and text[end:].strip():
            wrong = f"more follows its end: {excerpt(text, end)}"
        if wrong:
            return Broken(f"its arguments are no JSON: {wrong}", name=name, id=call_id)
    if arguments is None or arguments == "":
        arguments = {}
    if not isinstance(arguments, Mapping):
        return Broken(f"its arguments are {_kind(arguments)}, not an object", name=name, id=call_id)
    return ToolCall(name, dict(arguments), call_id)


def decode(text: str, position: int) -> tuple[Any, int, str]:
    """The JSON value at a position, after white space: (value, where it ends, ""), or (None, position, the fault)."""
    while position < len(text) and text[position] in " \t\r\n":
        position += 1
    try:
        value, end = _DECODER.raw_decode(text, position)
    except RecursionError:
        return None, position, "it is nested too deep"
    except json.JSONDecodeError as e:
        return None, position, f"{e.msg.removesuffix(' at')} at {excerpt(text, e.pos)}"
    except ValueError as e:  # NaN, and numbers of thousands of digits
        return None, position, str(e).partition(";")[0]
    return value, end, ""


def excerpt(text: str, position: int) -> str:
    """A little of a text, from a position, for a message."""
    near = text[position : position + 20]
    return f"{near!r}" if near else "its end"


def _kind(value: Any) -> str:
    names = {list: "a list", str: "a text", bool: "a truth value", int: "a number", float: "a number"}
    return names.get(type(value), "null" if value is None else "an object")


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


_DECODER = json.JSONDecoder(parse_constant=_no_constant)
