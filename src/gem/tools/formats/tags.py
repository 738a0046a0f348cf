"""The call format of the published package: tags such as ``<python>…</python>``, fenced code, and named JSON calls.

If a message contains several calls separated only by whitespace, all of them are parsed. The text after these calls is
ignored, because it may contain results that the agent made up.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from gem.messages import ToolCall, ToolErrorType
from gem.tools.formats.base import MAX_CALLS, MAX_TAGS, CallFormat, FormattedTool, Function, InvalidCall, decode
from gem.tools.formats.json_calls import listing
from gem.tools.formats.tag_scanner import TagMatch, TagScanner, in_spans

_NAMED = "tool_call"  # tag of a call with a function name and JSON arguments
_CALL = f'<{_NAMED}><tool_name>name</tool_name><arguments>{{"argument": value}}</arguments></{_NAMED}>'
_ARGUMENTS = re.compile("<(arguments|parameters)>")
_TOOL_NAME = re.compile(r"\s*<tool_name>([^<>]*)</tool_name>\s*")
_ANY_TAG = re.compile(r"<([A-Za-z][A-Za-z0-9_-]{2,31})(\s[^<>\n]{0,200})?/?>")
_MAX_UNKNOWN_TAGS = 16  # maximum number of distinct unknown tags per message that are compared with the known tags
_LEAST_NAME = 5  # length of the shortest tag whose misspellings are recognized: <task> is no misspelling of <ask>

# Maps (tag, False) and (fence language, True) to (function name, name of the argument for the content).
_Targets = dict[tuple[str, bool], tuple[str, str]]


class TagFormat(CallFormat):
    name = "tags"

    def find(self, text: str, tools: Sequence[FormattedTool]) -> tuple[list[ToolCall | InvalidCall], int]:
        if "<" not in text and "```" not in text and "~~~" not in text:
            return [], 0
        targets: _Targets = {}
        for tool in tools:
            if tool.tag is not None:
                target = (tool.functions()[0].name, tool.tag_argument)
                targets[tool.tag, False] = target
                for language in tool.fences:
                    targets[language, True] = target
        tags = [name for name, fence in targets if not fence]
        scanner = TagScanner(text, tags, [name for name, fence in targets if fence], structured=[_NAMED])
        found: list[ToolCall | InvalidCall] = []
        end, unclosed = 0, None
        tag = scanner.next(0)
        for _ in range(MAX_TAGS):
            if tag is None or len(found) == MAX_CALLS or (found and text[end : tag.start].strip()):
                break
            call, after = _read_tag(text, scanner, tag, targets)
            if call is not None:
                found.append(call)
                end = after
            else:
                unclosed = unclosed or tag
            tag = scanner.next(after)
        if not found and unclosed is not None:
            return [InvalidCall(_unclosed_reason(unclosed))], len(text)
        if not found:
            return _find_near_miss(text, tags)
        return found, end

    def instructions(self, functions: Sequence[Function]) -> str:
        return f"You can call functions. Write a call as\n{_CALL}\nFunctions:\n{listing(functions)}"

    def write(self, call: ToolCall, tools: Sequence[FormattedTool]) -> str:
        for tool in tools:
            content = call.arguments.get(tool.tag_argument)
            own = tool.tag is not None and tool.functions()[0].name == call.name
            if own and isinstance(content, str) and len(call.arguments) == 1:
                return f"<{tool.tag}>{content}</{tool.tag}>"
        arguments = json.dumps(call.arguments, ensure_ascii=False)
        return f"<{_NAMED}><tool_name>{call.name}</tool_name><arguments>{arguments}</arguments></{_NAMED}>"

    def describe(self, tools: Sequence[FormattedTool]) -> str:
        texts = [tool.instruction_string() for tool in tools]
        return texts[0] if len(texts) == 1 else "\n".join(["Available tools:", *texts])

    def describe_tool(self, tool: FormattedTool) -> str:
        """Return the text that BaseTool.instruction_string() returns for a tool."""
        functions = tool.functions()
        if tool.tag is None or not functions:
            return self.instructions(functions) if functions else ""
        first, rest = functions[0], functions[1:]
        text = f"{first.description}\nTo call it, write <{tool.tag}>{tool.tag_argument or '…'}</{tool.tag}>"
        fences = " or ".join(f"```{word}" for word in tool.fences)
        text += f", or a fenced block that opens with {fences}." if fences else "."
        return "\n".join([text, self.instructions(rest)] if rest else [text])


def _read_tag(
    text: str, scanner: TagScanner, tag: TagMatch, targets: _Targets
) -> tuple[ToolCall | InvalidCall | None, int]:
    """Parse the call that starts with ``tag``.

    Returns:
        (call, end offset of the call). If the tag is not closed or is only a mention, (None, offset after the opening
        tag).
    """
    if tag.name == _NAMED and not tag.fence:
        call, end = _read_named_call(text, scanner, tag)
        quoted = not isinstance(call, ToolCall) and scanner.is_quoted(tag)
        return (None, tag.inner) if quoted else (call, end)
    if tag.content is None:
        return None, tag.inner
    function, argument = targets[tag.name, tag.fence]
    return ToolCall(function, {argument: tag.content}), tag.end


def _read_named_call(text: str, scanner: TagScanner, tag: TagMatch) -> tuple[ToolCall | InvalidCall | None, int]:
    close = f"</{_NAMED}>"
    match = _TOOL_NAME.match(text, tag.inner)
    if match is None:
        return _malformed(scanner, tag, "<tool_name>…</tool_name> is missing", "")
    name, position = match[1].strip(), match.end()
    if not name:
        return _malformed(scanner, tag, "the tool name is empty", "")
    arguments: Any = {}
    if opened := _ARGUMENTS.match(text, position):
        position, closing = opened.end(), f"</{opened[1]}>"
        if not text[position : position + 1024].lstrip().startswith(closing):
            arguments, position, error = decode(text, position)
            if error:
                return _malformed(scanner, tag, f"the arguments are not valid JSON: {error}", name)
            if not isinstance(arguments, dict):
                return _malformed(scanner, tag, "the arguments are not a JSON object", name)
        position = _skip(text, position, closing)
        if position < 0:
            return _malformed(scanner, tag, f"{closing} does not follow the JSON object", name)
    position = _skip(text, position, close)
    if position < 0:
        return _malformed(scanner, tag, f"{close} does not follow the arguments", name)
    return ToolCall(name, arguments), position


def _skip(text: str, position: int, literal: str) -> int:
    """Skip whitespace and a literal at a position. Returns the offset after the literal, or -1 if it is not there."""
    while position < len(text) and text[position].isspace():
        position += 1
    return position + len(literal) if text.startswith(literal, position) else -1


def _malformed(scanner: TagScanner, tag: TagMatch, reason: str, name: str) -> tuple[InvalidCall | None, int]:
    close = scanner.find(f"</{_NAMED}>", tag.inner)
    if close is None:
        return None, tag.inner
    return InvalidCall(f"{reason}. A call is {_CALL}", name=name), close + len(_NAMED) + 3


def _unclosed_reason(tag: TagMatch) -> str:
    if tag.fence:
        return f"the block opened with ```{tag.name} is never closed"
    return f"<{tag.name}> is never closed with </{tag.name}>"


def _find_near_miss(text: str, tags: Sequence[str]) -> tuple[list[ToolCall | InvalidCall], int]:
    """Find the first tag that was probably meant as a call: a known tag with attributes, or a misspelled tag.

    A tag is misspelled if one letter is added, missing, wrong or swapped with the next one, or if its case is wrong.
    Tags that are further away, such as <path> or <research>, and tags in an answer are text.

    Returns:
        A list with one InvalidCall, and the end offset of the tag; ([], 0) if there is no such tag.
    """
    skipped = TagScanner(text, []).skipped_spans()
    tried: set[str] = set()
    for match in _ANY_TAG.finditer(text):
        name, attributes = match[1], match[2]
        if name in tried or len(tried) >= _MAX_UNKNOWN_TAGS or in_spans(skipped, match.start()):
            continue
        if attributes and name in tags and text[match.start() - 1 : match.start()] not in ('"', "'"):
            return [InvalidCall(f"<{name}> takes no attributes: write <{name}>…</{name}>", name=name)], match.end()
        tried.add(name)
        near = next((known for known in [*tags, _NAMED] if _is_misspelling(name.lower(), known.lower())), None)
        in_answer = text.rfind("<answer>", 0, match.start()) > text.rfind("</answer>", 0, match.start())
        tag = TagScanner(text, [name]).next(0) if near and not in_answer and f"</{name}>" in text else None
        if tag is not None and tag.content is not None:
            reason = f"there is no tool <{name}>; did you mean {near!r}?"
            return [InvalidCall(reason, ToolErrorType.UNKNOWN_TOOL, name)], tag.end
    return [], 0


def _is_misspelling(word: str, known: str) -> bool:
    """Return whether two words differ by at most one added, missing, wrong or swapped letter."""
    if len(known) < _LEAST_NAME:
        return word == known
    at = next((i for i, (a, b) in enumerate(zip(word, known, strict=False)) if a != b), min(len(word), len(known)))
    rest, other = word[at:], known[at:]
    swapped = rest[:2] == other[:2][::-1] and rest[2:] == other[2:]
    return swapped or rest[1:] == other[1:] or rest[1:] == other or rest == other[1:]
