"""Read what runs send: output (stdout, stderr) in a limited number of bytes, and messages of limited size and depth."""

from __future__ import annotations

import contextlib
import os
import select
import time
from collections.abc import Iterator
from typing import Any, Protocol

from gem._internal.inbound import MESSAGE, loads
from gem.errors import BadInput, SandboxError

FLOOD_FACTOR = 32  # a program that writes more than this multiple of output_bytes is killed
CHUNK = 1 << 16  # bytes per read
PAUSE_S = 0.002  # between reads of pipes that held little, as many tiny writes would wake the host each time


def decoded_message(data: bytes, source: str) -> Any:
    """Decode JSON from a run or a server. Raises SandboxError if it is damaged or exceeds the bounds of MESSAGE."""
    try:
        return loads(data, source, MESSAGE, keep_surrogates=True)  # names of files that are not UTF-8
    except BadInput as e:
        raise SandboxError(str(e)) from e


@contextlib.contextmanager
def descriptors() -> Iterator[list[int]]:
    """Context manager with a list of descriptors that it closes. Raises SandboxError if one cannot be made."""
    fds: list[int] = []
    try:
        yield fds
    except OSError as e:
        raise SandboxError(f"could not start a run: {e}") from e
    finally:
        for fd in fds:
            os.close(fd)


class Sink(Protocol):
    """Receives the data of one stream. ``total`` is the number of bytes received."""

    @property
    def total(self) -> int: ...

    def add(self, data: bytes) -> None: ...


class Capture:
    """Keeps the first and the last bytes of a stream, and counts all bytes.

    Args:
        limit: maximum number of bytes to keep in total.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.head_limit = limit - limit * 28 // 128
        self.head, self.end, self.total = bytearray(), bytearray(), 0

    def add(self, data: bytes) -> None:
        self.total += len(data)
        room = self.head_limit - len(self.head)
        self.head += data[:room]
        self.end += data[room:] if room > 0 else data
        if len(self.end) > 2 * (self.limit - self.head_limit) + 65536:
            self._trim()

    def _trim(self) -> None:
        keep = self.limit - self.head_limit
        del self.end[: max(0, len(self.end) - keep)]

    @property
    def truncated(self) -> bool:
        return self.total > self.limit

    def text(self) -> str:
        """Return the captured data as text. If bytes were dropped, a line in their place says how many."""
        if not self.truncated:
            return (self.head + self.end).decode("utf-8", "replace")
        self._trim()
        cut = self.total - len(self.head) - len(self.end)
        head, end = self.head.decode("utf-8", "replace"), self.end.decode("utf-8", "replace")
        return f"{head}\n[... {cut} bytes cut ...]\n{end}"


class OutputReader:
    """Reads pipes into captures and reports when other descriptors are readable.

    ``captures`` maps the read end of each pipe to its capture. ``floods`` holds the read ends of pipes that received
    more than FLOOD_FACTOR times their limit.
    """

    def __init__(self) -> None:
        self.captures: dict[int, Capture] = {}
        self.floods: set[int] = set()
        self.watched: set[int] = set()
        self.poll = select.poll()
        self.others = select.poll()  # without the pipes
        self._next_read = 0.0  # value of time.monotonic()

    def pipe(self, limit: int, writers: list[int]) -> int:
        """Create a pipe and capture up to ``limit`` bytes of its data. Returns the read end, which this object closes.

        The write end is added to ``writers``; the caller closes it.
        """
        reader, writer = os.pipe()
        writers.append(writer)
        os.set_blocking(reader, False)
        os.fchmod(writer, 0o666)  # for programs that run as another user and open /dev/stdout
        self.captures[reader] = Capture(limit)
        self.watch(reader)
        return reader

    def watch(self, fd: int) -> None:
        self.watched.add(fd)
        self.poll.register(fd, select.POLLIN)
        if fd not in self.captures:
            self.others.register(fd, select.POLLIN)

    def wait(self, deadline: float) -> list[int]:
        """Wait until a descriptor is readable or the deadline has passed, and read from the readable pipes.

        Args:
            deadline: value of time.monotonic().

        Returns:
            The readable descriptors that are not pipes of this object.
        """
        now = time.monotonic()
        pause_s = min(self._next_read, deadline) - now
        if pause_s > 0 and (ready := self.others.poll(pause_s * 1000)):
            return [fd for fd, _ in ready]
        left = max(0.0, deadline - max(now, time.monotonic()))
        ready = self.poll.poll(left * 1000)
        received = sum(self._read(fd) for fd, _ in ready if fd in self.captures)
        if 0 < received < CHUNK // 2:
            self._next_read = time.monotonic() + PAUSE_S
        return [fd for fd, _ in ready if fd not in self.captures]

    def renew(self, *fds: int) -> None:
        """Discard the captured data of these pipes and start new captures."""
        self.floods.difference_update(fds)
        for fd in fds:
            self.captures[fd] = Capture(self.captures[fd].limit)

    def drain(self, *fds: int) -> None:
        """Read the data that is available in pipes, without waiting for processes that still hold the write ends."""
        for fd in fds:
            for _ in range(FLOOD_FACTOR):
                if not self._read(fd):
                    break

    def close(self, *fds: int) -> None:
        """Close the read ends of these pipes. Without arguments, close all of them."""
        for fd in fds or tuple(self.captures):
            self.forget(fd)
            self.floods.discard(fd)
            del self.captures[fd]
            os.close(fd)

    def _read(self, fd: int) -> int:
        """Read a chunk from a pipe. Returns its number of bytes, 0 if no data is available."""
        try:
            data = os.read(fd, CHUNK)
        except BlockingIOError:
            return 0
        if not data:
            self.forget(fd)
            return 0
        capture = self.captures[fd]
        capture.add(data)
        if capture.total > FLOOD_FACTOR * capture.limit:
            self.floods.add(fd)
        return len(data)

    def forget(self, fd: int) -> None:
        """Stop polling a descriptor."""
        if fd in self.watched:
            self.watched.remove(fd)
            self.poll.unregister(fd)
            if fd not in self.captures:
                self.others.unregister(fd)
