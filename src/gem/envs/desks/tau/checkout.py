"""Import modules of a checkout under $GEM_DATA, without the parts of its packages that call models."""

from __future__ import annotations

import importlib
import os
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

from gem.datasets import MissingData
from gem.datasets.load import GEM_DATA

_lock = threading.RLock()


def checkout(name: str, file: str) -> Path:
    """Return the folder ``$GEM_DATA/name``.

    Args:
        name: of the folder, which is that of the repository of sierra-research on GitHub.
        file: path in the folder of a file that has to exist.

    Raises:
        MissingData: GEM_DATA is not set, or the file is missing.
    """
    root = os.environ.get(GEM_DATA)
    folder = Path(root or "", name)
    if root and (folder / file).exists():
        return folder.resolve()
    where = f"{folder / file} is missing" if root else f"{GEM_DATA} is not set"
    raise MissingData(f"no checkout of {name}: {where}; git clone github.com/sierra-research/{name} into ${GEM_DATA}")


@contextmanager
def importing(packages: dict[str, Path], **stand_ins: ModuleType) -> Iterator[None]:
    """Within the block, import modules of packages whose ``__init__`` is not executed.

    Afterwards sys.modules is as before, so an installed package of the same name is not affected.

    Args:
        packages: dotted name → folder.
        stand_ins: modules to find by these names; "__" in a name stands for a dot.
    """
    roots = {name.partition(".")[0] for name in packages}
    with _lock:
        hidden = {name: module for name, module in sys.modules.items() if name.partition(".")[0] in roots}
        given = {name.replace("__", "."): module for name, module in stand_ins.items()}
        hidden |= {name: sys.modules[name] for name in given if name in sys.modules}
        for name in hidden:
            del sys.modules[name]
        try:
            sys.modules.update({name: bare_package(name, folder) for name, folder in packages.items()}, **given)
            yield
        finally:
            for name in [name for name in sys.modules if name.partition(".")[0] in roots or name in given]:
                del sys.modules[name]
            sys.modules.update(hidden)


def bare_package(name: str, folder: Path) -> ModuleType:
    """Return a package for a folder, without executing its ``__init__``."""
    package = ModuleType(name)
    package.__path__ = [str(folder)]
    return package


def module_of(name: str, **members: Any) -> ModuleType:
    """Return a new module with these members."""
    module = ModuleType(name)
    vars(module).update(members)
    return module


def load(names: Sequence[str]) -> SimpleNamespace:
    """Import modules and return them as attributes by the last part of their names."""
    return SimpleNamespace(**{name.rpartition(".")[2]: importlib.import_module(name) for name in names})
