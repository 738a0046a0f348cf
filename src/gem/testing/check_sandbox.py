"""check_sandbox() and the containment checks: a program cannot access the host or exceed its resource limits.

The programs that these checks run are harmless; hostile programs are in tests/sandbox. Where possible, a check inspects
the host instead of relying on what the program prints.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path

from gem.sandbox import Limits, Sandbox, Status
from gem.testing import sandbox_programs
from gem.testing.check import Check, CheckFailed, CheckResult, Unchecked, check, require, run_checks
from gem.testing.sandbox_programs import GRACE_S, SHARED_VARIABLES, expect


def check_sandbox(
    sandbox: Sandbox,
    *,
    checks: Sequence[Check[Sandbox]] | None = None,
    started: Callable[[Check[Sandbox]], None] = lambda check: None,
) -> list[CheckResult]:
    """Check a sandbox against the contract of gem.sandbox.Sandbox, in about ten seconds.

    Args:
        sandbox: a sandbox of any backend. check_sandbox() does not close the sandbox.
        checks: the checks to run; None runs all checks in CHECKS.
        started: called with each check before the check runs.

    Returns:
        One result per check. If the sandbox does not enforce a guarantee, the checks of this guarantee are
        "unchecked". Exceptions raised by the sandbox are reported as failures.
    """
    return run_checks(CHECKS if checks is None else checks, sandbox, started=started)


@check("network", "A program cannot connect or send datagrams to the host.")
def network(sandbox: Sandbox) -> None:
    _require_guarantee(sandbox, "network")
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(type=socket.SOCK_DGRAM) as datagrams:
        datagrams.bind(("127.0.0.1", 0))
        server.setblocking(False)
        datagrams.setblocking(False)
        code = (
            "import socket\n"
            f"try: socket.create_connection(('127.0.0.1', {server.getsockname()[1]}), 1)\n"
            "except OSError as e: print(e)\n"
            f"try: socket.socket(type=socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', {datagrams.getsockname()[1]}))\n"
            "except OSError as e: print(e)\n"
        )
        sandbox.run(code)
        with contextlib.suppress(BlockingIOError):
            server.accept()[0].close()
            raise CheckFailed("the host received a connection")
        with contextlib.suppress(BlockingIOError):
            datagrams.recv(1)
            raise CheckFailed("the host received a datagram")


@check("host-files", "A program can neither read nor write files of the host.")
def host_files(sandbox: Sandbox) -> None:
    _require_guarantee(sandbox, "files")
    secret = uuid.uuid4().hex
    for parent in {Path.home(), Path(tempfile.gettempdir())}:
        with contextlib.suppress(OSError), tempfile.TemporaryDirectory(prefix=".gem-check-", dir=parent) as folder:
            kept, made = Path(folder, "kept"), Path(folder, "made")
            kept.write_text(secret)
            code = (
                f"try: print(open({str(kept)!r}).read())\nexcept OSError as e: print(e)\n"
                f"try: open({str(made)!r}, 'w').write('x')\nexcept OSError as e: print(e)\n"
                f"try: open({str(kept)!r}, 'a').write('x')\nexcept OSError as e: print(e)\n"
            )
            require(secret not in sandbox.run(code).stdout, f"the program read a file in {parent}")
            require(not made.exists() and kept.read_text() == secret, f"the program wrote a file in {parent}")


@check("host-settings", "A program cannot change kernel settings, system files or the Python installation.")
def host_settings(sandbox: Sandbox) -> None:
    _require_guarantee(sandbox, "files")
    code = (
        "import os, sys\n"
        "for path in ('/proc/sys/kernel/core_pattern', '/proc/sys/vm/overcommit_memory', os.__file__, '/etc/passwd'):\n"
        "    try: os.close(os.open(path, os.O_WRONLY)); print('WRITABLE', path)\n"
        "    except OSError: pass\n"
        "for folder in [p for p in sys.path if os.path.isdir(p) and p != os.getcwd()]:\n"
        "    if os.access(folder, os.W_OK): print('WRITABLE', folder)\n"
    )
    result = expect(sandbox.run(code), Status.OK)
    require("WRITABLE" not in result.stdout, f"the program can write: {result.stdout!r}")


@check("other-processes", "A program can neither see nor signal processes outside the sandbox.")
def other_processes(sandbox: Sandbox) -> None:
    _require_guarantee(sandbox, "processes")
    secret = uuid.uuid4().hex
    with subprocess.Popen([sys.executable, "-I", "-S", "-c", "input()", secret], stdin=subprocess.PIPE) as bystander:
        try:
            code = (
                "import os, signal\n"
                "for pid in [p for p in os.listdir('/proc') if p.isdigit()]:\n"
                "    for name in ('cmdline', 'environ'):\n"
                "        try: print(open(f'/proc/{pid}/{name}').read())\n"
                "        except OSError: pass\n"
                f"if {bystander.pid} != os.getpid():\n"
                f"    try: os.kill({bystander.pid}, signal.SIGKILL)\n"
                "    except OSError: pass\n"
            )
            seen = sandbox.run(code).stdout
            require(secret not in seen, "the program read the command line of an outside process")
            leaked = [
                name for name, value in os.environ.items() if name not in SHARED_VARIABLES and f"{name}={value}" in seen
            ]
            require(not leaked, f"the program can read {leaked} from the environment of a process")
            time.sleep(0.05)
            require(bystander.poll() is None, "the program killed an outside process")
        finally:
            bystander.kill()


@check("no-processes-left", "All processes that a program started are killed when its run ends.")
def no_processes_left(sandbox: Sandbox) -> None:
    _require_guarantee(sandbox, "processes")
    if not os.path.isdir("/proc/self"):
        raise Unchecked("this system has no /proc, so leftover processes cannot be found")
    mark = f"gem-check-{uuid.uuid4().hex}"
    code = (
        "import os, sys\n"
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        f"    if os.fork() == 0: os.execv('/bin/sh', ['/bin/sh', '-c', 'sleep 600; : {mark}'])\n"
        "    os._exit(0)\n"
        "import time; time.sleep(0.3)\n"
    )
    sandbox.run(code)
    deadline = time.monotonic() + GRACE_S
    while (left := _processes_with(mark)) and time.monotonic() < deadline:
        time.sleep(0.02)
    for pid in left:
        os.kill(pid, 9)
    require(not left, f"processes still running after the run: {left}")


def _processes_with(mark: str) -> list[int]:
    """Return the ids of the host's processes whose command line contains the mark."""
    found = []
    for folder in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if folder.name.isdigit() and mark in Path(folder, "cmdline").read_text(errors="replace"):
                found.append(int(folder.name))
    return found


@check("no-files-left", "Files written by a program are deleted before the next one runs.")
def no_files_left(sandbox: Sandbox) -> None:
    _require_guarantee(sandbox, "files")
    name = f"gem-check-{uuid.uuid4().hex}"
    folders = ("", "/tmp/", "/var/tmp/", "/dev/shm/")
    sandbox.run(f"for folder in {folders}:\n    try: open(folder + {name!r}, 'w').write('x')\n    except OSError: pass")
    result = sandbox.run(f"import os\nprint([folder for folder in {folders} if os.path.exists(folder + {name!r})])")
    expect(result, Status.OK, stdout="[]\n")


@check("memory", "A program cannot allocate more memory than its limit.")
def memory(sandbox: Sandbox) -> None:
    _require_guarantee(sandbox, "memory")
    code = "data = bytearray(1 << 30)\nfor i in range(0, len(data), 4096): data[i] = 1\nprint('TOOK IT')"
    result = sandbox.run(code, limits=Limits(memory_bytes=256 << 20))
    refused = result.status is Status.MEMORY or (result.status is Status.ERROR and "MemoryError" in result.stderr)
    require(refused and "TOOK IT" not in result.stdout, f"allocated 1 GiB with a limit of 256 MiB: {result}")


@check("disk", "A program cannot write more to disk than its limit.")
def disk(sandbox: Sandbox) -> None:
    _require_guarantee(sandbox, "disk")
    code = (
        "total = 0\n"
        "for name in ('one', '/tmp/two', '/dev/shm/three'):\n"
        "    try:\n"
        "        for number in range(40):\n"
        "            with open(f'{name}{number}', 'wb', 0) as file:\n"
        "                total += file.write(bytes(1 << 20))\n"
        "    except OSError: pass\n"
        "import time; time.sleep(0.5)\n"
        "print(total >> 20)\n"
    )
    result = sandbox.run(code, limits=Limits(disk_bytes=16 << 20))
    require(
        result.status is not Status.OK or int(result.stdout) <= 20,
        f"the program wrote {result.stdout.strip()} MiB with a limit of 16 MiB",
    )


@check("cpu", "A program that exceeds its CPU time is killed even if it ignores signals.")
def cpu(sandbox: Sandbox) -> None:
    _require_guarantee(sandbox, "cpu")
    code = "import signal\nsignal.signal(signal.SIGXCPU, signal.SIG_IGN)\nwhile True: pass"
    start = time.monotonic()
    expect(sandbox.run(code, limits=Limits(wall_s=20, cpu_s=1)), Status.TIMEOUT)
    require(time.monotonic() - start < 15, "the wall-clock limit ended the program, not the CPU limit")


def _require_guarantee(sandbox: Sandbox, guarantee: str) -> None:
    """Raise Unchecked if the sandbox does not enforce this guarantee."""
    if sandbox.report().guarantees.get(guarantee) is None:
        raise Unchecked(f"the sandbox does not guarantee {guarantee!r}")


CONTAINMENT_CHECKS: tuple[Check[Sandbox], ...] = (
    network,
    host_files,
    host_settings,
    other_processes,
    no_processes_left,
    no_files_left,
    memory,
    disk,
    cpu,
)
CHECKS: tuple[Check[Sandbox], ...] = (*sandbox_programs.CHECKS, *CONTAINMENT_CHECKS)
