"""No containment at all, by its own name: programs run as you do, with your files and your network.

What remains of the contract is what keeps a program from being a nuisance: a session of its own, a time-out that ends
the whole process group, bounded output, an empty working directory, and none of the host's environment variables.
"""

from __future__ import annotations

import logging
import os
import sys
import tempfile

from gem.errors import SandboxError
from gem.sandbox.base import Limits, Report
from gem.sandbox.running import Running
from gem.sandbox.scripted import INTERPRETER_FLAGS, ScriptedSandbox, environment
from gem.sandbox.zygote.removal import remove_tree

logger = logging.getLogger(__name__)
_warned = False


class SubprocessSandbox(ScriptedSandbox):
    """Runs programs uncontained. Logs a warning when the first of a process is made."""

    def __init__(self, *, limits: Limits | None = None) -> None:
        super().__init__(limits=limits)
        _warn_once()

    def report(self) -> Report:
        guarantees: dict[str, str | None] = dict.fromkeys(
            ("network", "files", "processes", "memory", "disk", "cpu", "kernel")
        )
        return Report(
            "subprocess",
            "",
            {**guarantees, "wall": "the host's clock, kill of the process group", "output": "counted while it is read"},
            ["Nothing is contained: a program can do what you can, and may outlive its run in a session of its own."],
        )

    def _start(self, limits: Limits, *, lasting: bool) -> Running:
        return _InFolder()


class _InFolder(Running):
    """A command in a temporary folder of its own."""

    def __init__(self) -> None:
        try:
            self.folder = tempfile.mkdtemp(prefix="gem-")
        except OSError as e:
            raise SandboxError(f"no working directory could be made: {e}") from e
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
        logger.warning("the subprocess sandbox contains nothing: programs run with your rights, files and network")
