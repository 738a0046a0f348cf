"""Encode the return values of functions as JSON, the only format in which values leave the sandbox.

Plain data are None, bool, int, float, str, lists, tuples (encoded as lists), and dicts with str or int keys. numpy
numbers and arrays are converted, and, if the test allows it, deque, range and array.array. Instances of subclasses are
read with the methods of the base class, so that overridden methods such as __eq__, __iter__ or __str__ are not called
(51_eq_override). The host never unpickles a value (19_unpickle_bomb).
"""

from __future__ import annotations

import json
from array import array
from collections import deque
from typing import Any

DEPTH = 100  # levels of nesting, below Python's limit of recursion (203_value_nested_deeply)
VALUE_BYTES = 1 << 20  # default limit of the size of the JSON text (102_freeze_by_value, 209_forged_value_of_megabytes)

Readers = tuple[tuple[type, Any], ...]  # a type, and a function of (value, depth, readers) for its instances


class NotPlain(Exception):
    """The value cannot be encoded. The message is a predicate without a subject, such as "contains a dict with …"."""


def encode(value: object, limit: int = VALUE_BYTES, any_sequence: bool = False) -> str:
    """Encode a value as canonical JSON: keys sorted, no spaces, ASCII; NaN and infinities as in Python's json.

    Args:
        limit: maximum number of bytes.
        any_sequence: whether a deque, a range or an array.array is encoded as a list.

    Raises:
        NotPlain: if the value is not plain data or is too large.

    >>> encode({"b": (1, 2.0), "a": None})
    '{"a":null,"b":[1,2.0]}'
    """
    try:
        readers = _READERS + _SEQUENCE_READERS if any_sequence else _READERS
        text = json.dumps(_plain(value, DEPTH, readers), sort_keys=True, separators=(",", ":"))
    except ValueError as e:  # an int of more digits than the program lets Python convert
        raise NotPlain(f"cannot be encoded: {e}") from None
    if len(text) > limit:
        raise NotPlain(f"has {len(text)} bytes as JSON, the limit is {limit}")
    return text


def encode_returned(value: object, function: str, limit: int = VALUE_BYTES, any_sequence: bool = False) -> str:
    """Encode the return value of a function of a program.

    Raises:
        SystemExit: if encode() raises NotPlain. The argument is a message that names the function.
    """
    try:
        return encode(value, limit, any_sequence)
    except NotPlain as e:
        raise SystemExit(f"the return value of {function} {e}") from None


def checked(data: bytes, limit: int = VALUE_BYTES) -> str | None:
    """Return JSON written by a program as text, or None if it is invalid or nested more than DEPTH levels deep.

    Data of more than ``limit`` bytes is not decoded. Integers are not converted: the host would refuse long ones.
    """
    if len(data) > limit:
        return None
    try:
        text = data.decode()
        _plain(json.loads(text, parse_int=str), DEPTH, _READERS)
    except (ValueError, RecursionError, NotPlain):
        return None
    return text


def _plain(value: Any, depth: int, readers: Readers) -> Any:
    kind = type(value)
    if value is None or kind in (bool, int, float, str):
        return value
    if depth == 0:
        raise NotPlain(f"is nested more than {DEPTH} levels deep")
    for base, read in readers:
        if issubclass(kind, base):
            return read(value, depth - 1, readers)
    if kind.__module__ == "numpy" and hasattr(kind, "tolist"):
        return _plain(value.tolist(), depth - 1, readers)
    raise NotPlain(f"contains an object of type {kind.__name__}, which is not plain data")


def _items(value: Any, depth: int, readers: Readers) -> list[Any]:
    base: Any = next(base for base, _ in readers if issubclass(type(value), base))
    return [_plain(item, depth, readers) for item in base.__iter__(value)]


def _pairs(value: Any, depth: int, readers: Readers) -> dict[str, Any]:
    pairs = {_key(key): _plain(item, depth, readers) for key, item in dict.items(value)}
    if len(pairs) != dict.__len__(value):
        raise NotPlain("contains a dict with a number and the same number as a string as keys")
    return pairs


def _key(key: Any) -> str:
    key = _plain(key, 1, _READERS)
    if type(key) not in (str, int):
        raise NotPlain(f"contains a dict with a key of type {type(key).__name__}")
    return str(key)


_READERS: Readers = (
    (list, _items),
    (tuple, _items),
    (dict, _pairs),
    (str, lambda value, *_: str.__str__(value)),
    (int, lambda value, *_: int.__int__(value)),
    (float, lambda value, *_: float.__float__(value)),
)
_SEQUENCE_READERS: Readers = ((deque, _items), (range, _items), (array, _items))
