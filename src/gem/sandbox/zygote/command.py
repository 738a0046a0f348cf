"""Execute a command in an isolated process."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

NOT_FOUND, NOT_EXECUTABLE = 127, 126  # the exit codes that a shell uses


def run(options: Mapping[str, Any], fds: Sequence[int]) -> NoReturn:
    """Replace this process with the command ``options["command"]``, a list of arguments."""
    command = options["command"]
    try:
        os.execvp(command[0], command)
    except OSError as e:
        os.write(2, f"{command[0]}: {e.strerror}\n".encode("utf-8", "replace"))
        os._exit(NOT_EXECUTABLE if isinstance(e, PermissionError) else NOT_FOUND)
