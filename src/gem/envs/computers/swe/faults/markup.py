"""Faults of markup, written by hand.

Canary: gem-terminal-canary-5b1f6c2e-7d3a-4c0e-9a57-1e2d8f4b6a90
"""

from gem.envs.computers.swe.repository import Defect, Edit

BLOCKS, INLINE, HTML = "markup/blocks.py", "markup/inline.py", "markup/html.py"
OUTLINE, PLAIN = "markup/outline.py", "markup/plain.py"
FAULTS = (
    Defect(
        'A heading like "# C#" loses the sign at its end. Only closing marks after a space should go.',
        (
            Edit(
                BLOCKS,
                '    if bare == "" or bare.endswith(" "):\n        text = bare.rstrip()\n    return "heading", '
                "marks, text\n",
                '    return "heading", marks, bare.rstrip()\n',
            ),
        ),
    ),
    Defect(
        "A sentence that happens to have a year with a point at the start of its second line, like "
        '"in\\n1999. Then", is '
        "split into a paragraph and a numbered list.",
        (
            Edit(
                BLOCKS, "    return marker is not None and marker[0] in (None, 1)\n", "    return marker is not None\n"
            ),
        ),
    ),
    Defect(
        "A fence without an end, and everything after it, vanishes in the output. It should go to the end of the text.",
        (
            Edit(
                BLOCKS,
                '    return ("code", language, "\\n".join(lines[index + 1 : end])), end + 1\n',
                '    if end == len(lines):\n        return ("code", language, ""), end\n'
                '    return ("code", language, "\\n".join(lines[index + 1 : end])), end + 1\n',
            ),
        ),
    ),
    Defect(
        "Lists with an empty line between their items become several lists. Numbered ones start anew with each item.",
        (
            Edit(
                BLOCKS,
                "        while index < len(lines) and not lines[index] and _next_marker(lines, index, ordered):\n"
                "            index += 1\n",
                "        if index < len(lines) and not lines[index]:\n            break\n",
            ),
        ),
    ),
    Defect(
        "The second paragraph of a list item ends the list, if an empty line comes before it, although it is indented.",
        (Edit(BLOCKS, "            if not line and not _goes_on(lines, index):\n", "            if not line:\n"),),
    ),
    Defect(
        "Code inside of numbered items has lost a space of its indentation, or has one too many: what is removed "
        'should be as wide as the marker, and what is below "1. " has three spaces.',
        (
            Edit(
                BLOCKS,
                "            inside.append(line[min(indent, marker[1]) :])\n",
                "            inside.append(line[min(indent, 2) :])\n",
            ),
        ),
    ),
    Defect(
        "Rows of a table with fewer cells than there are columns shift the layout of our pages: the row is too short. "
        "Rows with too many cells are wider than the table.",
        (
            Edit(
                BLOCKS,
                "        cells = _cells(lines[index])[: len(aligns)]\n"
                '        rows.append(cells + [""] * (len(aligns) - len(cells)))\n',
                "        rows.append(_cells(lines[index]))\n",
            ),
            Edit(
                HTML,
                "        for align, cell in zip(aligns, row):\n",
                "        for align, cell in zip(aligns + [None] * len(row), row):\n",
            ),
        ),
    ),
    Defect(
        "A bar in a cell cannot be written any more: \\| parts the cells like every other bar.",
        (
            Edit(
                BLOCKS,
                """        if char == "|" and text[index - 1 : index] != "\\\\":\n""",
                """        if char == "|":\n""",
            ),
        ),
    ),
    Defect(
        "Emphasis starts and ends where it should not: 2 * 3 * 4 comes out with a 3 in italics.",
        (
            Edit(
                INLINE,
                "    if start >= len(text) or text[start].isspace():\n",
                "    if start >= len(text):\n",
            ),
            Edit(
                INLINE,
                "        elif text.startswith(mark, index) and index > start and not text[index - 1].isspace():\n",
                "        elif text.startswith(mark, index) and index > start:\n",
            ),
        ),
    ),
    Defect(
        "A star in code, as in *a `*` b*, ends the emphasis around the code, and the code is torn apart.",
        (
            Edit(
                INLINE,
                '        elif text[index] == "`":\n'
                '            index = _code(text, index)[1]\n        elif mark == "*" and',
                '        elif mark == "*" and',
            ),
        ),
    ),
    Defect(
        "Strong text inside of emphasis, as in *a **b** c*, ends the emphasis early.",
        (
            Edit(
                INLINE,
                "            index = _code(text, index)[1]\n"
                '        elif mark == "*" and text.startswith("**", index):\n'
                '            inner = _closing(text, index + 2, "**")\n'
                "            index = index + 2 if inner < 0 else inner + 2\n",
                "            index = _code(text, index)[1]\n",
            ),
        ),
    ),
    Defect(
        "Code with a backquote in it, written with two backquotes around it, ends at the single backquote inside.",
        (
            Edit(
                INLINE,
                '    while text[index + marks : index + marks + 1] == "`":\n        marks += 1\n    start',
                "    marks = 1\n    start",
            ),
        ),
    ),
    Defect(
        "Addresses with parentheses, as those of many articles of encyclopedias, are cut at the first closing one.",
        (
            Edit(
                INLINE,
                '    end = _balanced(text, close + 1, "(", ")")\n',
                '    end = text.find(")", close + 1)\n',
            ),
        ),
    ),
    Defect(
        "Titles with an ampersand or quotes in the alternative text of an image break our pages; the text "
        "stands in the "
        "HTML as it is. Languages of code blocks have the same problem.",
        (
            Edit(HTML, 'alt="{escape(node[2])}">', 'alt="{node[2]}">'),
            Edit(HTML, 'class="language-{escape(block[1].split()[0])}"', 'class="language-{block[1]}"'),
        ),
    ),
    Defect(
        "It is possible to smuggle scripts into pages: an address like JavaScript:x with capitals is written into "
        "the link as it is. Other unusual addresses are written as well, though only those of the web and "
        "of mail should.",
        (
            Edit(
                HTML,
                "    if relative or text.lower().startswith(SAFE):\n",
                '    if relative or not text.startswith(("javascript:", "data:")):\n',
            ),
        ),
    ),
    Defect(
        "Relative addresses with a colon in them, as /a:b or ?a:b, are replaced by #.",
        (
            Edit(
                HTML,
                '    relative = ":" not in text or "/" in scheme or "?" in scheme or "#" in scheme\n',
                '    relative = ":" not in text or not scheme\n',
            ),
            Edit(
                HTML,
                'SAFE = ("http:", "https:", "mailto:", "#", "/", "./", "../")\n',
                'SAFE = ("http:", "https:", "mailto:", "#")\n',
            ),
        ),
    ),
    Defect(
        "A numbered list that starts with 0 is shown from 1, and as plain text as well.",
        (
            Edit(HTML, 'if first not in (None, 1) else ""', 'if first and first != 1 else ""'),
            Edit(PLAIN, "enumerate(block[2], block[1] or 0)", "enumerate(block[2], block[1] or 1)"),
        ),
    ),
    Defect(
        'Two headings can get the same id: with the headings "A b", "A b" and "A b 2", two of them are called a-b-2.',
        (
            Edit(
                OUTLINE,
                '        while unique in found:\n            number += 1\n            unique = f"{name}-{number}"\n',
                "        if unique in found:\n            number = sum(old.startswith(name) for old in found) + 1\n"
                '            unique = f"{name}-{number}"\n',
            ),
        ),
    ),
    Defect(
        "The table of contents is indented by the level of the headings, so that a text that starts with "
        "small headings "
        "is indented from the first line, and a level that is left out leaves a gap.",
        (
            Edit(
                OUTLINE,
                '        lines.append("  " * len(above) + f"- [{title}](#{name})")\n',
                '        lines.append("  " * (level - 1) + f"- [{title}](#{name})")\n',
            ),
        ),
    ),
    Defect(
        "The table of contents has links to the wrong headings if there are deep headings that it leaves out.",
        (
            Edit(
                OUTLINE,
                "    for (level, title), name in zip(headings(parse(text)), anchors(text)):\n"
                "        if level > deepest:\n            continue\n",
                "    shown = [heading for heading in headings(parse(text)) if heading[0] <= deepest]\n"
                "    for (level, title), name in zip(shown, anchors(text)):\n",
            ),
        ),
    ),
    Defect(
        "In plain text the second line of a list item starts at the margin instead of below the text of the item.",
        (
            Edit(
                PLAIN,
                '            lines.append(_indented(inside, marker, " " * len(marker)))\n',
                '            lines.append(_indented(inside, marker, ""))\n',
            ),
        ),
    ),
)
