"""Sandbox without isolation: programs have your permissions, files and network. Used only if named explicitly.

Each program runs in its own session and in an empty working directory, without the environment variables of the host.
Its output is limited, and the processes of its session are killed when it ends or times out.
"""

from __future__ import annotations

import logging
import os
import sys
import tempfile

from gem.errors import SandboxError
from gem.sandbox.command.sandbox import INTERPRETER_FLAGS, CommandSandbox, environment
from gem.sandbox.forkserver.limits.removal import remove_tree
from gem.sandbox.process import CommandProcess
from gem.sandbox.results import Limits, Report

logger = logging.getLogger(__name__)
_warned = False


class SubprocessSandbox(CommandSandbox):
    """Runs programs without isolation. The first instance in a process logs a warning."""

    def __init__(self, *, limits: Limits | None = None) -> None:
        super().__init__(limits=limits)
        _warn_once()

    def report(self) -> Report:
        guarantees: dict[str, str | None] = dict.fromkeys(
            ("network", "files", "processes", "kernel", "memory", "process_limit", "disk", "cpu")
        )
        return Report(
            "subprocess",
            "",
            {**guarantees, "wall": "the host's clock; kills the process group", "output": "counted as it is read"},
            ["No isolation: a program can do whatever you can, and leave processes, descriptors and shared memory."],
        )

    def _start(self, limits: Limits, *, for_session: bool) -> CommandProcess:
        return _TemporaryFolderProcess()

    def _rlimits(self, limits: Limits) -> dict[str, tuple[int, int]]:
        return {}  # as report() says


class _TemporaryFolderProcess(CommandProcess):
    """A process that runs inside.py in a temporary working directory, which close() removes."""

    def __init__(self) -> None:
        try:
            self.folder = tempfile.mkdtemp(prefix="gem-")
        except OSError as e:
            raise SandboxError(f"could not create a working directory: {e}") from e
        try:
            command = [sys.executable, *INTERPRETER_FLAGS]
            super().__init__(command, folder=self.folder, environment=environment(self.folder, sys.prefix))
        except BaseException:
            remove_tree(self.folder)
            raise

    def close(self) -> None:
        super().close()
        if self.owner == os.getpid():
            remove_tree(self.folder)


def _warn_once() -> None:
    global _warned
    if not _warned:
        _warned = True
        logger.warning("the subprocess sandbox does not isolate: programs run with your permissions and network access")
