# gem-terminal-canary-5b1f6c2e-7d3a-4c0e-9a57-1e2d8f4b6a90
"""Blocks of a document, as tuples whose first item is the kind.

("heading", level, text), ("paragraph", text), ("code", language, text), ("rule",), ("quote", blocks),
("list", first number or None, items), an item being a list of blocks, and ("table", aligns, rows), a row being a list
of texts and the first one the heads. Texts have inline marks.
"""

FENCE = "```"


def parse(text):
    """Return the blocks of a text."""
    lines = [line.expandtabs(4).rstrip() for line in text.replace("\r\n", "\n").split("\n")]
    return _blocks(lines)


def _blocks(lines):
    found = []
    index = 0
    while index < len(lines):
        line = lines[index]
        if not line:
            index += 1
        elif line.startswith(FENCE):
            block, index = _code(lines, index)
            found.append(block)
        elif _heading(line):
            found.append(_heading(line))
            index += 1
        elif _is_rule(line):
            found.append(("rule",))
            index += 1
        elif line.startswith(">"):
            end = index
            while end < len(lines) and lines[end].startswith(">"):
                end += 1
            inside = [line[2:] if line.startswith("> ") else line[1:] for line in lines[index:end]]
            found.append(("quote", _blocks(inside)))
            index = end
        elif _marker(line):
            block, index = _list(lines, index)
            found.append(block)
        elif _is_table(lines, index):
            block, index = _table(lines, index)
            found.append(block)
        else:
            end = index + 1
            while end < len(lines) and lines[end] and not _starts_block(lines, end):
                end += 1
            found.append(("paragraph", "\n".join(line.strip() for line in lines[index:end])))
            index = end
    return found


def _starts_block(lines, index):
    """Whether a line ends the paragraph before it."""
    line = lines[index]
    if line.startswith((FENCE, ">")) or _heading(line) or _is_rule(line) or _is_table(lines, index):
        return True
    marker = _marker(line)
    return marker is not None and marker[0] in (None, 1)


def _heading(line):
    marks = len(line) - len(line.lstrip("#"))
    if not 1 <= marks <= 6 or line[marks : marks + 1] not in ("", " "):
        return None
    text = line[marks:].strip()
    bare = text.rstrip("#")
    if bare == "" or bare.endswith(" "):
        text = bare.rstrip()
    return "heading", marks, text


def _is_rule(line):
    marks = line.replace(" ", "")
    return len(marks) >= 3 and marks[0] in "-*_" and marks == marks[0] * len(marks)


def _code(lines, index):
    language = lines[index][len(FENCE) :].strip()
    end = index + 1
    while end < len(lines) and lines[end] != FENCE:
        end += 1
    return ("code", language, "\n".join(lines[index + 1 : end])), end + 1


def _marker(line):
    """Return (number or None, width of the marker with its space) if a line starts an item, else None."""
    if line.startswith(("- ", "* ")) or line in ("-", "*"):
        return None, 2
    digits = len(line) - len(line.lstrip("0123456789"))
    if 1 <= digits <= 9 and line[digits : digits + 1] == "." and line[digits + 1 : digits + 2] in ("", " "):
        return int(line[:digits]), digits + 2
    return None


def _list(lines, index):
    first = _marker(lines[index])
    ordered = first[0] is not None
    items = []
    while index < len(lines):
        marker = _marker(lines[index])
        if marker is None or (marker[0] is not None) != ordered or _is_rule(lines[index]):
            break
        inside = [lines[index][marker[1] :]]
        index += 1
        while index < len(lines):
            line = lines[index]
            indent = len(line) - len(line.lstrip(" "))
            if line and indent < 2:
                break
            if not line and not _goes_on(lines, index):
                break
            inside.append(line[min(indent, marker[1]) :])
            index += 1
        items.append(_blocks(inside))
        while index < len(lines) and not lines[index] and _next_marker(lines, index, ordered):
            index += 1
    return ("list", first[0], items), index


def _goes_on(lines, index):
    """Whether an indented line follows after empty ones."""
    for line in lines[index:]:
        if line:
            return line.startswith("  ")
    return False


def _next_marker(lines, index, ordered):
    """Whether an item of the same list follows after empty lines."""
    for line in lines[index:]:
        if line:
            marker = _marker(line)
            return marker is not None and (marker[0] is not None) == ordered and not _is_rule(line)
    return False


def _is_table(lines, index):
    if index + 1 >= len(lines) or "|" not in lines[index]:
        return False
    marks = _cells(lines[index + 1])
    if "-" not in lines[index + 1] or len(marks) != len(_cells(lines[index])):
        return False
    return all(mark.strip(":") and set(mark.strip(":")) == {"-"} for mark in marks)


def _table(lines, index):
    aligns = []
    for mark in _cells(lines[index + 1]):
        left, right = mark.startswith(":"), mark.endswith(":")
        aligns.append("center" if left and right else "right" if right else "left" if left else None)
    rows = [_cells(lines[index])]
    index += 2
    while index < len(lines) and "|" in lines[index]:
        cells = _cells(lines[index])[: len(aligns)]
        rows.append(cells + [""] * (len(aligns) - len(cells)))
        index += 1
    return ("table", aligns, rows), index


def _cells(line):
    """Return the cells of a line; a bar after a backslash does not part them."""
    text = line.strip()
    if text.startswith("|"):
        text = text[1:]
    if text.endswith("|") and not text.endswith("\\|"):
        text = text[:-1]
    cells = [""]
    for index, char in enumerate(text):
        if char == "|" and text[index - 1 : index] != "\\":
            cells.append("")
        else:
            cells[-1] += char
    return [cell.strip().replace("\\|", "|") for cell in cells]
