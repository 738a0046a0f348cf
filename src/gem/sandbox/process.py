"""Start a child process of a sandbox, transfer data over its standard streams, and kill it with its descendants."""

from __future__ import annotations

import contextlib
import os
import resource
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from gem.errors import SandboxError
from gem.sandbox.output import CHUNK, FLOOD_FACTOR, Capture, Sink
from gem.sandbox.results import Limits, Result, Status

SHELL_SIGNAL_BASE = 128  # a shell reports signal N as exit code 128 + N
MAXRSS_UNIT = 1 if sys.platform == "darwin" else 1024  # bytes per unit of ru_maxrss
ExitT = TypeVar("ExitT", bound="ProcessExit")
POLL_INTERVAL_S = 0.01  # used on systems without pidfd_open
START_S = 60.0  # seconds for inside.py to start; after that SandboxError is raised


@dataclass(frozen=True)
class ProcessExit:
    """How a process ended.

    Args:
        exit_code: None if a signal ended the process.
        signal: number of the signal that ended the process; None if the process exited.
        cpu_s: CPU seconds; 0 if unknown.
        max_rss_bytes: peak resident memory; 0 if unknown.
        out_of_memory: whether the process ran out of memory.
    """

    exit_code: int | None
    signal: int | None
    cpu_s: float = 0.0
    max_rss_bytes: int = 0
    out_of_memory: bool = False

    @classmethod
    def of(cls: type[ExitT], code: int, **measured: Any) -> ExitT:
        """Convert a return code of subprocess, in which signal numbers are negative."""
        return cls(code if code >= 0 else None, -code if code < 0 else None, **measured)

    def result(self, status: Status, out: Capture, err: Capture, wall_s: float, **more: Any) -> Result:
        """Return the result of a run that took ``wall_s`` seconds and wrote ``out`` and ``err``."""
        return Result(
            status=status,
            exit_code=self.exit_code,
            signal=self.signal,
            stdout=out.text(),
            stderr=err.text(),
            truncated=out.truncated or err.truncated,
            wall_s=wall_s,
            cpu_s=self.cpu_s,
            max_rss_bytes=self.max_rss_bytes,
            **more,
        )


class CommandProcess:
    """A started command: a process in its own session, with pipes for its standard streams.

    Raises:
        SandboxError: if the command cannot be started.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        folder: str | None = None,
        environment: Mapping[str, str] | None = None,
        pass_fds: Sequence[int] = (),
    ) -> None:
        self.name, self.owner = command[0], os.getpid()
        self._exit: ProcessExit | None = None
        self.finished = False
        try:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=folder,
                env=environment,
                pass_fds=pass_fds,
                start_new_session=True,
                bufsize=0,
            )
        except OSError as e:
            raise SandboxError(f"{command[0]} could not be started: {e}") from e
        self._peak_of_host = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        self.streams = [s for s in (self.process.stdin, self.process.stdout, self.process.stderr) if s is not None]
        self.stdin, self.stdout, self.stderr = (stream.fileno() for stream in self.streams)
        for stream in self.streams:
            os.set_blocking(stream.fileno(), False)

    def exited(self) -> bool:
        """Whether the process itself has exited; its descendants may still be running."""
        if self._exit is None and hasattr(os, "waitid"):
            return os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        return self._reap(os.WNOHANG) is not None  # macOS before Python 3.13

    def kill(self) -> None:
        """Kill the process and all processes in its session. Does nothing in a forked process."""
        if self.owner == os.getpid() and not self.finished:
            for group in process_groups(self.process.pid):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(group, signal.SIGKILL)

    def finish(self) -> ProcessExit:
        """Kill all remaining processes of the session and return how the main process ended."""
        self.kill()
        ended = self._reap(0)
        self.finished = True
        assert ended is not None
        return ended

    def _reap(self, flags: int) -> ProcessExit | None:
        if self._exit is None:
            pid, status, usage = os.wait4(self.process.pid, flags)
            if pid:
                self.process.returncode = code = os.waitstatus_to_exitcode(status)
                # A child's peak includes the memory of this process before exec, so a lower peak is unknown.
                peak = usage.ru_maxrss if usage.ru_maxrss > self._peak_of_host else 0
                cpu_s = usage.ru_utime + usage.ru_stime
                self._exit = ProcessExit.of(code, cpu_s=cpu_s, max_rss_bytes=peak * MAXRSS_UNIT)
        return self._exit

    def close(self) -> None:
        """Kill the process if it is still running, and close its pipes."""
        if self.owner == os.getpid() and not self.finished:
            self.finish()
        for stream in self.streams:
            stream.close()

    def close_stdin(self) -> None:
        self.streams[0].close()


def process_groups(session: int) -> set[int]:
    """Return the process groups of a session; on systems without /proc, only the group of the session leader."""
    groups = {session}
    for name in os.listdir("/proc") if os.path.isdir("/proc/self") else ():
        with contextlib.suppress(ProcessLookupError, PermissionError, ValueError):
            if os.getsid(int(name)) == session:
                groups.add(os.getpgid(int(name)))
    return groups


def exit_from_client(client: ProcessExit) -> ProcessExit:
    """Convert the exit of a client process to the exit of the program that the client ran.

    Exit codes from 129 to 192 are converted to signals. CPU seconds and memory are dropped, because they are those of
    the client and not of the program.
    """
    code = client.exit_code
    if code is None:
        return ProcessExit(None, client.signal)
    if SHELL_SIGNAL_BASE < code <= SHELL_SIGNAL_BASE + 64:
        return ProcessExit(None, code - SHELL_SIGNAL_BASE)
    return ProcessExit(code, None)


def status_of(ended: ProcessExit, limits: Limits, wall_s: float) -> Status:
    """Return the status of a process that ran for ``wall_s`` seconds and was not killed by the host for a limit."""
    if ended.exit_code == 0:
        return Status.OK
    if ended.signal is None:
        return Status.MEMORY if ended.out_of_memory else Status.ERROR
    used = ended.cpu_s or wall_s  # some backends do not report CPU seconds
    if ended.signal == signal.SIGXCPU or (ended.signal == signal.SIGKILL and used >= limits.cpu_seconds):
        return Status.TIMEOUT
    return Status.MEMORY if ended.out_of_memory else Status.KILLED


class ProcessStreams:
    """Writes to the stdin of a process and reads its stdout and stderr into sinks, all at the same time.

    The first byte on stdout is the start signal of inside.py, which is not part of the output. ``started`` is True if
    the start signal has arrived.
    """

    def __init__(self, process: CommandProcess, out: Sink, err: Capture) -> None:
        self.process, self.err, self.started = process, err, False
        self.sinks: dict[int, Sink] = {process.stdout: out, process.stderr: err}
        self.unsent, self.closing = b"", False
        self.selector = selectors.DefaultSelector()
        for fd in self.sinks:
            self.selector.register(fd, selectors.EVENT_READ)
        self.pidfd = _pidfd(process.process.pid)
        if self.pidfd is not None:
            self.selector.register(self.pidfd, selectors.EVENT_READ)

    def close(self) -> None:
        self.selector.close()
        if self.pidfd is not None:
            os.close(self.pidfd)

    def send(self, data: bytes, *, last: bool = False) -> None:
        """Queue data that serve() will write to stdin. With ``last``, stdin is closed after the data."""
        self.unsent, self.closing = self.unsent + data, last
        if self.process.stdin not in self.selector.get_map():
            self.selector.register(self.process.stdin, selectors.EVENT_WRITE)

    def serve(
        self, done: Callable[[], bool] = lambda: False, *, deadline: float, max_bytes: float = float("inf")
    ) -> Status | None:
        """Transfer data until done() returns True, the process exits, or a limit is reached.

        Args:
            done: called after each transfer.
            deadline: time on the clock of time.monotonic().
            max_bytes: maximum number of bytes on each output stream.

        Returns:
            TIMEOUT if the deadline passed, OUTPUT_LIMIT if a stream exceeded max_bytes, otherwise None.
        """
        while not done() and not self.process.exited():
            left = deadline - time.monotonic()
            if left <= 0:
                return Status.TIMEOUT
            for key, _ in self.selector.select(left if self.pidfd is not None else min(left, POLL_INTERVAL_S)):
                if key.fd in self.sinks:
                    self._read(key.fd)
                elif key.fd == self.process.stdin:
                    self._write()
            if any(sink.total > max_bytes for sink in self.sinks.values()):
                return Status.OUTPUT_LIMIT
        return None

    def wait_until_started(self) -> None:
        """Transfer data until the start signal of inside.py arrives.

        Raises:
            SandboxError: if the process exits first, or if there is no start signal within START_S seconds.
        """
        self.serve(lambda: self.started, deadline=time.monotonic() + START_S)
        if self.started:
            return
        late = not self.process.exited()
        ended = self.process.finish()
        self.drain()
        if not self.started:
            cause = f"exit code {ended.exit_code}" if ended.signal is None else f"signal {ended.signal}"
            how = f"did not start within {START_S:g} s" if late else f"failed with {cause}"
            raise SandboxError(f"{self.process.name} {how}: {self.err.text().strip() or 'no output on stderr'}")

    def drain(self) -> None:
        """Read the remaining output without blocking, even if other processes still hold the pipes open."""
        for fd in self.sinks:
            for _ in range(FLOOD_FACTOR):
                if fd not in self.selector.get_map() or not self._read(fd):
                    break

    def _read(self, fd: int) -> bool:
        """Read a chunk and return True if any data was read. Unregisters the stream at end of file."""
        try:
            data = os.read(fd, CHUNK)
        except BlockingIOError:
            return False
        if not data:
            self.selector.unregister(fd)
            return False
        if fd == self.process.stdout and not self.started:
            self.started, data = True, data[1:]
        self.sinks[fd].add(data)
        return True

    def _write(self) -> None:
        try:
            self.unsent = self.unsent[os.write(self.process.stdin, self.unsent[:CHUNK]) :]
        except BlockingIOError:
            return
        except BrokenPipeError:
            self.unsent, self.closing = b"", True
        if not self.unsent:
            self.selector.unregister(self.process.stdin)
            if self.closing:
                self.process.close_stdin()


def _pidfd(pid: int) -> int | None:
    """Return a descriptor that becomes readable when the process exits, or None if pidfd_open is unavailable."""
    opener = getattr(os, "pidfd_open", None)
    try:
        return None if opener is None else int(opener(pid))
    except OSError:
        return None
