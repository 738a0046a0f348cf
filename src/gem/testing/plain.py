"""Any value as plain data, so that what two environments said can be compared, whatever it is made of."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any

from gem._internal.text import short_repr

STEP = ("observation", "reward", "terminated", "truncated", "info")
RESET = ("observation", "info")


def plain(value: Any) -> Any:
    """The value as JSON has it. Arrays become lists, images a digest, and what has no data to show its type's name.

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
    """A text that two values share exactly when they hold the same data; NaN equals NaN here."""
    return json.dumps(plain(value), sort_keys=True)


def difference(names: Sequence[str], first: Sequence[Any], second: Sequence[Any]) -> tuple[str, str, str] | None:
    """The first field in which two answers differ: its name, and each one's value; None when they agree.

    >>> difference(RESET, ("Guess.", {}), ("Guess!", {}))
    ('observation', "'Guess.'", "'Guess!'")
    """
    for name, one, other in zip(names, first, second, strict=True):
        if one is not other and canonical(one) != canonical(other):
            return name, around(one, other), around(other, one)
    return None


def text_of(observation: Any) -> str:
    """What an agent reads in an observation: its text, the last message's, or else the data themselves."""
    if isinstance(observation, list) and observation:
        observation = observation[-1]
    if isinstance(observation, Mapping):
        observation = observation.get("text", observation.get("content", observation))
    return observation if isinstance(observation, str) else canonical(observation)


def around(value: Any, other: Any) -> str:
    """A repr of the value; of two long texts the part where this one leaves the other."""
    if not (isinstance(value, str) and isinstance(other, str)) or len(value) <= 100:
        return short_repr(value)
    same = next((i for i, (a, b) in enumerate(zip(value, other, strict=False)) if a != b), min(len(value), len(other)))
    start = max(0, same - 30)
    return ("…" if start else "") + short_repr(value[start:])
