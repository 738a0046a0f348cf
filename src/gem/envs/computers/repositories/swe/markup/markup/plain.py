# gem-terminal-canary-5b1f6c2e-7d3a-4c0e-9a57-1e2d8f4b6a90
"""Plain text of a document."""

from markup.blocks import parse
from markup.inline import inline, words


def plain_text(text, bullet="*"):
    """Return a text without marks. Blocks are parted by empty lines, and items of lists keep their markers."""
    return "\n\n".join(filter(None, (_block(block, bullet) for block in parse(text))))


def _block(block, bullet):
    kind = block[0]
    if kind == "heading":
        title = words(inline(block[2]))
        return f"{title}\n{'=' * len(title)}" if title and block[1] == 1 else title
    if kind == "paragraph":
        return words(inline(block[1]))
    if kind == "code":
        return _indented(block[2], "    ", "    ")
    if kind == "rule":
        return "-" * 10
    if kind == "quote":
        inside = "\n\n".join(filter(None, (_block(inner, bullet) for inner in block[1])))
        return _indented(inside, "> ", "> ")
    if kind == "list":
        lines = []
        for number, item in enumerate(block[2], block[1] or 0):
            marker = f"{bullet} " if block[1] is None else f"{number}. "
            inside = "\n".join(_block(inner, bullet) for inner in item)
            lines.append(_indented(inside, marker, " " * len(marker)))
        return "\n".join(lines)
    return "\n".join("\t".join(words(inline(cell)) for cell in row) for row in block[2])


def _indented(text, first, other):
    lines = text.split("\n")
    return "\n".join(((other if number else first) + line).rstrip() for number, line in enumerate(lines))
