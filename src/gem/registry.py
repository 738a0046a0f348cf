"""Environments by name: what is registered, and making one.

An id is any string; the built-in ones read ``family:Name-v0-variant``. Built-ins are rows of data in
``gem.envs.catalog``; other packages add theirs with ``register`` or with an entry point in the group ``gem.envs``
that names a function to call (it registers) or a module to import.
"""

from __future__ import annotations

import fnmatch
import inspect
import logging
import threading
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Any, Literal

from gem._internal import imports
from gem.core import EndOnTruncation, Env, construct
from gem.errors import BadValue, DuplicateEnv, MissingDependency, UnknownEnv, did_you_mean, require

_CATALOG = "gem.envs.catalog"  # the one module of the rows below that is reached by name
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class EnvSpec:
    """What is known of an environment without importing it.

    Args:
        id: its name in make().
        entry_point: "module:Class" or a callable that returns an Env.
        kwargs: its arguments; make() may override each.
        extra: the extra of gem-llm that it needs, None for core.
        runs: where a vector env should step it: "inline" (microseconds), "thread" (waits), "process" (burns CPU).
        reward_range: least and greatest sum of rewards over an episode.
        oracle: "module:function" of a policy that plays it perfectly, None where none is known.
        oracle_sees: whether the oracle reads what the agent sees, or the state.
        floors: policy name → the mean episode reward that it must not exceed, e.g. {"constant": 0.25}. ``gem check``
            plays silent, echo, repeat-last, constant and injection.
        description: one line.
    """

    id: str
    entry_point: str | Callable[..., Any]
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    extra: str | None = None
    runs: Literal["inline", "thread", "process"] = "inline"
    reward_range: tuple[float, float] = (float("-inf"), float("inf"))
    oracle: str | None = None
    oracle_sees: Literal["observation", "state"] | None = None
    floors: Mapping[str, float] = field(default_factory=dict)
    description: str = ""

    def load(self) -> Callable[..., Any]:
        """The class or factory behind the entry point. Raises MissingDependency, BadValue."""
        if self.extra is not None and isinstance(self.entry_point, str):
            require(self.entry_point.partition(":")[0], extra=self.extra)
        return self.entry_point if callable(self.entry_point) else resolve(self.entry_point)


class _Registry(MutableMapping[str, EnvSpec]):
    """id → EnvSpec. Reading it loads the catalogue; what is missing there is looked for among the plug-ins, once."""

    def __init__(self) -> None:
        self._specs: dict[str, EnvSpec] = {}
        self._catalog_loaded = self._plugins_loaded = False
        self._loading = threading.RLock()  # a plug-in registers while it is held, other threads wait

    def add(self, spec: EnvSpec) -> None:
        """Add a spec. Raises DuplicateEnv when its id is taken. Loads no plug-in: it may be one that is calling."""
        self._load_catalog()
        if spec.id in self._specs:
            raise DuplicateEnv(f"env {spec.id!r} is registered already, as {self._specs[spec.id].entry_point!r}")
        self._specs[spec.id] = spec

    def __getitem__(self, env_id: str) -> EnvSpec:
        if env_id not in self:
            known = len(self)
            raise UnknownEnv(f"no env {env_id!r}{did_you_mean(str(env_id), self)}  (`gem list` shows all {known})")
        return self._specs[env_id]

    def __setitem__(self, env_id: str, spec: EnvSpec) -> None:
        self._specs[env_id] = spec

    def __delitem__(self, env_id: str) -> None:
        self._load_catalog()
        del self._specs[env_id]

    def __contains__(self, env_id: object) -> bool:
        self._load_catalog()
        if env_id not in self._specs:
            self._load_plugins()
        return env_id in self._specs

    def __iter__(self) -> Iterator[str]:
        self._load_plugins()
        return iter(list(self._specs))

    def __len__(self) -> int:
        self._load_plugins()
        return len(self._specs)

    def _load_catalog(self) -> None:
        if not self._catalog_loaded:
            for spec in imports.resolve(_CATALOG).SPECS:
                self._specs.setdefault(spec.id, spec)
            self._catalog_loaded = True

    def _load_plugins(self) -> None:
        self._load_catalog()
        with self._loading:
            if not self._plugins_loaded:
                self._plugins_loaded = True
                self._call_plugins()

    def _call_plugins(self) -> None:
        from importlib.metadata import entry_points  # 20 ms that make() of a built-in does not pay

        for plugin in entry_points(group="gem.envs"):
            try:
                loaded = plugin.load()
                if callable(loaded):
                    loaded()
            except Exception:  # somebody else's package: it must not take the others down, nor fail in silence
                _log.warning("plug-in %s of the group gem.envs failed to register", plugin.value, exc_info=True)


ENV_REGISTRY = _Registry()


def register(env_id: str | EnvSpec, entry_point: str | Callable[..., Any] | None = None, **kwargs: Any) -> None:
    """Add an environment.

    Args:
        env_id: any string; or a whole EnvSpec, and nothing else.
        entry_point: "module:Class" or a callable that returns an Env; imported when first made.
        kwargs: arguments of the constructor.

    Raises DuplicateEnv when the id is taken, BadValue when the entry point is none.
    """
    if isinstance(env_id, EnvSpec):
        if entry_point is not None or kwargs:
            raise BadValue(f"register(EnvSpec(...)) takes nothing else, got {entry_point!r} and {kwargs!r}")
        spec = env_id
    else:
        if not callable(entry_point) and not (isinstance(entry_point, str) and ":" in entry_point):
            raise BadValue(f"entry_point of {env_id!r} must be 'module:Class' or a callable, got {entry_point!r}")
        spec = EnvSpec(env_id, entry_point, kwargs)
    ENV_REGISTRY.add(spec)


def make(env_id: str | EnvSpec, *, end_on_truncation: bool = False, **kwargs: Any) -> Env:
    """Build an environment.

    Args:
        env_id: a registered id; or a spec, registered or not.
        end_on_truncation: also set terminated wherever truncated is set, for callers that look at that alone.
        kwargs: constructor arguments, over those of the spec. ``seed`` works for every env: where the constructor has
            none, the first reset() uses it.

    Raises UnknownEnv, UnknownArgument (both with the closest name), MissingDependency.
    """
    spec = env_id if isinstance(env_id, EnvSpec) else ENV_REGISTRY[env_id]
    env = construct(spec.load(), (), dict(spec.kwargs), kwargs)
    env.env_id, env.entry_point = spec.id, spec.entry_point
    return EndOnTruncation(env) if end_on_truncation else env


def list_envs(pattern: str = "*") -> list[EnvSpec]:
    """The registered specs whose id matches a shell pattern (``game:*``) or starts with it, sorted by id."""
    return [ENV_REGISTRY[i] for i in sorted(ENV_REGISTRY) if fnmatch.fnmatchcase(i, pattern) or i.startswith(pattern)]


def print_envs() -> None:
    """Print every registered id with its description."""
    for spec in list_envs():
        print(f"{spec.id:<44} {spec.description}")


def resolve(name: str) -> Any:
    """The object that "module:attribute" names. Raises BadValue with the reason when there is none."""
    try:
        return imports.resolve(name)
    except MissingDependency:
        raise
    except (ImportError, AttributeError, ValueError) as e:
        raise BadValue(f"entry point {name!r} cannot be loaded: {e}") from e


def describe_parameters(spec: EnvSpec) -> dict[str, Any]:
    """The constructor's parameters and the value that make(spec.id) gives each, for listings."""
    parameters = inspect.signature(spec.load()).parameters.values()
    defaults = {p.name: p.default for p in parameters if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)}
    return {**defaults, **spec.kwargs}
