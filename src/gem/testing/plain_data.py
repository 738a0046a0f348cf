"""Conversion of arbitrary values to plain data, so that the outputs of two environments can be compared."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any

from gem._internal.text import short_repr

STEP_FIELDS = ("observation", "reward", "terminated", "truncated", "info")
RESET_FIELDS = ("observation", "info")


def plain(value: Any) -> Any:
    """Convert a value to JSON-compatible data.

    Arrays become lists. Bytes and images become their type and a digest. Other objects become the name of their type.

    >>> plain({"a": (1, 2), "b": {3}})
    {'a': [1, 2], 'b': [3]}
    """
    if isinstance(value, Enum):
        return plain(value.value)
    if value is None or isinstance(value, (str, int, float)):
        return value
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, (set, frozenset)):
        return sorted((plain(item) for item in value), key=repr)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if hasattr(value, "tolist"):  # a numpy array or scalar
        return plain(value.tolist())
    if isinstance(value, bytes) or hasattr(value, "tobytes"):  # a PIL image
        data = value if isinstance(value, bytes) else value.tobytes()
        return f"{type(value).__name__} {hashlib.sha256(data).hexdigest()}"
    return type(value).__name__


def canonical(value: Any) -> str:
    """Serialize a value as JSON text. Equal values, including NaN and NaN, produce equal text."""
    return json.dumps(plain(value), sort_keys=True)


def difference(names: Sequence[str], first: Sequence[Any], second: Sequence[Any]) -> tuple[str, str, str] | None:
    """Find the first field in which two results differ.

    Returns:
        The name of the field and short reprs of both values, or None if the results are equal.

    >>> difference(RESET_FIELDS, ("Guess.", {}), ("Guess!", {}))
    ('observation', "'Guess.'", "'Guess!'")
    """
    for name, one, other in zip(names, first, second, strict=True):
        if one is not other and canonical(one) != canonical(other):
            return name, repr_near_difference(one, other), repr_near_difference(other, one)
    return None


def text_of(observation: Any) -> str:
    """Return the text of an observation, or of its last message if it is a list; canonical JSON without a text."""
    if isinstance(observation, list) and observation:
        observation = observation[-1]
    if isinstance(observation, Mapping):
        observation = observation.get("text", observation.get("content", observation))
    return observation if isinstance(observation, str) else canonical(observation)


def repr_near_difference(value: Any, other: Any) -> str:
    """Return a short repr of a value. A long text starts shortly before the first difference to the other text."""
    if not (isinstance(value, str) and isinstance(other, str)) or len(value) <= 100:
        return short_repr(value)
    same = next((i for i, (a, b) in enumerate(zip(value, other, strict=False)) if a != b), min(len(value), len(other)))
    start = max(0, same - 30)
    return ("…" if start else "") + short_repr(value[start:])
