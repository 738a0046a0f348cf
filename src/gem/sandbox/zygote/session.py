"""Sessions, seen from the host: one contained interpreter each, no thread, and four descriptors while it lives."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import struct
import time
import weakref
from dataclasses import replace
from typing import Annotated, Any

import msgspec

from gem.errors import SandboxError
from gem.sandbox.base import Limits, Result, Status
from gem.sandbox.interpreter_session import InterpreterSession
from gem.sandbox.zygote.host import Launch, Launcher, RunExit, status_of
from gem.sandbox.zygote.listener import Listener

INTERRUPT_S = 1.0  # for a cell to heed an interrupt
SEND_S = 0.1  # for an interrupt to be sent
HANGUP_S = 1.0  # for an interpreter that hung up to be gone
DEATH_S = 10.0  # for a killed interpreter to be gone
LIFETIME_CPU_S = 1e6  # where the limits name none: what bounds a cell is its wall clock
ANSWER_BYTES = 4096
LENGTH = struct.Struct(">I")  # precedes each message to an interpreter


class CellAnswer(msgspec.Struct):
    """What an interpreter says when a cell ended. Nothing here is trusted."""

    exit_code: Annotated[int, msgspec.Meta(ge=0, le=255)]
    cpu_s: float
    out_of_memory: bool

    @property
    def status(self) -> Status:
        if self.out_of_memory:
            return Status.MEMORY
        return Status.OK if self.exit_code == 0 else Status.ERROR


class ZygoteSession(InterpreterSession):
    """An interpreter in a sandbox of its own.

    Args:
        launch: starts it, now and after each time that it was lost.
        limits: wall_s and output_bytes are of each cell, the rest of each interpreter's life.
    """

    def __init__(self, launch: Launcher, limits: Limits) -> None:
        super().__init__(lambda: _Interpreter(launch, limits), limits, at_once=True)


class _Interpreter:
    """A running interpreter, and the host's ends of its streams."""

    def __init__(self, launch: Launcher, limits: Limits) -> None:
        self.limits = limits
        self.listener = Listener()
        with contextlib.ExitStack() as ours, contextlib.ExitStack() as theirs:
            self.channel, channel = socket.socketpair()
            ours.callback(self.channel.close)
            theirs.callback(channel.close)
            ours.callback(self.listener.close)
            null = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
            theirs.callback(os.close, null)
            self.outputs, outputs = zip(*(self.listener.pipe(limits.output_bytes) for _ in range(2)), strict=True)
            for fd in outputs:
                theirs.callback(os.close, fd)
            lifetime = replace(limits, cpu_s=limits.cpu_s or LIFETIME_CPU_S)
            self.launch = launch("session", {}, [null, *outputs, channel.fileno()], lifetime, None)
            ours.callback(self.launch.close)
            self._finalizer = weakref.finalize(self, _end, self.launch, ours.pop_all(), os.getpid())
            self._finalizer.atexit = False  # the sandbox ends all that is left
        self.listener.watch(self.channel.fileno())
        self.listener.watch(self.launch.fileno())

    def run(self, name: str, code: str, wall_s: float) -> Result:
        """Run a cell. Raises SandboxError when the machinery died."""
        self.launch.wait_until_started()
        start = time.monotonic()
        self.listener.renew(*self.outputs)
        self._send({"name": name, "code": code}, wall_s)
        why, answer = self._answer(start + wall_s)
        if why is not None:
            self._send({"interrupt": True}, SEND_S)
            _, answer = self._answer(time.monotonic() + INTERRUPT_S, floods=False)
        if answer is None:
            return self._lost_result(start, why)
        return self._result(start, why or answer.status, exit_code=answer.exit_code, cpu_s=answer.cpu_s)

    def kill(self) -> None:
        self.launch.kill(Status.KILLED)

    def close(self) -> None:
        self._finalizer()

    def _send(self, message: dict[str, Any], timeout_s: float) -> None:
        """To an interpreter that is gone, or does not listen, nothing is sent: who waits for its answer will notice."""
        data = json.dumps(message).encode()
        self.channel.settimeout(timeout_s)
        with contextlib.suppress(OSError):
            self.channel.sendall(LENGTH.pack(len(data)) + data)

    def _answer(self, deadline: float, *, floods: bool = True) -> tuple[Status | None, CellAnswer | None]:
        """Wait for a cell to end. Returns the limit that it reached, or its answer, or neither: nobody will answer.

        floods: whether to stop at far too much output.
        """
        received = b""
        while time.monotonic() < deadline:
            ready = self.listener.wait(deadline)
            if self.channel.fileno() in ready or (ready and self.launch.over()):
                part = self._read()
                received += part
                if not part or len(received) > ANSWER_BYTES:
                    return None, None
                if received.endswith(b"\n"):
                    return None, _decoded(received)
            if floods and not self.listener.floods.isdisjoint(self.outputs):
                return Status.OUTPUT_LIMIT, None
        return Status.TIMEOUT, None

    def _read(self) -> bytes:
        """What there is of an answer; empty when nothing will come any more."""
        with contextlib.suppress(OSError):
            return self.channel.recv(ANSWER_BYTES, socket.MSG_DONTWAIT)
        return b""

    def _lost_result(self, start: float, why: Status | None) -> Result:
        ended = self._ended(why)
        status = why or status_of(ended, self.limits)
        if status is Status.OK:
            status = Status.ERROR  # it was not asked to end
        self.listener.drain(*self.outputs)
        return self._result(start, status, exit_code=ended.exit_code, signal=ended.signal, state_lost=True)

    def _ended(self, why: Status | None) -> RunExit:
        """How it ended, which is brought about where a limit is why. Raises SandboxError when it lives on."""
        ended = self.launch.wait(HANGUP_S) if why is None else None
        if ended is None:
            self.launch.kill(why or Status.KILLED)
            ended = self.launch.wait(DEATH_S)
        if ended is None:
            raise SandboxError(f"a killed interpreter was not gone after {DEATH_S:g} s")
        return ended

    def _result(self, start: float, status: Status, **found: Any) -> Result:
        """A result, with what the cell wrote."""
        self.listener.drain(*self.outputs)
        out, err = (self.listener.captures[fd] for fd in self.outputs)
        return Result(
            status=status,
            stdout=out.text(),
            stderr=err.text(),
            truncated=out.truncated or err.truncated,
            wall_s=time.monotonic() - start,
            **found,
        )


def _end(launch: Launch, resources: contextlib.ExitStack, owner: int) -> None:
    if owner == os.getpid():
        launch.kill(Status.KILLED)
    resources.close()


def _decoded(answer: bytes) -> CellAnswer | None:
    with contextlib.suppress(msgspec.DecodeError):
        return msgspec.json.decode(answer, type=CellAnswer)
    return None
