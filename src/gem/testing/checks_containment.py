"""What a report promises, tried by programs that mean no harm: they reach for what this process has put there.

Each knows only what a program could guess, and is judged by what arrived here, not by what it says.
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
from pathlib import Path

from gem.sandbox import Limits, Sandbox, Status
from gem.testing.check_sandbox import check
from gem.testing.checks_runs import HARMLESS, LATE_S, expect, require
from gem.testing.lab import Broken, Unchecked


@check("network", "No connection and no datagram reaches this machine.", guarantee="network")
def network(sandbox: Sandbox) -> None:
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
            raise Broken("a connection arrived")
        with contextlib.suppress(BlockingIOError):
            datagrams.recv(1)
            raise Broken("a datagram arrived")


@check("host-files", "Files of the host can be neither read nor written.", guarantee="files")
def host_files(sandbox: Sandbox) -> None:
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
            require(secret not in sandbox.run(code).stdout, f"it read a file in {parent}")
            require(not made.exists() and kept.read_text() == secret, f"it wrote a file in {parent}")


@check("host-settings", "Settings of the machine and of this Python cannot be changed.", guarantee="files")
def host_settings(sandbox: Sandbox) -> None:
    code = (
        "import os, sys\n"
        "for path in ('/proc/sys/kernel/core_pattern', '/proc/sys/vm/overcommit_memory', os.__file__, '/etc/passwd'):\n"
        "    try: os.close(os.open(path, os.O_WRONLY)); print('WRITABLE', path)\n"
        "    except OSError: pass\n"
        "for folder in [p for p in sys.path if os.path.isdir(p) and p != os.getcwd()]:\n"
        "    if os.access(folder, os.W_OK): print('WRITABLE', folder)\n"
    )
    result = expect(sandbox.run(code), Status.OK)
    require("WRITABLE" not in result.stdout, f"it may write: {result.stdout!r}")


@check("other-processes", "Processes outside can be neither seen nor signalled.", guarantee="processes")
def other_processes(sandbox: Sandbox) -> None:
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
            require(secret not in seen, "it saw the command line of a process outside")
            leaked = [name for name, value in os.environ.items() if name not in HARMLESS and f"{name}={value}" in seen]
            require(not leaked, f"a process that it sees has {leaked} of this environment")
            time.sleep(0.05)
            require(bystander.poll() is None, "it ended a process outside")
        finally:
            bystander.kill()


@check("nothing-left", "What a program starts ends with its run.", guarantee="processes")
def nothing_left(sandbox: Sandbox) -> None:
    if not os.path.isdir("/proc/self"):
        raise Unchecked("this system has no /proc to look for what was left")
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
    deadline = time.monotonic() + LATE_S
    while (left := _having(mark)) and time.monotonic() < deadline:
        time.sleep(0.02)
    for pid in left:
        os.kill(pid, 9)
    require(not left, f"a daemon outlived its run: {left}")


def _having(mark: str) -> list[int]:
    """Processes of this machine with this in their command line."""
    found = []
    for folder in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if folder.name.isdigit() and mark in Path(folder, "cmdline").read_text(errors="replace"):
                found.append(int(folder.name))
    return found


@check("no-files-left", "What a program writes is gone when the next one runs.", guarantee="files")
def no_files_left(sandbox: Sandbox) -> None:
    name = f"gem-check-{uuid.uuid4().hex}"
    places = ("", "/tmp/", "/var/tmp/", "/dev/shm/")
    sandbox.run(f"for place in {places}:\n    try: open(place + {name!r}, 'w').write('x')\n    except OSError: pass")
    result = sandbox.run(f"import os\nprint([place for place in {places} if os.path.exists(place + {name!r})])")
    expect(result, Status.OK, stdout="[]\n")


@check("memory", "A program that takes more memory than it may does not get it.", guarantee="memory")
def memory(sandbox: Sandbox) -> None:
    code = "data = bytearray(1 << 30)\nfor i in range(0, len(data), 4096): data[i] = 1\nprint('TOOK IT')"
    result = sandbox.run(code, limits=Limits(memory_bytes=256 << 20))
    refused = result.status is Status.MEMORY or (result.status is Status.ERROR and "MemoryError" in result.stderr)
    require(refused and "TOOK IT" not in result.stdout, f"it got 1 GiB of 256 MiB: {result}")


@check("disk", "A program that writes more than it may is stopped.", guarantee="disk")
def disk(sandbox: Sandbox) -> None:
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
    require(result.status is not Status.OK or int(result.stdout) <= 20, f"of 16 MiB it wrote {result.stdout.strip()}")


@check("cpu", "A program that uses more CPU than it may is ended, whatever signals it ignores.", guarantee="cpu")
def cpu(sandbox: Sandbox) -> None:
    code = "import signal\nsignal.signal(signal.SIGXCPU, signal.SIG_IGN)\nwhile True: pass"
    start = time.monotonic()
    expect(sandbox.run(code, limits=Limits(wall_s=20, cpu_s=1)), Status.TIMEOUT)
    require(time.monotonic() - start < 15, "the wall clock ended it, not the limit of CPU")


CHECKS = (
    network,
    host_files,
    host_settings,
    other_processes,
    nothing_left,
    no_files_left,
    memory,
    disk,
    cpu,
)
