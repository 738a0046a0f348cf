"""The choice of an advantage or a loss: a built-in function, or one of your own, with its options."""

from __future__ import annotations

import inspect
import json
import re
import sys
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from types import SimpleNamespace
from typing import Any, Literal, TypeVar, get_args

from gem._internal.imports import resolve, resolve_given
from gem._internal.typed import converted
from gem.errors import BadValue, UnknownArgument, did_you_mean

Need = Literal["groups", "states", "values", "branches", "seats"]
FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])


def needs(*what: Need) -> Callable[[FunctionT], FunctionT]:
    """Declare what an advantage function needs besides rewards; the training loop then provides it.

    - "groups": several episodes that start from the same state, which have the same ``group``.
    - "states": ``states_K`` with the environment's own keys of equal states, instead of the observations.
    - "values": ``values_K`` and ``final_value`` of a critic, which is trained as well.
    - "branches": continuations of episodes from their states, which have a ``start``.
    - "seats": self-play, and the ``baseline`` of the seat.
    """
    for word in what:
        if word not in get_args(Need):
            known = ", ".join(get_args(Need))
            raise BadValue(f"needs() takes {known}, got {word!r}{did_you_mean(str(word), get_args(Need))}")

    def mark(function: FunctionT) -> FunctionT:
        function.needs = frozenset(what)  # type: ignore[attr-defined]
        return function

    return mark


@dataclass(frozen=True)
class Choice:
    """A function and the options that were set.

    Args:
        name: that of a built-in function, or "module:function".
        options: keyword arguments; the others have the defaults of the function.
    """

    name: str
    function: Callable[..., Any]
    options: Mapping[str, Any]

    def __call__(self, *args: Any) -> Any:
        """Call the function with the options."""
        return self.function(*args, **self.options)

    @property
    def needs(self) -> frozenset[Need]:
        """What the function declared that it needs."""
        return getattr(self.function, "needs", frozenset())

    def takes(self, option: str) -> bool:
        """Return whether the function has an option of this name."""
        return option in options_of(self.function)

    def value(self, option: str, default: Any = None) -> Any:
        """Return the value of an option: as set, that of the function, or ``default`` if it has no such option."""
        return self.options.get(option, options_of(self.function).get(option, default))

    def saved(self) -> dict[str, Any]:
        """Return all options as a run stores them, so that it goes on with the same if a default changes."""
        defaults = {name: value for name, value in options_of(self.function).items() if _is_json(value)}
        return {**defaults, **self.options}


def choose(
    what: str, given: str | Callable[..., Any], builtin: Mapping[str, Callable[..., Any]], options: Mapping[str, Any]
) -> Choice:
    """Return the function that ``given`` names, with its options.

    Args:
        what: "advantage" or "loss", for messages.
        given: a name of ``builtin``, "module:function", or a function.
        options: keyword arguments of the function.

    Raises:
        BadValue: there is no such function, another process could not find it by its name, or an option has a wrong
            value.
        UnknownArgument: the function has no such option.
    """
    if not isinstance(given, str) and not callable(given):
        raise BadValue(f"{what} must be a function or the name of one, got {given!r}")
    name = given if isinstance(given, str) else name_of(what, given, builtin)
    function = builtin.get(name) or _import(what, name, builtin)
    name = next((short for short, known in builtin.items() if known is function), name)
    chosen = Choice(name, function, checked_options(f"{what}_options of {name!r}", function, options))
    later = {"gamma": 1.0} if chosen.takes("gamma") else {}
    try:
        inspect.signature(function).bind(None, **chosen.options, **later)
    except TypeError as e:
        raise BadValue(
            f"{what}={name!r} is called with one argument, and its options after a * in the signature: {e}"
        ) from e
    return chosen


def name_of(what: str, function: Callable[..., Any], builtin: Mapping[str, Callable[..., Any]]) -> str:
    """Return the name by which a run that is resumed finds a function. Raises BadValue if there is none."""
    for name, known in builtin.items():
        if known is function:
            return name
    path = f"{getattr(function, '__module__', '')}:{getattr(function, '__qualname__', '')}"
    try:
        found = resolve(path)
    except (ImportError, AttributeError, ValueError):
        found = None
    if found is not function:
        raise BadValue(
            f"{what} must be a function at the top level of a module, so that a resumed run finds it, got {function!r}"
        )
    return path


@cache
def options_of(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the options of a function, its keyword-only parameters, with their defaults.

    Raises:
        BadValue: Python cannot tell its parameters, as of some functions that are written in C.
    """
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError) as e:
        raise BadValue(f"{function!r} cannot be an advantage or a loss: {e}") from e
    return {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}


def checked_options(what: str, function: Callable[..., Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return options as the function annotates them; "none" stands for None where it is allowed.

    Args:
        what: name of the options, for messages.

    Raises:
        UnknownArgument: the function has no such option.
        BadValue: a value of the wrong type or out of range.
    """
    known = options_of(function)
    for name in given:
        if name not in known:
            listed = f"options: {', '.join(known)}" if known else "it has none, which follow a * in its signature"
            raise UnknownArgument(f"{what} cannot have {name!r}{did_you_mean(name, known)}  ({listed})")
    options = {
        name: converted(f"{what}: {name}", value, _hint(function, name), from_text=True)
        for name, value in given.items()
    }
    if not _is_json(options):
        raise BadValue(f"{what} must be values that JSON has, because a run stores them, got {options!r}")
    return options


def _is_json(value: Any) -> bool:
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        return False
    return True


def _hint(function: Callable[..., Any], option: str) -> Any:
    """Return the annotation of an option; Any without one, or if it cannot be evaluated at run time."""
    annotation = inspect.signature(function).parameters[option].annotation
    if annotation is inspect.Parameter.empty:
        return Any
    holder = SimpleNamespace(__annotations__={option: annotation})
    try:
        return typing.get_type_hints(holder, vars(sys.modules[function.__module__]), include_extras=True)[option]
    except (NameError, AttributeError, SyntaxError, TypeError):  # such as a name that only type checkers import
        return Any


def _import(what: str, name: str, builtin: Mapping[str, Callable[..., Any]]) -> Callable[..., Any]:
    if not re.fullmatch(r"\w+(\.\w+)*:\w+", name):
        known = ", ".join(builtin)
        raise BadValue(f"{what} must be one of {known}, or module:function, got {name!r}{did_you_mean(name, builtin)}")
    try:
        function = resolve_given(name)
    except (Exception, SystemExit) as e:  # the module may do anything
        where = (
            "it was defined in a script or a notebook; move it to a module"
            if name.startswith("__main__:")
            else "its folder must be the current one or on PYTHONPATH"
        )
        raise BadValue(f"cannot import {what}={name!r}: {type(e).__name__}: {e}  ({where})") from e
    if not callable(function):
        raise BadValue(f"{what}={name!r} is not a function, got {function!r}")
    return function  # type: ignore[no-any-return]
