"""A command that runs for a sandbox, by its process on this machine."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gem.errors import SandboxError
from gem.sandbox.base import Limits, Status

SIGNALLED = 128  # what shells add to a signal's number
MAXRSS_UNIT = 1 if sys.platform == "darwin" else 1024  # bytes


@dataclass(frozen=True)
class Ending:
    """How a command ended.

    exit_code is None where a signal ended it, signal where it exited. out_of_memory: whether for want of memory.
    """

    exit_code: int | None
    signal: int | None
    cpu_s: float = 0.0
    max_rss_bytes: int = 0
    out_of_memory: bool = False


class Running:
    """A started command, by its process on this machine: in a session of its own, with pipes for its three streams.

    Raises SandboxError where it could not be started.
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
        self._ending: Ending | None = None
        self.over = False
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

    def ended(self) -> bool:
        """Whether the command is over; what it left behind may still run."""
        if self._ending is None and hasattr(os, "waitid"):
            return os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        return self._reap(os.WNOHANG) is not None  # macOS before Python 3.13

    def kill(self) -> None:
        """End the command and everything that it started. In a forked process it does nothing."""
        if self.owner == os.getpid() and not self.over:
            for group in groups_of_session(self.process.pid):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(group, signal.SIGKILL)

    def finish(self) -> Ending:
        """End what is left of it, and say how it ended."""
        self.kill()
        ending = self._reap(0)
        self.over = True
        assert ending is not None
        return ending

    def _reap(self, flags: int) -> Ending | None:
        if self._ending is None:
            pid, status, usage = os.wait4(self.process.pid, flags)
            if pid:
                self.process.returncode = code = os.waitstatus_to_exitcode(status)
                # It inherits the peak of this process, from before it became the command.
                peak = usage.ru_maxrss if usage.ru_maxrss > self._peak_of_host else 0
                self._ending = ending_of(code, usage.ru_utime + usage.ru_stime, peak * MAXRSS_UNIT)
        return self._ending

    def close(self) -> None:
        """End it if it runs, and give back what it held."""
        if self.owner == os.getpid() and not self.over:
            self.finish()
        for stream in self.streams:
            stream.close()

    def close_stdin(self) -> None:
        self.streams[0].close()


def groups_of_session(session: int) -> set[int]:
    """The process groups of a session, its first among them; that one alone where there is no /proc to look at."""
    groups = {session}
    for name in os.listdir("/proc") if os.path.isdir("/proc/self") else ():
        with contextlib.suppress(ProcessLookupError, PermissionError, ValueError):
            if os.getsid(int(name)) == session:
                groups.add(os.getpgid(int(name)))
    return groups


def ending_of(code: int, cpu_s: float = 0.0, max_rss_bytes: int = 0) -> Ending:
    """code: as subprocess has it, a signal's number negated."""
    return Ending(code if code >= 0 else None, -code if code < 0 else None, cpu_s, max_rss_bytes)


def as_shells_do(client: Ending) -> Ending:
    """How a program ended, by the exit code of a client that runs it elsewhere. What the client used says nothing."""
    code = client.exit_code
    if code is None:
        return Ending(None, client.signal)
    return Ending(None, code - SIGNALLED) if SIGNALLED < code <= SIGNALLED + 64 else Ending(code, None)


def status_of(ending: Ending, limits: Limits, wall_s: float) -> Status:
    """What an end amounts to that the host did not bring about, wall_s after the beginning."""
    if ending.exit_code == 0:
        return Status.OK
    if ending.signal is None:
        return Status.MEMORY if ending.out_of_memory else Status.ERROR
    used = ending.cpu_s or wall_s  # not every backend knows the CPU seconds
    if ending.signal == signal.SIGXCPU or (ending.signal == signal.SIGKILL and used >= limits.cpu_seconds):
        return Status.TIMEOUT
    return Status.MEMORY if ending.out_of_memory else Status.KILLED
