"""JSON of what the json module refuses or changes: values of observations, and integers of any length.

encode() and decode() keep the types of observations: tuples, sets, bytes, numpy values and images. A value that JSON
does not have is written as an object with one key that starts with ``$``.

dumps() is that of the json module, with integers of any length. Python refuses to convert integers of more than 4,300
digits to and from text, because the time grows with the square of the length. Here a longer integer is a
``decimal.Decimal``, which holds it exactly and converts it in linear time, as gem._internal.inbound.loads() reads it.
"""

from __future__ import annotations

import base64
import io
import json
import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from gem._internal.inbound import open_image
from gem.errors import BadValue

_PNG_MODES = frozenset({"1", "L", "LA", "P", "RGB", "RGBA"})  # image modes that PNG keeps


def encode(value: Any, where: str = "value") -> Any:
    """Convert a value to JSON-compatible data for decode().

    Args:
        where: what the value is, for error messages.

    Raises:
        BadValue: for a value that cannot be kept, such as an object of another type or an image of an unusual mode.
    """
    kind = type(value)
    if value is None or kind in (str, int, bool) or (kind is float and math.isfinite(value)):
        return value
    if kind is float:
        return {"$float": str(value)}
    if kind is list:
        return _encode_items(value, where)
    if kind is dict:
        if all(type(key) is str and not key.startswith("$") for key in value):
            return {key: encode(item, f"{where}[{key!r}]") for key, item in value.items()}
        return {"$dict": [[encode(key, where), encode(item, f"{where}[{key!r}]")] for key, item in value.items()]}
    if kind in (tuple, set, frozenset):
        return {f"${kind.__name__}": _encode_items(value, where)}
    if kind is bytes:
        return {"$bytes": _base64(value)}
    if kind.__module__ == "numpy" and hasattr(value, "dtype") and not value.dtype.hasobject:
        return {
            "$numpy": [value.dtype.str, None if kind.__name__ != "ndarray" else value.shape, _base64(value.tobytes())]
        }
    if hasattr(value, "mode") and hasattr(value, "save"):
        return {"$image": _base64(_png(value, where))}
    raise BadValue(f"{where} cannot be kept: {kind.__module__}.{kind.__qualname__} is no plain data")


def decode(data: Any) -> Any:
    """Restore a value from the result of encode(). Raises BadValue for any other data."""
    if type(data) is list:
        return [decode(item) for item in data]
    if type(data) is not dict:
        return data
    tag = next(iter(data), "")
    if not tag.startswith("$"):
        return {key: decode(item) for key, item in data.items()}
    try:
        return _DECODERS[tag](data[tag])
    except (LookupError, TypeError, ValueError, OSError, SyntaxError) as e:  # numpy parses its dtypes
        raise BadValue(f"not a value of type {tag}: {type(e).__name__}: {e}") from e


def dumps(value: Any) -> str:
    """Encode plain data as JSON, with integers of any length as ``int`` or ``Decimal``.

    Raises:
        TypeError, ValueError: if the value is not plain data.

    >>> dumps([1, Decimal("9" * 5000)]) == "[1, " + "9" * 5000 + "]"
    True
    """
    try:
        return json.dumps(value)
    except (TypeError, ValueError):  # a long integer, or no plain data
        return _written(value)


def _encode_items(items: Any, where: str) -> list[Any]:
    return [encode(item, f"{where}[{i}]") for i, item in enumerate(items)]


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _png(image: Any, where: str) -> bytes:
    if image.mode not in _PNG_MODES:
        raise BadValue(f"{where} cannot be kept: an image of mode {image.mode!r}; convert it to 'RGB'")
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    return buffer.getvalue()


def _decode_image(data: str) -> Any:
    return open_image(base64.b64decode(data), "an image").copy()


def _decode_numpy(data: list[Any]) -> Any:
    import numpy as np

    dtype, shape, raw = data
    array = np.frombuffer(base64.b64decode(raw), np.dtype(dtype))
    return array[0] if shape is None else array.reshape(shape).copy()


_DECODERS: dict[str, Callable[[Any], Any]] = {
    "$float": float,
    "$dict": lambda pairs: {decode(key): decode(item) for key, item in pairs},
    "$tuple": lambda items: tuple(decode(items)),
    "$set": lambda items: set(decode(items)),
    "$frozenset": lambda items: frozenset(decode(items)),
    "$bytes": base64.b64decode,
    "$numpy": _decode_numpy,
    "$image": _decode_image,
}


def _written(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_written, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{_key(key)}: {_written(item)}' for key, item in value.items())}}}"
    if isinstance(value, (int, Decimal)) and not isinstance(value, bool):
        digits = str(Decimal(value))
        if digits.removeprefix("-").isdecimal():
            return digits
    return json.dumps(value)


def _key(key: Any) -> str:
    return json.dumps(key if isinstance(key, str) else json.dumps(key))
