"""Lossless JSON of observations: tuples, sets, bytes, numpy values and images keep their types.

A value that JSON does not have is written as an object with one key that starts with ``$``.
"""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Callable
from typing import Any

from gem.errors import BadValue, require

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
    except (KeyError, TypeError, ValueError, OSError) as e:
        raise BadValue(f"not a value of type {tag}: {type(e).__name__}: {e}") from e


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
    image = require("PIL.Image", extra="vision")
    with image.open(io.BytesIO(base64.b64decode(data))) as opened:
        return opened.copy()


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
