"""The registry of environments: specs by id, and ``make``.

An id is any string; the built-in ones have the form ``family:Name-v0-variant`` and are listed as data in
``gem.envs.catalog``. Other packages add environments with ``register``, exporters with ``register_exporter``, and both
with an entry point in the group ``gem.envs`` that names a module to import or a function to call (docs/plugins.md).
"""

from __future__ import annotations

import fnmatch
import inspect
import logging
import os
import re
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, Protocol, cast

from gem._internal import imports
from gem._internal.construction import construct
from gem._internal.text import shorten
from gem.core import EndOnTruncation, Env
from gem.errors import BadValue, DuplicateEnv, MissingDependency, UnknownEnv, did_you_mean, require

__all__ = [
    "ENV_REGISTRY",
    "EnvSpec",
    "Exporter",
    "list_envs",
    "make",
    "print_envs",
    "register",
    "register_exporter",
]

_CATALOG = "gem.envs.catalog"  # imported by name, because gem.envs is a layer above this module
# A library of each extra that grading or drawing needs, so that make() and not the first answer finds it missing.
# [data] is not here, because a dataset is also read from a local copy.
_CLASS = re.compile(r"[A-Za-z_][\w.]*:\w+")  # "module:Class"
_LIBRARIES = {"math": "sympy", "vision": "PIL", "reasoning": "reasoning_gym"}
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class EnvSpec:
    """A description of an environment that does not require importing it.

    Args:
        id: the name for make().
        entry_point: "module:Class" or a callable that returns an Env.
        kwargs: constructor arguments; make() can override each.
        extra: the extras (optional dependency groups) that the environment needs, separated by commas, such as
            "math,vision"; None if it needs none.
        runs: how a vector env should step it: "inline" (takes microseconds), "thread" (waits for I/O) or "process"
            (uses CPU time).
        reward_range: minimum and maximum sum of rewards over an episode.
        oracle: "module:name" of a class or function that takes the environment and returns a strong policy for it;
            None if there is none.
        oracle_sees: whether the oracle reads observations or the state.
        oracle_wins: whether an oracle that reads the state earns the maximum in every episode. False for games against
            other players or chance.
        baseline_scores: maximum mean episode reward of policies that do not solve the task, by policy name, such as
            {"constant": 0.25}. ``gem check`` plays five: "silent" sends an empty reply, "echo" repeats the observation,
            "repeat-last" repeats a random first action, "constant" sends the best single action, and "injection"
            sends a prompt injection.
        stored_scores: "module:function" of the id that returns measured scores of simple players for ``gem info``, as
            (player, score) rows; None if no scores are stored.
        description: one line.
        version: raised when scores can no longer be compared with those of before. Evaluations record it.
        turn_limit: kind of the environment's turn limit (stop reason "max_turns"): "rule", a rule that observations
            state, or "outside", a limit outside the task. At limits outside the task, a critic estimates the return
            that was cut off. Limits of wrappers and rollouts are always outside.
        path: for ids that end in a path or another name, the constructor's parameter that gets it: with "folder", the
            spec of "maze:PATH" makes every id "maze:…". In a family with other ids, such as "math:GSM8K", a path
            contains "." or "/" or exists; other names are misspelled ids. None for a spec of one id.
    """

    id: str
    entry_point: str | Callable[..., Any]
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    extra: str | None = None
    runs: Literal["inline", "thread", "process"] = "inline"
    reward_range: tuple[float, float] = (float("-inf"), float("inf"))
    oracle: str | None = None
    oracle_sees: Literal["observation", "state"] | None = None
    oracle_wins: bool = True
    baseline_scores: Mapping[str, float] = field(default_factory=dict)
    stored_scores: str | None = None
    description: str = ""
    version: int = 0
    turn_limit: Literal["rule", "outside"] = "rule"
    path: str | None = None

    def load(self) -> Callable[..., Any]:
        """Import and return the class or factory of the entry point.

        Raises:
            MissingDependency: when the environment needs an extra that is not installed.
            BadValue: when the entry point cannot be loaded.
        """
        for extra in (self.extra or "").split(","):
            if (library := _LIBRARIES.get(extra)) is not None and not imports.is_installed(library):
                require(library, extra=self.extra or extra)
        if self.extra is not None and isinstance(self.entry_point, str):
            require(self.entry_point.partition(":")[0], extra=self.extra)
        return self.entry_point if callable(self.entry_point) else resolve(self.entry_point)


class Exporter(Protocol):
    """Writes tasks in the format of another system. `gem export --help` shows the first line of its docstring."""

    def __call__(self, env: Env) -> Callable[[Path, str], None]:
        """Return a function that writes the task of the environment's running episode.

        The function gets the file or folder to write, which does not exist, and the task's name, in lower case, such as
        "terminal-files-3". It raises BadValue for a task that the format cannot hold, which is then left out.

        Raises:
            BadValue: no task of this environment can be written.
        """


class _Registry(MutableMapping[str, EnvSpec]):
    """A mapping from id to EnvSpec. The catalog is loaded on first use. Plug-ins are loaded when an unknown id is
    looked up or the ids are listed or counted.
    """

    def __init__(self) -> None:
        self._specs: dict[str, EnvSpec] = {}
        self._path_specs: dict[str, EnvSpec] = {}  # family → the spec of its ids that end in a path
        self._exporters: dict[str, str | Exporter] = {}
        self._watched: list[tuple[Mapping[str, Any], set[str]]] = []  # tables and the names that were in them at first
        self._catalog_loaded = self._plugins_loaded = False
        self._loading = threading.RLock()  # reentrant, because plug-ins register environments while the lock is held

    def add(self, spec: EnvSpec) -> None:
        """Add a spec, without loading plug-ins, because a plug-in may be the caller. Raises DuplicateEnv."""
        self._load_catalog()
        family, _, rest = spec.id.partition(":")
        if spec.path is not None and (not spec.path or not family or rest != "PATH"):
            raise BadValue(f"the id of a spec with path={spec.path!r} must be 'family:PATH', got {spec.id!r}")
        specs, key = (self._specs, spec.id) if spec.path is None else (self._path_specs, family)
        if key in specs:
            raise DuplicateEnv(f"env {spec.id!r} is already registered with entry point {specs[key].entry_point!r}")
        specs[key] = spec

    def add_exporter(self, name: str, exporter: str | Exporter) -> None:
        """Add an exporter. Raises BadValue if the name is taken."""
        self._load_catalog()
        if self._exporters.get(name, exporter) != exporter:
            raise BadValue(f"an exporter {name!r} is already registered: {self._exporters[name]!r}")
        self._exporters[name] = exporter

    def exporter(self, name: str) -> Exporter:
        """Return an exporter. Raises BadValue for an unknown name; the message lists all."""
        self._load_catalog()
        if name not in self._exporters:
            self.load_plugins()
        if name not in self._exporters:
            known = self.export_formats()
            raise BadValue(f"no export format {name!r}{did_you_mean(name, known)}  (available: {', '.join(known)})")
        found = self._exporters[name]
        return cast(Exporter, resolve(found)) if isinstance(found, str) else found

    def export_formats(self) -> list[str]:
        """Return the names of all exporters, sorted."""
        self.load_plugins()
        return sorted(self._exporters)

    def path_specs(self) -> list[EnvSpec]:
        """Return the specs of ids that end in a path. They are not in the mapping, which has ids that can be made."""
        self.load_plugins()
        return list(self._path_specs.values())

    def __getitem__(self, env_id: str) -> EnvSpec:
        if env_id not in self:
            known = len(self)
            raise UnknownEnv(f"no env {env_id!r}{near_id(str(env_id))}  (`gem list` shows all {known})")
        return self._specs.get(env_id) or cast(EnvSpec, self._path_spec(env_id))

    def __setitem__(self, env_id: str, spec: EnvSpec) -> None:
        self._specs[env_id] = spec

    def __delitem__(self, env_id: str) -> None:
        self._load_catalog()
        del self._specs[env_id]

    def __contains__(self, env_id: object) -> bool:
        self._load_catalog()
        if env_id not in self._specs and self._path_spec(env_id) is None:
            self.load_plugins()
            return env_id in self._specs or self._path_spec(env_id) is not None
        return True

    def _path_spec(self, env_id: object) -> EnvSpec | None:
        """Return the spec of an id that ends in a path, such as "swebench:rows.jsonl", or None."""
        family, _, path = str(env_id).partition(":")
        spec = self._path_specs.get(family)
        if spec is None or spec.path is None or not path.strip():
            return None
        is_name = not set("./") & set(path) and not os.path.exists(path)
        if is_name and any(known.startswith(f"{family}:") for known in self._specs):
            return None  # a misspelled id of the family
        return replace(spec, id=str(env_id), kwargs={**spec.kwargs, spec.path: path}, path=None)

    def __iter__(self) -> Iterator[str]:
        self.load_plugins()
        return iter(list(self._specs))

    def __len__(self) -> int:
        self.load_plugins()
        return len(self._specs)

    def _load_catalog(self) -> None:
        if not self._catalog_loaded:
            catalog = imports.resolve(_CATALOG)
            for spec in catalog.SPECS:
                self._specs.setdefault(spec.id, spec)
            for spec in catalog.PATH_SPECS:
                self._path_specs.setdefault(spec.id.partition(":")[0], spec)
            self._exporters = {**catalog.EXPORTERS, **self._exporters}
            self._catalog_loaded = True

    def load_plugins(self) -> None:
        """Import the modules and call the functions of the entry points gem.envs, once."""
        self._load_catalog()
        with self._loading:
            if not self._plugins_loaded:
                self._plugins_loaded = True
                self._call_plugins()

    def _call_plugins(self) -> None:
        from importlib.metadata import entry_points  # takes 20 ms, so it is imported only when an id is not built in

        for plugin in entry_points(group="gem.envs"):
            try:
                problem = self._call_plugin(plugin)
            except (Exception, SystemExit) as e:  # a broken plug-in must not prevent the others from loading
                problem = f"failed to register: {type(e).__name__}: {shorten(' '.join(str(e).split()), 300)}"
                _log.debug("traceback of the plug-in %s", plugin.value, exc_info=True)
            if problem is not None:
                _log.warning("the gem.envs plug-in %s %s", plugin.value, problem)

    def _call_plugin(self, plugin: Any) -> str | None:
        """Import the module or call the function that an entry point names. Returns what is wrong with it, or None."""
        before, imported_before = self._registered(), plugin.value.split()[0] in sys.modules
        loaded = plugin.load()
        if isinstance(loaded, type):
            return "names a class; it should name a module or a function that calls gem.register"
        if callable(loaded):
            loaded()
        elif imported_before:
            return None  # the module may have registered its environments when it was imported
        return "registered nothing" if self._registered() == before else None

    def _registered(self) -> list[dict[str, Any]]:
        added = {name: table[name] for table, first in self._watched for name in table if name not in first}
        return [dict(self._specs), dict(self._path_specs), dict(self._exporters), added]

    def watch(self, table: Mapping[str, Any]) -> None:
        """Take names that a plug-in adds to a table of another module for something that it has registered."""
        self._watched.append((table, set(table)))


# The registered specs by id. Looking up an unknown id raises UnknownEnv.
ENV_REGISTRY = _Registry()


def register(env_id: str | EnvSpec = "", entry_point: str | Callable[..., Any] | None = None, **kwargs: Any) -> None:
    """Register an environment.

    Args:
        env_id: any string that is not empty; or an EnvSpec, with no other arguments.
        entry_point: "module:Class", imported when an environment is made, or a callable that returns an Env.
        kwargs: constructor arguments, which make() can override.

    Raises:
        DuplicateEnv: when the id is already registered.
        BadValue: when the id is missing or no str, the entry point has neither form, or an EnvSpec is given with other
            arguments. To register ids that end in a path, pass an EnvSpec with ``path``.
    """
    if isinstance(env_id, EnvSpec):
        if entry_point is not None or kwargs:
            raise BadValue(f"register(EnvSpec(...)) takes no other arguments, got {entry_point!r} and {kwargs!r}")
        spec = env_id
    else:
        if not isinstance(env_id, str) or not env_id:
            given = f"id={kwargs['id']!r}" if not env_id and "id" in kwargs else repr(env_id)
            raise BadValue(f"the id must be the first argument, as in register('my:Env-v0', MyEnv), got {given}")
        if not callable(entry_point) and not (isinstance(entry_point, str) and ":" in entry_point):
            raise BadValue(f"entry_point of {env_id!r} must be 'module:Class' or a callable, got {entry_point!r}")
        spec = EnvSpec(env_id, entry_point, kwargs)
    ENV_REGISTRY.add(spec)


def register_class(name: str) -> None:
    """Register the class or function that "module:Class" names under this name, unless it is an id or a part of ids.

    The module may be in the current folder. Importing it runs its code, so the name must be one that the user gives, or
    that of a folder whose owner is trusted.

    Raises:
        UnknownEnv: when it cannot be loaded.
        MissingDependency: when its module needs an extra that is not installed.
    """
    if not _CLASS.fullmatch(name) or name in ENV_REGISTRY or list_envs(name):
        return
    try:
        found = imports.resolve_given(name)
        if not callable(found):
            raise ValueError(f"it is a {type(found).__name__}")
    except MissingDependency:
        raise
    except (ImportError, AttributeError, ValueError) as e:
        is_path = name.partition(":")[0] in {spec.id.partition(":")[0] for spec in ENV_REGISTRY.path_specs()}
        why = f"; a file of data is named with its suffix, such as {name}.jsonl" if is_path else ""
        raise UnknownEnv(f"no env matches {name!r}{near_id(name)}, and it cannot be loaded: {e}{why}") from e
    register(name, name)


def register_exporter(name: str, exporter: str | Exporter) -> None:
    """Register a format of ``gem export``.

    Args:
        name: as on the command line.
        exporter: a function as of Exporter, or "module:function", which is imported when it is used.

    Raises:
        BadValue: when the name is taken by another exporter, or the exporter has neither form.
    """
    if not callable(exporter) and not (isinstance(exporter, str) and ":" in exporter):
        raise BadValue(f"exporter of {name!r} must be 'module:function' or a callable, got {exporter!r}")
    ENV_REGISTRY.add_exporter(name, exporter)


def make(env_id: str | EnvSpec, *, end_on_truncation: bool | None = None, **kwargs: Any) -> Env:
    """Build an environment.

    Args:
        env_id: a registered id; or an EnvSpec, registered or not.
        end_on_truncation: also set terminated whenever truncated is set, for callers that check only terminated. None
            means True if the environment variable GEM_END_ON_TRUNCATION is "1", else False.
        kwargs: constructor arguments, which override those of the spec. ``seed`` works for every environment: if the
            constructor has no such parameter, the first reset() uses it.

    Raises:
        UnknownEnv: when the id is not registered; the message names the closest id.
        UnknownArgument: when the constructor does not take an argument; the message names the closest one.
        BadValue: when a value has not the type that the constructor's annotation names, or an argument is missing.
        MissingDependency: when the environment needs an extra that is not installed.
    """
    spec = env_id if isinstance(env_id, EnvSpec) else ENV_REGISTRY[env_id]
    env = construct(spec.load(), (), dict(spec.kwargs), kwargs)
    env.env_id, env.entry_point = spec.id, spec.entry_point
    return EndOnTruncation(env) if ends_on_truncation(end_on_truncation) else env


def ends_on_truncation(given: bool | None = None) -> bool:
    """Return the given value or, for None, whether the environment variable GEM_END_ON_TRUNCATION is "1"."""
    return os.environ.get("GEM_END_ON_TRUNCATION") == "1" if given is None else given


def list_envs(pattern: str = "*", *, paths: bool = False) -> list[EnvSpec]:
    """Return the registered specs whose id matches a shell pattern (``game:*``) or starts with it, sorted by id.

    Args:
        paths: also return the specs of ids that end in a path, such as that of "harbor:PATH".
    """
    specs = [*ENV_REGISTRY.values(), *(ENV_REGISTRY.path_specs() if paths else ())]
    found = [spec for spec in specs if fnmatch.fnmatchcase(spec.id, pattern) or spec.id.startswith(pattern)]
    return sorted(found, key=lambda spec: spec.id)


def near_id(pattern: str) -> str:
    """Return ``"; did you mean 'x'?"`` for the id that contains a part of an id or is close to it, or an empty string.

    Parts of fewer than three characters are in too many ids to be suggestions.
    """
    part = pattern.strip("*").casefold()
    containing = [i for i in ENV_REGISTRY if len(part) > 2 and part in i.casefold()]
    if containing:
        return f"; did you mean {min(containing, key=len)!r}?"
    families = {f"{i.partition(':')[0]}:*": None for i in ENV_REGISTRY}
    return did_you_mean(pattern, [*(families if "*" in pattern else ()), *ENV_REGISTRY])


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
