"""Native tool calls: an action is an assistant's message with ``tool_calls``, as a mapping or as its JSON text."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gem.errors import BadAction
from gem.messages import Observation, ToolCall
from gem.tools.formats.base import Broken, CallFormat, Reading, decode, read_message
from gem.tools.formats.hermes import openai_schemas

if TYPE_CHECKING:
    from gem.tools.base_tool import BaseTool, Function

_LOOKS_LIKE_CALLS = re.compile(r'\s*\{[^"]{0,100}"(?:role|content|tool_calls)"')


class OpenAIFormat(CallFormat):
    """A text that is not such JSON is words alone. Calls that have ids are answered by a tool message for each.

    Args:
        prompt: whether the prompt lists the functions. Switch it off where the endpoint is given ``info["tools"]``.
    """

    name = "openai"

    def __init__(self, prompt: bool = True) -> None:
        self.prompt = prompt

    def find(self, text: str, tools: Sequence[BaseTool]) -> tuple[list[ToolCall | Broken], int]:
        reading = self._read_text(text, tools)
        return list(reading.calls), len(text) if reading.calls else 0

    def instructions(self, functions: Sequence[Function]) -> str:
        if not self.prompt:
            return ""
        schemas = "\n".join(json.dumps(schema, ensure_ascii=False) for schema in openai_schemas(functions))
        return f"You can call these functions, by tool_calls:\n{schemas}"

    def observe(self, calls: Sequence[ToolCall | Broken], texts: Sequence[str]) -> Observation:
        if any(call.id is None for call in calls):
            return self.show(texts)
        return [
            {"role": "tool", "tool_call_id": call.id, "content": text} for call, text in zip(calls, texts, strict=True)
        ]

    def _read_text(self, text: str, tools: Sequence[BaseTool]) -> Reading:
        if not _LOOKS_LIKE_CALLS.match(text):
            return Reading(text, (), text)
        data, end, wrong = decode(text, 0)
        if not wrong and text[end:].strip():
            wrong = "more follows its end"
        if wrong:
            calls = (Broken(f"the message is no JSON: {wrong}"),) if '"tool_calls"' in text else ()
            return Reading(text, calls, text)
        return self._read_data(text, data)

    def _read_data(self, text: str, data: Any) -> Reading:
        if not isinstance(data, Mapping) or not {"content", "tool_calls"} & data.keys():
            return Reading(text, (), text)
        try:
            reading = read_message(data)
            content = data.get("content")
        except BadAction as e:  # of an object, that is; in a text it is the agent's doing
            return Reading(text, (Broken(str(e)),), text)
        if reading is None:
            words = content if isinstance(content, str) else text
            return Reading(words, (), text)
        return Reading(reading.text, reading.calls, text)
