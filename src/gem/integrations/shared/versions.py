"""The supported versions of training frameworks, from versions.toml."""

from __future__ import annotations

import re
import sys
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from typing import Any

from gem.errors import MissingDependency, require


def check_framework(name: str) -> None:
    """Check that a framework is installed in a supported version.

    Args:
        name: a table of versions.toml.

    Raises:
        MissingDependency: if it is not; the message has the command that installs it.
    """
    entry = frameworks()[name]
    if "install" in entry:
        try:
            require(entry["module"], extra="train")
        except MissingDependency as e:
            problem = f"{entry['title']} is required but could not be imported ({e.__cause__})"
            raise MissingDependency(f"{problem}; {entry['install']}") from None
        return
    package, (first, below) = entry["package"], entry["supported"]
    command = f"pip install '{package}>={first},<{below}'"
    try:
        installed = version(package)
    except PackageNotFoundError:
        raise MissingDependency(f"{package} is required but is not installed; {command}") from None
    if not _numbers(first) <= _numbers(installed) < _numbers(below):
        raise MissingDependency(
            f"{package} {installed} is installed, and gem.integrations.{name} supports {first} up to below {below}; "
            f"{command}"
        )


@lru_cache(maxsize=1)
def frameworks() -> dict[str, Any]:
    """Return the tables of versions.toml by the name of the framework."""
    toml = require("tomllib" if sys.version_info >= (3, 11) else "tomli", extra="eval")
    text = files("gem.integrations.shared").joinpath("versions.toml").read_text(encoding="utf-8")
    return {name: table for name, table in toml.loads(text).items() if isinstance(table, dict)}


def _numbers(name: str) -> tuple[int, ...]:
    """Return the numbers of a version, without suffixes: "1.16.0rc1" gives (1, 16, 0)."""
    found = re.match(r"\d+(\.\d+)*", name)
    return tuple(map(int, found[0].split("."))) if found else ()
