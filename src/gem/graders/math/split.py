"""Split the text of a math answer at separators outside of brackets."""

from __future__ import annotations

import re


def split(text: str, separator: str) -> list[str]:
    """Split a text at a separator (a regular expression), ignoring separators inside brackets.

    >>> split("1, (2, 3), 4", ",")
    ['1', '(2, 3)', '4']
    """
    return [part for part, _ in split_with_separators(text, separator)]


def split_with_separators(text: str, separator: str) -> list[tuple[str, str]]:
    """Split a text as split() does, and return each part with the separator after it ("" for the last part)."""
    pattern = re.compile(separator)
    parts, depth, start, i = list[tuple[str, str]](), 0, 0, 0
    while i < len(text):
        if text.startswith("\\{", i) or text.startswith("\\}", i):
            depth += 1 if text[i + 1] == "{" else -1
            i += 2
            continue
        depth += (text[i] in "({[") - (text[i] in ")}]") if not _is_angle(text, i) else _is_angle(text, i)
        match = pattern.match(text, i) if depth == 0 else None
        if match is not None and match.end() > i:
            parts.append((text[start:i].strip(), match.group()))
            start = i = match.end()
        else:
            i += 1
    return [*parts, (text[start:].strip(), "")]


def closes_early(text: str, opening: str = "([{", closing: str = ")]}") -> bool:
    """Return whether a text contains a closing bracket without an opening bracket before it.

    The outer brackets of "(1), (2)" are not a pair, because the text between them, "1), (2", has such a bracket.
    """
    depth = 0
    for character in text:
        depth += (character in opening) - (character in closing)
        if depth < 0:
            return True
    return False


def _is_angle(text: str, i: int) -> int:
    r"""Return 1 if \langle begins at i, -1 if \rangle does, else 0."""
    return text.startswith("\\langle", i) - text.startswith("\\rangle", i)
