"""Check the types of arguments against the annotations of a function.

Only plain types are checked: bool, int, float, str, None, Literal, and lists and unions of them. Numpy numbers count as
numbers. An argument with any other annotation, or equal to its default, is accepted.
"""

from __future__ import annotations

import collections.abc
import inspect
import types
import typing
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Literal, NamedTuple, get_args, get_origin

from gem._internal.text import short_repr
from gem.errors import BadValue, did_you_mean

_NAMES = {bool: "True or False", int: "an integer", float: "a number", str: "a str", types.NoneType: "None"}
_SEQUENCES = (list, tuple, collections.abc.Sequence)


def check_types(entry: Callable[..., Any], arguments: Mapping[str, Any]) -> None:
    """Raise BadValue for the first argument of a class or function whose type does not match its annotation."""
    function: Any = getattr(entry, "__init__") if isinstance(entry, type) else entry  # noqa: B009  mypy refuses .__init__
    parameters = _checked_parameters(function) if inspect.isfunction(function) else {}
    for name, value in arguments.items():
        if (parameter := parameters.get(name)) is None or value is parameter.default or _matches(value, parameter.hint):
            continue
        near = did_you_mean(value, _words(parameter.hint)) if isinstance(value, str) else ""
        raise BadValue(f"{name} must be {parameter.expected}, got {short_repr(value)}{near}")


def check_arguments(cls: type, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    """Raise BadValue for the first argument of a call of a class whose type does not match its annotation."""
    parameters = list(inspect.signature(getattr(cls, "__init__")).parameters)[1:] if args else []  # noqa: B009  as above
    check_types(cls, {**dict(zip(parameters, args, strict=False)), **kwargs})


class _Parameter(NamedTuple):
    hint: Any
    default: Any
    expected: str


@lru_cache(maxsize=512)
def _checked_parameters(function: Callable[..., Any]) -> dict[str, _Parameter]:
    """Return the parameters with plain types; none if an annotation cannot be evaluated at run time."""
    try:
        hints = typing.get_type_hints(function)
    except Exception:  # an annotation may be any text
        return {}
    checked = {}
    for name, parameter in inspect.signature(function).parameters.items():
        variadic = parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL)
        if name in hints and not variadic and (expected := _describe(hints[name])) is not None:
            checked[name] = _Parameter(hints[name], parameter.default, expected)
    return checked


def _members(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) in (typing.Union, types.UnionType) else (hint,)


def _words(hint: Any) -> list[str]:
    choices = [choice for kind in _members(hint) if get_origin(kind) is Literal for choice in get_args(kind)]
    return [choice for choice in choices if isinstance(choice, str)]


def _describe(hint: Any) -> str | None:
    """Return the annotation in words, such as "an integer or None"; None if it contains a type that is not checked."""
    words = []
    for kind in _members(hint):
        if get_origin(kind) is Literal:
            words.append(("one of " if len(get_args(kind)) > 1 else "") + ", ".join(map(repr, get_args(kind))))
        elif get_origin(kind) in _SEQUENCES and (item := _describe(_item(kind))) is not None:
            words.append(f"a list whose items are each {item}")
        elif kind in _NAMES:
            words.append(_NAMES[kind])
        else:
            return None
    return " or ".join(words)


def _item(sequence: Any) -> Any:
    """Return the type of the items of a list, a sequence or a tuple; Any if a tuple has items of several types."""
    items = set(get_args(sequence)) - {...}
    return items.pop() if len(items) == 1 else Any


def _matches(value: Any, hint: Any) -> bool:
    return any(_is_a(value, kind) for kind in _members(hint))


def _is_a(value: Any, kind: Any) -> bool:
    if hasattr(value, "tolist"):  # a numpy scalar or array
        value = value.tolist()
    if get_origin(kind) is Literal:
        return any(type(value) is type(choice) and value == choice for choice in get_args(kind))
    if get_origin(kind) in _SEQUENCES:
        is_list = isinstance(value, collections.abc.Sequence) and not isinstance(value, (str, bytes))
        return is_list and all(_matches(item, _item(kind)) for item in value)
    if kind is bool:
        return isinstance(value, int) and value in (0, 1)
    if kind in (int, float):
        return isinstance(value, (int, kind)) and not isinstance(value, bool)
    return isinstance(value, kind)
