"""Compare the output or the return value of a program with the expected output or value, outside the sandbox.

Output is compared line by line and token by token. Blank lines and the amount of whitespace are ignored. Two tokens
match if they are equal. They also match if both are decimal numbers that differ by no more than the tolerance and the
expected token has a decimal point or an exponent. So "3" matches an expected "3.0", but "3.0" does not match an
expected "3".

Return values are compared as JSON, and the types must agree: true does not match 1, but a tuple matches a list. An
expected float matches any int or float within the tolerance. An expected int matches only the same int.
"""

from __future__ import annotations

import json
import math
import re
from decimal import Context, Decimal
from typing import Any

TOLERANCE = 1e-6  # absolute; relative if the expected number is above 1 in absolute value
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?")
_MAX_DIGITS = 400  # maximum length of a token that is compared as a number; longer tokens must be equal


def same_output(printed: str, expected: str, tolerance: float = TOLERANCE) -> bool:
    r"""Return whether the printed output matches the expected output.

    >>> same_output("1  2 \n\n3.14159265\n", "1 2\n3.141593"), same_output("1 2", "1\n2")
    (True, False)
    """
    if printed == expected:
        return True
    lines, others = (_tokens(text) for text in (printed, expected))
    return len(lines) == len(others) and all(
        len(line) == len(other) and all(_same_token(a, b, tolerance) for a, b in zip(line, other, strict=True))
        for line, other in zip(lines, others, strict=True)
    )


def same_value(returned: str | None, expected: Any, tolerance: float = TOLERANCE) -> bool:
    """Return whether a return value matches the expected value.

    Args:
        returned: the return value as JSON text. None and invalid JSON do not match any value.
        expected: the expected value as plain data.
        tolerance: tolerance for expected floats: absolute, or relative if the float is above 1 in absolute value.

    >>> same_value("[1, 2.0000001]", [1, 2.0]), same_value("1.0", 1), same_value("true", 1)
    (True, False, False)
    """
    if returned is None:
        return False
    try:
        value = json.loads(returned)
    except (ValueError, RecursionError):
        return False
    return _same(value, expected, tolerance)


def _tokens(text: str) -> list[list[str]]:
    return [tokens for tokens in map(str.split, text.split("\n")) if tokens]


def _same_token(token: str, expected: str, tolerance: float) -> bool:
    if token == expected:
        return True
    if max(len(token), len(expected)) > _MAX_DIGITS or not (set(".eE") & set(expected)):
        return False
    if not (_NUMBER.fullmatch(token) and _NUMBER.fullmatch(expected)):
        return False
    number, wanted, exact = Decimal(token), Decimal(expected), Context(prec=50)
    scale = max(Decimal(1), exact.abs(wanted))
    return exact.abs(exact.subtract(number, wanted)) <= exact.multiply(Decimal(repr(tolerance)), scale)


def _same(value: Any, expected: Any, tolerance: float) -> bool:
    if isinstance(expected, float) and type(value) in (int, float):
        return _close(value, expected, tolerance)
    if type(value) is not type(expected):
        return False
    if isinstance(expected, list):
        return len(value) == len(expected) and all(_same(a, b, tolerance) for a, b in zip(value, expected, strict=True))
    if isinstance(expected, dict):
        return value.keys() == expected.keys() and all(_same(value[k], expected[k], tolerance) for k in expected)
    return bool(value == expected)


def _close(value: float, expected: float, tolerance: float) -> bool:
    if value == expected:
        return True
    if math.isnan(expected):
        return isinstance(value, float) and math.isnan(value)
    try:
        return abs(value - expected) <= tolerance * max(1.0, abs(expected)) < math.inf
    except OverflowError:  # an int too large for a float
        return False
