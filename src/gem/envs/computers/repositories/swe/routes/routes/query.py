# gem-terminal-canary-5b1f6c2e-7d3a-4c0e-9a57-1e2d8f4b6a90
"""Query strings."""

from routes.urls import quote, unquote


def parse_query(text):
    """Return names and values as a dict of lists, both in the order of the text.

    Pairs are parted by & or ;. A plus sign stands for a space. A name without "=" has the value "", and empty pairs
    do not count.
    """
    found = {}
    for pair in text.replace(";", "&").split("&"):
        if not pair:
            continue
        name, _, value = pair.partition("=")
        found.setdefault(_plain(name), []).append(_plain(value))
    return found


def build_query(values):
    """Return the text of a dict or of pairs. A value may be a list; None is left out, truth values are 1 and 0."""
    pairs = values.items() if hasattr(values, "items") else values
    parts = []
    for name, value in pairs:
        for item in value if isinstance(value, (list, tuple)) else [value]:
            if item is None:
                continue
            text = str(int(item)) if isinstance(item, bool) else str(item)
            parts.append(f"{_escaped(name)}={_escaped(text)}")
    return "&".join(parts)


def _plain(text):
    return unquote(text.replace("+", " "))


def _escaped(text):
    return quote(text, safe=" ").replace(" ", "+")
