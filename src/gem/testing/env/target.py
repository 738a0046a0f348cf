"""An environment to check: how to build it, and the expression that builds it in a script."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial, reduce
from typing import Any, cast

from gem._internal import imports
from gem._internal.construction import construct
from gem.core import Env, EnvWrapper
from gem.errors import BadValue
from gem.registry import ENV_REGISTRY, EnvSpec, make


@dataclass(frozen=True)
class EnvTarget:
    """An environment that can be built any number of times.

    Args:
        code: the expression that builds the environment, for scripts that reproduce a failure.
        setup: the import lines that the expression needs.
        build: builds a new instance.
        spec: the spec that was given or is registered; None if there is no spec.
        entry: "module:name" of the constructor; None if another process cannot import the constructor.
        args, kwargs: arguments of the constructor.
        wrapped: whether the target is an EnvWrapper around the environment that the spec describes.
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

    @property
    def has_oracle(self) -> bool:
        """Whether the spec names an oracle that can play this target.

        An oracle that reads observations cannot play a wrapper, because wrappers may change observations.
        """
        if self.spec is None or self.spec.oracle is None:
            return False
        return self.spec.oracle_sees == "state" or not self.wrapped


def env_target(env: Any) -> EnvTarget:
    """Build the EnvTarget for an id, a spec, an environment, a class or a factory function.

    Raises:
        UnknownEnv: no environment has this id.
        BadValue: the class requires arguments, or the value has an unsupported type.
    """
    if isinstance(env, str):
        return _target_from_spec(ENV_REGISTRY[env])
    if isinstance(env, EnvSpec):
        return _target_from_spec(env)
    if isinstance(env, Env):
        return _target_from_instance(env)
    if isinstance(env, type) and issubclass(env, Env):
        _require_no_arguments(env)
        return _target_from_callable(env)
    if callable(env) and not isinstance(env, type):
        return _target_from_callable(env)
    raise BadValue(f"expected an id, an EnvSpec, an Env, an Env class or a factory of one, got {env!r:.80}")


def import_path(target: Any) -> str | None:
    """Return the "module:name" of a class or function, or None if another process cannot import it by name."""
    module, name = getattr(target, "__module__", None), getattr(target, "__qualname__", "<none>")
    if module in (None, "__main__") or "<" in name:
        return None
    try:
        found = reduce(getattr, name.split("."), imports.resolve(cast(str, module)))
    except (ImportError, AttributeError):
        return None
    return f"{module}:{name}" if found is target else None


def literal(text: str) -> str:
    """Return a Python expression for the text. Repetitions in a text of more than 200 characters become products.

    >>> literal("ab"), literal("{" * 500 + "1")
    ("'ab'", "'{' * 500 + '1'")
    """
    if len(text) <= 200:
        return repr(text)
    parts, end = [], 0
    for run in re.finditer(r"(.{1,8}?)\1{19,}", text, re.DOTALL):
        parts += [repr(text[end : run.start()])] if run.start() > end else []
        parts.append(f"{run[1]!r} * {len(run[0]) // len(run[1])}")
        end = run.end()
    return " + ".join(parts + ([repr(text[end:])] if end < len(text) else []))


def _target_from_spec(spec: EnvSpec) -> EnvTarget:
    entry = spec.entry_point if isinstance(spec.entry_point, str) else import_path(spec.entry_point)
    if spec.id in ENV_REGISTRY and ENV_REGISTRY[spec.id] is spec:
        return EnvTarget(f"gem.make({spec.id!r})", ["import gem"], partial(make, spec.id), spec, entry, (), spec.kwargs)

    def build() -> Any:
        return construct(spec.load(), (), dict(spec.kwargs), {})

    name = entry.rpartition(":")[2] if entry is not None else getattr(spec.entry_point, "__name__", "factory")
    return EnvTarget(_call_code(name, (), spec.kwargs), _import_of(entry), build, spec, entry, (), spec.kwargs)


def _target_from_callable(build: Callable[[], Any]) -> EnvTarget:
    entry = import_path(build)
    return EnvTarget(f"{getattr(build, '__name__', 'factory')}()", _import_of(entry), build, entry=entry)


def _target_from_instance(env: Env) -> EnvTarget:
    args, kwargs = env._arguments
    spec = None if env.env_id is None else ENV_REGISTRY.get(env.env_id)
    setup = sorted({line for layer in layers(env) for line in _import_of(import_path(type(layer)))})
    wrapped = isinstance(env, EnvWrapper)
    return EnvTarget(_env_code(env), setup, env.spawn, spec, import_path(type(env)), args, kwargs, wrapped)


def _require_no_arguments(cls: type[Env]) -> None:
    try:
        inspect.signature(cls).bind()
    except TypeError as e:
        raise BadValue(f"cannot build {cls.__name__}(): {e}; pass an instance, as check_env({cls.__name__}(…))") from e


def layers(env: Any) -> list[Any]:
    """Return an environment and the environments that it wraps, from the outside in."""
    return [env, *layers(env.env)] if isinstance(env, EnvWrapper) else [env]


def _env_code(env: Env) -> str:
    return _call_code(type(env).__name__, *env._arguments)


def _call_code(name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
    values = [_value_code(value) for value in args] + [f"{key}={_value_code(value)}" for key, value in kwargs.items()]
    return f"{name}({', '.join(values)})"


def _value_code(value: Any) -> str:
    return _env_code(value) if isinstance(value, Env) else repr(value)


def _import_of(entry: str | None) -> list[str]:
    if entry is None:
        return []
    module, _, name = entry.partition(":")
    return [f"from {module} import {name.partition('.')[0]}"]
