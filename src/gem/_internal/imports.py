"""Import modules and objects by name. Only this module and require() import by name."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
import sys
from collections.abc import Callable, Mapping
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


def resolve_given(path: str) -> Any:
    """Import what a name that a user gave stands for. Its module may be in the current folder.

    Console scripts, unlike python -m, do not search that.
    """
    with contextlib.suppress(FileNotFoundError):  # the folder was deleted
        _search_in(os.getcwd())
    return resolve(path)


def import_file(path: str | os.PathLike[str]) -> Any:
    """Import a file as the module of its name.

    Raises:
        ImportError: there is no such Python file, or another module has its name.
        Exception: any exception of the module.
    """
    file = Path(path).resolve()
    if file.suffix != ".py" or not file.is_file():
        raise ImportError(f"{path} is no Python file")
    _search_in(str(file.parent))
    module = importlib.import_module(file.stem)
    if Path(getattr(module, "__file__", None) or "").resolve() != file:
        raise ImportError(f"{path} has the name of another module, {module.__name__}; rename it")
    return module


def _search_in(folder: str) -> None:
    """Let imports search a folder first. It stays on the path, because worker processes and later imports need it."""
    if folder not in sys.path:
        sys.path.insert(0, folder)


def lazy_names(package: str, homes: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the functions __getattr__ and __dir__ of a package whose public names are imported on first use.

    Args:
        package: its name.
        homes: module below the package → the names that it defines, separated by spaces.
    """
    home_of = {name: module for module, names in homes.items() for name in names.split()}

    def get(name: str) -> Any:
        if name not in home_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return resolve(f"{package}.{home_of[name]}:{name}")

    return get, lambda: sorted({*vars(sys.modules[package]), *home_of})


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
