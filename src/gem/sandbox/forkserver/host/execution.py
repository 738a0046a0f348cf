"""Execute runs on a fork server: follow a run, collect its output, and kill it if it exceeds a limit.

Each run has its own socket to the server, so threads do not have to dispatch messages. The socket becomes readable when
the run starts and when it ends, and reaches EOF when the server exits.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from gem.errors import SandboxError
from gem.sandbox.forkserver.protocol import in_memory
from gem.sandbox.inputs import Job, as_bytes
from gem.sandbox.output import OutputReader, decoded_message, descriptors
from gem.sandbox.process import ProcessExit, status_of
from gem.sandbox.results import Limits, Result, Status

START_S = 120.0  # time for the server to import libraries, even on a busy machine
ANSWER_S = 30.0  # time for a server to answer, even on a busy machine
DEATH_S = 30.0  # time for a killed run to end, even on a busy machine
LAST_LINE = 4096  # characters of stderr that may contain its last line


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


@dataclass(frozen=True)
class NewRun:
    """A run to start on a fork server.

    Args:
        entry: a key of ``server.ENTRIES``: what the isolated child does.
        options: options of the entry; plain data that marshal can encode.
        fds: descriptors that the child receives as 0, 1, 2, ... The caller closes its copies.
        limits: limits of the run.
        files: files to write to the working directory: relative path → content.
    """

    entry: str
    options: dict[str, Any]
    fds: Sequence[int]
    limits: Limits
    files: Mapping[str, bytes] = field(default_factory=dict)


class Launch:
    """A run in progress. close() kills the run.

    Args:
        channel: the socket to the fork server.
        close_server: Zygote.close of the server.
    """

    def __init__(self, channel: socket.socket, close_server: Callable[[float], None]) -> None:
        self.close_server = close_server
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
            if not self._receive(until):
                raise SandboxError(f"the fork server of the sandbox did not answer {word!r} within {ANSWER_S:g} s")

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
        while self._exit is None and self._receive(until):
            pass
        return self._exit

    def wait_until_started(self) -> None:
        """Wait until the server starts the run. Raises SandboxError after START_S, and the exceptions of wait()."""
        until = time.monotonic() + START_S
        while not self._started and self._exit is None:
            if not self._receive(until):
                raise SandboxError(f"the fork server of the sandbox did not start a run within {START_S:g} s")

    def _receive(self, until: float | None) -> bool:
        """Handle the next messages of the server. Returns False if there are none before ``until``; see readable()."""
        if not readable(self._channel, until):
            return False
        try:
            part = self._channel.recv(4096)
        except ConnectionError:
            part = b""
        if not part:
            raise ServerDied("the fork server of the sandbox died during a run", started=self._started)
        *lines, self._received = (self._received + part).split(b"\n")
        for line in lines:
            self._handle(decoded_message(line, "a message of the fork server"))
        return True

    def _handle(self, message: Mapping[str, Any]) -> None:
        self._started |= "started" in message
        self._done = message.get("done", self._done)
        self._exceeded = message.get("exceeded", self._exceeded)
        if "failed" in message:
            raise SetupFailed(message)
        if "ended" in message:
            ended, why = message["ended"], message["ended"]["why"]
            usage = {"cpu_s": ended["cpu_s"], "max_rss_bytes": ended["max_rss_bytes"]}
            self._exit = RunExit.of(ended["code"], why=None if why is None else Status(why), **usage)

    def close(self) -> None:
        self._channel.close()


Launcher: TypeAlias = Callable[[NewRun], Launch]  # Zygote.launch(), or ServerPool.launch() with its first argument


def execute(launch: Launcher, job: Job) -> Result:
    """Run a program or a command. Kills the run at its time limit or if it writes too much output."""
    entry, limits = "exec" if job.command else "program", job.limits
    options: dict[str, Any] = {"command": job.command} if job.command else {"source": as_bytes(job.program)}
    with contextlib.closing(OutputReader()) as listener:
        with descriptors() as given:
            given.append(in_memory(as_bytes(job.stdin)))
            out, err = (listener.pipe(limits.output_bytes, given) for _ in range(2))
            run = launch(NewRun(entry, options, given, limits, job.files))
        with contextlib.closing(run):
            run.wait_until_started()
            start = time.monotonic()
            ended = _ended(run, listener, start + limits.wall_s)
        listener.drain(out, err)
        wall_s = time.monotonic() - start
        stdout, stderr = listener.captures[out], listener.captures[err]
        return ended.result(run_status(ended, limits, stderr.text()), stdout, stderr, wall_s)


def _ended(run: Launch, listener: OutputReader, deadline: float) -> RunExit:
    """Wait until a run has ended. Kill it at the deadline (time.monotonic()) or if it writes too much output."""
    listener.watch(run.fileno())
    while (ended := run.wait(0)) is None:
        if listener.floods:
            run.kill(Status.OUTPUT_LIMIT)
            break
        if time.monotonic() >= deadline:
            run.kill(Status.TIMEOUT)
            break
        listener.wait(deadline)
    if ended is None and (ended := run.wait(DEATH_S)) is None:
        run.close_server(0)
        raise SandboxError(f"a killed run did not end within {DEATH_S:g} s")
    return ended


def readable(channel: socket.socket, until: float | None) -> bool:
    """Return whether the socket becomes readable before ``until`` (time.monotonic(); None waits without limit)."""
    poll = select.poll()
    poll.register(channel, select.POLLIN)
    return bool(poll.poll(None if until is None else max(0.0, until - time.monotonic()) * 1000))
