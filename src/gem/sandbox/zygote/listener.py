"""Reads what contained processes write, and waits for whatever else a host is to hear of, in one poll."""

from __future__ import annotations

import os
import select
import time

from gem.sandbox.process import CHUNK, FLOOD_FACTOR, Capture


class Listener:
    """Pipes that are read into captures, and descriptors that are watched for their owner to read.

    Args:
        captures: by the descriptor that is read here.
        floods: those that brought far more than is kept.
    """

    def __init__(self) -> None:
        self.captures: dict[int, Capture] = {}
        self.floods: set[int] = set()
        self.watched: set[int] = set()
        self.poll = select.poll()

    def pipe(self, limit: int) -> tuple[int, int]:
        """A new pipe: the descriptor that is read here, and the one to write to, which is the caller's to close.

        limit: bytes kept.
        """
        reader, writer = os.pipe()
        os.set_blocking(reader, False)
        os.fchmod(writer, 0o666)  # for programs that run as another user, and open /dev/stdout
        self.captures[reader] = Capture(limit)
        self.watch(reader)
        return reader, writer

    def watch(self, fd: int) -> None:
        self.watched.add(fd)
        self.poll.register(fd, select.POLLIN)

    def wait(self, deadline: float) -> list[int]:
        """Wait for anything; pipes are read. Returns the watched descriptors that are readable.

        deadline: by time.monotonic().
        """
        left = max(0.0, deadline - time.monotonic())
        ready = [fd for fd, _ in self.poll.poll(left * 1000)]
        for fd in ready:
            if fd in self.captures:
                self._read(fd)
        return [fd for fd in ready if fd not in self.captures]

    def renew(self, *fds: int) -> None:
        """Keep what comes by these pipes from now on, and no longer what came before."""
        self.floods.difference_update(fds)
        for fd in fds:
            self.captures[fd] = Capture(self.captures[fd].limit)

    def drain(self, *fds: int) -> None:
        """Read what is left in pipes; whoever else holds them is not waited for."""
        for fd in fds:
            for _ in range(FLOOD_FACTOR):
                if not self._read(fd):
                    break

    def close(self, *fds: int) -> None:
        """Close pipes; without arguments, all."""
        for fd in fds or tuple(self.captures):
            self._forget(fd)
            self.floods.discard(fd)
            del self.captures[fd]
            os.close(fd)

    def _read(self, fd: int) -> bool:
        """Whether something came."""
        try:
            data = os.read(fd, CHUNK)
        except BlockingIOError:
            return False
        if not data:
            self._forget(fd)
            return False
        capture = self.captures[fd]
        capture.add(data)
        if capture.total > FLOOD_FACTOR * capture.limit:
            self.floods.add(fd)
        return True

    def _forget(self, fd: int) -> None:
        """Watch it no longer; once it has ended it is not."""
        if fd in self.watched:
            self.watched.remove(fd)
            self.poll.unregister(fd)
