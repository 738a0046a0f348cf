"""Entry point inside a CommandSandbox: set the limits, write the files, and run the job.

This file is passed as text to ``python -I -u -c`` and needs only the standard library. Stdin holds the length of the
job as eight hexadecimal digits, the job as JSON, and then the stdin of the program.
"""

from __future__ import annotations

import base64
import json
import os
import sys
import types
from collections.abc import Mapping, Sequence
from typing import Any

NOT_FOUND, NOT_EXECUTABLE = 127, 126  # exit codes that shells use
PACKAGE = "gem.sandbox.zygote"  # package of the modules that come with a job


def main() -> None:
    job = json.loads(read_exactly(0, int(read_exactly(0, 8), 16)))
    set_limits(job["rlimits"])
    write_files(job["files"])
    load_modules(job.get("modules", {}))
    os.write(1, b"+")  # start signal: from here on the time limit applies and failures are the program's
    if "relay" in job:
        relay: Any = sys.modules["inside_relay"]
        relay.relay(job)
    elif "command" in job:
        execute(job["command"])
    else:
        program: Any = sys.modules["program"]
        program.run({"source": base64.b64decode(job["source"]), "unbuffered": True}, (0, 1, 2))


def read_exactly(fd: int, size: int) -> bytes:
    """Read from a descriptor without buffering, so that the bytes after it are left for the program."""
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
    """Write files below the working directory. A copy of zygote/limits.py, because this file runs without gem."""
    for path, content in files.items():
        if os.path.dirname(path):
            os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(base64.b64decode(content))


def load_modules(sources: Mapping[str, str]) -> None:
    """Load the gem modules that come with a job, given in import order."""
    for package in ("gem", "gem.sandbox", PACKAGE):
        sys.modules.setdefault(package, types.ModuleType(package))
    for name, source in sources.items():
        module = sys.modules[name] = types.ModuleType(name)
        setattr(sys.modules[PACKAGE], name, module)  # how they import each other
        module.__file__ = f"<{name}>"
        exec(compile(source, module.__file__, "exec", dont_inherit=True), module.__dict__)


def execute(command: Sequence[str]) -> None:
    """Replace this process by the command."""
    try:
        os.execvp(command[0], list(command))
    except OSError as e:
        sys.stderr.write(f"{command[0]}: {e.strerror}\n")
        os._exit(NOT_EXECUTABLE if isinstance(e, PermissionError) else NOT_FOUND)


if __name__ == "__main__":
    main()
