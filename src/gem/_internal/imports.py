"""Import modules and objects by name. Only this module and require() import by name."""

from __future__ import annotations

import importlib
import importlib.util
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
