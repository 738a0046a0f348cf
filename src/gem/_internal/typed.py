"""Check values from files, command lines and callers against type annotations."""

from __future__ import annotations

import math
import os
import re
import types
import typing
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from functools import cache
from numbers import Integral
from types import NoneType
from typing import Annotated, Any, Literal, TypeAlias, get_args, get_origin

import msgspec
from msgspec import Meta

from gem.errors import BadValue, UnknownArgument, did_you_mean

Count: TypeAlias = Annotated[int, Meta(ge=1)]
Natural: TypeAlias = Annotated[int, Meta(ge=0)]
Positive: TypeAlias = Annotated[float, Meta(gt=0)]
Weight: TypeAlias = Annotated[float, Meta(ge=0)]
Share: TypeAlias = Annotated[float, Meta(ge=0, le=1)]

_WORDS = {"null": "none", "object": "dict", "array": "list"}  # of JSON, and what they are called here
_SIGNS = {">=": "at least", ">": "greater than", "<=": "at most", "<": "less than"}


def converted(name: str, value: Any, hint: Any, *, from_text: bool = False) -> Any:
    """Return a value as a type annotation has it: an int as a float, a path as text.

    Args:
        name: of the value, for messages.
        hint: the annotation. Annotated gives the range, as in Count.
        from_text: whether "none" stands for None where it is allowed, as in files and on the command line.

    Raises:
        BadValue: the value has another type, is out of range or not finite.
    """
    words = choices(hint)
    if from_text and isinstance(value, str) and value == "none" and allows_none(hint) and "none" not in words:
        return None
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    elif not isinstance(value, int) and isinstance(value, Integral):
        value = int(value)  # numpy has integers of its own
    if isinstance(value, float) and not math.isfinite(value):
        raise BadValue(f"{name} must be finite, got {value}")
    try:
        return msgspec.convert(value, hint)
    except TypeError as e:  # msgspec does not know the type
        raise BadValue(f"{name} has the type {hint}, which cannot be read from text or JSON") from e
    except msgspec.ValidationError as e:
        if words and isinstance(value, str):
            allowed = ", ".join(map(str, words))
            raise BadValue(f"{name} must be one of {allowed}, got {value!r}{did_you_mean(value, words)}") from e
        if " - at `$" in str(e):
            name = f"a value of {name}"
        expected = re.sub(r"`|, got `.*| - at .*", "", str(e)).removeprefix("Expected ")
        kind, *limit = re.split(r" (?=[<>])", expected)
        if limit:
            sign, number = limit[0].split()
            raise BadValue(f"{name} must be {_SIGNS[sign]} {float(number):g}, got {value!r}") from e
        kind = " or ".join(_WORDS.get(word, word) for word in kind.split(" | "))
        raise BadValue(f"{name} must be of type {kind}, got {value!r}") from e


def check_fields(record: Any, leave: Sequence[str] = ()) -> None:
    """Convert the fields of a dataclass, which may be frozen, in its __post_init__.

    Args:
        leave: names of fields that are not checked.

    Raises:
        BadValue: see converted().
    """
    cls: Any = type(record)
    hints = field_hints(cls)
    for name in (field.name for field in fields(record)):
        if name not in leave:
            object.__setattr__(record, name, converted(name, getattr(record, name), hints[name]))  # it may be frozen


@cache
def field_hints(cls: Any) -> dict[str, Any]:
    """Return the annotation of each field of a class, with its range."""
    return typing.get_type_hints(cls, include_extras=True)


def allows_none(hint: Any) -> bool:
    """Return whether None is one of the values of an annotation."""
    return hint in (None, NoneType, Any) or any(allows_none(member) for member in _members(hint))


def choices(hint: Any) -> tuple[Any, ...]:
    """Return the values of the Literal in an annotation; none without one."""
    if get_origin(hint) is Literal:
        return get_args(hint)
    return tuple(value for member in _members(hint) for value in choices(member))


def _members(hint: Any) -> tuple[Any, ...]:
    """Return the parts of a union, and the type of an Annotated."""
    if get_origin(hint) is Annotated:
        return (get_args(hint)[0],)
    return get_args(hint) if get_origin(hint) in (typing.Union, types.UnionType) else ()


def check_keys(where: str, data: Mapping[str, Any], known: Iterable[str]) -> None:
    """Raise UnknownArgument for the first key that is not known."""
    known = list(known)
    for key in data:
        if not isinstance(key, str):
            raise BadValue(f"{where}: keys are text, got {key!r}")
        if key not in known:
            raise UnknownArgument(f"{where}: unknown key {key!r}{did_you_mean(key, known)}  (keys: {', '.join(known)})")
