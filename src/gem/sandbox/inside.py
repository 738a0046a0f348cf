"""What runs inside a sandbox that can only start commands: it sets the limits, lays out the files and does the job.

This file is sent as text to ``python -I -u -c`` and needs nothing but the standard library. On its stdin come the
length of a job in eight hexadecimal digits, the job as JSON, and then what the program itself is to read.
"""

from __future__ import annotations

import base64
import json
import os
import sys
import types
from collections.abc import Mapping, Sequence
from typing import Any

NOT_FOUND, NOT_EXECUTABLE = 127, 126  # exit codes of a shell
PACKAGE = "gem.sandbox.zygote"  # where the modules that are sent along come from


def main() -> None:
    job = json.loads(read_exactly(0, int(read_exactly(0, 8), 16)))
    set_limits(job["rlimits"])
    write_files(job["files"])
    load_modules(job.get("modules", {}))
    os.write(1, b"+")  # from here on the clock runs, and what fails is the program
    if "relay" in job:
        relay: Any = sys.modules["inside_relay"]
        relay.relay(job)
    elif "command" in job:
        execute(job["command"])
    else:
        program: Any = sys.modules["program"]
        program.run({"source": base64.b64decode(job["source"]), "unbuffered": True}, (0, 1, 2))


def read_exactly(fd: int, size: int) -> bytes:
    """Bytes from a descriptor, unbuffered: what follows them is the program's."""
    parts = []
    while size:
        part = os.read(fd, size)
        if not part:
            raise SystemExit("the sandbox was given no job")
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def set_limits(rlimits: Mapping[str, tuple[int, int]]) -> None:
    if rlimits:
        import resource

        for name, (soft, hard) in rlimits.items():
            resource.setrlimit(getattr(resource, name), (soft, hard))


def write_files(files: Mapping[str, str]) -> None:
    for path, content in files.items():
        if os.path.dirname(path):
            os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(base64.b64decode(content))


def load_modules(sources: Mapping[str, str]) -> None:
    """Modules of gem's that were sent along, in the order in which they need each other."""
    for package in ("gem", "gem.sandbox", PACKAGE):
        sys.modules.setdefault(package, types.ModuleType(package))
    for name, source in sources.items():
        module = sys.modules[name] = types.ModuleType(name)
        setattr(sys.modules[PACKAGE], name, module)  # by which they import each other
        module.__file__ = f"<{name}>"
        exec(compile(source, module.__file__, "exec", dont_inherit=True), module.__dict__)


def execute(command: Sequence[str]) -> None:
    """Become the command."""
    try:
        os.execvp(command[0], list(command))
    except OSError as e:
        sys.stderr.write(f"{command[0]}: {e.strerror}\n")
        os._exit(NOT_EXECUTABLE if isinstance(e, PermissionError) else NOT_FOUND)


if __name__ == "__main__":
    main()
