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

from gem.sandbox import Sandbox, Status
from gem.testing.check import Check, CheckFailed, CheckResult, Unchecked, check, require, run_checks
from gem.testing.sandbox import interference as sandbox_interference
from gem.testing.sandbox import limits as sandbox_limits
from gem.testing.sandbox import programs as sandbox_programs
from gem.testing.sandbox.limits import await_end
from gem.testing.sandbox.programs import SHARED_VARIABLES, expect, require_guarantee


def check_sandbox(
    sandbox: Sandbox,
    *,
    checks: Sequence[Check[Sandbox]] | None = None,
    started: Callable[[Check[Sandbox]], None] = lambda check: None,
) -> list[CheckResult]:
    """Check a sandbox against the contract of gem.sandbox.Sandbox, in about half a minute.

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
    require_guarantee(sandbox, "network")
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
    require_guarantee(sandbox, "files")
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
    require_guarantee(sandbox, "files")
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
    require_guarantee(sandbox, "processes")
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
    require_guarantee(sandbox, "processes")
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
    left = await_end(mark)
    require(not left, f"processes still running after the run: {left}")


@check("no-files-left", "Files written by a program are deleted before the next one runs.")
def no_files_left(sandbox: Sandbox) -> None:
    require_guarantee(sandbox, "files")
    name = f"gem-check-{uuid.uuid4().hex}"
    folders = ("", "/tmp/", "/var/tmp/", "/dev/shm/")
    sandbox.run(f"for folder in {folders}:\n    try: open(folder + {name!r}, 'w').write('x')\n    except OSError: pass")
    result = sandbox.run(f"import os\nprint([folder for folder in {folders} if os.path.exists(folder + {name!r})])")
    expect(result, Status.OK, stdout="[]\n")


CONTAINMENT_CHECKS: tuple[Check[Sandbox], ...] = (
    network,
    host_files,
    host_settings,
    other_processes,
    no_processes_left,
    no_files_left,
    *sandbox_limits.CHECKS,
    *sandbox_interference.CHECKS,
)
CHECKS: tuple[Check[Sandbox], ...] = (*sandbox_programs.CHECKS, *CONTAINMENT_CHECKS)
