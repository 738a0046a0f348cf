"""Task folders in the layout of MCPMark.

A checkout has ``tasks/SERVICE/LEVEL/CATEGORY/TASK/`` with meta.json, description.md and verify.py. The first files of
the filesystem tasks of a category are in ``test_environments/CATEGORY/``. The first database of the postgres tasks of a
category is in ``postgres_state/CATEGORY.backup``, a dump of pg_dump; tasks without a dump have prepare_environment.py.
"""

from __future__ import annotations

import fnmatch
import json
import logging
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gem.datasets import MissingData
from gem.datasets.load import GEM_DATA
from gem.errors import BadValue

STATES = {"filesystem": "test_environments", "postgres": "postgres_state"}  # folder with the first states, by service
DUMPS = "https://storage.mcpmark.ai/postgres"  # where MCPMark has its dumps
PREPARATION = "prepare_environment.py"
# Roles are shared by the databases of a server.
_ROLES = re.compile(r"\b(create|set|drop)\s+(database\s+)?(role|user)\b|\bpg_(roles|user)\b", re.IGNORECASE)

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ServiceTask:
    """A task.

    Args:
        name: "service/level/category/task".
        folder: folder with verify.py and what it needs.
        description: the instruction.
        state: folder with the first files, or dump of the first database; it may be missing.
        url: where MCPMark has it; "" if it does not say.
    """

    name: str
    folder: Path
    description: str
    state: Path
    url: str = ""

    @property
    def service(self) -> str:
        return self.name.partition("/")[0]

    def require_state(self) -> Path | None:
        """Return the folder with the first files, or the dump of the first database; None for a task that prepares its
        database itself. Raises MissingData if it is missing.
        """
        if self.service == "postgres":
            if self.state.is_file():
                return self.state
            if (self.folder / PREPARATION).is_file():
                return None
            raise MissingData(f"the first database of {self.name} is missing: no file {self.state}; get {self.url}")
        if not self.state.is_dir():
            source = f"; unpack {self.url} there" if self.url else ""
            raise MissingData(f"the first files of {self.name} are missing: no folder {self.state}{source}")
        return self.state


def read_tasks(path: str, states: str | None = None) -> list[ServiceTask]:
    """Return the tasks of a checkout, sorted by name.

    Args:
        path: folder of the checkout, and optionally "#" and a filter: a part of the names of tasks, or a pattern such
            as "filesystem/easy/*". A relative path that does not exist is looked up in GEM_DATA.
        states: folder with the first files or dumps by category. None means the folder in the checkout.

    Tasks for PostgreSQL that create or change roles are left out with a warning in the log.

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
    if other := sorted({name.partition("/")[0] for name in chosen} - set(STATES)):
        raise BadValue(
            f"the MCPMark service {', '.join(other)} is not supported; choose tasks with a filter, such as "
            f"'mcpmark:{place}#filesystem/easy'"
        )
    with_roles = [name for name, folder in chosen.items() if name.startswith("postgres/") and _changes_roles(folder)]
    for name in with_roles:
        log.warning("the task %s is left out, because it needs roles of the database server", name)
        del chosen[name]
    if not chosen:
        raise BadValue(f"the tasks {', '.join(with_roles)} need roles of the database server, which is not supported")
    return [_read(name, folder, root, states) for name, folder in chosen.items()]


def _changes_roles(folder: Path) -> bool:
    texts = [path.read_text("utf-8", "replace") for path in folder.iterdir() if path.suffix in (".md", ".py", ".sql")]
    return any(map(_ROLES.search, texts))


def _root(place: str) -> Path:
    root = Path(place).expanduser()
    if not root.is_absolute() and not root.is_dir() and GEM_DATA in os.environ:
        root = Path(os.environ[GEM_DATA], place)
    if not (root / "tasks").is_dir():
        raise MissingData(f"{root} is not a checkout of MCPMark: it has no folder 'tasks'")
    return root


def _matches(name: str, wanted: str) -> bool:
    return wanted in name or fnmatch.fnmatchcase(name, wanted)


def _read(name: str, folder: Path, root: Path, states: str | None) -> ServiceTask:
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
    service = name.partition("/")[0]
    base, url = Path(states) if states else root / STATES[service], str(data.get("stateUrl") or "")
    if service == "postgres":
        return ServiceTask(name, folder, description, base / f"{category}.backup", url or f"{DUMPS}/{category}.backup")
    return ServiceTask(name, folder, description, base / category, url)
