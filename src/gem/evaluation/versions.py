"""Versions of what decides a score besides the model: the code of an environment and of its graders, and libraries."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from gem._internal.imports import absolute_name, source_file
from gem.registry import ENV_REGISTRY

# extra → distribution that decides tasks or verdicts
LIBRARIES = {"math": "sympy", "vision": "pillow", "reasoning": "reasoning-gym"}
_GRADERS = ("gem.graders", "gem.parsing")
_IMPORT = re.compile(r"^[ \t]*(?:from +([\w.]+) +import +(\([^)]*\)|.*)|import +([\w.]+))", re.MULTILINE)
_NAME = re.compile(r"\w+")
_FUNCTION = re.compile(r"(?!gem\.)([\w.]+):[A-Za-z_]\w*")  # "module:function", a grader of another package


def versions_of(env_id: str) -> dict[str, Any]:
    """Return the versions of an environment as JSON data.

    "version" is that of the spec, and "arguments" are its constructor arguments. "environment" and "grader" are hashes
    of the source files that the environment consists of, and of those that read and grade its answers; None without
    source files. "libraries" has the versions of installed libraries that decide tasks or verdicts.
    """
    spec = ENV_REGISTRY[env_id]
    module = str(getattr(spec.load(), "__module__", None))
    own = "gem.envs" if module.startswith("gem.") else module.partition(".")[0]
    files = _imported(module, (own, *_GRADERS))
    texts = [value for value in spec.kwargs.values() if isinstance(value, str)]
    named = [found[1] for text in texts if (found := _FUNCTION.fullmatch(text))]
    graders = [file for name in named for _, file in _imported(name, (name.partition(".")[0],))]
    return {
        "version": spec.version,
        "arguments": {name: _plain(value) for name, value in spec.kwargs.items()},
        "environment": _digest_of(file for name, file in files if not name.startswith(_GRADERS)),
        "grader": _digest_of([*graders, *(file for name, file in files if name.startswith(_GRADERS))]),
        "libraries": {name: _installed(name) for extra, name in LIBRARIES.items() if extra in str(spec.extra)},
    }


@cache
def _imported(module: str, prefixes: tuple[str, ...]) -> tuple[tuple[str, Path], ...]:
    """Return names and source files of a module and of all modules that it imports, if they begin with a prefix."""
    found: dict[str, Path] = {}
    waiting = [module]
    while waiting:
        name = waiting.pop()
        file = source_file(name)
        if name in found or file is None:
            continue
        found[name] = file
        package = name if file.name == "__init__.py" else name.rpartition(".")[0]
        imported = _targets(file.read_text(encoding="utf-8"), package)
        waiting += [target for target in imported if f"{target}.".startswith(tuple(f"{p}." for p in prefixes))]
    return tuple(sorted(found.items()))


def _targets(source: str, package: str) -> Iterator[str]:
    """Yield what the import statements of a file may import: modules, and names in modules."""
    for named, names, plain in _IMPORT.findall(source):
        module = absolute_name(named, package)
        yield module or plain
        yield from (f"{module}.{name}" for name in _NAME.findall(names))


def _plain(value: Any) -> Any:
    """Return a text or a number as it is, a hash of other JSON data, and the name of the type of anything else."""
    if value is None or isinstance(value, (str, int, float)):
        return value
    try:
        return digest(json.dumps(value, sort_keys=True).encode())
    except (TypeError, ValueError):
        return type(value).__name__


def digest(content: bytes) -> str:
    """Return a short hash."""
    return hashlib.blake2b(content, digest_size=8).hexdigest()


def _digest_of(files: Iterable[Path]) -> str | None:
    contents = [file.read_bytes() for file in files]
    return digest(b"\0".join(contents)) if contents else None


def _installed(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
