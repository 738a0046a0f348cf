"""Execute runs on a fork server: follow a run, collect its output, and kill it if it exceeds a limit.

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
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from gem.errors import SandboxError
from gem.sandbox.forkserver.protocol import in_memory
from gem.sandbox.output import Capture, OutputReader
from gem.sandbox.process import ProcessExit, status_of
from gem.sandbox.results import Files, Limits, Result, Status

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
            if not readable(self._channel, until):
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
            if not readable(self._channel, until):
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
            if not readable(self._channel, until):
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


def execute(
    launch: Launcher, entry: str, options: dict[str, Any], stdin: bytes, limits: Limits, files: Files | None
) -> Result:
    """Start a run and return its result. Kills the run at its time limit or if it writes too much output."""
    with contextlib.closing(OutputReader()) as listener:
        (out, to_out), (err, to_err) = (listener.pipe(limits.output_bytes) for _ in range(2))
        given = [in_memory(stdin), to_out, to_err]
        try:
            run = launch(entry, options, given, limits, files)
        finally:
            for fd in given:
                os.close(fd)
        with contextlib.closing(run):
            run.wait_until_started()
            start = time.monotonic()
            ended = _ended(run, listener, start + limits.wall_s)
        listener.drain(out, err)
        wall_s = time.monotonic() - start
        return _result(ended, limits, wall_s, listener.captures[out], listener.captures[err])


def _ended(run: Launch, listener: OutputReader, deadline: float) -> RunExit:
    """Wait until a run has ended. Kill it at the deadline (time.monotonic()) or if it writes too much output."""
    listener.watch(run.fileno())
    while not run.over():
        if listener.floods:
            run.kill(Status.OUTPUT_LIMIT)
            break
        if time.monotonic() >= deadline:
            run.kill(Status.TIMEOUT)
            break
        listener.wait(deadline)
    ended = run.wait(DEATH_S)
    if ended is None:
        run.close_server(0)
        raise SandboxError(f"a killed run did not end within {DEATH_S:g} s")
    return ended


def _result(ended: RunExit, limits: Limits, wall_s: float, out: Capture, err: Capture) -> Result:
    stdout, stderr = out.text(), err.text()
    return Result(
        status=run_status(ended, limits, stderr),
        exit_code=ended.exit_code,
        signal=ended.signal,
        stdout=stdout,
        stderr=stderr,
        truncated=out.truncated or err.truncated,
        wall_s=wall_s,
        cpu_s=ended.cpu_s,
        max_rss_bytes=ended.max_rss_bytes,
    )


def readable(channel: socket.socket, until: float | None) -> bool:
    """Return whether the socket becomes readable before ``until`` (time.monotonic(); None waits without limit)."""
    poll = select.poll()
    poll.register(channel, select.POLLIN)
    return bool(poll.poll(None if until is None else max(0.0, until - time.monotonic()) * 1000))
