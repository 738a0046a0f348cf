"""The host side of a fork server, in one file because starting, launching and ending share the state of its sockets.

Each run has its own socket to the server, so threads do not have to dispatch messages. The socket becomes readable when
the run starts and when it ends, and reaches EOF when the server exits.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import select
import socket
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from gem.errors import SandboxError
from gem.sandbox.base import Files, Limits, Status
from gem.sandbox.command_sandbox import checked_files
from gem.sandbox.process import ProcessExit, status_of
from gem.sandbox.zygote import cgroup
from gem.sandbox.zygote.protocol import CONTROL, RunRequest, ServerSettings, job_file

START_S = 120.0  # time for the server to import libraries, even on a busy machine
ANSWER_S = 30.0  # time for a server to answer, even on a busy machine
DEATH_S = 10.0  # time for a server to exit after its control socket was closed
LAST_LINE = 4096  # characters of stderr that may contain its last line
_GEM = Path(__file__).resolve().parent.parent.parent
# Runs server.py without importing any part of gem besides this package.
_BOOT = """
import json, sys, types
for name, path in json.loads(sys.argv[3]).items():
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = [path]
from gem.sandbox.zygote import server, protocol
server.main(int(sys.argv[1]), protocol.ServerSettings(**json.loads(sys.argv[2])))
"""
_PACKAGES = {
    "gem": str(_GEM),
    "gem.sandbox": str(_GEM / "sandbox"),
    "gem.sandbox.zygote": str(_GEM / "sandbox" / "zygote"),
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


@dataclass(frozen=True)
class RunExit(ProcessExit):
    """How a run ended. ``why`` is the limit for which the run was killed; None if it ended without being killed."""

    why: Status | None = None


def run_status(ended: RunExit, limits: Limits, stderr: str = "") -> Status:
    """Return the status of a run.

    Args:
        ended: how the run ended.
        limits: limits of the run.
        stderr: the program's stderr, to recognize a MemoryError.
    """
    if ended.exit_code == 1 and _ends_with_memory_error(stderr):
        ended = replace(ended, out_of_memory=True)
    return ended.why or status_of(ended, limits, 0.0)


def _ends_with_memory_error(stderr: str) -> bool:
    """Whether the last line is that of the traceback of a MemoryError or a subclass.

    Programs can write gigabytes, so this looks only at the last line. A program that prints such a line itself only
    changes its failure from ERROR to MEMORY.
    """
    last_line = stderr[-LAST_LINE:].rstrip("\n").rpartition("\n")[2]
    return last_line.partition(":")[0].endswith("MemoryError")


class SetupFailed(SandboxError):
    """A fork server or a run could not be set up. See server.failure for the argument.

    Attributes:
        errno: error number if the kernel refused a call, else None.
        reason: the refused call and the name of the error, or the text of another exception.
    """

    def __init__(self, message: Mapping[str, Any]) -> None:
        self.errno: int | None = message["errno"]
        self.reason: str = message["failed"]
        if self.errno is not None and message["call"] is not None:
            name = errno.errorcode.get(self.errno, self.errno)
            self.reason = f"{message['call']}: {name} ({os.strerror(self.errno)})"
        super().__init__(f"could not set up a run: {self.reason}")


class ServerDied(SandboxError):
    """The fork server and its runs died. ``started``: whether the program may already have been started."""

    def __init__(self, message: str, *, started: bool) -> None:
        super().__init__(message)
        self.started = started


class Launch:
    """A run in progress. close() kills the run."""

    def __init__(self, channel: socket.socket, server: Zygote) -> None:
        self.server = server
        self._channel = channel
        self._received = b""
        self._started = self._busy = False
        self._done = ""
        self._cells, self._exceeded = 0, -1  # calls of busy(); the one that allowed less CPU time than was used
        self._exit: RunExit | None = None

    def fileno(self) -> int:
        """Return a descriptor that becomes readable when the run starts and when it ends."""
        return self._channel.fileno()

    def kill(self, why: Status) -> None:
        """Kill every process of the run, giving ``why`` as the reason. Does nothing if the run has ended."""
        self._send(f"kill {why.value}")

    def busy(self, cpu_s: float) -> None:
        """Continue the processes of the run, which may use ``cpu_s`` CPU seconds until idle() is called."""
        self._cells, self._busy = self._cells + 1, True
        self._send(f"busy {cpu_s}")

    def idle(self) -> None:
        """Stop every process of the run after IDLE_S, until busy() is called."""
        self._busy = False
        self._send("idle")

    @property
    def exceeded(self) -> bool:
        """Whether the run has used more CPU time than the last busy() allowed, as far as the server has said."""
        return self._busy and self._exceeded == self._cells

    def interrupt(self) -> None:
        """Send SIGINT to the run. Raises the same exceptions as kill_children()."""
        self._request("interrupt")

    def kill_children(self) -> None:
        """Kill every process of the run except its first one.

        Raises:
            ServerDied: if the server died.
            SandboxError: if the server does not answer within ANSWER_S.
        """
        self._request("kill-children")

    def _request(self, word: str) -> None:
        """Send a word and wait until the server has done it or the run has ended."""
        self._done = ""
        self._send(word)
        until = time.monotonic() + ANSWER_S
        while self._done != word and self._exit is None:
            if not _readable(self._channel, until):
                raise SandboxError(f"the fork server of the sandbox did not answer {word!r} within {ANSWER_S:g} s")
            self._receive()

    def _send(self, word: str) -> None:
        with contextlib.suppress(OSError):  # the run has ended
            self._channel.sendall(word.encode() + b"\n")

    def wait(self, timeout: float | None) -> RunExit | None:
        """Wait until the run has ended.

        Args:
            timeout: seconds; None waits without limit.

        Returns:
            How the run ended, or None if the timeout passed.

        Raises:
            ServerDied: if the server died.
            SandboxError: if the run could not be started.
        """
        until = None if timeout is None else time.monotonic() + timeout
        while self._exit is None:
            if not _readable(self._channel, until):
                return None
            self._receive()
        return self._exit

    def over(self) -> bool:
        """Whether the run has ended. Raises the same exceptions as wait()."""
        return self.wait(0) is not None

    def wait_until_started(self) -> None:
        """Wait until the server starts the run. Raises SandboxError after START_S, and the exceptions of wait()."""
        until = time.monotonic() + START_S
        while not self._started and self._exit is None:
            if not _readable(self._channel, until):
                raise SandboxError(f"the fork server of the sandbox did not start a run within {START_S:g} s")
            self._receive()

    def _receive(self) -> None:
        try:
            part = self._channel.recv(4096)
        except ConnectionError:
            part = b""
        if not part:
            raise ServerDied("the fork server of the sandbox died during a run", started=self._started)
        *lines, self._received = (self._received + part).split(b"\n")
        for line in lines:
            self._handle(json.loads(line))

    def _handle(self, message: Mapping[str, Any]) -> None:
        self._started |= "started" in message
        self._done = message.get("done", self._done)
        self._exceeded = message.get("exceeded", self._exceeded)
        if "failed" in message:
            raise SetupFailed(message)
        if "ended" in message:
            ended = message["ended"]
            code, why = ended["code"], ended["why"]
            self._exit = RunExit(
                exit_code=code if code >= 0 else None,
                signal=-code if code < 0 else None,
                cpu_s=ended["cpu_s"],
                max_rss_bytes=ended["max_rss_bytes"],
                why=None if why is None else Status(why),
            )

    def close(self) -> None:
        self._channel.close()


class Launcher(Protocol):
    """A function that starts an isolated run. It has the signature of Zygote.launch."""

    def __call__(
        self, entry: str, options: dict[str, Any], fds: Sequence[int], limits: Limits, files: Files | None
    ) -> Launch: ...


class Zygote:
    """A fork server. The server starts in the background; the first call of launch() waits until it is ready.

    Args:
        level: "ns", "lsm" or "basic".
        modules: names of modules that the server imports before its first run.
        network: whether runs have network access.

    Raises:
        SandboxError: if no interpreter can be started.
    """

    def __init__(self, level: str, *, modules: Sequence[str] = (), network: bool = False) -> None:
        self.level = level
        self._lock, self._ready = threading.Lock(), False
        settings = ServerSettings(
            level=level,
            modules=list(modules),
            readable=readable_folders(),
            hidden=str(_GEM),  # the package contains expected outputs of built-in tasks
            path=program_path(),
            folder=tempfile.gettempdir(),
            network=network,
            cgroups=os.environ.get(cgroup.SETTING) != "0",
        )
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
            return not self._ready or (self._process.poll() is None and not _readable(self._control, 0.0))

    def wait_until_ready(self) -> None:
        """Wait until the server accepts runs.

        Raises:
            SandboxError: if the level cannot be set up.
        """
        with self._lock:
            if not self._ready:
                self._wait_until_ready()
                self._ready = True

    def _wait_until_ready(self) -> None:
        if not _readable(self._control, time.monotonic() + START_S):
            raise SandboxError(f"the fork server of level {self.level!r} was not ready within {START_S:g} s")
        try:
            answer = self._control.recv(4096)
        except ConnectionError:
            answer = b""
        if not answer:
            raise SandboxError(f"the fork server of level {self.level!r} died during startup")
        message = json.loads(answer)
        if "failed" in message:
            raise SetupFailed(message)

    def launch(
        self, entry: str, options: dict[str, Any], fds: Sequence[int], limits: Limits, files: Files | None
    ) -> Launch:
        """Fork an isolated child that runs an entry of ``server.ENTRIES``.

        Args:
            entry: name of the entry.
            options: options of the entry; plain data that marshal can encode.
            fds: descriptors that the child receives as 0, 1, 2, ... The caller closes its copies.
            limits: limits of the run.
            files: files to write to the working directory.

        Raises:
            ServerDied: if the server is not running.
            SandboxError: if the level cannot be set up or no descriptors are left.
        """
        self.wait_until_ready()
        request = RunRequest(entry, limits.cpu_seconds, limits.memory_bytes, limits.processes, limits.disk_bytes)
        try:
            ours, theirs = socket.socketpair()
            job = job_file(options, checked_files(files))
        except OSError as e:
            raise SandboxError(f"could not start a run: {e}") from e
        try:
            self._send(request.packed(), [theirs.fileno(), job, *fds])
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
            os.close(job)
        return Launch(ours, self)

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


def _readable(channel: socket.socket, until: float | None) -> bool:
    """Return whether the socket becomes readable before ``until`` (time.monotonic(); None waits without limit)."""
    poll = select.poll()
    poll.register(channel, select.POLLIN)
    return bool(poll.poll(None if until is None else max(0.0, until - time.monotonic()) * 1000))


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
