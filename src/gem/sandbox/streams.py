"""The three streams of a running command, none of which is waited for alone, and what is kept of them."""

from __future__ import annotations

import os
import selectors
import time
from collections.abc import Callable
from typing import Protocol

from gem.errors import SandboxError
from gem.sandbox.base import Status
from gem.sandbox.running import Running

FLOOD = 32  # a program that writes this many times output_bytes is stopped
POLL_S = 0.01  # where the end of a process cannot be waited for together with its output
START_S = 60.0  # until inside.py runs: if it does not, the machinery failed and not the program
CHUNK = 1 << 16


class Sink(Protocol):
    """Takes what a stream brings. total: bytes so far."""

    @property
    def total(self) -> int: ...

    def add(self, data: bytes) -> None: ...


class Capture:
    """What is kept of a stream: its head and its tail, and how much there was in all. limit: bytes kept."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.head_limit = limit - limit * 28 // 128
        self.head, self.tail, self.total = bytearray(), bytearray(), 0

    def add(self, data: bytes) -> None:
        self.total += len(data)
        room = self.head_limit - len(self.head)
        self.head += data[:room]
        self.tail += data[room:] if room > 0 else data
        if len(self.tail) > 2 * (self.limit - self.head_limit) + 65536:
            self._trim()

    def _trim(self) -> None:
        keep = self.limit - self.head_limit
        del self.tail[: max(0, len(self.tail) - keep)]

    @property
    def truncated(self) -> bool:
        return self.total > self.limit

    def text(self) -> str:
        if not self.truncated:
            return (self.head + self.tail).decode("utf-8", "replace")
        self._trim()
        cut = self.total - len(self.head) - len(self.tail)
        head, tail = self.head.decode("utf-8", "replace"), self.tail.decode("utf-8", "replace")
        return f"{head}\n[... {cut} bytes cut ...]\n{tail}"


class Streams:
    """Serves a running command: sends to its stdin, and reads its output into sinks.

    begun: whether inside.py said that it runs, by the first byte of its stdout, which is no output.
    """

    def __init__(self, running: Running, out: Sink, err: Capture) -> None:
        self.running, self.err, self.begun = running, err, False
        self.sinks: dict[int, Sink] = {running.stdout: out, running.stderr: err}
        self.unsent, self.closing = b"", False
        self.selector = selectors.DefaultSelector()
        for fd in self.sinks:
            self.selector.register(fd, selectors.EVENT_READ)
        self.pidfd = _pidfd(running.process.pid)
        if self.pidfd is not None:
            self.selector.register(self.pidfd, selectors.EVENT_READ)

    def close(self) -> None:
        self.selector.close()
        if self.pidfd is not None:
            os.close(self.pidfd)

    def send(self, data: bytes, *, last: bool = False) -> None:
        """Have this written while the command is served. last: then it reads EOF."""
        self.unsent, self.closing = self.unsent + data, last
        if self.running.stdin not in self.selector.get_map():
            self.selector.register(self.running.stdin, selectors.EVENT_WRITE)

    def serve(
        self, done: Callable[[], bool] = lambda: False, *, deadline: float, flood: float = float("inf")
    ) -> Status | None:
        """Serve until done() or the command is over; or, and that is returned, until a limit is reached.

        Args:
            deadline: by time.monotonic().
            flood: bytes that may come by one stream.
        """
        while not done() and not self.running.ended():
            left = deadline - time.monotonic()
            if left <= 0:
                return Status.TIMEOUT
            for key, _ in self.selector.select(left if self.pidfd is not None else min(left, POLL_S)):
                self._serve(key.fd)
            if any(sink.total > flood for sink in self.sinks.values()):
                return Status.OUTPUT_LIMIT
        return None

    def await_beginning(self) -> None:
        """Serve until inside.py says that it runs. Raises SandboxError where it does not."""
        self.serve(lambda: self.begun, deadline=time.monotonic() + START_S)
        if self.begun:
            return
        late = not self.running.ended()
        ending = self.running.finish()
        self.drain()
        if not self.begun:
            end = f"exit code {ending.exit_code}" if ending.signal is None else f"signal {ending.signal}"
            how = f"did not start in {START_S:g} s" if late else f"failed with {end}"
            raise SandboxError(f"{self.running.name} {how}: {self.err.text().strip() or 'it said nothing'}")

    def drain(self) -> None:
        """Read what is left in the pipes; whoever else holds them is not waited for."""
        for fd in self.sinks:
            for _ in range(FLOOD):
                if fd not in self.selector.get_map() or not self._read(fd):
                    break

    def _serve(self, fd: int) -> None:
        if fd in self.sinks:
            self._read(fd)
        elif fd == self.running.stdin:
            self._write()

    def _read(self, fd: int) -> bool:
        """Whether something came. At its end a stream is read no more."""
        try:
            data = os.read(fd, CHUNK)
        except BlockingIOError:
            return False
        if not data:
            self.selector.unregister(fd)
            return False
        if fd == self.running.stdout and not self.begun and data:
            self.begun, data = True, data[1:]
        self.sinks[fd].add(data)
        return True

    def _write(self) -> None:
        try:
            self.unsent = self.unsent[os.write(self.running.stdin, self.unsent[:CHUNK]) :]
        except BlockingIOError:
            return
        except BrokenPipeError:
            self.unsent, self.closing = b"", True
        if not self.unsent:
            self.selector.unregister(self.running.stdin)
            if self.closing:
                self.running.close_stdin()


def _pidfd(pid: int) -> int | None:
    """A descriptor that is readable when the process is over; None where the system has none."""
    opener = getattr(os, "pidfd_open", None)
    try:
        return None if opener is None else int(opener(pid))
    except OSError:
        return None
