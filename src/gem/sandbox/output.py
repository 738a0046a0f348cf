"""Capture the output of programs (stdout, stderr) in a limited number of bytes."""

from __future__ import annotations

from typing import Protocol

FLOOD_FACTOR = 32  # a program that writes more than this multiple of output_bytes is killed
CHUNK = 1 << 16  # bytes per read


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
