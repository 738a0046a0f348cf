"""The base class of call formats, and functions that parse chat messages and JSON calls."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from gem._internal.inbound import REPLY, check_json
from gem.errors import BadAction
from gem.messages import Observation, ToolCall, ToolErrorType

MAX_CALLS = 64  # maximum number of calls executed per message; further calls are ignored, or refused if native
_TOO_MANY = f"a message may have at most {MAX_CALLS} calls"
MAX_TAGS = 1024  # maximum number of tags examined per message
_CLOSING = re.compile(r"</(?=\s*tool_response\s*>)", re.IGNORECASE)
_CALL_KEYS = {"name", "arguments", "parameters", "id", "call_id", "type", "index"}


@dataclass(frozen=True)
class Function:
    """A function that an agent may call.

    Args:
        name: name of the function: 1 to 64 letters, digits, ``_`` or ``-``.
        description: description for the agent.
        parameters: JSON Schema of the arguments, of type "object".
    """

    name: str
    description: str
    parameters: dict[str, Any] = field(default_factory=lambda: {"type": "object", "properties": {}})


class FormattedTool(Protocol):
    """The attributes and methods of BaseTool that call formats use."""

    @property
    def tag(self) -> str | None: ...

    @property
    def tag_argument(self) -> str: ...

    @property
    def fences(self) -> tuple[str, ...]: ...

    def functions(self) -> list[Function]: ...

    def instruction_string(self) -> str: ...


@dataclass(frozen=True)
class InvalidCall:
    """A call that cannot be parsed, or whose tag is misspelled.

    Args:
        reason: error message for the agent.
        error: MALFORMED, or UNKNOWN_TOOL if the tag is misspelled.
        name: name of the called function; "" if unknown.
        id: id of the call; None if the call has no id.
    """

    reason: str
    error: ToolErrorType = ToolErrorType.MALFORMED
    name: str = ""
    id: str | int | None = None


@dataclass(frozen=True)
class ParsedMessage:
    """A message of the agent, split into text and tool calls.

    Args:
        text: text of the message. ToolEnvWrapper passes this text to the environment if the message has no calls.
        calls: valid and invalid calls, in order of appearance.
        parsed: the text up to the end of the last call; the whole text if the message has no calls.
        native: whether the calls are native ``tool_calls``. APIs require an answer to each of them.
    """

    text: str
    calls: tuple[ToolCall | InvalidCall, ...]
    parsed: str
    native: bool = False


class CallFormat(ABC):
    """A notation for tool calls. A CallFormat has no state, so that several wrappers can share it.

    Attributes:
        name: the value of ``format`` that selects this format in ToolEnvWrapper.
    """

    name: str

    @abstractmethod
    def find(self, text: str, tools: Sequence[FormattedTool]) -> tuple[list[ToolCall | InvalidCall], int]:
        """Return the calls in a text, and the end offset of the last call (0 if there are no calls).

        Must run in time linear in the length of the text, and must not raise.
        """

    @abstractmethod
    def instructions(self, functions: Sequence[Function]) -> str:
        """Return the part of the prompt that explains how to call the functions."""

    def write(self, call: ToolCall, tools: Sequence[FormattedTool]) -> str:
        """Return the text of a call in this format, which find() reads."""
        data = {"name": call.name, "arguments": call.arguments}
        return f"<tool_call>\n{json.dumps(data, ensure_ascii=False)}\n</tool_call>"

    def describe(self, tools: Sequence[FormattedTool]) -> str:
        """Return the part of the prompt that explains how to call the tools; "" if the tools have no functions."""
        functions = [function for tool in tools for function in tool.functions()]
        return self.instructions(functions) if functions else ""

    def read(self, action: Any, tools: Sequence[FormattedTool]) -> ParsedMessage:
        """Parse a text, or a message with ``content`` and optional native ``tool_calls``.

        Raises:
            BadAction: the action is neither a text nor a message, or the content of the message is invalid.
        """
        if isinstance(action, str):
            return self._read_text(action, tools)
        if isinstance(action, Mapping):
            return read_message(action) or self._read_text(content_of(action), tools)
        raise BadAction(f"an action is a text or a message, got {type(action).__name__}")

    def show(self, texts: Sequence[str]) -> str:
        """Join the results of the calls of one message into one observation."""
        return "\n".join(texts)

    def observe(self, calls: Sequence[ToolCall | InvalidCall], texts: Sequence[str]) -> Observation:
        """Return the observation for calls and the texts of their results. Both are in the same order."""
        return self.show(texts)

    def _read_text(self, text: str, tools: Sequence[FormattedTool]) -> ParsedMessage:
        calls, end = self.find(text, tools)
        return ParsedMessage(text, tuple(calls[:MAX_CALLS]), text[:end] if calls else text)


def content_of(message: Mapping[str, Any]) -> str:
    """Return the text of a message, or "" if the message has no content.

    Raises:
        BadAction: the content is neither a text nor a list of parts.
    """
    content = message.get("content")
    if isinstance(content, list):  # a list of content parts, as in the OpenAI API
        parts = [part.get("text", "") for part in content if isinstance(part, Mapping)]
        content = "".join(part for part in parts if isinstance(part, str))
    if content is not None and not isinstance(content, str):
        raise BadAction(f"the content of a message must be text, got {type(content).__name__}")
    return content or ""


def read_message(message: Mapping[str, Any]) -> ParsedMessage | None:
    """Parse a message with ``tool_calls``. Returns None if the message has no ``tool_calls``."""
    native = message.get("tool_calls")
    if not native:
        return None
    content = content_of(message)
    entries = native if isinstance(native, list) else [native]
    calls = [_native_call(entry) for entry in entries]
    refused = [InvalidCall(_TOO_MANY, ToolErrorType.OVER_BUDGET, call.name, call.id) for call in calls[MAX_CALLS:]]
    return ParsedMessage(content, (*calls[:MAX_CALLS], *refused), content, native=True)


def _native_call(entry: Any) -> ToolCall | InvalidCall:
    if not isinstance(entry, Mapping) or not isinstance(entry.get("function"), Mapping):
        return InvalidCall(
            'an entry of tool_calls must be {"id": …, "type": "function", "function": {"name": …, "arguments": …}}'
        )
    call_id = entry.get("id")
    valid = isinstance(call_id, str | int) and not isinstance(call_id, bool)
    return call_of(entry["function"], call_id=call_id if valid else None)


def call_of(data: Any, *, call_id: str | int | None = None) -> ToolCall | InvalidCall:
    """Build a call from ``{"name": …, "arguments": {…}}``. The arguments may also be a JSON-encoded string.

    Some models write "parameters" instead of "arguments". Returns an InvalidCall if the data does not have this form.
    """
    if not isinstance(data, Mapping):
        return InvalidCall(f'a call must be {{"name": …, "arguments": {{…}}}}, got {_json_type(data)}', id=call_id)
    name, arguments = data.get("name"), data.get("arguments")
    if arguments is None:
        arguments = data.get("parameters")
    if not isinstance(name, str) or not name.strip():
        return InvalidCall('the function "name" is missing', id=call_id)
    name = name.strip()
    other = sorted(map(str, data.keys() - _CALL_KEYS)) if arguments is None else ()
    if other:
        return InvalidCall(f'unknown key {quote_from(other[0], 0)}; write the "arguments"', name=name, id=call_id)
    if isinstance(arguments, str) and arguments.strip():
        text = arguments
        arguments, end, error = decode(text, 0)
        if not error and text[end:].strip():
            error = f"unexpected text after the end: {quote_from(text, end)}"
        if error:
            return InvalidCall(f"the arguments are not valid JSON: {error}", name=name, id=call_id)
    if arguments is None or arguments == "":
        arguments = {}
    if not isinstance(arguments, Mapping):
        return InvalidCall(f"the arguments must be an object, got {_json_type(arguments)}", name=name, id=call_id)
    return ToolCall(name, dict(arguments), call_id)


def decode(text: str, position: int) -> tuple[Any, int, str]:
    """Decode the JSON value that starts at a position, after optional whitespace.

    Returns:
        (value, end offset, ""), or (None, start offset, error message) if the JSON is invalid.
    """
    while position < len(text) and text[position] in " \t\r\n":
        position += 1
    try:
        value, end = _DECODER.raw_decode(text, position)
        check_json(text[position:end].encode("utf-8", "surrogatepass"), "it", REPLY)
    except RecursionError:
        return None, position, "it is nested too deeply"
    except json.JSONDecodeError as e:
        return None, position, f"{e.msg.removesuffix(' at')} at {quote_from(text, e.pos)}"
    except ValueError as e:  # above the bounds, NaN or Infinity, or an integer with too many digits
        return None, position, str(e).partition(";")[0]
    return value, end, ""


def escape_response(text: str) -> str:
    """Escape ``</tool_response>`` in a result, because MCPTool and many chat templates enclose results in this tag."""
    if text.startswith("<tool_response>") and text.endswith("</tool_response>"):  # already enclosed, by MCPTool
        return f"<tool_response>{_CLOSING.sub('&lt;/', text[15:-16])}</tool_response>"
    return _CLOSING.sub("&lt;/", text)


def quote_from(text: str, position: int) -> str:
    """Quote the 20 characters after a position for an error message; "the end" if no characters follow."""
    near = text[position : position + 20]
    return f"{near!r}" if near else "the end"


def _json_type(value: Any) -> str:
    names = {list: "an array", str: "a string", bool: "a boolean", int: "a number", float: "a number"}
    return names.get(type(value), "null" if value is None else "an object")


def _reject_constant(name: str) -> Any:
    raise ValueError(f"{name} is not valid JSON")


_DECODER = json.JSONDecoder(parse_constant=_reject_constant)
