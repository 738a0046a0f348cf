"""The registry of environments: specs by id, and ``make``.

An id is any string; the built-in ones have the form ``family:Name-v0-variant`` and are listed as data in
``gem.envs.catalog``. Other packages add environments with ``register``, or with an entry point in the group
``gem.envs`` that names a module to import or a function to call.
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

_CATALOG = "gem.envs.catalog"  # imported by name, because gem.envs is a layer above this module
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class EnvSpec:
    """A description of an environment that does not require importing it.

    Args:
        id: the name for make().
        entry_point: "module:Class" or a callable that returns an Env.
        kwargs: constructor arguments; make() can override each.
        extra: the extra (optional dependency group) that the environment needs; None if it needs none.
        runs: how a vector env should step it: "inline" (takes microseconds), "thread" (waits for I/O) or "process"
            (uses CPU time).
        reward_range: minimum and maximum sum of rewards over an episode.
        oracle: "module:name" of a class or function that takes the environment and returns a strong policy for it;
            None if there is none.
        oracle_sees: whether the oracle reads observations or the state.
        baseline_scores: maximum mean episode reward of policies that do not solve the task, by policy name, such as
            {"constant": 0.25}. ``gem check`` plays five: "silent" sends an empty reply, "echo" repeats the observation,
            "repeat-last" repeats a random first action, "constant" sends the best single action, and "injection"
            sends a prompt injection.
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
    baseline_scores: Mapping[str, float] = field(default_factory=dict)
    description: str = ""

    def load(self) -> Callable[..., Any]:
        """Import and return the class or factory of the entry point.

        Raises:
            MissingDependency: when the environment needs an extra that is not installed.
            BadValue: when the entry point cannot be loaded.
        """
        if self.extra is not None and isinstance(self.entry_point, str):
            require(self.entry_point.partition(":")[0], extra=self.extra)
        return self.entry_point if callable(self.entry_point) else resolve(self.entry_point)


class _Registry(MutableMapping[str, EnvSpec]):
    """A mapping from id to EnvSpec. The catalog is loaded on first use. Plug-ins are loaded when an unknown id is
    looked up or the ids are listed or counted.
    """

    def __init__(self) -> None:
        self._specs: dict[str, EnvSpec] = {}
        self._catalog_loaded = self._plugins_loaded = False
        self._loading = threading.RLock()  # reentrant, because plug-ins register environments while the lock is held

    def add(self, spec: EnvSpec) -> None:
        """Add a spec, without loading plug-ins, because a plug-in may be the caller. Raises DuplicateEnv."""
        self._load_catalog()
        if spec.id in self._specs:
            known = self._specs[spec.id].entry_point
            raise DuplicateEnv(f"env {spec.id!r} is already registered with entry point {known!r}")
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
        from importlib.metadata import entry_points  # takes 20 ms, so it is imported only when an id is not built in

        for plugin in entry_points(group="gem.envs"):
            try:
                loaded = plugin.load()
                if callable(loaded):
                    loaded()
            except Exception:  # a broken third-party plug-in must not prevent the others from loading
                _log.warning("gem.envs plug-in %s failed to register", plugin.value, exc_info=True)


# The registered specs by id. Looking up an unknown id raises UnknownEnv.
ENV_REGISTRY = _Registry()


def register(env_id: str | EnvSpec, entry_point: str | Callable[..., Any] | None = None, **kwargs: Any) -> None:
    """Register an environment.

    Args:
        env_id: any string; or an EnvSpec, with no other arguments.
        entry_point: "module:Class", imported when an environment is made, or a callable that returns an Env.
        kwargs: constructor arguments, which make() can override.

    Raises:
        DuplicateEnv: when the id is already registered.
        BadValue: when the entry point has neither form, or an EnvSpec is given with other arguments.
    """
    if isinstance(env_id, EnvSpec):
        if entry_point is not None or kwargs:
            raise BadValue(f"register(EnvSpec(...)) takes no other arguments, got {entry_point!r} and {kwargs!r}")
        spec = env_id
    else:
        if not callable(entry_point) and not (isinstance(entry_point, str) and ":" in entry_point):
            raise BadValue(f"entry_point of {env_id!r} must be 'module:Class' or a callable, got {entry_point!r}")
        spec = EnvSpec(env_id, entry_point, kwargs)
    ENV_REGISTRY.add(spec)


def make(env_id: str | EnvSpec, *, end_on_truncation: bool = False, **kwargs: Any) -> Env:
    """Build an environment.

    Args:
        env_id: a registered id; or an EnvSpec, registered or not.
        end_on_truncation: also set terminated whenever truncated is set, for callers that check only terminated.
        kwargs: constructor arguments, which override those of the spec. ``seed`` works for every environment: if the
            constructor has no such parameter, the first reset() uses it.

    Raises:
        UnknownEnv: when the id is not registered; the message names the closest id.
        UnknownArgument: when the constructor does not take an argument; the message names the closest one.
        MissingDependency: when the environment needs an extra that is not installed.
    """
    spec = env_id if isinstance(env_id, EnvSpec) else ENV_REGISTRY[env_id]
    env = construct(spec.load(), (), dict(spec.kwargs), kwargs)
    env.env_id, env.entry_point = spec.id, spec.entry_point
    return EndOnTruncation(env) if end_on_truncation else env


def list_envs(pattern: str = "*") -> list[EnvSpec]:
    """Return the registered specs whose id matches a shell pattern (``game:*``) or starts with it, sorted by id."""
    return [ENV_REGISTRY[i] for i in sorted(ENV_REGISTRY) if fnmatch.fnmatchcase(i, pattern) or i.startswith(pattern)]


def print_envs() -> None:
    """Print every registered id with its description."""
    for spec in list_envs():
        print(f"{spec.id:<44} {spec.description}")


def resolve(name: str) -> Any:
    """Import and return the object named by "module:attribute". Raises BadValue if it cannot be loaded."""
    try:
        return imports.resolve(name)
    except MissingDependency:
        raise
    except (ImportError, AttributeError, ValueError) as e:
        raise BadValue(f"entry point {name!r} cannot be loaded: {e}") from e


def describe_parameters(spec: EnvSpec) -> dict[str, Any]:
    """Return the constructor's parameters and the values that they have in make(spec.id), for listings."""
    parameters = inspect.signature(spec.load()).parameters.values()
    defaults = {p.name: p.default for p in parameters if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)}
    return {**defaults, **spec.kwargs}
