"""Runs the hidden tests of a repository inside a machine.

Prints a JSON array per function probe_* of the file probes.py: its name and the repr of its result, or the type of the
exception. With the argument "digests", it prints a hash instead of the repr, so that the output stays short.

Canary: gem-terminal-canary-5b1f6c2e-7d3a-4c0e-9a57-1e2d8f4b6a90
"""

import hashlib
import json
import os
import sys
from pathlib import Path
from typing import Any


def main(repository: str, hidden: str, form: str) -> None:
    out = os.dup(1)
    os.dup2(2, 1)  # what the code under test prints does not count
    sys.path.insert(0, repository)
    probes: dict[str, Any] = {"__name__": "probes"}
    exec(compile(Path(hidden, "probes.py").read_text(encoding="utf-8"), "probes.py", "exec"), probes)
    lines = []
    for name in [name for name in probes if name.startswith("probe_")]:
        try:
            result = repr(probes[name]())
        except Exception as e:
            result = f"raises {type(e).__name__}"
        lines.append(line(name, result, form))
    os.write(out, "".join(lines).encode())


def line(name: str, result: str, form: str) -> str:
    shown = hashlib.sha256(result.encode()).hexdigest()[:16] if form == "digests" else result
    return f"{json.dumps([name, shown])}\n"


if __name__ == "__main__":
    main(*sys.argv[1:])
