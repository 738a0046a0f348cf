"""Choose the isolation level by testing which levels hold on this machine.

The test is a program that tries to escape from the sandbox. It has three outcomes: the level holds; it does not,
because the kernel refuses a system call that the level needs or the program escapes; or it could not be decided,
because of a momentary shortage of, for example, file descriptors. An undecided test is repeated and then raises
SandboxError, so that a shortage never leads to a lower level.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import logging
import os
import platform
import resource
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from gem._internal.inbound import MESSAGE, loads
from gem.errors import BadValue, SandboxError, did_you_mean
from gem.sandbox.forkserver import syscalls
from gem.sandbox.forkserver.host.execution import SetupFailed, execute
from gem.sandbox.forkserver.host.launch import Zygote
from gem.sandbox.forkserver.limits import cgroup
from gem.sandbox.forkserver.limits.limits import enforced_by
from gem.sandbox.inputs import Job
from gem.sandbox.machine import SHELL_PATH
from gem.sandbox.results import Limits, Report, Result, Status

LEVELS = ("ns", "lsm", "basic")  # from the highest to the lowest isolation
LOWEST_DEFAULT = "lsm"
PAUSES_S = (0.1, 0.3, 1.0, 2.0)  # before the test is repeated
FEW_FILES = 64  # open files; with less, machines do not work, and levels may not be testable
PATIENCE_S = 60.0  # a test that is undecided after this time is not repeated
# What a system call reports during a shortage. All other errors are decisions of the kernel.
SHORTAGES = frozenset(
    getattr(errno, name)
    for name in syscalls.words("EAGAIN EDQUOT EFBIG EINTR EIO EMFILE ENFILE ENOBUFS ENOMEM ENOSPC ETIMEDOUT")
)
_PROCESS_LIMIT, _FORKS = 8, 200
_logger = logging.getLogger(__name__)

# Attempts actions that an isolated program must not be able to perform, and prints the error number of each; 0 means
# that it succeeded.
_PROGRAM = """
import json, os, socket, time

def attempt(act, *arguments):
    try:
        act(*arguments)
    except OSError as e:
        return e.errno
    return 0

def start_processes():
    for _ in range({most}):
        if os.fork() == 0:
            time.sleep(60)
    time.sleep(1)  # in which a run with too many processes is killed

attempts = {{
    "reach a network": attempt(socket.socket, socket.AF_INET, socket.SOCK_DGRAM),
    "read the host's files": attempt(open, {secret!r}),
    "write among the host's files": attempt(open, {beside!r}, "w"),
}}
if not {own_pids}:
    attempts["signal the host's processes"] = attempt(os.kill, {host}, 0)
with open("file", "w") as file:
    file.write("x")
print(json.dumps({{"attempts": attempts, "pid": os.getpid()}}), flush=True)
print(attempt(start_processes), flush=True)
"""
MACHINES = "a private root in a tmpfs, with the system's folders read-only"
_REMEDIES = {
    "linux": """
install bubblewrap (the package "bubblewrap") and name it: make_sandbox("bubblewrap"), or sandbox_type="bubblewrap"
in a container, allow user namespaces or Landlock, for example: docker run --security-opt seccomp=unconfined \
--security-opt apparmor=unconfined --security-opt systempaths=unconfined""",
    "all": """
use a container or another machine: make_sandbox("docker"), "podman" or "remote"
or accept that programs can read and change your files and use your network: GEM_SANDBOX_LEVEL=basic""",
}
_COMMON: dict[str, str | None] = {
    "wall": "the host's clock",
    "output": "counted as it is read",
}
_GUARANTEES: dict[str, dict[str, str | None]] = {
    "ns": {
        "network": "no interfaces (network namespace), only socket pairs (seccomp)",
        "files": "a separate root in which only /tmp and /dev/shm are writable (mount namespace)",
        "processes": "a pid namespace",
        "kernel": "seccomp, no capabilities",
        **_COMMON,
    },
    "lsm": {
        "network": "only socket pairs (seccomp)",
        "files": "libraries are readable, a private folder is writable (Landlock)",
        "processes": "a process group that cannot be left (seccomp)",
        "kernel": "seccomp, no capabilities",
        **_COMMON,
    },
    "basic": {
        "network": None,
        "files": None,
        "processes": None,
        "kernel": None,
        **_COMMON,
    },
}


def choose(level: str = "auto", require: str | None = None) -> str:
    """Return the level at which to run programs. Logs a warning, once per process, if programs are less isolated.

    Args:
        level: a level, or "auto": GEM_SANDBOX_LEVEL if it is set and not empty, else the highest level that holds.
        require: lowest acceptable level. None means the level that is named, or "lsm" if none is named.

    Raises:
        BadValue: if there is no such level.
        SandboxError: if no acceptable level holds on this machine, or if that cannot be decided at the moment.
    """
    if level == "auto":
        level = os.environ.get("GEM_SANDBOX_LEVEL") or "auto"
    for name, known in ((level, ("auto", *LEVELS)), (require or LOWEST_DEFAULT, LEVELS)):
        if name not in known:
            raise BadValue(f"no level {name!r}{did_you_mean(name, known)}  (available: {', '.join(known)})")
    named = level != "auto"
    lowest = require or (level if named else LOWEST_DEFAULT)
    acceptable = LEVELS[: LEVELS.index(lowest) + 1]
    if named and level not in acceptable:
        raise SandboxError(f"level {require!r} is required, got {level!r}")
    tried = (level,) if named else acceptable
    found = next((name for name in tried if not why_not(name)), None)
    if found is None:
        reasons = "; ".join(map(why_not, tried))
        raise SandboxError(reasons if named or require else f"no isolation is available here: {reasons}{_remedies()}")
    if found == "basic":
        _warn("sandbox level 'basic' does not isolate programs: they have your file and network access")
    elif found != tried[0]:
        _warn(f"using sandbox level {found!r}, because {why_not(tried[0])}; GEM_SANDBOX_LEVEL={found} accepts that")
    return found


@functools.cache
def _warn(message: str) -> None:
    """Log a warning, once per process."""
    _logger.warning(message)


def _remedies() -> str:
    return (_REMEDIES["linux"] if sys.platform == "linux" else "") + _REMEDIES["all"]


@functools.cache
def why_not(level: str) -> str:
    """Return the reason why a level does not hold on this machine, or "" if it holds. Cached, unless it raises.

    Raises:
        SandboxError: if several tests could not decide it.
    """
    if level == "basic":
        return ""
    if sys.platform != "linux":
        return f"level {level!r} requires Linux, this is {platform.system()}"
    if not syscalls.SUPPORTED:
        return f"level {level!r} requires x86_64 or aarch64, this is {platform.machine()}"
    give_up, pauses_s = time.monotonic() + PATIENCE_S, iter(PAUSES_S)
    while True:
        try:
            reason = _test(level)
            return reason and f"level {level!r} is not available: {reason}"
        except (SandboxError, OSError) as e:
            pause_s = next(pauses_s, None)
            if pause_s is None or time.monotonic() > give_up:
                raise SandboxError(
                    f"could not test whether sandbox level {level!r} holds: {e}; {_files_hint()}try again, or name "
                    "another level with GEM_SANDBOX_LEVEL"
                ) from e
            time.sleep(pause_s)


def _files_hint(*, hard: bool = False) -> str:
    """Return what to do about a low limit on open files, which fork servers raise to the hard one; empty if not low."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[hard]
    low = 0 <= most < FEW_FILES
    return f"at most {most} files may be open: raise that with ulimit -n {4 * FEW_FILES}, " if low else ""


def report(level: str) -> Report:
    """Report what a level enforces, and why the higher levels are not available."""
    notes = [_reason(higher) or f"level {higher!r} is available" for higher in LEVELS[: LEVELS.index(level)]]
    if level == "basic":
        notes.append("programs can read and change whatever their user can, use the network and leave IPC objects")
    elif level == "lsm" and os.getuid() == 0:
        notes.append("not enforced: programs can set times of devices, and of readable files that anyone may write to")
    elif level == "lsm":
        notes.append("modes, times and attributes that programs set have no effect: Landlock does not cover them")
    if "freeze" not in cgroup.available():
        notes.append("not enforced: processes that continue each other are not stopped between the cells of a session")
    if os.getuid() != 0:
        notes.append(
            "not enforced: what the kernel limits by user, such as memory of pipes and descriptors in flight, is shared"
        )
    machines = MACHINES if level == "ns" and bash() and not _files_hint(hard=True) else None
    if machines is None:
        notes.append(f"no machines: they need level 'ns', bash and {FEW_FILES} open files")
    return Report("zygote", level, {**_GUARANTEES[level], **enforced_by(level)}, notes, machines)


def _reason(level: str) -> str:
    """Return why_not(), or the reason why it could not be decided."""
    try:
        return why_not(level)
    except SandboxError as e:
        return str(e)


@functools.cache
def bash() -> str:
    """Return the path of bash, which machines need; empty if it is not installed."""
    found = shutil.which("bash", path=SHELL_PATH)
    return os.path.realpath(found) if found else ""


def require_machines(level: str) -> None:
    """Raise SandboxError, with one line that says what to do, if a level has no machines here."""
    if level != "ns":
        reason = why_not("ns") or f"the sandbox was asked for level {level!r}; ask for 'ns', which holds here"
        raise SandboxError(
            f"a machine needs namespaces of users and mounts, which sandbox level {level!r} does not use: {reason}; "
            "where the kernel refuses them, run gem in podman with --security-opt seccomp=unconfined --security-opt "
            "apparmor=unconfined --security-opt systempaths=unconfined"
        )
    if not bash():
        raise SandboxError(f"a machine needs bash, which is not in {SHELL_PATH}; install the package bash")
    if hint := _files_hint(hard=True):
        raise SandboxError(f"a machine needs {FEW_FILES} open files; {hint}and try again")


def run_once(level: str, source: bytes, limits: Limits) -> Result:
    """Start a fork server, run one program on it, and close the server.

    Raises:
        SandboxError: if the level is not available or the program could not be run.
    """
    server = Zygote(level)
    try:
        server.wait_until_ready()
        return execute(server.launch, Job(program=source, limits=limits))
    finally:
        server.close()


def _test(level: str) -> str:
    """Run the test program once. Returns why the level does not hold, or "" if it holds.

    Raises:
        SandboxError: if it could not be decided.
    """
    folder = tempfile.mkdtemp(prefix="gem-probe-")
    secret, beside = f"{folder}/secret", f"{folder}/new"
    try:
        os.chmod(folder, 0o755)  # for all users, so that it is the level that refuses to read
        Path(secret).write_text("secret")
        values: dict[str, Any] = {"secret": secret, "beside": beside, "host": os.getpid()}
        source = _PROGRAM.format(**values, own_pids=level == "ns", most=_FORKS)
        return _escapes(level, run_once(level, source.encode(), Limits(processes=_PROCESS_LIMIT, wall_s=30)))
    except SetupFailed as e:
        short = e.errno in SHORTAGES and not (e.errno == errno.ENOSPC and _namespaces_are_disabled())
        if short or e.errno is None:
            raise
        return e.reason
    finally:
        for path in (secret, beside):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)  # by name: tempfile opens the folder to empty it, for which no descriptor may be left
        os.rmdir(folder)


def _escapes(level: str, result: Result) -> str:
    """Return what the test program could do that it must not, or "".

    Raises:
        SandboxError: if the program did not end, or met a shortage.
    """
    line, _, forked = result.stdout.partition("\n")
    try:
        found = loads(line, "the output", MESSAGE)
    except ValueError:
        raise SandboxError(f"a test program ended with {result.status}: {result.stderr.strip()[-300:]}") from None
    attempts: dict[str, int] = found["attempts"]
    if forked.strip() not in ("", str(errno.EAGAIN)):  # nothing: killed; EAGAIN: refused
        attempts["start unlimited processes"] = int(forked)
    can = [what for what, error in attempts.items() if error == 0]
    if level == "ns" and found["pid"] != 1:
        can.append("see other processes")
    if can:
        return f"a program can {', '.join(can)}"
    if short := [errno.errorcode[error] for error in attempts.values() if error in SHORTAGES]:
        raise SandboxError(f"a test program met {short[0]}")
    if result.status is Status.TIMEOUT:
        raise SandboxError("a test program timed out")
    return ""


def _namespaces_are_disabled() -> bool:
    """Whether an administrator has set the limit of a kind of namespaces to 0, which unshare() reports as ENOSPC."""
    return any(file.read_text().strip() == "0" for file in Path("/proc/sys/user").glob("max_*_namespaces"))
