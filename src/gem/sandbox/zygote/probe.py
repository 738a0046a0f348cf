"""Which level of containment holds on this machine: found out by running a program at it, never by reading settings."""

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

LEVELS = ("ns", "lsm", "basic")  # from the highest
_PROCESSES, _WITHOUT_END = 8, 200

# Tries what a contained program must not be able to do, and says what it could.
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
    print("without end", flush=True)
"""

_WATCHED = "RLIMIT_AS of each process; the whole is watched"
_COMMON: dict[str, str | None] = {
    "memory": _WATCHED,
    "cpu": "RLIMIT_CPU of each process; the whole is watched",
    "wall": "the host's clock",
    "output": "counted while it is read",
}
_GUARANTEES: dict[str, dict[str, str | None]] = {
    "ns": {
        "network": "no interfaces (network namespace), no sockets but pairs (seccomp)",
        "files": "a root of its own, of which only /tmp and /dev/shm are writable (mount namespace)",
        "processes": "a process namespace; RLIMIT_NPROC in a user namespace of its own",
        "disk": "the size of a tmpfs",
        "kernel": "seccomp, no capabilities",
        **_COMMON,
    },
    "lsm": {
        "network": "no sockets but pairs (seccomp)",
        "files": "libraries to read, a folder of its own to write (Landlock)",
        "processes": "a process group that cannot be left (seccomp); RLIMIT_NPROC, the whole is watched",
        "disk": "RLIMIT_FSIZE of each file; the folder is watched",
        "kernel": "seccomp, no capabilities",
        **_COMMON,
    },
    "basic": {
        "network": None,
        "files": None,
        "processes": None,
        "disk": "RLIMIT_FSIZE of each file; the folder is watched",
        "kernel": None,
        **_COMMON,
    },
}


def best_level() -> str:
    """The highest level that holds."""
    return next((level for level in LEVELS[:-1] if not why_not(level)), LEVELS[-1])


@functools.cache
def why_not(level: str) -> str:
    """Why a level does not hold here; empty where it does. The answer is found once in a process."""
    if level == "basic":
        return ""
    if sys.platform != "linux":
        return f"level {level!r} needs Linux, and this is {platform.system()}"
    try:
        with tempfile.TemporaryDirectory(prefix="gem-probe-") as folder:
            return _judged(level, _probed(level, Path(folder)))
    except (SandboxError, OSError) as e:
        return str(e)


def report(level: str) -> Report:
    """What holds at a level, and why the level is no higher."""
    notes = [reason for higher in LEVELS[: LEVELS.index(level)] if (reason := why_not(higher))]
    best = best_level()
    if best != level:
        notes.append(f"level {level!r} was asked for; {best!r} would hold")
    if level == "basic":
        notes.append("programs can read and change whatever their user can, and reach the network")
    return Report("zygote", level, dict(_GUARANTEES[level]), notes)


def _probed(level: str, folder: Path) -> Result:
    """Run the program, in the presence of a file that it must not read."""
    secret = folder / "secret"
    secret.write_text("secret")
    own_pids = level == "ns"
    values: dict[str, Any] = {"secret": str(secret), "beside": str(folder / "new"), "host": os.getpid()}
    source = _PROGRAM.format(**values, own_pids=own_pids, most=_WITHOUT_END)
    return run_once(level, source.encode(), Limits(processes=_PROCESSES, wall_s=30))


def _judged(level: str, result: Result) -> str:
    """Why a level does not hold, from what the program did at it."""
    line, _, rest = result.stdout.partition("\n")
    try:
        found = json.loads(line)
    except ValueError:
        why = f"{result.status}: {result.stderr.strip()[-300:]}"
        return f"level {level!r} does not hold here: a program ended with {why}"
    if level == "ns" and found["pid"] != 1:
        found["can"].append("see other processes")
    if rest:
        found["can"].append("start processes without end")
    if found["can"]:
        return f"level {level!r} does not hold here: a program can {', '.join(found['can'])}"
    return ""
