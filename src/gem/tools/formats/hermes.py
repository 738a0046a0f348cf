"""JSON between <tool_call> tags, as Hermes and Qwen models are trained to write: every one in a message is a call."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gem.messages import ToolCall
from gem.tools.formats.base import MAX_CALLS, MAX_OPENINGS, Broken, CallFormat, call_of, decode
from gem.tools.formats.openings import Opening, Openings

if TYPE_CHECKING:
    from gem.tools.base_tool import BaseTool, Function

OPEN, CLOSE = "<tool_call>", "</tool_call>"


class HermesFormat(CallFormat):
    name = "hermes"

    def find(self, text: str, tools: Sequence[BaseTool]) -> tuple[list[ToolCall | Broken], int]:
        openings = Openings(text, (), structured=["tool_call"])
        found: list[ToolCall | Broken] = []
        end = 0
        opening = openings.next(0)
        for _ in range(MAX_OPENINGS):
            if opening is None or len(found) == MAX_CALLS:
                break
            call, after = _read(text, openings, opening)
            if isinstance(call, Broken) and openings.is_mention(opening):
                after = opening.inner
            else:
                found.append(call)
                end = after
            opening = openings.next(after)
        return found, end

    def instructions(self, functions: Sequence[Function]) -> str:
        return (
            "# Tools\n\nYou may call one or more functions to assist with the user query.\n\n"
            "You are provided with function signatures within <tools></tools> XML tags:\n<tools>\n"
            + "\n".join(json.dumps(schema, ensure_ascii=False) for schema in openai_schemas(functions))
            + "\n</tools>\n\nFor each function call, return a json object with function name and arguments within "
            f'{OPEN}{CLOSE} XML tags:\n{OPEN}\n{{"name": <function-name>, "arguments": <args-json-object>}}\n{CLOSE}'
        )


def openai_schemas(functions: Sequence[Function]) -> list[dict[str, Any]]:
    """Functions as ``tools`` of chat templates and OpenAI-compatible endpoints."""
    return [
        {
            "type": "function",
            "function": {"name": f.name, "description": f.description, "parameters": f.parameters},
        }
        for f in functions
    ]


def _read(text: str, openings: Openings, opening: Opening) -> tuple[ToolCall | Broken, int]:
    """The call that opens there, and where it ends."""
    data, position, wrong = decode(text, opening.inner)
    if not wrong:
        rest = position
        while rest < len(text) and text[rest].isspace():
            rest += 1
        if text.startswith(CLOSE, rest):
            return call_of(data), rest + len(CLOSE)
        if rest == len(text):  # cut off by a stop string
            return call_of(data), rest
        wrong = f"{CLOSE} does not follow the JSON object"
    close = openings.find(CLOSE, opening.inner)
    end = len(text) if close is None else close + len(CLOSE)
    return Broken(f"between {OPEN} and {CLOSE} stands no JSON: {wrong}"), end
