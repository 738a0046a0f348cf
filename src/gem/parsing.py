r"""Reading model text: boxes, tags, code fences, tool tags. The one place that does it.

Every function takes any string, runs in time linear in its length, and never raises.
"""

from __future__ import annotations

import re
from typing import NamedTuple

# \{ and \} are LaTeX braces that group nothing, so they neither open nor close a box.
_BRACES = re.compile(r"\\boxed\s*\{|\\[{}]|[{}]")
_PLAIN_BOX = re.compile(r"\\boxed\s*\{([^{}\\]*)\}")  # a box with no brace and no command inside
_INTEGER = re.compile(r"[ \t\n]*[+-]?[0-9]{1,18}[ \t\n]*")  # 18 digits fit 64 bits; longer is no move of any game
_INTEGER_BOX = re.compile(rf"\\boxed\s*\{{({_INTEGER.pattern})\}}")


class CodeBlock(NamedTuple):
    """A fenced block: its info word in lower case ("" when bare), its text, and where the block ends in the source."""

    language: str
    code: str
    end: int


def boxes(text: str) -> list[str]:
    r"""The contents of every closed ``\boxed{…}``, in the order in which they open; braces inside may nest.

    >>> boxes(r"\boxed{1}, \boxed{\frac{1}{2}} and \boxed{never closed")
    ['1', '\\frac{1}{2}']
    """
    return [text[start:end] for start, end in _box_spans(text)]


def _box_spans(text: str) -> list[tuple[int, int]]:
    # Spans and not their texts: 30,000 nested boxes would be gigabytes of those.
    found: list[tuple[int, int]] = []
    stack: list[int | None] = []  # for each open brace: where its box's content starts, None for a plain brace
    for match in _BRACES.finditer(text):
        brace = match.group()
        if brace == "}":
            start = stack.pop() if stack else None
            if start is not None:
                found.append((start, match.start()))
        elif brace == "{":
            stack.append(None)
        elif brace[1] == "b":
            stack.append(match.end())
    return sorted(found)


def last_boxed(text: str, pattern: re.Pattern[str] | None = None) -> str | None:
    r"""The content of the last ``\boxed{…}``; with a pattern, of the last box that it fully matches. None without one.

    >>> last_boxed(r"not \boxed{up} but \boxed{left}")
    'left'
    """
    plain = _PLAIN_BOX.match(text, text.rfind(r"\boxed"))
    if plain is not None and (pattern is None or pattern.fullmatch(plain[1])):
        return plain[1]  # the usual case, without pairing all braces of the text
    for start, end in reversed(_box_spans(text)):
        if pattern is None or pattern.fullmatch(text, start, end):
            return text[start:end]
    return None


def last_boxed_int(text: str) -> int | None:
    r"""The integer in the last ``\boxed{…}`` that holds one, of at most 18 ASCII digits. None without one.

    >>> last_boxed_int(r"\boxed{7} then \boxed{ 0 }"), last_boxed_int("7")
    (0, None)
    """
    plain = _INTEGER_BOX.match(text, text.rfind(r"\boxed"))
    content = plain[1] if plain is not None else last_boxed(text, _INTEGER)
    return None if content is None else int(content)


def last_tagged(text: str, tag: str) -> str | None:
    """What stands in the last closed ``<tag>…</tag>``, stripped; the innermost when they nest. None without one.

    >>> last_tagged("<answer>4</answer> no: <answer> 5 </answer>", "answer")
    '5'
    """
    found, start = None, None
    for match in re.finditer(f"<(/?){re.escape(tag)}>", text):
        if not match[1]:
            start = match.end()
        elif start is not None:
            found, start = text[start : match.start()], None
    return None if found is None else found.strip()


def first_tagged(text: str, tag: str) -> tuple[str, int] | None:
    """What stands in the first closed ``<tag>…</tag>`` and where the closing tag ends: a tool call. None without one.

    >>> first_tagged("so <python>1+1</python> and more", "python")
    ('1+1', 23)
    """
    start = text.find(f"<{tag}>")
    if start < 0:
        return None
    close = text.find(f"</{tag}>", start)
    return None if close < 0 else (text[start + len(tag) + 2 : close], close + len(tag) + 3)


def code_blocks(text: str, language: str | None = None) -> list[CodeBlock]:
    r"""The closed fenced blocks of a Markdown text, all of them or those of one language.

    >>> [block.code for block in code_blocks("```python\nprint(1)\n```\n", "python")]
    ['print(1)\n']
    """
    return [block for _, block in placed_code_blocks(text) if language is None or block.language == language]


def placed_code_blocks(text: str) -> list[tuple[int, CodeBlock]]:
    """The closed fenced blocks, each with where its fence starts: (start, block)."""
    blocks: list[tuple[int, CodeBlock]] = []
    opened: tuple[str, str, int, int] | None = None  # fence, language, where it starts, where the code starts
    position = 0
    for line in text.split("\n"):
        end = position + len(line)
        fence, word = _fence(line)
        if opened is None:
            if fence:
                opened = (fence, word.lower(), text.index(fence, position), end + 1)
        elif fence.startswith(opened[0]) and not word:
            blocks.append((opened[2], CodeBlock(opened[1], text[opened[3] : position], end)))
            opened = None
        position = end + 1
    return blocks


def _fence(line: str) -> tuple[str, str]:
    """The run of three or more backticks or tildes that a line opens with, and the word after it; empty without."""
    line = line.strip(" \t\r")
    rest = line.lstrip(line[:1]) if line[:1] in ("`", "~") else line
    fence = line[: len(line) - len(rest)]
    if len(fence) < 3 or (fence[0] == "`" and "`" in rest):
        return "", ""
    return fence, rest.split(maxsplit=1)[0] if rest else ""
