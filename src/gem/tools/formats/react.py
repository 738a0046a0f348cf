"""ReAct: a line ``Action:`` with a name, and ``Action Input:`` with JSON.

Where a function wants one text, its input may be that text, unless it opens with a brace. The JSON may be fenced.

A message holds one call: what follows its input is not read, for it would be an observation that the agent made up.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gem.messages import ToolCall
from gem.tools.formats.base import Broken, CallFormat, decode, excerpt
from gem.tools.formats.openings import Openings, is_hidden
from gem.tools.formats.tags import listing

if TYPE_CHECKING:
    from gem.tools.base_tool import BaseTool, Function

_ACTION = re.compile(r"^[ \t]*Action[ \t]*:[ \t]*(.*)$", re.MULTILINE)
_INPUT = re.compile(r"\s*^[ \t]*Action[ \t]+Input[ \t]*:[ \t]*(?:```json\b)?", re.MULTILINE)
_NEXT = re.compile(r"^[ \t]*(?:Observation|Thought|Action|Final Answer)[ \t]*:", re.MULTILINE)


class ReActFormat(CallFormat):
    name = "react"

    def find(self, text: str, tools: Sequence[BaseTool]) -> tuple[list[ToolCall | Broken], int]:
        if _ACTION.search(text) is None:
            return [], 0
        hidden = Openings(text, []).hidden()
        for match in _ACTION.finditer(text):
            if not is_hidden(hidden, match.start()):
                call, end = _read(text, match, tools)
                return [call], end
        return [], 0

    def instructions(self, functions: Sequence[Function]) -> str:
        return (
            "You can call functions. To call one, end your message with\n"
            'Thought: why you call it\nAction: the name of the function\nAction Input: {"argument": value}\n'
            'The result comes back as "Observation: …". When you know the answer, give it without an Action.\n'
            f"Functions:\n{listing(functions)}"
        )

    def show(self, texts: Sequence[str]) -> str:
        return f"Observation: {super().show(texts)}"


def _read(text: str, match: re.Match[str], tools: Sequence[BaseTool]) -> tuple[ToolCall | Broken, int]:
    name = match[1].strip().strip("`*[]\"'").strip()
    if not name:
        return Broken('the name is missing after "Action:"'), match.end()
    begins = _INPUT.match(text, match.end())
    argument = _text_argument(name, tools)
    if begins is None:
        missing = Broken('a line "Action Input:" has to follow the line "Action:"', name=name)
        return (ToolCall(name, {}) if _takes_nothing(name, tools) else missing), match.end()
    ends = _NEXT.search(text, begins.end())
    end = len(text) if ends is None else ends.start()
    given = text[begins.end() : end].strip()
    data, after, wrong = decode(text, begins.end())
    if not wrong and isinstance(data, dict):
        rest = _NEXT.search(text, after)
        if not text[after : len(text) if rest is None else rest.start()].strip("` \t\r\n"):
            return ToolCall(name, data), after
        wrong = f"more follows its end: {excerpt(text[after:].lstrip(), 0)}"
    if argument is not None and not given.startswith("{"):
        # JSON of one text is that text; whatever else is no object is a text as it stands.
        return ToolCall(name, {argument: data if not wrong and isinstance(data, str) else given}), end
    if not given or (_function(name, tools) is None and not given.startswith("{")):
        return ToolCall(name, {}), end  # what is wrong with it is its name, where it has one that nobody knows
    return Broken(f"Action Input is no JSON object{wrong and f': {wrong}'}", name=name), end


def _function(name: str, tools: Sequence[BaseTool]) -> Any:
    return next((f for tool in tools for f in tool.functions() if f.name == name), None)


def _text_argument(name: str, tools: Sequence[BaseTool]) -> str | None:
    """The argument that plain text is for: the only one required, where that is a text."""
    function = _function(name, tools)
    required = list(function.parameters.get("required", ())) if function is not None else []
    if len(required) != 1:
        return None
    schema = function.parameters.get("properties", {}).get(required[0], {})
    return required[0] if isinstance(schema, dict) and schema.get("type") == "string" else None


def _takes_nothing(name: str, tools: Sequence[BaseTool]) -> bool:
    function = _function(name, tools)
    return function is not None and not function.parameters.get("required")
