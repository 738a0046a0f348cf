"""Values of functions as JSON: what crosses the border between a program and whoever judges it.

Plain data are None, bool, int, float, str, lists, tuples (as lists), and dicts whose keys are text or whole numbers.
numpy's numbers and arrays become the Python ones. An object of a subclass is read by the methods of the base class, so
that an __eq__, __iter__ or __str__ of its own has no say.
"""

from __future__ import annotations

import json
from typing import Any

DEPTH = 100  # lists within lists
VALUE_BYTES = 16 << 20  # of JSON


class NotPlain(Exception):
    """The message says what about a value is no plain data, in words that follow its name."""


def encode(value: object) -> str:
    """A value as canonical JSON: keys sorted, no spaces, ASCII; NaN and the infinities as Python's json has them.

    Raises NotPlain.

    >>> encode({"b": (1, 2.0), "a": None})
    '{"a":null,"b":[1,2.0]}'
    """
    try:
        text = json.dumps(_plain(value, DEPTH), sort_keys=True, separators=(",", ":"))
    except ValueError as e:  # more digits than Python writes
        raise NotPlain(f"cannot be written: {e}") from None
    if len(text) > VALUE_BYTES:
        raise NotPlain(f"takes {len(text)} bytes as JSON, and {VALUE_BYTES} are the limit")
    return text


def checked(data: bytes) -> str | None:
    """What a program wrote as a value, as canonical JSON; None where it is none. The program is not trusted to."""
    if len(data) > VALUE_BYTES:
        return None
    try:
        return encode(json.loads(data.decode()))
    except (ValueError, RecursionError, NotPlain):
        return None


def _plain(value: Any, depth: int) -> Any:
    kind = type(value)
    if value is None or kind in (bool, int, float, str):
        return value
    if depth == 0:
        raise NotPlain(f"is nested more than {DEPTH} deep")
    for base, read in _READERS:
        if issubclass(kind, base):
            return read(value, depth - 1)
    if kind.__module__ == "numpy" and hasattr(kind, "tolist"):
        return _plain(value.tolist(), depth - 1)
    raise NotPlain(f"holds an object of type {kind.__name__}, which is no plain data")


def _items(value: Any, depth: int) -> list[Any]:
    base = list if issubclass(type(value), list) else tuple
    return [_plain(item, depth) for item in base.__iter__(value)]


def _pairs(value: Any, depth: int) -> dict[str, Any]:
    pairs = {_key(key): _plain(item, depth) for key, item in dict.items(value)}
    if len(pairs) != dict.__len__(value):
        raise NotPlain("holds a dict with a number and its text as keys")
    return pairs


def _key(key: Any) -> str:
    key = _plain(key, 1)
    if type(key) not in (str, int):
        raise NotPlain(f"holds a dict with a key of type {type(key).__name__}")
    return str(key)


_READERS: tuple[tuple[type, Any], ...] = (
    (list, _items),
    (tuple, _items),
    (dict, _pairs),
    (str, lambda value, _: str.__str__(value)),
    (int, lambda value, _: int.__int__(value)),
    (float, lambda value, _: float.__float__(value)),
)
