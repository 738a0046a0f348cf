"""What is to be checked: an id, a spec, a class, an instance or a factory, brought to one form."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

from gem.core import Env, EnvWrapper, construct
from gem.errors import BadValue
from gem.registry import ENV_REGISTRY, EnvSpec, make


@dataclass(frozen=True)
class Subject:
    """An environment that can be built any number of times.

    Args:
        code: the expression that builds it, for reproductions.
        setup: the import lines which that expression needs.
        build: builds a new one.
        spec: what is declared of it; None where it was not made from a spec.
        entry: "module:name" of what is called to build it, None where no other process could import that.
        args, kwargs: what it is called with.
        wrapped: it is an EnvWrapper around the environment that the spec describes.
    """

    code: str
    setup: list[str]
    build: Callable[[], Any]
    spec: EnvSpec | None = None
    entry: str | None = None
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    wrapped: bool = False

    @property
    def name(self) -> str:
        return self.spec.id if self.spec is not None and not self.wrapped else self.code


def subject_of(env: Any) -> Subject:
    """Bring what check_env was given to one form.

    Raises UnknownEnv for an id that is none, BadValue for a class that needs arguments and for anything else.
    """
    if isinstance(env, str):
        return _from_spec(ENV_REGISTRY[env])
    if isinstance(env, EnvSpec):
        return _from_spec(env)
    if isinstance(env, Env):
        return _from_instance(env)
    if isinstance(env, type) and issubclass(env, Env):
        _needs_no_arguments(env)
        return _from_callable(env)
    if callable(env) and not isinstance(env, type):
        return _from_callable(env)
    raise BadValue(f"check_env takes an id, an EnvSpec, an Env, a class of Env or a factory of one, got {env!r:.80}")


def importable(target: Any) -> str | None:
    """By what "module:name" another process finds a class or function; None where it finds none."""
    module, name = getattr(target, "__module__", None), getattr(target, "__qualname__", "<none>")
    if module in (None, "__main__") or "<" in name:
        return None
    try:
        found: Any = importlib.import_module(cast(str, module))
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError):
        return None
    return f"{module}:{name}" if found is target else None


def _from_spec(spec: EnvSpec) -> Subject:
    entry = spec.entry_point if isinstance(spec.entry_point, str) else importable(spec.entry_point)
    if spec.id in ENV_REGISTRY and ENV_REGISTRY[spec.id] is spec:
        return Subject(f"gem.make({spec.id!r})", ["import gem"], partial(make, spec.id), spec, entry, (), spec.kwargs)

    def build() -> Any:
        return construct(spec.load(), (), dict(spec.kwargs), {})

    name = entry.rpartition(":")[2] if entry is not None else getattr(spec.entry_point, "__name__", "factory")
    return Subject(_call(name, (), spec.kwargs), _imports(entry), build, spec, entry, (), spec.kwargs)


def _from_callable(build: Callable[[], Any]) -> Subject:
    entry = importable(build)
    return Subject(f"{getattr(build, '__name__', 'factory')}()", _imports(entry), build, entry=entry)


def _from_instance(env: Env) -> Subject:
    args, kwargs = env._arguments
    spec = None if env.env_id is None else ENV_REGISTRY.get(env.env_id)
    setup = sorted({line for part in _layers(env) for line in _imports(importable(type(part)))})
    wrapped = isinstance(env, EnvWrapper)
    return Subject(_code(env), setup, env.spawn, spec, importable(type(env)), args, kwargs, wrapped)


def _needs_no_arguments(cls: type[Env]) -> None:
    try:
        inspect.signature(cls).bind()
    except TypeError as e:
        raise BadValue(
            f"{cls.__name__}() cannot be built: {e}; pass an instance, as check_env({cls.__name__}(…))"
        ) from e


def _layers(env: Any) -> list[Any]:
    return [env, *_layers(env.env)] if isinstance(env, EnvWrapper) else [env]


def _code(env: Env) -> str:
    return _call(type(env).__name__, *env._arguments)


def _call(name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
    said = [_value(value) for value in args] + [f"{key}={_value(value)}" for key, value in kwargs.items()]
    return f"{name}({', '.join(said)})"


def _value(value: Any) -> str:
    return _code(value) if isinstance(value, Env) else repr(value)


def _imports(entry: str | None) -> list[str]:
    if entry is None:
        return []
    module, _, name = entry.partition(":")
    return [f"from {module} import {name.partition('.')[0]}"]
