"""Sessions of a sandbox that can only start commands: inside.py keeps the interpreter, lines of JSON bring it cells."""

from __future__ import annotations

import json
import os
import struct
import threading
import time
from collections.abc import Callable

from gem.errors import BadValue, SandboxError
from gem.sandbox.base import Limits, Result, Session, Status
from gem.sandbox.running import Ending, Running, status_of
from gem.sandbox.streams import FLOOD, Streams
from gem.sandbox.told import Told

LENGTH = struct.Struct(">I")  # precedes each message, as cells.py reads it
INTERRUPT_S = 1.0  # for a cell to heed an interrupt


class ScriptedSession(Session):
    """An interpreter behind a command.

    Args:
        start: starts inside.py; what it returns is fed the job by this.
        job: the session's, as inside.py reads it.
        limits: wall_s and output_bytes are of each cell.
    """

    def __init__(self, start: Callable[[], Running], job: bytes, limits: Limits) -> None:
        self._start, self._job, self._limits = start, job, limits
        self._owner, self._lock, self._closed = os.getpid(), threading.Lock(), False
        self._live: _Live | None = None
        self._cells = 0

    def run(self, code: str, *, wall_s: float | None = None) -> Result:
        wall_s = self._limits.wall_s if wall_s is None else wall_s
        if not 0 < wall_s < float("inf"):
            raise BadValue(f"wall_s must be a finite number above 0, got {wall_s!r}")
        if self._owner != os.getpid():
            raise SandboxError("a session stays with the process that made it; make another one here")
        with self._lock:
            if self._closed:
                raise SandboxError("this session is closed")
            if self._live is None:
                self._live = _Live(self._start(), self._job, self._limits)
            kept = False
            try:
                self._cells += 1
                result = self._live.run(f"cell {self._cells}", code, wall_s)
                kept = not result.state_lost
                return result
            finally:
                if not kept:
                    self._end()

    def close(self) -> None:
        self._closed = True
        if self._owner != os.getpid():
            return
        if self._live is not None:
            self._live.running.kill()  # a cell that runs in another thread ends by this
        with self._lock:
            self._end()

    def _end(self) -> None:
        if self._live is not None:
            self._live.close()
            self._live = None


class _Live:
    """A running interpreter."""

    def __init__(self, running: Running, job: bytes, limits: Limits) -> None:
        self.running, self.limits = running, limits
        self.told = Told(limits.output_bytes)
        self.streams = Streams(running, self.told, self.told.own)
        try:
            self.streams.send(job)
            self.streams.await_beginning()
        except BaseException:
            self.close()
            raise

    def run(self, name: str, code: str, wall_s: float) -> Result:
        start = time.monotonic()
        self.told.begin(self.limits.output_bytes)
        self._order({"name": name, "code": code})
        why = self._serve(wall_s)
        if why is not None and not self.told.answers:
            self._order({"interrupt": True})
            self._serve(INTERRUPT_S, floods=2)
        answered = bool(self.told.answers)
        ending = self.told.ending(Ending(0, None) if answered else self.running.finish())
        wall_s, out, err = time.monotonic() - start, self.told.out, self.told.err
        return Result(
            status=why or status_of(ending, self.limits, wall_s),
            exit_code=ending.exit_code,
            signal=ending.signal,
            stdout=out.text(),
            stderr=err.text(),
            truncated=out.truncated or err.truncated,
            wall_s=wall_s,
            cpu_s=ending.cpu_s,
            state_lost=not answered,
        )

    def close(self) -> None:
        self.streams.close()
        self.running.close()

    def _serve(self, wall_s: float, floods: int = 1) -> Status | None:
        return self.streams.serve(
            lambda: bool(self.told.answers) or self.told.gone is not None,
            deadline=time.monotonic() + wall_s,
            flood=floods * FLOOD * self.limits.output_bytes,
        )

    def _order(self, order: dict[str, object]) -> None:
        data = json.dumps(order).encode()
        self.streams.send(LENGTH.pack(len(data)) + data)
