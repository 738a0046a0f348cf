"""The published format: ``<python>…</python>``, fenced python, ``<search>…</search>``, and named calls with JSON.

A message holds the calls that follow one another, from the first one on, with nothing but white space between; what
comes after them is not read, for it would be an answer that the agent made up.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gem.errors import did_you_mean
from gem.messages import ToolCall, ToolErrorType
from gem.tools.formats.base import MAX_CALLS, MAX_OPENINGS, Broken, CallFormat, decode
from gem.tools.formats.openings import Opening, Openings, is_hidden

if TYPE_CHECKING:
    from gem.tools.base_tool import BaseTool, Function

NAMED = "tool_call"  # the tag of calls with a name and JSON
_NAME = re.compile(r"\s*<tool_name>([^<>]*)</tool_name>\s*")
_ANY_TAG = re.compile(r"<([A-Za-z][A-Za-z0-9_-]{2,31})(\s[^<>\n]{0,200})?/?>")
_MISSPELLINGS = 16  # different unknown tags of one message that are compared with the known ones
_ORDINARY = {"answer", "think", "code", "table", "strong", "title", "style", "script", "center"}


class TagFormat(CallFormat):
    name = "tags"

    def find(self, text: str, tools: Sequence[BaseTool]) -> tuple[list[ToolCall | Broken], int]:
        targets = _targets(tools)
        tags, languages = ([name for name, fence in targets if fence is kind] for kind in (False, True))
        openings = Openings(text, tags, languages, structured=[NAMED])
        found: list[ToolCall | Broken] = []
        end, unclosed = 0, None
        opening = openings.next(0)
        for _ in range(MAX_OPENINGS):
            if opening is None or len(found) == MAX_CALLS or (found and text[end : opening.start].strip()):
                break
            call, after = _read_opening(text, openings, opening, targets)
            if call is not None:
                found.append(call)
                end = after
            else:
                unclosed = unclosed or opening
            opening = openings.next(after)
        if not found and unclosed is not None:
            return [Broken(_never_closed(unclosed))], len(text)
        if not found:
            return _nearly(text, tags)
        return found, end

    def instructions(self, functions: Sequence[Function]) -> str:
        return (
            "You can call functions. Write a call as\n"
            f'<{NAMED}><tool_name>name</tool_name><arguments>{{"argument": value}}</arguments></{NAMED}>\n'
            f"Functions:\n{listing(functions)}"
        )

    def describe(self, tools: Sequence[BaseTool]) -> str:
        texts = [tool.instruction_string() for tool in tools]
        return texts[0] if len(texts) == 1 else "\n".join(["Available tools:", *texts])

    def describe_one(self, tool: BaseTool) -> str:
        """What a tool's own instruction_string() is, unless it says something else."""
        functions = tool.functions()
        if tool.tag is None or not functions:
            return self.instructions(functions) if functions else ""
        first, rest = functions[0], functions[1:]
        text = f"{first.description}\nTo call it, write <{tool.tag}>{tool.tag_argument or '…'}</{tool.tag}>"
        fences = " or ".join(f"```{word}" for word in tool.fences)
        text += f", or a fenced block that opens with {fences}." if fences else "."
        return "\n".join([text, self.instructions(rest)] if rest else [text])


def listing(functions: Sequence[Function]) -> str:
    """Functions as lines of JSON."""
    described = [
        {"name": function.name, "description": function.description, "parameters": function.parameters}
        for function in functions
    ]
    return "\n".join(json.dumps(entry, ensure_ascii=False) for entry in described)


def _targets(tools: Sequence[BaseTool]) -> dict[tuple[str, bool], tuple[str, str]]:
    """(tag, False) or (info word, True) → the function that it calls, and the argument that it holds."""
    targets: dict[tuple[str, bool], tuple[str, str]] = {}
    for tool in tools:
        if tool.tag is not None:
            called = (tool.functions()[0].name, tool.tag_argument)
            targets.update({(tool.tag, False): called, **{(word, True): called for word in tool.fences}})
    return targets


def _read_opening(
    text: str, openings: Openings, opening: Opening, targets: dict[tuple[str, bool], tuple[str, str]]
) -> tuple[ToolCall | Broken | None, int]:
    """The call that opens there and where it ends; None for one that is never closed, or a mention."""
    if opening.name == NAMED and not opening.fence:
        call, end = _read_named(text, openings, opening)
        mention = not isinstance(call, ToolCall) and openings.is_mention(opening)
        return (None, opening.inner) if mention else (call, end)
    if opening.content is None:
        return None, opening.inner
    function, argument = targets[opening.name, opening.fence]
    return ToolCall(function, {argument: opening.content}), opening.end


def _read_named(text: str, openings: Openings, opening: Opening) -> tuple[ToolCall | Broken | None, int]:
    close = f"</{NAMED}>"
    match = _NAME.match(text, opening.inner)
    if match is None:
        return _ill_formed(openings, opening, "it has no <tool_name>…</tool_name>", "")
    name, position = match[1].strip(), match.end()
    if not name:
        return _ill_formed(openings, opening, "its name is missing", "")
    arguments: Any = {}
    if text.startswith("<arguments>", position):
        position += len("<arguments>")
        if not text[position : position + 1024].lstrip().startswith("</arguments>"):
            arguments, position, wrong = decode(text, position)
            if wrong:
                return _ill_formed(openings, opening, f"its arguments are no JSON: {wrong}", name)
            if not isinstance(arguments, dict):
                return _ill_formed(openings, opening, "its arguments are no JSON object", name)
        position = _skip(text, position, "</arguments>")
        if position < 0:
            return _ill_formed(openings, opening, "</arguments> does not follow the JSON object", name)
    position = _skip(text, position, close)
    if position < 0:
        return _ill_formed(openings, opening, f"{close} does not follow the arguments", name)
    return ToolCall(name, arguments), position


def _skip(text: str, position: int, literal: str) -> int:
    """Past a literal that may stand behind white space; -1 where it does not."""
    while position < len(text) and text[position].isspace():
        position += 1
    return position + len(literal) if text.startswith(literal, position) else -1


def _ill_formed(openings: Openings, opening: Opening, reason: str, name: str) -> tuple[Broken | None, int]:
    close = openings.find(f"</{NAMED}>", opening.inner)
    if close is None:
        return None, opening.inner
    return Broken(f"{reason}. {_FORM}", name=name), close + len(NAMED) + 3


_FORM = f'A call is <{NAMED}><tool_name>name</tool_name><arguments>{{"argument": value}}</arguments></{NAMED}>'


def _never_closed(opening: Opening) -> str:
    if opening.fence:
        return f"the block that opens with ```{opening.name} is never closed"
    return f"<{opening.name}> is never closed by </{opening.name}>"


def _nearly(text: str, tags: Sequence[str]) -> tuple[list[ToolCall | Broken], int]:
    """What was meant as one of the tags and is not: with attributes, or under a name that is nearly the right one."""
    hidden = Openings(text, []).hidden()
    tried: set[str] = set()
    for match in _ANY_TAG.finditer(text):
        name, attributes = match[1], match[2]
        if name in tried or len(tried) >= _MISSPELLINGS or is_hidden(hidden, match.start()):
            continue
        if attributes and name in tags and text[match.start() - 1 : match.start()] not in ('"', "'"):
            return [Broken(f"<{name}> takes no attributes: write <{name}>…</{name}>", name=name)], match.end()
        tried.add(name)
        near = did_you_mean(name.lower(), [*tags, NAMED]) if name.lower() not in _ORDINARY else ""
        opening = Openings(text, [name]).next(0) if near and f"</{name}>" in text else None
        if opening is not None and opening.content is not None:
            return [Broken(f"there is no tool <{name}>{near}", ToolErrorType.UNKNOWN_TOOL, name)], opening.end
    return [], 0
