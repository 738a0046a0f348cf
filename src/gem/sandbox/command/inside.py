"""Entry point inside a CommandSandbox: set the limits, write the files, and run the job.

This file is passed as text to ``python -I -u -c`` and uses only the standard library. Stdin consists of the length of
the job as eight hexadecimal digits, the job as JSON, and the stdin of the program.
"""

from __future__ import annotations

import base64
import json
import os
import sys
import types
from collections.abc import Mapping, Sequence
from typing import Any

NOT_FOUND, NOT_EXECUTABLE = 127, 126  # exit codes that shells use for these errors
PACKAGE = "gem.sandbox.forkserver.entry"  # package of the modules that are sent with a job


def main() -> None:
    job = json.loads(read_exactly(0, int(read_exactly(0, 8), 16)))
    set_limits(job["rlimits"])
    write_files(job["files"])
    load_modules(job.get("modules", {}))
    os.write(1, b"+")  # start signal: from here on the time limit applies, and failures are attributed to the program
    if "relay" in job:
        relay: Any = sys.modules["inside_relay"]
        relay.relay(job)
    elif "command" in job:
        execute(job["command"])
    else:
        program: Any = sys.modules["program"]
        program.run({"source": base64.b64decode(job["source"]), "unbuffered": True}, (0, 1, 2))


def read_exactly(fd: int, size: int) -> bytes:
    """Read exactly ``size`` bytes without buffering, so that the program can read the bytes that follow."""
    parts = []
    while size:
        part = os.read(fd, size)
        if not part:
            raise SystemExit("the sandbox received no job")
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def set_limits(rlimits: Mapping[str, tuple[int, int]]) -> None:
    if rlimits:
        import resource

        for name, (soft, hard) in rlimits.items():
            resource.setrlimit(getattr(resource, name), (soft, hard))


def write_files(files: Mapping[str, str]) -> None:
    """Write base64-encoded files. Repeats forkserver/limits/limits.py, because this file runs without gem."""
    for path, content in files.items():
        if os.path.dirname(path):
            os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(base64.b64decode(content))


def load_modules(sources: Mapping[str, str]) -> None:
    """Create the gem modules that are sent with a job, in the given order."""
    for package in ("gem", "gem.sandbox", "gem.sandbox.forkserver", PACKAGE):
        sys.modules.setdefault(package, types.ModuleType(package))
    for name, source in sources.items():
        module = sys.modules[name] = types.ModuleType(name)
        setattr(sys.modules[PACKAGE], name, module)  # the modules import each other from PACKAGE
        module.__file__ = f"<{name}>"
        exec(compile(source, module.__file__, "exec", dont_inherit=True), module.__dict__)


def execute(command: Sequence[str]) -> None:
    """Replace this process with the command. Exits with a shell's exit code if the command cannot be run."""
    try:
        os.execvp(command[0], list(command))
    except OSError as e:
        sys.stderr.write(f"{command[0]}: {e.strerror}\n")
        os._exit(NOT_EXECUTABLE if isinstance(e, PermissionError) else NOT_FOUND)


if __name__ == "__main__":
    main()
