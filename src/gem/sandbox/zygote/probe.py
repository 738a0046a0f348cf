"""Test which isolation levels work on this machine by running a program that tries to escape from the sandbox."""

from __future__ import annotations

import functools
import json
import os
import platform
import sys
import tempfile
from pathlib import Path
from typing import Any

from gem.errors import SandboxError
from gem.sandbox.base import Limits, Report, Result
from gem.sandbox.zygote.execution import run_once

LEVELS = ("ns", "lsm", "basic")  # from the highest to the lowest isolation
_PROCESS_LIMIT, _FORKS = 8, 200

# Attempts actions that an isolated program must not be able to perform, and prints those that succeeded.
_PROGRAM = """
import json, os, signal, socket, time

def can(act, *arguments):
    try:
        act(*arguments)
        return True
    except OSError:
        return False

def start_processes():
    for _ in range({most}):
        if os.fork() == 0:
            time.sleep(60)

can_do = {{
    "reach a network": can(socket.socket, socket.AF_INET, socket.SOCK_DGRAM),
    "read the host's files": can(open, {secret!r}),
    "write among the host's files": can(open, {beside!r}, "w"),
    "signal the host's processes": can(os.kill, {host}, 0) and not {own_pids},
}}
with open("file", "w") as file:
    file.write("x")
print(json.dumps({{"can": [what for what, so in can_do.items() if so], "pid": os.getpid()}}), flush=True)
if can(start_processes):
    print("unlimited", flush=True)
"""

_COMMON: dict[str, str | None] = {
    "memory": "RLIMIT_AS per process; the total is monitored",
    "cpu": "RLIMIT_CPU per process; the total is monitored",
    "wall": "the host's clock",
    "output": "counted as it is read",
}
_GUARANTEES: dict[str, dict[str, str | None]] = {
    "ns": {
        "network": "no interfaces (network namespace), only socket pairs (seccomp)",
        "files": "a separate root in which only /tmp and /dev/shm are writable (mount namespace)",
        "processes": "a pid namespace; RLIMIT_NPROC in a separate user namespace",
        "disk": "the size of a tmpfs",
        "kernel": "seccomp, no capabilities",
        **_COMMON,
    },
    "lsm": {
        "network": "only socket pairs (seccomp)",
        "files": "libraries are readable, a private folder is writable (Landlock)",
        "processes": "a process group that cannot be left (seccomp); RLIMIT_NPROC, the total is monitored",
        "disk": "RLIMIT_FSIZE per file; the folder is monitored",
        "kernel": "seccomp, no capabilities",
        **_COMMON,
    },
    "basic": {
        "network": None,
        "files": None,
        "processes": None,
        "disk": "RLIMIT_FSIZE per file; the folder is monitored",
        "kernel": None,
        **_COMMON,
    },
}


def best_level() -> str:
    """Return the highest level available on this machine."""
    return next((level for level in LEVELS[:-1] if not why_not(level)), LEVELS[-1])


@functools.cache
def why_not(level: str) -> str:
    """Return the reason why a level is not available on this machine, or "" if it is available. Cached."""
    if level == "basic":
        return ""
    if sys.platform != "linux":
        return f"level {level!r} requires Linux, this is {platform.system()}"
    try:
        with tempfile.TemporaryDirectory(prefix="gem-probe-") as folder:
            return _failure(level, _probe(level, Path(folder)))
    except (SandboxError, OSError) as e:
        return str(e)


def report(level: str) -> Report:
    """Report what a level enforces, and why the higher levels are not available."""
    notes = [reason for higher in LEVELS[: LEVELS.index(level)] if (reason := why_not(higher))]
    best = best_level()
    if best != level:
        notes.append(f"level {level!r} was requested; {best!r} is available")
    if level == "basic":
        notes.append("programs can read and change whatever their user can, and use the network")
    return Report("zygote", level, dict(_GUARANTEES[level]), notes)


def _probe(level: str, folder: Path) -> Result:
    """Create a file that isolated programs must not be able to read, and run the test program."""
    secret = folder / "secret"
    secret.write_text("secret")
    own_pids = level == "ns"
    values: dict[str, Any] = {"secret": str(secret), "beside": str(folder / "new"), "host": os.getpid()}
    source = _PROGRAM.format(**values, own_pids=own_pids, most=_FORKS)
    return run_once(level, source.encode(), Limits(processes=_PROCESS_LIMIT, wall_s=30))


def _failure(level: str, result: Result) -> str:
    """Return the reason why a level is not available, given the test program's result, or "" if it is available."""
    line, _, rest = result.stdout.partition("\n")
    try:
        found = json.loads(line)
    except ValueError:
        why = f"{result.status}: {result.stderr.strip()[-300:]}"
        return f"level {level!r} is not available: a test program ended with {why}"
    if level == "ns" and found["pid"] != 1:
        found["can"].append("see other processes")
    if rest:
        found["can"].append("start unlimited processes")
    if found["can"]:
        return f"level {level!r} is not available: a program can {', '.join(found['can'])}"
    return ""
