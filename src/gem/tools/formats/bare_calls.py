"""Calls that models write without ``<tool_call>`` tags, and the XML calls of Qwen3-Coder.

Text often mentions JSON and XML. Without the tags, only calls of known functions at the end of a message count.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from gem.messages import ToolCall
from gem.parsing import placed_code_blocks
from gem.tools.formats.base import MAX_CALLS, Function, InvalidCall, call_of, decode
from gem.tools.formats.tag_scanner import TagScanner, in_spans

_LANGUAGES = ("", "json", "tool_call", "xml")  # of fenced blocks that may contain a call
_BARE_CALL = re.compile(r'^[ \t]*(?=\{\s*"(?:name|arguments|parameters)"\s*:|<function=)', re.MULTILINE)
_XML_OPEN = re.compile(r"\s*<function=([^<>\s]{1,64})>\s*")
_XML_PARAMETER = re.compile(r"<parameter=([^<>\n]{1,64})>\n?")
_XML_VALUE_END = re.compile(r"</parameter>\s*(?=<parameter=|</function>|\Z)")
_XML_CLOSE = re.compile(r"</function>|\s*\Z")

Calls = list[ToolCall | InvalidCall]


def find_bare_calls(text: str, functions: Mapping[str, Function]) -> tuple[Calls, int]:
    """Return the calls at the end of a message that has no tagged calls, and the end offset of the last call."""
    if not any(name in text for name in functions):
        return [], 0
    blocks = placed_code_blocks(text)
    if blocks and not text[blocks[-1][1].end :].strip() and blocks[-1][1].language in _LANGUAGES:
        block = blocks[-1][1]
        found = _calls_to_the_end(block.code, 0, functions)
        return found, block.end if found else 0
    skipped = TagScanner(text, []).skipped_spans()
    for number, match in enumerate(_BARE_CALL.finditer(text)):
        if number == MAX_CALLS:
            break
        if not in_spans(skipped, match.start()):
            found = _calls_to_the_end(text, match.end(), functions)
            if found:
                return found, len(text)
    return [], 0


def read_xml_call(text: str, position: int, functions: Mapping[str, Function]) -> tuple[ToolCall, int] | None:
    """Parse a call of Qwen3-Coder at a position.

    Values are text. For a parameter that is not a string, the value is decoded as JSON if possible.

    Returns:
        (call, end offset), or None if there is no such call. A missing ``</function>`` at the end of the text is
        accepted, because a stop string may have removed it.
    """
    opened = _XML_OPEN.match(text, position)
    if opened is None:
        return None
    name, position = opened[1], opened.end()
    known = functions[name].parameters.get("properties", {}) if name in functions else {}
    arguments = {}
    while parameter := _XML_PARAMETER.match(text, position):
        ends = _XML_VALUE_END.search(text, parameter.end())
        if ends is None:
            return None
        value, key = text[parameter.end() : ends.start()].removesuffix("\n"), parameter[1].strip()
        arguments[key] = _typed(value, known.get(key) if isinstance(known, Mapping) else None)
        position = ends.end()
    closed = _XML_CLOSE.match(text, position)
    return None if closed is None else (ToolCall(name, arguments), closed.end())


def _typed(value: str, schema: object) -> object:
    kinds = schema.get("type") if isinstance(schema, Mapping) else None
    if kinds is None or "string" in ([kinds] if isinstance(kinds, str) else kinds):
        return value
    decoded, end, error = decode(value, 0)
    return value if error or value[end:].strip() else decoded


def _calls_to_the_end(text: str, position: int, functions: Mapping[str, Function]) -> Calls:
    """Return the calls from a position to the end of a text; no calls if the text contains anything else."""
    found: Calls = []
    while text[position:].strip():
        in_xml = read_xml_call(text, position, functions)
        if in_xml is not None:
            call: ToolCall | InvalidCall = in_xml[0]
            position = in_xml[1]
        else:
            data, position, error = decode(text, position)
            if error or not isinstance(data, dict) or not {"arguments", "parameters"} & data.keys():
                return []
            call = call_of(data)
        if call.name not in functions or len(found) == MAX_CALLS:
            return []
        found.append(call)
    return found
