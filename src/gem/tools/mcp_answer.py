"""What MCP servers offer and answer, as functions and text for an agent."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

from gem.tools.base_tool import Function

Prefix = Literal["collision", "always"]
NAME_LENGTH = 64

# By the name an agent calls it: which server has it, under which name, and what it is.
Offer: TypeAlias = "dict[str, Offered]"


class Offered(NamedTuple):
    server: str
    tool: str
    function: Function


def offer(tools: Mapping[str, Iterable[Any]], prefix: Prefix) -> Offer:
    """The functions of all servers, sorted by name.

    tools: what each server lists, as the SDK has it. A name gets ``server_`` in front where two servers have it, or
    always; what APIs of models do not take in a name becomes ``_``.
    """
    listed = [(server, tool) for server, offered in tools.items() for tool in offered]
    count = Counter(clean_name(tool.name) for _, tool in listed)
    found: Offer = {}
    for server, tool in sorted(listed, key=lambda one: (one[0], one[1].name)):
        name = clean_name(tool.name)
        if prefix == "always" or (count[name] > 1 and len(tools) > 1):
            name = clean_name(f"{server}_{tool.name}")
        name = _free_name(name, found)
        found[name] = Offered(server, tool.name, Function(name, tool.description or "", dict(tool.input_schema)))
    return dict(sorted(found.items()))


def clean_name(name: str) -> str:
    """A name of 1 to 64 letters, digits, ``_`` and ``-``.

    >>> clean_name("files/read.text")
    'files_read_text'
    """
    return re.sub(r"[^a-zA-Z0-9_-]", "_", name)[:NAME_LENGTH] or "_"


def _free_name(name: str, taken: Mapping[str, Any]) -> str:
    number, free = 1, name
    while free in taken:
        number += 1
        free = f"{name[: NAME_LENGTH - 1 - len(str(number))]}_{number}"
    return free


def answer_text(content: Sequence[Any], structured: Any, max_chars: int) -> str:
    """An answer for an agent: its texts, or its structured content as JSON where it has no text; other parts are named.

    What is longer than max_chars is cut, and says by how much.
    """
    parts = [_part(block) for block in content]
    if structured is not None and not any(block.type == "text" for block in content):
        parts.insert(0, json.dumps(structured, ensure_ascii=False))
    text = "\n".join(parts)
    cut = len(text) - max_chars
    return f"{text[:max_chars]}\n[{cut} more characters are left out]" if cut > 0 else text


def _part(block: Any) -> str:
    if block.type == "text":
        return str(block.text)
    if block.type in ("image", "audio"):
        return f"[{block.type}: {block.mime_type}, {3 * len(block.data) // 4} bytes]"
    if block.type == "resource_link":
        return f"[resource: {block.name}, {block.uri}]"
    resource = getattr(block, "resource", None)
    text = getattr(resource, "text", None)
    return str(text) if text is not None else f"[{block.type}: {getattr(resource, 'uri', 'of no text')}]"
