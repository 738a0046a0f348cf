r"""Parse the text of a model: LaTeX boxes, tags and code fences.

Every function accepts any string, runs in linear time and never raises.
"""

from __future__ import annotations

import re
from typing import NamedTuple

__all__ = [
    "code_blocks",
    "last_boxed",
    "last_tagged",
]

# In LaTeX, \{ and \} are literal braces, which neither open nor close a box.
_BRACES = re.compile(r"\\boxed\s*\{|\\[{}]|[{}]")
_PLAIN_BOX = re.compile(r"\\boxed\s*\{([^{}\\]*)\}")  # a box whose content has no braces or commands
_INTEGER = re.compile(r"[ \t\n]*[+-]?[0-9]{1,18}[ \t\n]*")  # 18 digits fit into 64 bits
_TEXT_COMMAND = re.compile(r"\\(?:text|math)[a-z]*\s*\{([^{}]*)\}")  # \text{…}, \mathrm{…}, \textbf{…} and so on
_ARROW = re.compile(r"\\(?:right|longright)?arrow\b|\\to\b|->|=>|→")
_DECORATION = re.compile(r"\\[,;:! {}]|\\quad\b|[()\[\]{}\"'`$*]")
_LONGEST_TIDIED = 200  # characters; limited, so that nested boxes take linear time
_INTEGER_BOX = re.compile(rf"\\boxed\s*\{{({_INTEGER.pattern})\}}")


class CodeBlock(NamedTuple):
    """A fenced code block.

    Args:
        language: the word after the opening fence, in lower case; "" if there is no such word.
        code: the text between the fences.
        end: offset of the end of the block in the parsed text.
    """

    language: str
    code: str
    end: int


def boxes(text: str) -> list[str]:
    r"""Return the contents of all closed ``\boxed{…}``, ordered by their start. Boxes and braces may be nested.

    >>> boxes(r"\boxed{1}, \boxed{\frac{1}{2}} and \boxed{never closed")
    ['1', '\\frac{1}{2}']
    """
    return [text[start:end] for start, end in _box_spans(text)]


def _box_spans(text: str) -> list[tuple[int, int]]:
    # Return offsets and not strings, because the contents of 30,000 nested boxes would take gigabytes.
    found: list[tuple[int, int]] = []
    stack: list[int | None] = []  # for each open brace: offset of the box's content, or None for a plain brace
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


def tidied(content: str) -> str:
    r"""Return the content of a box without text commands, brackets, quotes and a final full stop; arrows become "to".

    >>> [tidied(content) for content in (r"\text{5}", "Up.", "reveal (0, 1)", r"A \to C")]
    ['5', 'Up', 'reveal  0, 1', 'A  to  C']
    """
    while (plain := _TEXT_COMMAND.sub(r"\1", content)) != content:
        content = plain
    return _DECORATION.sub(" ", _ARROW.sub(" to ", content)).strip().removesuffix(".").replace("\u2212", "-")


def last_boxed(text: str, pattern: re.Pattern[str] | None = None) -> str | None:
    r"""Return the content of the last closed ``\boxed{…}``, or None if there is no such box.

    With a pattern, boxes whose content the pattern does not fully match are ignored. The pattern is matched with the
    content as written and, if it has at most 200 characters, tidied(); the content that matches is returned.

    >>> last_boxed(r"not \boxed{up} but \boxed{left}")
    'left'
    >>> last_boxed(r"\boxed{\text{Up.}}", re.compile("[a-zA-Z]+"))
    'Up'
    """
    plain = _PLAIN_BOX.match(text, text.rfind(r"\boxed"))
    if plain is not None and (pattern is None or pattern.fullmatch(plain[1])):
        return plain[1]  # fast path: the last box is simple, so the braces of the text need not be matched
    for start, end in reversed(_box_spans(text)):
        if pattern is None or pattern.fullmatch(text, start, end):
            return text[start:end]
        if end - start <= _LONGEST_TIDIED and pattern.fullmatch(content := tidied(text[start:end])):
            return content
    return None


def last_boxed_int(text: str) -> int | None:
    r"""Return the integer in the last ``\boxed{…}`` that contains only an integer, or None if there is no such box.

    An integer has at most 18 ASCII digits, and may have a sign and surrounding whitespace. See tidied() for what may
    surround it.

    >>> last_boxed_int(r"\boxed{7} then \boxed{ \text{0}. }"), last_boxed_int("7")
    (0, None)
    """
    plain = _INTEGER_BOX.match(text, text.rfind(r"\boxed"))
    content = plain[1] if plain is not None else last_boxed(text, _INTEGER)
    return None if content is None else int(content)


def last_tagged(text: str, tag: str) -> str | None:
    """Return the content of the last closed ``<tag>…</tag>`` without surrounding whitespace.

    If the tags are nested, only the innermost tag counts. Returns None if there is no closed tag.

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
    """Return the text between the first ``<tag>`` and the next ``</tag>``, and the offset after ``</tag>``.

    Returns None if the first ``<tag>`` is not closed or does not exist.

    >>> first_tagged("so <python>1+1</python> and more", "python")
    ('1+1', 23)
    """
    start = text.find(f"<{tag}>")
    if start < 0:
        return None
    close = text.find(f"</{tag}>", start)
    return None if close < 0 else (text[start + len(tag) + 2 : close], close + len(tag) + 3)


def code_blocks(text: str, language: str | None = None) -> list[CodeBlock]:
    r"""Return the closed fenced code blocks of a Markdown text. With ``language``, other blocks are left out.

    >>> [block.code for block in code_blocks("```python\nprint(1)\n```\n", "python")]
    ['print(1)\n']
    """
    return [block for _, block in placed_code_blocks(text) if language is None or block.language == language]


def placed_code_blocks(text: str) -> list[tuple[int, CodeBlock]]:
    """Return (offset of the opening fence, block) for each closed fenced code block."""
    blocks: list[tuple[int, CodeBlock]] = []
    opened: tuple[str, str, int, int] | None = None  # fence, language, offset of the fence, offset of the code
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
    """Return the code fence at the start of a line and the word after the fence; ("", "") if there is no fence."""
    line = line.strip(" \t\r")
    rest = line.lstrip(line[:1]) if line[:1] in ("`", "~") else line
    fence = line[: len(line) - len(rest)]
    if len(fence) < 3 or (fence[0] == "`" and "`" in rest):
        return "", ""
    return fence, rest.split(maxsplit=1)[0] if rest else ""
