# gem-terminal-canary-5b1f6c2e-7d3a-4c0e-9a57-1e2d8f4b6a90
"""Cells: how values become text of a certain width."""

import unicodedata


def width(text):
    """Return the number of terminal columns of a text. Wide characters take two, combining ones none."""
    total = 0
    for char in text:
        if unicodedata.combining(char):
            continue
        total += 2 if unicodedata.east_asian_width(char) in ("W", "F") else 1
    return total


def pad(text, size, align="left"):
    """Fill a text with spaces up to a width. A text that is too long is cut, with a dot as its last character."""
    if width(text) > size:
        return cut(text, size)
    free = size - width(text)
    if align == "right":
        return " " * free + text
    if align == "center":
        left = free // 2
        return " " * left + text + " " * (free - left)
    if align == "left":
        return text + " " * free
    raise ValueError(f"align must be 'left', 'right' or 'center', got {align!r}")


def cut(text, size):
    """Cut a text to a width. A dot replaces what is lost, and a space fills half of a wide character."""
    if width(text) <= size:
        return text
    if size <= 0:
        return ""
    kept = ""
    for char in text:
        if width(kept + char) > size - 1:
            break
        kept += char
    return kept + "." + " " * (size - 1 - width(kept))


def wrap(text, size):
    """Break a text at spaces into lines of at most this width. Longer words are broken where they must be.

    Line breaks of the text stay; an empty line stays an empty line.
    """
    if size < 1:
        raise ValueError(f"size must be at least 1, got {size}")
    lines = []
    for paragraph in text.split("\n"):
        line = ""
        for word in paragraph.split():
            candidate = f"{line} {word}" if line else word
            if width(candidate) <= size:
                line = candidate
                continue
            if line:
                lines.append(line)
            while width(word) > size and len(word) > 1:
                head = _head(word, size)
                lines.append(head)
                word = word[len(head) :]
            line = word
        lines.append(line)
    return lines


def _head(word, size):
    """Return the longest start of a word that fits, at least one character."""
    head = word[0]
    for char in word[1:]:
        if width(head + char) > size:
            break
        head += char
    return head


def format_number(value, digits=None, thousands=False):
    """Return a number as text.

    digits: places after the point, rounded half away from zero; None keeps integers as they are and gives others the
    shortest text. thousands: whether commas group the digits before the point.
    """
    if digits is None:
        text = str(value)
    else:
        scaled = int(abs(value) * 10**digits * 2 + 1) // 2
        whole, fraction = divmod(scaled, 10**digits)
        text = f"{whole}.{fraction:0{digits}d}" if digits else str(whole)
        if value < 0 and scaled:
            text = "-" + text
    if thousands:
        sign = "-" if text.startswith("-") else ""
        whole, point, fraction = text[len(sign) :].partition(".")
        groups = []
        while len(whole) > 3:
            groups.insert(0, whole[-3:])
            whole = whole[:-3]
        text = sign + ",".join([whole, *groups]) + point + fraction
    return text
