# gem-terminal-canary-5b1f6c2e-7d3a-4c0e-9a57-1e2d8f4b6a90
"""Inline marks of a text, as nodes: a str, or a tuple whose first item is the kind.

("em", nodes), ("strong", nodes), ("code", text), ("link", address, nodes), ("image", address, text), ("break",).
"""

MARKS = "\\`*[]()!<>#-_|."
MAX_DEPTH = 20


def inline(text, depth=0):
    """Return the nodes of a text. A mark without its partner is text."""
    nodes = []
    index = 0
    while index < len(text):
        node, end = _node(text, index, depth)
        if node is None:
            node, end = text[index], index + 1
        if isinstance(node, str) and nodes and isinstance(nodes[-1], str):
            nodes[-1] += node
        else:
            nodes.append(node)
        index = end
    return nodes


def _node(text, index, depth):
    """Return (node, index after it); the node is None if there is no mark."""
    char = text[index]
    if char == "\\" and text[index + 1 : index + 2] == "\n":
        return ("break",), index + 2
    if char == "\\" and index + 1 < len(text) and text[index + 1] in MARKS:
        return text[index + 1], index + 2
    if char == "`":
        return _code(text, index)
    if depth < MAX_DEPTH:
        if text.startswith("**", index):
            return _between(text, index, "**", "strong", depth)
        if char == "*":
            return _between(text, index, "*", "em", depth)
        if char == "[":
            return _link(text, index, depth)
        if text.startswith("![", index):
            node, end = _link(text, index + 1, depth)
            return (None, end) if node is None else (("image", node[1], words(node[2])), end)
    if char == "<":
        end = text.find(">", index)
        address = text[index + 1 : end]
        if end > 0 and address.startswith(("http://", "https://", "mailto:")) and " " not in address:
            return ("link", address, [address.replace("mailto:", "", 1)]), end + 1
    return None, index


def _code(text, index):
    """Read code between equal numbers of backquotes. One space at both ends is left out."""
    marks = 0
    while text[index + marks : index + marks + 1] == "`":
        marks += 1
    start = index + marks
    place = start
    while True:
        end = text.find("`" * marks, place)
        if end < 0:
            return text[index:start], start
        after = end + marks
        if text[after : after + 1] != "`":
            break
        while text[after : after + 1] == "`":
            after += 1
        place = after
    code = text[start:end].replace("\n", " ")
    if len(code) > 2 and code[0] == code[-1] == " " and code.strip():
        code = code[1:-1]
    return ("code", code), after


def _between(text, index, mark, kind, depth):
    """Read emphasis: no space inside next to the marks."""
    start = index + len(mark)
    if start >= len(text) or text[start].isspace():
        return (mark, start) if mark == "**" else (None, index)
    end = _closing(text, start, mark)
    if end < 0:
        return (mark, start) if mark == "**" else (None, index)
    return (kind, inline(text[start:end], depth + 1)), end + len(mark)


def _closing(text, start, mark):
    """Return the place of the closing mark, or -1. Code and escapes are passed over."""
    index = start
    while index < len(text):
        if text[index] == "\\":
            index += 2
        elif text[index] == "`":
            index = _code(text, index)[1]
        elif mark == "*" and text.startswith("**", index):
            inner = _closing(text, index + 2, "**")
            index = index + 2 if inner < 0 else inner + 2
        elif text.startswith(mark, index) and index > start and not text[index - 1].isspace():
            return index
        else:
            index += 1
    return -1


def _link(text, index, depth):
    """Read [text](address). The text may have balanced brackets, and the address balanced parentheses."""
    close = _balanced(text, index, "[", "]")
    if close < 0 or text[close + 1 : close + 2] != "(":
        return None, index
    end = _balanced(text, close + 1, "(", ")")
    if end < 0:
        return None, index
    address = text[close + 2 : end].strip()
    if any(char.isspace() for char in address):
        return None, index
    return ("link", address, inline(text[index + 1 : close], depth + 1)), end + 1


def _balanced(text, index, left, right):
    level = 0
    while index < len(text):
        if text[index] == "\\":
            index += 2
            continue
        if text[index] == left:
            level += 1
        elif text[index] == right:
            level -= 1
            if level == 0:
                return index
        index += 1
    return -1


def words(nodes):
    """Return the text of nodes without marks."""
    result = ""
    for node in nodes:
        if isinstance(node, str):
            result += node
        elif node[0] in ("em", "strong"):
            result += words(node[1])
        elif node[0] == "link":
            result += words(node[2])
        elif node[0] == "image":
            result += node[2]
        elif node[0] == "code":
            result += node[1]
        else:
            result += "\n"
    return result
