"""Import modules and objects by name. Only this module and require() import by name."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from typing import Any


def resolve(path: str) -> Any:
    """Import the object that ``"package.module:attribute"`` names, or the module that ``"package.module"`` names.

    Raises:
        ImportError: if the module cannot be imported.
        AttributeError: if the module has no such attribute.
    """
    module, separator, attribute = path.partition(":")
    imported = importlib.import_module(module)
    return getattr(imported, attribute) if separator else imported


def is_installed(library: str) -> bool:
    """Return whether a top-level package is installed. Does not import the package."""
    return importlib.util.find_spec(library) is not None


def source_file(module: str) -> Path | None:
    """Return the source file of a module, without importing it; None if there is no such module or file."""
    loaded = sys.modules.get(module)
    try:
        found = None if loaded is not None else importlib.util.find_spec(module)
    except (ImportError, ValueError):  # a name in a module, or a script
        return None
    origin = getattr(loaded, "__file__", None) if found is None else found.origin
    return Path(origin) if origin and origin.endswith(".py") and Path(origin).exists() else None


def absolute_name(module: str, package: str) -> str:
    """Return the absolute name of a module that is imported in a package, such as ".rules" in "my.env"."""
    return importlib.util.resolve_name(module, package) if module.startswith(".") else module
