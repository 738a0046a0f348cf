"""What the relay of inside.py tells, line by line: the program's output, its answers, and how it ended."""

from __future__ import annotations

import base64
import contextlib
import json
from dataclasses import replace
from typing import Any

from gem.sandbox.running import Ending, ending_of
from gem.sandbox.streams import Capture

ANSWER_BYTES = 17 << 20  # room for the largest value that a function may return


class Told:
    """Takes what a relay writes.

    Args:
        limit: bytes kept of each of the program's streams.

    out, err: what the program wrote. answers: what it answered, oldest first. own: what the relay itself said on its
    stderr, which is nothing unless it failed.
    """

    def __init__(self, limit: int) -> None:
        self.own = Capture(limit)
        self.gone: int | None = None
        self._pending = self._answering = b""
        self.begin(limit)

    def begin(self, limit: int) -> None:
        """Forget what was told so far."""
        self.out, self.err = Capture(limit), Capture(limit)
        self.answers: list[dict[str, Any]] = []

    @property
    def total(self) -> int:
        return max(self.out.total, self.err.total, len(self._pending), len(self._answering) - ANSWER_BYTES)

    def add(self, data: bytes) -> None:
        *lines, self._pending = (self._pending + data).split(b"\n")
        for line in lines:
            with contextlib.suppress(ValueError, TypeError, AttributeError):  # no relay wrote this
                self._hear(json.loads(line))

    def _hear(self, message: dict[str, Any]) -> None:
        for name, text in message.items():
            data = base64.b64decode(text)
            if name == "stdout":
                self.out.add(data)
            elif name == "stderr":
                self.err.add(data)
            elif name == "answer":
                self._answer(data)
            elif name == "gone":
                self.gone = int(data)

    def _answer(self, data: bytes) -> None:
        *lines, self._answering = (self._answering + data).split(b"\n")
        self.answers += [dict(json.loads(line)) for line in lines]

    def ending(self, relay: Ending) -> Ending:
        """How the program ended, or its last cell, where that was told; else how the relay did."""
        if self.gone is None and not self.answers:
            return relay
        ending = ending_of(self.gone or self._answered("exit_code", int) or 0)
        return replace(
            ending,
            cpu_s=self._answered("cpu_s", float) or relay.cpu_s,
            max_rss_bytes=relay.max_rss_bytes,
            out_of_memory=bool(self._answered("out_of_memory", bool)),
        )

    @property
    def value(self) -> str | None:
        value: str | None = self._answered("value", str)
        return value

    def _answered(self, key: str, kind: type[Any]) -> Any:
        value = self.answers[0].get(key) if self.answers else None
        return value if isinstance(value, kind) else None
