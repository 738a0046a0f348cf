"""Call the constructors of environments: arguments by name, checked, and without those that have no effect."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any

from gem._internal.annotations import check_types
from gem._internal.text import short_repr
from gem.errors import BadValue, CompatibilityWarning, UnknownArgument, did_you_mean
from gem.seeding import check_seed


def construct(entry: Any, args: tuple[Any, ...], kwargs: dict[str, Any], overrides: dict[str, Any]) -> Any:
    """Call an environment's class or factory with arguments, some of them overridden by name.

    ``seed`` is always a valid override. It is passed to the constructor or, if the constructor has no such parameter,
    to the first reset.

    Raises:
        UnknownArgument: for any other override that the entry does not accept; the message names the closest one.
        BadValue: for a value whose type is not that of the parameter's annotation, and for a missing argument.
    """
    overrides = _without_ignored(entry, overrides, stacklevel=5)  # the caller of make()
    signature = inspect.signature(entry)
    parameters = signature.parameters
    takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    first_seed = overrides.get("seed") if "seed" not in parameters else None
    wanted = {k: v for k, v in overrides.items() if k != "seed" or "seed" in parameters}
    for name in wanted:
        if name not in parameters and not takes_any:
            raise UnknownArgument(
                f"{getattr(entry, '__name__', entry)} takes no {name!r}{did_you_mean(name, parameters)}  "
                f"(it takes: {', '.join(parameters) or 'nothing'})"
            )
    merged = {**kwargs, **wanted}
    try:
        signature.bind(*args, **merged)
    except TypeError as e:
        raise BadValue(f"{getattr(entry, '__name__', entry)}: {e}  (it takes: {', '.join(parameters)})") from None
    check_types(entry, {name: value for name, value in merged.items() if name != "seed"})
    env = entry(*args, **merged)
    if first_seed is not None:
        env.unwrapped._first_seed = check_seed(first_seed)
    return env


def dropping_ignored(cls: type, init: Callable[..., None]) -> Callable[..., None]:
    """Wrap the constructor of a class so that it accepts the ignored_kwargs of the class."""

    @wraps(init)
    def construct_without_ignored(self: Any, *args: Any, **kwargs: Any) -> None:
        init(self, *args, **_without_ignored(cls, kwargs, stacklevel=4))

    return construct_without_ignored


def _without_ignored(entry: Any, kwargs: dict[str, Any], stacklevel: int) -> dict[str, Any]:
    """Return keyword arguments without those that have no effect on a class, after one warning per process."""
    ignored = getattr(entry, "ignored_kwargs", {})
    if (name := next((name for name in kwargs if name in ignored), None)) is not None:
        warn_without_effect(f"{entry.__name__}: {name}={kwargs[name]!r}", ignored[name], stacklevel)
    return {name: value for name, value in kwargs.items() if name not in ignored}


def warn_without_effect(argument: str, reason: str, stacklevel: int = 3) -> None:
    """Issue a CompatibilityWarning for an argument of the published package, once per process."""
    global _warned
    if not _warned:
        import warnings  # imported late: `import gem` stays light

        _warned = True
        text = f"{argument} has no effect: {reason}  (see docs/compatibility.md)"
        warnings.warn(text, CompatibilityWarning, stacklevel=stacklevel)


_warned = False  # whether a CompatibilityWarning was issued in this process


def by_name(entry: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return (args, kwargs) of the same call with all arguments passed by name.

    If the call fills ``*args``, args and kwargs are returned unchanged.
    """
    bound = inspect.signature(entry).bind(*args, **kwargs)
    named: dict[str, Any] = {}
    for name, value in bound.arguments.items():
        kind = bound.signature.parameters[name].kind
        if kind is inspect.Parameter.VAR_POSITIONAL:
            return args, kwargs  # the names before *args must stay positional
        if kind is inspect.Parameter.VAR_KEYWORD:
            named.update(value)
        else:
            named[name] = value
    return (), named


class InitSignature:
    """The signature of a class whose ``__new__`` accepts anything: that of its ``__init__``, without self."""

    def __get__(self, env: object, cls: type) -> inspect.Signature:
        signature = inspect.signature(cls.__init__)  # type: ignore[misc]
        return signature.replace(parameters=list(signature.parameters.values())[1:])


def rejecting_unknown_arguments(reset: Callable[..., Any]) -> Callable[..., Any]:
    """Return reset() with an error that says where the settings of an environment go, such as Gymnasium's options."""
    parameters = dict(list(inspect.signature(reset).parameters.items())[1:])
    if any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        return reset

    @wraps(reset)
    def checked(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return reset(self, *args, **kwargs)
        except TypeError:
            if (name := next((name for name in kwargs if name not in parameters), None)) is None:
                raise
            raise UnknownArgument(
                f"{type(self).__name__}.reset() takes no {name!r}, got {short_repr(kwargs[name])}; it takes: "
                f"{', '.join(parameters)}. Settings of an environment are arguments of gem.make"
            ) from None

    return checked
