"""The service for files: a folder of the host, and the npm package @modelcontextprotocol/server-filesystem on it."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import weakref
from pathlib import Path
from typing import Any

from gem.envs.computers.mcpmark.checkout import ServiceTask
from gem.envs.computers.mcpmark.verify import entries, verify_files
from gem.errors import MissingDependency, SandboxError
from gem.sandbox.machine_protocol import pack, unpack, write_entries

PROGRAM = "GEM_MCP_FILESYSTEM"  # names the program of the server
_NAME = "mcp-server-filesystem"
SHOWN = "/workspace"  # what the agent reads and writes for the folder of the server
_TIMES = re.compile(r"^(created|accessed): .*\n?", re.MULTILINE)  # those of the episode, not of the files of the task
_PATHS = ("path", "paths", "source", "destination")  # arguments that name files


class FolderService:
    """A folder that is filled for each episode. close() removes it; another start() creates it again."""

    NOTE = "Work with the tools, in the test directory, at which relative paths start."

    def __init__(self) -> None:
        # Servers resolve links of their folders, and some refuse other names of them.
        self._name = os.path.realpath(tempfile.mkdtemp(prefix="gem-mcpmark-"))
        self._finalizer = weakref.finalize(self, _remove, self._name, os.getpid())

    @property
    def folder(self) -> Path:
        return Path(self._name)

    def start(self, task: ServiceTask) -> None:
        """Replace the files by the first files of a task."""
        self._clear()
        if (state := task.require_state()) is None:
            raise SandboxError(f"the task {task.name} has no first files")
        shutil.copytree(state, self._name, symlinks=True, dirs_exist_ok=True)

    def server(self) -> dict[str, Any]:
        """Return the configuration of the MCP server. Raises MissingDependency if it is not installed."""
        program = os.environ.get(PROGRAM) or shutil.which(_NAME)
        if program is None:
            raise MissingDependency(
                f"{_NAME} is not on the PATH; install it with: npm install -g @modelcontextprotocol/server-filesystem "
                f"(or name the program in {PROGRAM})"
            )
        return {"mcpServers": {"filesystem": {"command": program, "args": [self._name], "cwd": self._name}}}

    def before_call(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments of a call with the name that the folder has on the host."""
        return {k: self._path(value) if k in _PATHS else value for k, value in arguments.items()}

    def after_call(self, name: str, text: str) -> str:
        """Return the text of a result as the agent sees it."""
        text = text.replace(self._name, SHOWN)
        return _TIMES.sub("", text) if name == "get_file_info" else text

    def _path(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._path(item) for item in value]
        if isinstance(value, str) and f"{value}/".startswith(f"{SHOWN}/"):
            return self._name + value[len(SHOWN) :]
        return value

    def verify(self, task: ServiceTask, timeout: float) -> str:
        """Return "" if the files solve a task, else what is wrong. Raises SandboxError."""
        return verify_files(task, self.folder, timeout)

    def save(self) -> bytes:
        """Return an archive of the files."""
        return pack(entries(self.folder, ""))

    def load(self, archive: bytes) -> None:
        """Replace the files by those of an archive."""
        self._clear()
        write_entries(entry._replace(path=self._name + entry.path) for entry in unpack(archive))

    def close(self) -> None:
        self._finalizer()

    def _clear(self) -> None:
        if not self._finalizer.alive:  # after close()
            os.mkdir(self._name, 0o700)
            self._finalizer = weakref.finalize(self, _remove, self._name, os.getpid())
        for child in self.folder.iterdir():
            if child.is_dir() and not child.is_symlink():
                shutil.rmtree(child)
            else:
                child.unlink()


def _remove(folder: str, owner: int) -> None:
    if owner == os.getpid():  # not in a forked child
        shutil.rmtree(folder, ignore_errors=True)
