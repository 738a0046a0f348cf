"""The host side of a fork server: start and stop it, and launch runs."""

from __future__ import annotations

import errno
import json
import os
import socket
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from gem.errors import SandboxError
from gem.sandbox.forkserver.host.execution import START_S, Launch, NewRun, ServerDied, SetupFailed, readable
from gem.sandbox.forkserver.limits import cgroup
from gem.sandbox.forkserver.limits.monitor import TESTS
from gem.sandbox.forkserver.protocol import CONTROL, RunRequest, ServerSettings, job_file
from gem.sandbox.output import decoded_message, descriptors

DEATH_S = 10.0  # time for a server to exit after its control socket was closed
_GEM = Path(__file__).resolve().parents[3]
# Runs server.py without importing any part of gem besides this package.
_BOOT = """
import json, sys, types
for name, path in json.loads(sys.argv[3]).items():
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = [path]
from gem.sandbox.forkserver import protocol
from gem.sandbox.forkserver.server import server
server.main(int(sys.argv[1]), protocol.ServerSettings(**json.loads(sys.argv[2])))
"""
_PACKAGES = {
    "gem": str(_GEM),
    "gem.sandbox": str(_GEM / "sandbox"),
    "gem.sandbox.forkserver": str(_GEM / "sandbox" / "forkserver"),
}
# Threads of numerical libraries would make forking unsafe, and malloc arenas use address space per thread. With
# LD_BIND_NOW, symbols are bound once in the server instead of in every fork.
_ENVIRONMENT = {
    "LD_BIND_NOW": "1",
    "LANG": "C.UTF-8",
    "LC_ALL": "C.UTF-8",
    "MALLOC_ARENA_MAX": "2",
    "MPLBACKEND": "Agg",
    **dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1"),
}


class Zygote:
    """A fork server. The server starts in the background; call wait_until_ready() before launch().

    Args:
        level: "ns", "lsm" or "basic".
        modules: names of modules that the server imports before its first run.
        network: whether runs have network access.

    Raises:
        SandboxError: if no interpreter can be started.
    """

    def __init__(self, level: str, *, modules: Sequence[str] = (), network: bool = False) -> None:
        self.level = level
        self._lock = threading.Lock()
        settings = ServerSettings(
            level=level,
            modules=list(modules),
            readable=readable_folders(),
            hidden=str(_GEM),  # the package contains expected outputs of built-in tasks
            path=program_path(),
            folder=os.path.abspath(tempfile.gettempdir()),
            network=network,
            cgroups=os.environ.get(cgroup.SETTING) != "0",
        )
        with descriptors():
            self._control, theirs = socket.socketpair(socket.AF_UNIX, CONTROL)
        try:
            with theirs:
                self._process = _start(theirs.fileno(), settings)
        except BaseException:
            self._control.close()
            raise
        self.pid = self._process.pid

    @property
    def alive(self) -> bool:
        """Whether the server is running, as far as this process knows."""
        if self._process.returncode is not None or self._control.fileno() < 0:
            return False
        with self._lock:
            return self._process.poll() is None and not readable(self._control, 0.0)

    def wait_until_ready(self) -> None:
        """Wait until the server accepts runs. Call this once.

        Raises:
            SandboxError: if the level cannot be set up.
        """
        if not readable(self._control, time.monotonic() + START_S):
            raise SandboxError(f"the fork server of level {self.level!r} was not ready within {START_S:g} s")
        try:
            answer = self._control.recv(4096)
        except ConnectionError:
            answer = b""
        if not answer:
            raise SandboxError(f"the fork server of level {self.level!r} died during startup")
        message = decoded_message(answer, "the first message of a fork server")
        if "failed" in message:
            raise SetupFailed(message)

    def launch(self, run: NewRun) -> Launch:
        """Fork an isolated child.

        Raises:
            ServerDied: if the server is not running.
            SandboxError: if no descriptors are left.
        """
        limits = run.limits
        processes = limits.processes + (run.entry == TESTS)  # one for the test runner
        request = RunRequest(run.entry, limits.cpu_seconds, limits.memory_bytes, processes, limits.disk_bytes)
        with descriptors() as fds:
            ours, theirs = socket.socketpair()
            try:
                with theirs:
                    fds.append(job_file(run.options, run.files))
                    self._send(request.packed(), [theirs.fileno(), *fds, *run.fds])
            except BaseException:
                ours.close()
                raise
        return Launch(ours, self.close)

    def _send(self, data: bytes, fds: Sequence[int]) -> None:
        until = time.monotonic() + START_S
        while True:
            try:
                socket.send_fds(self._control, [data], fds)
                return
            except OSError as e:
                if e.errno != errno.ETOOMANYREFS:  # too many descriptors in flight; the server will receive them soon
                    raise ServerDied(f"the fork server of the sandbox has died: {e}", started=False) from e
                if time.monotonic() > until:
                    raise SandboxError(f"could not send a run to the fork server: {e}") from e
                time.sleep(0.001)

    def abandon(self) -> None:
        """Release the parent's server without stopping it. Called in a forked process."""
        self._lock = threading.Lock()
        self._control.close()
        self._process.returncode = 0  # only the parent process can wait for the server

    def close(self, timeout_s: float = DEATH_S) -> None:
        """Stop the server and all its runs. May be called more than once."""
        self._control.close()
        with self._lock:
            if self._process.returncode is None:
                try:
                    self._process.wait(timeout_s)
                except subprocess.TimeoutExpired:
                    self._process.kill()
                    self._process.wait()


def _start(control: int, settings: ServerSettings) -> subprocess.Popen[bytes]:
    arguments = [str(control), json.dumps(asdict(settings)), json.dumps(_PACKAGES)]
    try:
        return subprocess.Popen(
            [sys.executable, "-I", "-X", "utf8", "-c", _BOOT, *arguments],
            pass_fds=[control],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**_ENVIRONMENT, "PATH": settings.path},
            cwd="/",
            start_new_session=True,
        )
    except OSError as e:
        raise SandboxError(f"{sys.executable} could not be started: {e}") from e


def readable_folders() -> list[str]:
    """Return the folders of the interpreter and its libraries, both as configured and with symbolic links resolved."""
    paths = sysconfig.get_paths()
    folders = [sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix]
    folders += [paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    folders.append(os.path.dirname(os.path.realpath(sys.executable)))
    both = [found for folder in folders for found in (folder, os.path.realpath(folder))]
    shortest_first = sorted(set(both), key=len)
    return [folder for folder in shortest_first if folder != "/" and os.path.isdir(folder)]


def program_path() -> str:
    return f"{os.path.dirname(sys.executable)}:/usr/local/bin:/usr/bin:/bin"
