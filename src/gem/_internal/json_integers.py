"""JSON with integers of any length.

Python refuses to convert integers of more than 4,300 digits to and from text, because the time grows with the square of
the length. Here a longer integer is a ``decimal.Decimal``, which holds it exactly and converts it in linear time.
"""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

LONGEST_INT = 4300  # characters; Python's default limit, sys.int_info.default_max_str_digits


def loads(data: str | bytes) -> Any:
    """Decode JSON. Integers of more than LONGEST_INT characters become ``Decimal``.

    Raises:
        ValueError: if the data is not valid JSON.

    >>> loads("[12, 0.5]"), loads("9" * 5000) == Decimal("9" * 5000)
    ([12, 0.5], True)
    """
    try:
        return json.loads(data)
    except json.JSONDecodeError:
        raise
    except ValueError:  # an integer is too long
        return json.loads(data, parse_int=_integer)


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


def _integer(digits: str) -> int | Decimal:
    return int(digits) if len(digits) <= LONGEST_INT else Decimal(digits)


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
