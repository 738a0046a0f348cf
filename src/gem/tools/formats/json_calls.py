"""Call formats with JSON arguments: Hermes (also used by Qwen), OpenAI tool calls, and ReAct."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from gem.errors import BadAction
from gem.messages import Observation, ToolCall
from gem.tools.formats.bare_calls import find_bare_calls, read_xml_call
from gem.tools.formats.base import (
    MAX_CALLS,
    MAX_TAGS,
    CallFormat,
    FormattedTool,
    Function,
    InvalidCall,
    ParsedMessage,
    call_of,
    decode,
    quote_from,
    read_message,
)
from gem.tools.formats.tag_scanner import TagMatch, TagScanner, in_spans

_OPEN, _CLOSE = "<tool_call>", "</tool_call>"
_HERMES_CALL = '{"name": <function-name>, "arguments": <args-json-object>}'
_LOOKS_LIKE_MESSAGE = re.compile(r'\s*\{[^"]{0,100}"(?:role|content|tool_calls)"')
# Models also write the fields in Markdown ("**Action:** search", "### Action: search") and in lower case.
_FIELD = r"^[ \t#>*_-]*(?:%s)[ \t*_]*:(?:\*\*)?[ \t]*"
_FLAGS = re.MULTILINE | re.IGNORECASE
_ACTION = re.compile(_FIELD % "Action" + "(.*)$", _FLAGS)
_PLAIN_ACTION = re.compile(r"[ \t]*Action[ \t]*:")
_ACTION_INPUT = re.compile(r"\s*" + _FIELD % r"Action[ \t_]+Input" + r"(?:\s*```json\b)?", _FLAGS)
_NEXT_FIELD = re.compile(_FIELD % "Observation|Thought|Action|Final Answer", _FLAGS)


def openai_schemas(functions: Sequence[Function]) -> list[dict[str, Any]]:
    """Return the functions in the form that chat templates and OpenAI-compatible endpoints expect as ``tools``."""
    return [{"type": "function", "function": _fields(function)} for function in functions]


def _fields(function: Function) -> dict[str, Any]:
    return {"name": function.name, "description": function.description, "parameters": function.parameters}


def openai_schema_lines(functions: Sequence[Function]) -> str:
    return "\n".join(json.dumps(schema, ensure_ascii=False) for schema in openai_schemas(functions))


def listing(functions: Sequence[Function]) -> str:
    """Describe each function in one line of JSON."""
    return "\n".join(json.dumps(_fields(function), ensure_ascii=False) for function in functions)


class HermesFormat(CallFormat):
    """JSON between ``<tool_call>`` tags, the format that Hermes and Qwen models are trained on.

    All calls of a message are parsed, up to MAX_CALLS. Calls of known functions at the end of a message are also parsed
    without the tags, alone or in fenced blocks. Between the tags, or alone at the end, a call may also be written in
    the XML of Qwen3-Coder: ``<function=name><parameter=key>value</parameter></function>``.
    """

    name = "hermes"

    def find(self, text: str, tools: Sequence[FormattedTool]) -> tuple[list[ToolCall | InvalidCall], int]:
        functions = {function.name: function for tool in tools for function in tool.functions()}
        found, end = self._find_tagged(text, functions)
        return (found, end) if found else find_bare_calls(text, functions)

    def _find_tagged(self, text: str, functions: Mapping[str, Function]) -> tuple[list[ToolCall | InvalidCall], int]:
        scanner = TagScanner(text, (), structured=["tool_call"])
        found: list[ToolCall | InvalidCall] = []
        end = 0
        tag = scanner.next(0)
        for _ in range(MAX_TAGS):
            if tag is None or len(found) == MAX_CALLS:
                break
            call, after = self._read_call(text, scanner, tag, functions)
            if isinstance(call, InvalidCall) and scanner.is_quoted(tag):
                after = tag.inner
            else:
                found.append(call)
                end = after
            tag = scanner.next(after)
        return found, end

    def instructions(self, functions: Sequence[Function]) -> str:
        return (
            "# Tools\n\nYou may call one or more functions to assist with the user query.\n\n"
            "You are provided with function signatures within <tools></tools> XML tags:\n<tools>\n"
            + openai_schema_lines(functions)
            + "\n</tools>\n\nFor each function call, return a json object with function name and arguments within "
            f"{_OPEN}{_CLOSE} XML tags:\n{_OPEN}\n{_HERMES_CALL}\n{_CLOSE}"
        )

    def _read_call(
        self, text: str, scanner: TagScanner, tag: TagMatch, functions: Mapping[str, Function]
    ) -> tuple[ToolCall | InvalidCall, int]:
        """Parse the call that starts with ``tag``. Returns the call and its end offset."""
        in_xml = read_xml_call(text, tag.inner, functions)
        data, position, error = decode(text, tag.inner) if in_xml is None else (None, in_xml[1], "")
        if not error:
            call = call_of(data) if in_xml is None else in_xml[0]
            rest = position
            while rest < len(text) and text[rest].isspace():
                rest += 1
            if text.startswith(_CLOSE, rest):
                return call, rest + len(_CLOSE)
            if rest == len(text):  # a stop string may have removed the closing tag
                return call, rest
            error = f"{_CLOSE} does not follow the call"
        close = scanner.find(_CLOSE, tag.inner)
        end = len(text) if close is None else close + len(_CLOSE)
        return InvalidCall(f"no valid JSON between {_OPEN} and {_CLOSE}: {error}"), end


class OpenAIFormat(CallFormat):
    """Native tool calls: an assistant message with ``tool_calls``, as a mapping or as JSON text.

    Calls are not parsed from any other text. If a call has an id, the observation is a list with one tool message per
    call; otherwise the observation is a text.

    Args:
        prompt: whether to list the functions in the prompt. Pass False if ``info["tools"]`` is sent to the endpoint.
    """

    name = "openai"

    def __init__(self, prompt: bool = True) -> None:
        self.prompt = prompt

    def find(self, text: str, tools: Sequence[FormattedTool]) -> tuple[list[ToolCall | InvalidCall], int]:
        message = self._read_text(text, tools)
        return list(message.calls), len(text) if message.calls else 0

    def write(self, call: ToolCall, tools: Sequence[FormattedTool]) -> str:
        function = {"name": call.name, "arguments": json.dumps(call.arguments, ensure_ascii=False)}
        return json.dumps({"content": "", "tool_calls": [{"type": "function", "function": function}]})

    def instructions(self, functions: Sequence[Function]) -> str:
        if not self.prompt:
            return ""
        return f"You can call these functions with tool_calls:\n{openai_schema_lines(functions)}"

    def observe(self, calls: Sequence[ToolCall | InvalidCall], texts: Sequence[str]) -> Observation:
        if all(call.id is None for call in calls):
            return self.show(texts)
        ids = [{} if call.id is None else {"tool_call_id": call.id} for call in calls]
        return [{"role": "tool", **key, "content": text} for key, text in zip(ids, texts, strict=True)]

    def _read_text(self, text: str, tools: Sequence[FormattedTool]) -> ParsedMessage:
        if not _LOOKS_LIKE_MESSAGE.match(text):
            return ParsedMessage(text, (), text)
        data, end, error = decode(text, 0)
        if not error and text[end:].strip():
            error = "unexpected text after the end"
        if error:
            calls = (InvalidCall(f"the message is not valid JSON: {error}"),) if '"tool_calls"' in text else ()
            return ParsedMessage(text, calls, text)
        if not isinstance(data, Mapping) or not {"content", "tool_calls"} & data.keys():
            return ParsedMessage(text, (), text)
        try:
            message = read_message(data)
        except BadAction as e:  # the agent wrote the message as text, so invalid content is the agent's mistake
            return ParsedMessage(text, (InvalidCall(str(e)),), text)
        if message is None:
            content = data.get("content")
            return ParsedMessage(content if isinstance(content, str) else text, (), text)
        return replace(message, parsed=text)


class ReActFormat(CallFormat):
    """ReAct: a line ``Action:`` with a function name, then ``Action Input:`` with a JSON object, optionally fenced.

    If exactly one argument is required and that argument is a string, the input may also be plain text that does not
    start with a brace. The fields may also be written in lower case or in Markdown, such as ``**Action:**``;
    then only valid calls are parsed. Only the first call of a message is parsed. The text after this call is ignored,
    because it may contain an observation that the agent made up.
    """

    name = "react"

    def find(self, text: str, tools: Sequence[FormattedTool]) -> tuple[list[ToolCall | InvalidCall], int]:
        if _ACTION.search(text) is None:
            return [], 0
        skipped = TagScanner(text, []).skipped_spans()
        for match in _ACTION.finditer(text):
            if in_spans(skipped, match.start()):
                continue
            call, end = _read_action(text, match, tools)
            if isinstance(call, ToolCall) or _PLAIN_ACTION.match(match[0]):
                return [call], end
        return [], 0

    def write(self, call: ToolCall, tools: Sequence[FormattedTool]) -> str:
        return f"Action: {call.name}\nAction Input: {json.dumps(call.arguments, ensure_ascii=False)}"

    def instructions(self, functions: Sequence[Function]) -> str:
        return (
            "You can call functions. To call one, end your message with\n"
            'Thought: why you call it\nAction: the name of the function\nAction Input: {"argument": value}\n'
            'The result comes back as "Observation: …". When you know the answer, give it without an Action.\n'
            f"Functions:\n{listing(functions)}"
        )

    def show(self, texts: Sequence[str]) -> str:
        return f"Observation: {super().show(texts)}"


def _read_action(text: str, match: re.Match[str], tools: Sequence[FormattedTool]) -> tuple[ToolCall | InvalidCall, int]:
    name = match[1].strip().strip("`*[]\"'").strip()
    if not name:
        return InvalidCall('the function name is missing after "Action:"'), match.end()
    function = next((f for tool in tools for f in tool.functions() if f.name == name), None)
    begins = _ACTION_INPUT.match(text, match.end())
    if begins is None:
        if function is not None and not function.parameters.get("required"):
            return ToolCall(name, {}), match.end()
        return InvalidCall('the line "Action:" must be followed by a line "Action Input:"', name=name), match.end()
    ends = _NEXT_FIELD.search(text, begins.end())
    end = len(text) if ends is None else ends.start()
    given = text[begins.end() : end].strip()
    data, after, error = decode(text, begins.end())
    if not error and isinstance(data, dict):
        rest = _NEXT_FIELD.search(text, after)
        if not text[after : len(text) if rest is None else rest.start()].strip("` \t\r\n"):
            return ToolCall(name, data), after
        error = f"unexpected text after the end: {quote_from(text[after:].lstrip(), 0)}"
    argument = _text_argument(function)
    if argument is not None and not given.startswith("{"):
        # Decode a JSON string. Use all other text unchanged as the argument.
        return ToolCall(name, {argument: data if not error and isinstance(data, str) else given}), end
    if not given or (function is None and not given.startswith("{")):
        return ToolCall(name, {}), end  # an unknown function is reported instead of the missing JSON object
    return InvalidCall(f"Action Input is not a JSON object{error and f': {error}'}", name=name), end


def _text_argument(function: Function | None) -> str | None:
    """Return the name of the required argument if there is exactly one and its type is string; otherwise None."""
    required = list(function.parameters.get("required", ())) if function is not None else []
    if function is None or len(required) != 1:
        return None
    schema = function.parameters.get("properties", {}).get(required[0], {})
    return required[0] if isinstance(schema, dict) and schema.get("type") == "string" else None
