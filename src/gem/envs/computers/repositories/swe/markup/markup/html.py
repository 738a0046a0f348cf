# gem-terminal-canary-5b1f6c2e-7d3a-4c0e-9a57-1e2d8f4b6a90
"""HTML of a document."""

from markup.blocks import parse
from markup.inline import inline
from markup.outline import anchors

SAFE = ("http:", "https:", "mailto:", "#", "/", "./", "../")


def render(text, anchored=False, shift=0):
    """Return the HTML of a text.

    anchored: whether headings have ids. shift: added to the levels of headings, which stay from 1 to 6. Addresses
    that are not relative, or of the web or mail, become "#".
    """
    blocks = parse(text)
    ids = iter(anchors(text)) if anchored else None
    return "\n".join(_block(block, ids, shift) for block in blocks)


def _block(block, ids, shift):
    kind = block[0]
    if kind == "heading":
        level = max(1, min(6, block[1] + shift))
        name = f' id="{escape(next(ids))}"' if ids is not None else ""
        return f"<h{level}{name}>{_inline(block[2])}</h{level}>"
    if kind == "paragraph":
        return f"<p>{_inline(block[1])}</p>"
    if kind == "code":
        language = f' class="language-{escape(block[1].split()[0])}"' if block[1] else ""
        end = "\n" if block[2] else ""
        return f"<pre><code{language}>{escape(block[2])}{end}</code></pre>"
    if kind == "rule":
        return "<hr>"
    if kind == "quote":
        inside = "\n".join(_block(inner, ids, shift) for inner in block[1])
        return f"<blockquote>\n{inside}\n</blockquote>"
    if kind == "list":
        return _list(block, ids, shift)
    return _table(block)


def _list(block, ids, shift):
    _, first, items = block
    tag = "ul" if first is None else "ol"
    start = f' start="{first}"' if first not in (None, 1) else ""
    lines = [f"<{tag}{start}>"]
    for item in items:
        if len(item) == 1 and item[0][0] == "paragraph":
            lines.append(f"<li>{_inline(item[0][1])}</li>")
        elif item and item[0][0] == "paragraph" and all(inner[0] == "list" for inner in item[1:]):
            inside = "\n".join(_block(inner, ids, shift) for inner in item[1:])
            lines.append(f"<li>{_inline(item[0][1])}\n{inside}\n</li>")
        else:
            inside = "\n".join(_block(inner, ids, shift) for inner in item)
            lines.append(f"<li>\n{inside}\n</li>" if inside else "<li></li>")
    return "\n".join([*lines, f"</{tag}>"])


def _table(block):
    _, aligns, rows = block
    lines = ["<table>"]
    for number, row in enumerate(rows):
        tag = "td" if number else "th"
        cells = ""
        for align, cell in zip(aligns, row):
            style = f' align="{align}"' if align else ""
            cells += f"<{tag}{style}>{_inline(cell)}</{tag}>"
        lines.append(f"<tr>{cells}</tr>")
    return "\n".join([*lines, "</table>"])


def _inline(text):
    return "".join(map(_node, inline(text)))


def _node(node):
    if isinstance(node, str):
        return escape(node)
    kind = node[0]
    if kind in ("em", "strong"):
        return f"<{kind}>{''.join(map(_node, node[1]))}</{kind}>"
    if kind == "code":
        return f"<code>{escape(node[1])}</code>"
    if kind == "link":
        return f'<a href="{_address(node[1])}">{"".join(map(_node, node[2]))}</a>'
    if kind == "image":
        return f'<img src="{_address(node[1])}" alt="{escape(node[2])}">'
    return "<br>\n"


def _address(text):
    scheme = text.partition(":")[0]
    relative = ":" not in text or "/" in scheme or "?" in scheme or "#" in scheme
    if relative or text.lower().startswith(SAFE):
        return escape(text)
    return "#"


def escape(text):
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")
