"""Sessions of a sandbox that can only start commands: inside.py keeps the interpreter, lines of JSON bring it cells."""

from __future__ import annotations

import json
import struct
import time
from collections.abc import Callable

from gem.sandbox.base import Limits, Result, Status
from gem.sandbox.interpreters import InterpreterSession
from gem.sandbox.running import Ending, Running, status_of
from gem.sandbox.streams import FLOOD, Streams
from gem.sandbox.told import Told

LENGTH = struct.Struct(">I")  # precedes each message, as cells.py reads it
INTERRUPT_S = 1.0  # for a cell to heed an interrupt


class ScriptedSession(InterpreterSession):
    """An interpreter behind a command.

    Args:
        start: starts inside.py; what it returns is fed the job by this.
        job: the session's, as inside.py reads it.
        limits: wall_s and output_bytes are of each cell.
    """

    def __init__(self, start: Callable[[], Running], job: bytes, limits: Limits) -> None:
        super().__init__(lambda: _Live(start(), job, limits), limits)


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
        status = why or status_of(ending, self.limits, wall_s)
        if status is Status.OK and not answered:
            status = Status.ERROR  # it was not asked to end
        return Result(
            status=status,
            exit_code=ending.exit_code,
            signal=ending.signal,
            stdout=out.text(),
            stderr=err.text(),
            truncated=out.truncated or err.truncated,
            wall_s=wall_s,
            cpu_s=ending.cpu_s,
            state_lost=not answered,
        )

    def kill(self) -> None:
        self.running.kill()

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
