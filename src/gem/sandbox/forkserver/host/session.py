"""The host side of a session with an isolated interpreter."""

from __future__ import annotations

import contextlib
import json
import math
import socket
import time
from dataclasses import replace
from typing import Annotated

import msgspec

from gem._internal.inbound import MESSAGE, check_json
from gem.errors import SandboxError
from gem.sandbox.admission import admission
from gem.sandbox.forkserver.host.execution import START_S, Launcher, RunExit, run_status
from gem.sandbox.forkserver.host.lasting import LastingRun
from gem.sandbox.forkserver.protocol import IDLE_S
from gem.sandbox.interpreter_session import LENGTH, InterpreterSession
from gem.sandbox.process import ProcessExit
from gem.sandbox.results import Limits, Result, Status

SEND_S = 0.1  # time to send an interrupt
INTERRUPT_S = 1.0  # time for a cell to end after an interrupt
HANGUP_S = 1.0  # time for an interpreter to exit after it closed its socket
DEATH_S = 10.0  # time for a killed interpreter to exit
ANSWER_BYTES = 4096
QUICK_S = IDLE_S / 2
QUICK_BYTES = 65536  # a larger cell may not fit in the socket of an interpreter that is stopped


class CellAnswer(msgspec.Struct):
    """The message that the interpreter sends at the end of a cell. Programs can forge this message."""

    exit_code: Annotated[int, msgspec.Meta(ge=0, le=255)]
    cpu_s: float
    out_of_memory: bool

    @property
    def status(self) -> Status:
        if self.out_of_memory:
            return Status.MEMORY
        return Status.OK if self.exit_code == 0 else Status.ERROR


class ZygoteSession(InterpreterSession):
    """A session with an isolated interpreter.

    Args:
        launch: starts the interpreter, and a new interpreter if the first one exits or is killed.
        limits: wall_s, cpu_s and output_bytes apply to each cell; the other limits apply to an interpreter.
    """

    def __init__(self, launch: Launcher, limits: Limits) -> None:
        super().__init__(lambda: _Interpreter(launch, limits), limits, at_once=True)


class _Interpreter(LastingRun):
    """A running interpreter."""

    def __init__(self, launch: Launcher, limits: Limits) -> None:
        super().__init__(launch, "session", {}, limits)
        self.ready = False
        self._idle()

    def run(self, name: str, code: str, wall_s: float) -> Result:
        """Run a cell. Raises SandboxError if the fork server died."""
        with admission().slot():
            return self._run(name, code, wall_s)

    def _run(self, name: str, code: str, wall_s: float) -> Result:
        self.launch.wait_until_started()
        limits = self.limits if wall_s == self.limits.wall_s else replace(self.limits, wall_s=wall_s)
        self.cpu_s = limits.cpu_seconds
        start = time.monotonic()
        if not self.ready:
            _, answer = self._answer(start + START_S, limited=False)
            if answer is None:
                return self._lost_result(start, None)
            self.ready, start = True, time.monotonic()
        self.listener.renew(*self.outputs)
        message = json.dumps({"name": name, "code": code}).encode()
        if len(message) > QUICK_BYTES:
            self._busy()
        self._send(message, wall_s)
        why, answer = self._answer(start + wall_s)
        if why is not None:
            self._send(b"", SEND_S)  # for a cell that has not started yet
            self.launch.interrupt()
            self.launch.kill_children()  # they could keep the interpreter from ending the cell in time
            _, answer = self._answer(time.monotonic() + INTERRUPT_S, limited=False)
        if answer is None:
            return self._lost_result(start, why)
        if why is not None:
            self.launch.kill_children()  # those that it has started since
        if self.busy_at == math.inf:
            self._idle()
        ended = ProcessExit(answer.exit_code, None, cpu_s=answer.cpu_s)
        return self._result(start, why or answer.status, ended)

    def kill(self) -> None:
        self.launch.kill(Status.KILLED)

    def _idle(self) -> None:
        """Announce the end of a cell. A cell that ends within QUICK_S from now need not be announced at all."""
        self.launch.idle()
        self.busy_at = time.monotonic() + QUICK_S

    def _busy(self) -> None:
        self.launch.busy(self.cpu_s)
        self.busy_at = math.inf

    def _send(self, data: bytes, timeout_s: float) -> None:
        """Send a message. Errors are ignored, because _answer() detects a dead interpreter."""
        self.channel.settimeout(timeout_s)
        with contextlib.suppress(OSError):
            self.channel.sendall(LENGTH.pack(len(data)) + data)

    def _answer(self, deadline: float, *, limited: bool = True) -> tuple[Status | None, CellAnswer | None]:
        """Wait for a cell to end.

        Args:
            deadline: value of time.monotonic().
            limited: whether to stop waiting if the cell uses too much CPU time or writes too much output.

        Returns:
            (limit, None) if a limit was reached, (None, answer) if the cell ended, or (None, None) if the interpreter
            died or sent an invalid answer.
        """
        received = b""
        while (now := time.monotonic()) < deadline:
            if now >= self.busy_at:
                self._busy()
            ready = self.listener.wait(min(deadline, self.busy_at))
            if self.channel.fileno() in ready or (ready and self.launch.wait(0) is not None):
                part = self._read()
                received += part
                if not part or len(received) > ANSWER_BYTES:
                    return None, None
                if received.endswith(b"\n"):
                    return None, _decoded(received)
            if limited and self.launch.exceeded:
                return Status.TIMEOUT, None
            if limited and not self.listener.floods.isdisjoint(self.outputs):
                return Status.OUTPUT_LIMIT, None
        return Status.TIMEOUT, None

    def _read(self) -> bytes:
        """Read part of an answer. Returns b"" if no data could be read."""
        with contextlib.suppress(OSError):
            return self.channel.recv(ANSWER_BYTES, socket.MSG_DONTWAIT)
        return b""

    def _lost_result(self, start: float, why: Status | None) -> Result:
        ended = self._ended(why)
        status = why or run_status(ended, self.limits)
        if status is Status.OK:
            status = Status.ERROR  # the interpreter exited in the middle of a cell
        return self._result(start, status, ProcessExit(ended.exit_code, ended.signal), state_lost=True)

    def _ended(self, why: Status | None) -> RunExit:
        """Wait for the interpreter to exit. Kill it at once if ``why`` is given, otherwise after HANGUP_S."""
        ended = self.launch.wait(HANGUP_S) if why is None else None
        if ended is None:
            self.launch.kill(why or Status.KILLED)
            ended = self.launch.wait(DEATH_S)
        if ended is None:
            raise SandboxError(f"a killed interpreter did not exit within {DEATH_S:g} s")
        return ended

    def _result(self, start: float, status: Status, ended: ProcessExit, *, state_lost: bool = False) -> Result:
        """Return a result with the output of the cell."""
        self.listener.drain(*self.outputs)
        out, err = (self.listener.captures[fd] for fd in self.outputs)
        return ended.result(status, out, err, time.monotonic() - start, state_lost=state_lost)


def _decoded(answer: bytes) -> CellAnswer | None:
    with contextlib.suppress(ValueError):
        check_json(answer, "an answer of an interpreter", MESSAGE)
        return msgspec.json.decode(answer, type=CellAnswer)
    return None
