# gem-terminal-canary-5b1f6c2e-7d3a-4c0e-9a57-1e2d8f4b6a90
"""Headings: ids and a table of contents."""

from markup.blocks import parse
from markup.inline import inline, words


def headings(blocks):
    """Return (level, text without marks) of all headings, those in quotes and lists included."""
    found = []
    for block in blocks:
        if block[0] == "heading":
            found.append((block[1], words(inline(block[2]))))
        elif block[0] == "quote":
            found += headings(block[1])
        elif block[0] == "list":
            for item in block[2]:
                found += headings(item)
    return found


def anchors(text):
    """Return the ids of the headings: small letters, digits and hyphens, different from each other."""
    found = []
    for _, title in headings(parse(text)):
        name = _slug(title) or "section"
        unique = name
        number = 1
        while unique in found:
            number += 1
            unique = f"{name}-{number}"
        found.append(unique)
    return found


def _slug(title):
    result = ""
    for char in title.lower():
        if char.isalnum():
            result += char
        elif result and not result.endswith("-"):
            result += "-"
    return result.rstrip("-")


def contents(text, deepest=3):
    """Return a list in markup with links to the headings down to a level, indented below higher ones."""
    lines = []
    above = []  # levels of the headings that the present one is below
    for (level, title), name in zip(headings(parse(text)), anchors(text)):
        if level > deepest:
            continue
        while above and above[-1] >= level:
            above.pop()
        lines.append("  " * len(above) + f"- [{title}](#{name})")
        above.append(level)
    return "\n".join(lines)
