"""Compare the output or the return value of a program with the expected output or value, outside the sandbox.

Output is compared line by line and token by token. Blank lines and the amount of whitespace are ignored. Two tokens
match if they are equal. They also match if both are decimal numbers that differ by no more than the tolerance and the
expected token has a decimal point or an exponent. So "3" matches an expected "3.0", but "3.0" does not match an
expected "3".

Return values are compared as JSON, and the types must agree: true does not match 1, but a tuple matches a list. An
expected float matches any int or float within the tolerance. An expected int matches only the same int, of any length.

Outputs and values come from untrusted programs. The comparison of an output ends at the first difference, and a value
longer than value_bytes() is not decoded, so that the cost depends on the size of what is expected.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from decimal import Context, Decimal
from itertools import repeat, zip_longest
from typing import Any

from gem._internal.inbound import loads
from gem._internal.json_codec import dumps

TOLERANCE = 1e-6  # absolute; relative if the expected number is above 1 in absolute value
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?")
_MAX_DIGITS = 400  # maximum length of a token that is compared as a number; longer tokens must be equal
MIN_VALUE_BYTES = 1 << 16
VALUE_FACTOR = 8  # 0.49999999999999994 matches an expected 0.5


def same_output(printed: str, expected: str, tolerance: float = TOLERANCE) -> bool:
    r"""Return whether the printed output matches the expected output.

    >>> same_output("1  2 \n\n3.14159265\n", "1 2\n3.141593"), same_output("1 2", "1\n2")
    (True, False)
    """
    return printed == expected or all(
        line is not None and other is not None and _same_line(line, other, tolerance)
        for line, other in zip_longest(_lines(printed), _lines(expected))
    )


def value_bytes(expected: Any) -> int:
    """Return a number of bytes that JSON text of a value cannot exceed if the value matches the expected one.

    The number is a power of two and at least MIN_VALUE_BYTES, because the program may learn it.

    >>> value_bytes(1), value_bytes("x" * 10_000)
    (65536, 131072)
    """
    longest = VALUE_FACTOR * len(dumps(expected))
    return max(MIN_VALUE_BYTES, 1 << (longest - 1).bit_length())


def same_value(returned: str | None, expected: Any, tolerance: float = TOLERANCE) -> bool:
    """Return whether a return value matches the expected value.

    Args:
        returned: the return value as JSON text. None, invalid JSON and text longer than value_bytes(expected) do not
            match any value.
        expected: the expected value as plain data; see gem._internal.json_codec for integers of over 4,300 digits.
        tolerance: tolerance for expected floats: absolute, or relative if the float is above 1 in absolute value.

    >>> same_value("[1, 2.0000001]", [1, 2.0]), same_value("1.0", 1), same_value("true", 1)
    (True, False, False)
    """
    if returned is None or (len(returned) > MIN_VALUE_BYTES and len(returned) > value_bytes(expected)):
        return False
    try:
        value = loads(returned, "a return value", long_integers=True)
    except ValueError:
        return False
    return _same(value, expected, tolerance)


def is_value(returned: str | None) -> bool:
    """Return whether a return value is JSON text. Some sandboxes return what a program wrote without decoding it."""
    if returned is None:
        return False
    try:
        loads(returned, "a return value", long_integers=True)
    except ValueError:
        return False
    return True


def _lines(text: str) -> Iterator[str]:
    """Return the lines that are not blank."""
    return filter(str.strip, text.split("\n"))


def _same_line(line: str, expected: str, tolerance: float) -> bool:
    others = expected.split()
    tokens = line.split(None, len(others))  # at most one more than expected
    return len(tokens) == len(others) and all(map(_same_token, tokens, others, repeat(tolerance)))


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
    if isinstance(value, Decimal):  # an int of over 4,300 digits
        return isinstance(expected, (int, Decimal)) and value == expected
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
