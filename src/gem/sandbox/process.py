"""One child process of a sandbox: start it, exchange its standard streams, end it with everything it started."""

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

from gem.errors import SandboxError
from gem.sandbox.base import Limits, Status
from gem.sandbox.output import CHUNK, FLOOD_FACTOR, Capture, Sink

SHELL_SIGNAL_BASE = 128  # a shell reports signal N as exit code 128 + N
MAXRSS_UNIT = 1 if sys.platform == "darwin" else 1024  # bytes
POLL_INTERVAL_S = 0.01  # where the system has no pidfd to wait for
START_S = 60.0  # until inside.py reports that it runs; after that SandboxError is raised


@dataclass(frozen=True)
class ProcessExit:
    """How a process ended.

    Args:
        exit_code: None if a signal ended it.
        signal: None if it exited.
        cpu_s: CPU seconds; 0 if unknown.
        max_rss_bytes: peak resident memory; 0 if unknown.
        out_of_memory: whether it ran out of memory.
    """

    exit_code: int | None
    signal: int | None
    cpu_s: float = 0.0
    max_rss_bytes: int = 0
    out_of_memory: bool = False


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
        """Kill the process and everything it started. Does nothing in a forked copy of this process."""
        if self.owner == os.getpid() and not self.finished:
            for group in process_groups(self.process.pid):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(group, signal.SIGKILL)

    def finish(self) -> ProcessExit:
        """Kill what is left and return how the process ended."""
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
                # A child inherits the peak memory of this process from before exec.
                peak = usage.ru_maxrss if usage.ru_maxrss > self._peak_of_host else 0
                self._exit = exit_from_code(code, usage.ru_utime + usage.ru_stime, peak * MAXRSS_UNIT)
        return self._exit

    def close(self) -> None:
        """Kill the process if it is still running and release its pipes."""
        if self.owner == os.getpid() and not self.finished:
            self.finish()
        for stream in self.streams:
            stream.close()

    def close_stdin(self) -> None:
        self.streams[0].close()


def process_groups(session: int) -> set[int]:
    """The process groups of a session. Without /proc, only the first one is known."""
    groups = {session}
    for name in os.listdir("/proc") if os.path.isdir("/proc/self") else ():
        with contextlib.suppress(ProcessLookupError, PermissionError, ValueError):
            if os.getsid(int(name)) == session:
                groups.add(os.getpgid(int(name)))
    return groups


def exit_from_code(code: int, cpu_s: float = 0.0, max_rss_bytes: int = 0) -> ProcessExit:
    """Convert a return code of subprocess, in which signal numbers are negative."""
    return ProcessExit(code if code >= 0 else None, -code if code < 0 else None, cpu_s, max_rss_bytes)


def exit_from_client(client: ProcessExit) -> ProcessExit:
    """Convert the exit of a client that ran a program elsewhere and reports it as shells do.

    CPU seconds and memory of the client are dropped: they say nothing about the program.
    """
    code = client.exit_code
    if code is None:
        return ProcessExit(None, client.signal)
    if SHELL_SIGNAL_BASE < code <= SHELL_SIGNAL_BASE + 64:
        return ProcessExit(None, code - SHELL_SIGNAL_BASE)
    return ProcessExit(code, None)


def status_of(ended: ProcessExit, limits: Limits, wall_s: float) -> Status:
    """The status of a process that the host did not kill, given that it ran for wall_s seconds."""
    if ended.exit_code == 0:
        return Status.OK
    if ended.signal is None:
        return Status.MEMORY if ended.out_of_memory else Status.ERROR
    used = ended.cpu_s or wall_s  # some backends do not know the CPU seconds
    if ended.signal == signal.SIGXCPU or (ended.signal == signal.SIGKILL and used >= limits.cpu_seconds):
        return Status.TIMEOUT
    return Status.MEMORY if ended.out_of_memory else Status.KILLED


class ProcessStreams:
    """Writes to the stdin of a process and reads its output into sinks, without blocking on any single stream.

    The first byte on stdout is the start signal of inside.py and not part of the output; ``started`` is True once it
    has arrived.
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
        """Queue data for stdin; it is written by serve(). With ``last``, stdin is closed afterwards."""
        self.unsent, self.closing = self.unsent + data, last
        if self.process.stdin not in self.selector.get_map():
            self.selector.register(self.process.stdin, selectors.EVENT_WRITE)

    def serve(
        self, done: Callable[[], bool] = lambda: False, *, deadline: float, max_bytes: float = float("inf")
    ) -> Status | None:
        """Transfer data until done() is true or the process has exited.

        Args:
            done: checked after each transfer.
            deadline: by time.monotonic().
            max_bytes: bytes allowed on one stream.

        Returns:
            None, or the limit that was reached first: TIMEOUT or OUTPUT_LIMIT.
        """
        while not done() and not self.process.exited():
            left = deadline - time.monotonic()
            if left <= 0:
                return Status.TIMEOUT
            for key, _ in self.selector.select(left if self.pidfd is not None else min(left, POLL_INTERVAL_S)):
                self._transfer(key.fd)
            if any(sink.total > max_bytes for sink in self.sinks.values()):
                return Status.OUTPUT_LIMIT
        return None

    def wait_until_started(self) -> None:
        """Serve until inside.py reports that it runs.

        Raises:
            SandboxError: if it fails or does not start within START_S seconds.
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
        """Read what is left in the pipes without waiting for other processes that hold them open."""
        for fd in self.sinks:
            for _ in range(FLOOD_FACTOR):
                if fd not in self.selector.get_map() or not self._read(fd):
                    break

    def _transfer(self, fd: int) -> None:
        if fd in self.sinks:
            self._read(fd)
        elif fd == self.process.stdin:
            self._write()

    def _read(self, fd: int) -> bool:
        """Read a chunk; returns whether there was one. At its end the stream is unregistered."""
        try:
            data = os.read(fd, CHUNK)
        except BlockingIOError:
            return False
        if not data:
            self.selector.unregister(fd)
            return False
        if fd == self.process.stdout and not self.started and data:
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
    """A descriptor that becomes readable when the process exits, or None where the system has no pidfd."""
    opener = getattr(os, "pidfd_open", None)
    try:
        return None if opener is None else int(opener(pid))
    except OSError:
        return None
