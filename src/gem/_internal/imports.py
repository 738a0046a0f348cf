"""Import what a string names. The only place, besides require(), that imports modules by name."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any


def resolve(path: str) -> Any:
    """Import the object that ``"package.module:attribute"`` names, or the module that ``"package.module"`` names.

    Raises:
        ImportError: when the module cannot be imported.
        AttributeError: when the module lacks the attribute.
    """
    module, separator, attribute = path.partition(":")
    imported = importlib.import_module(module)
    return getattr(imported, attribute) if separator else imported


def is_installed(library: str) -> bool:
    """Whether a top-level library could be imported, without importing it."""
    return importlib.util.find_spec(library) is not None
