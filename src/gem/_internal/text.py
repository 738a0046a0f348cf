"""Shorten text for messages."""

from __future__ import annotations


def shorten(text: str, limit: int) -> str:
    """Return a text of at most ``limit`` characters; a longer text is cut and ends with an ellipsis."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def short_repr(value: object, limit: int = 100) -> str:
    """Return the repr of a value, cut to ``limit`` characters. A long string is cut before repr() is called."""
    try:
        return shorten(repr(value[: limit + 1] if isinstance(value, str) else value), limit)
    except ValueError:  # Python does not print integers of over 4,300 digits
        return f"a {type(value).__name__} with a very long integer"


def one_line(text: str) -> str:
    r"""Return the lines of a text in one line, with escapes for characters that a terminal could take as commands.

    >>> print(one_line("boom\n  at \x1b[31mstep"))
    boom; at \x1b[31mstep
    """
    joined = "; ".join(line.strip() for line in text.splitlines() if line.strip())
    return joined if joined.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in joined)


def counted(count: int, noun: str) -> str:
    """Return a count with its noun, such as "1 task" and "1,200 tasks"."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
