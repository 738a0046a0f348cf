"""Task folders in the layout of MCPMark.

A checkout has ``tasks/SERVICE/LEVEL/CATEGORY/TASK/`` with meta.json, description.md and verify.py, and the first files
of the tasks of a category in ``test_environments/CATEGORY/``.
"""

from __future__ import annotations

import fnmatch
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gem.datasets import GEM_DATA, MissingData
from gem.errors import BadValue

SERVICES = ("filesystem",)
STATES = "test_environments"


@dataclass(frozen=True)
class ServiceTask:
    """A task.

    Args:
        name: "service/level/category/task".
        folder: folder with verify.py and what it needs.
        description: the instruction.
        state: folder with the first files; it may be missing.
        url: where MCPMark has these files; "" if it does not say.
    """

    name: str
    folder: Path
    description: str
    state: Path
    url: str = ""

    @property
    def service(self) -> str:
        return self.name.partition("/")[0]

    def require_state(self) -> Path:
        """Return the folder with the first files. Raises MissingData if it is missing."""
        if not self.state.is_dir():
            source = f"; unpack {self.url} there" if self.url else ""
            raise MissingData(f"the first files of {self.name} are missing: no folder {self.state}{source}")
        return self.state


def read_tasks(path: str, states: str | None = None) -> list[ServiceTask]:
    """Return the tasks of a checkout, sorted by name.

    Args:
        path: folder of the checkout, and optionally "#" and a filter: a part of the names of tasks, or a pattern such
            as "filesystem/easy/*". A relative path that does not exist is looked up in GEM_DATA.
        states: folder with the first files by category. None means ``test_environments`` in the checkout.

    Raises:
        MissingData: if the folder does not exist.
        BadValue: if there are no such tasks, a task cannot be read, or its service is not supported.
    """
    place, _, wanted = path.partition("#")
    root = _root(place)
    folders = sorted(meta.parent for meta in root.glob("tasks/*/*/*/*/meta.json"))
    names = {str(folder.relative_to(root / "tasks").as_posix()): folder for folder in folders}
    chosen = {name: folder for name, folder in names.items() if _matches(name, wanted)}
    if not chosen:
        raise BadValue(f"no tasks match {wanted!r} among {len(names)} in {root / 'tasks'}")
    if other := sorted({name.partition("/")[0] for name in chosen} - set(SERVICES)):
        raise BadValue(
            f"the MCPMark service {', '.join(other)} is not supported; choose tasks with a filter, such as "
            f"'mcpmark:{place}#filesystem/easy'"
        )
    base = Path(states) if states else root / STATES
    return [_read(name, folder, base) for name, folder in chosen.items()]


def _root(place: str) -> Path:
    root = Path(place).expanduser()
    if not root.is_absolute() and not root.is_dir() and GEM_DATA in os.environ:
        root = Path(os.environ[GEM_DATA], place)
    if not (root / "tasks").is_dir():
        raise MissingData(f"{root} is not a checkout of MCPMark: it has no folder 'tasks'")
    return root


def _matches(name: str, wanted: str) -> bool:
    return wanted in name or fnmatch.fnmatchcase(name, wanted)


def _read(name: str, folder: Path, states: Path) -> ServiceTask:
    try:
        meta: dict[str, Any] = json.loads((folder / "meta.json").read_text(encoding="utf-8"))
        description = (folder / "description.md").read_text(encoding="utf-8").strip()
        category, data = meta["category_id"], meta.get("meta_data") or {}
        if "/" in category or category in ("", ".", ".."):
            raise ValueError(f"category_id {category!r}")
    except (OSError, ValueError, KeyError, TypeError) as e:
        raise BadValue(f"the task {name} in {folder} cannot be read: {type(e).__name__}: {e}") from e
    if not (folder / "verify.py").is_file():
        raise BadValue(f"the task {name} in {folder} has no verify.py")
    return ServiceTask(name, folder, description, states / category, str(data.get("stateUrl") or ""))
