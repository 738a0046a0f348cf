"""``check_count``: reject arguments that are not integers in a range."""

from __future__ import annotations

from numbers import Integral
from typing import Any

from gem.errors import BadValue


def check_count(
    name: str, value: Any, least: int = 1, most: int | None = None, *, optional: bool = False, where: str = ""
) -> None:
    """Raise BadValue unless a value is an integer in a range. Integers of numpy are accepted, but not
    converted; bools and floats are not accepted.

    Args:
        name: name of the argument, for the message.
        value: value of the argument.
        least, most: bounds of the range, inclusive; None for ``most`` means no upper bound.
        optional: accept None too.
        where: what the bounds depend on, appended to them in the message.

    >>> check_count("rows", 2.5, 1, 9, where=" on this board")
    Traceback (most recent call last):
    gem.errors.BadValue: rows must be an integer from 1 to 9 on this board, got 2.5
    """
    if optional and value is None:
        return
    whole = not isinstance(value, bool) and isinstance(value, Integral)
    if whole and least <= value and (most is None or value <= most):
        return
    bounds = f"of at least {least}" if most is None else f"from {least} to {most}"
    raise BadValue(f"{name} must be an integer {bounds}{where}{' or None' if optional else ''}, got {value!r}")
