"""Base class of the sandboxes that start one command per run: subprocess, bubblewrap and containers.

A backend only has to implement _start(). The command always runs inside.py, which receives a job on stdin: run a
program or a command, call a function, or serve a session. This is one file because all of it implements the host side
of the protocol between the host and inside.py.
"""

from __future__ import annotations

import atexit
import base64
import contextlib
import json
import time
import weakref
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from gem._internal.inbound import MESSAGE, loads
from gem.errors import SandboxError
from gem.sandbox.base import Sandbox, Session
from gem.sandbox.inputs import Job, as_base64, as_bytes
from gem.sandbox.interpreter_session import LENGTH, InterpreterSession
from gem.sandbox.output import FLOOD_FACTOR, Capture, Sink
from gem.sandbox.process import START_S, CommandProcess, ProcessExit, ProcessStreams, status_of
from gem.sandbox.results import Case, Limits, Result, Status

# -u: output printed before a timeout is not lost in a buffer.
INTERPRETER_FLAGS = ("-I", "-u", "-X", "utf8", "-c", Path(__file__).with_name("inside.py").read_text("utf-8"))
MODULE_SOURCES = {  # modules that inside.py can load
    file.stem: file.read_text("utf-8")
    for file in (
        Path(__file__).with_name("inside_relay.py"),
        *(Path(__file__).parents[1] / "forkserver" / "entry" / f"{name}.py" for name in ("program", "values", "cells")),
    )
}
SESSION_CPU_S = 10.0**9  # CPU limit of a session whose limits have no cpu_s; its cells are limited by wall clock
INTERRUPT_S = 1.0  # seconds to wait for a cell to react to an interrupt
VALUE_BYTES = 1 << 20  # default limit of the size of a return value, as in forkserver/entry/values.py
ANSWER_BYTES = 1 << 16  # maximum size of the answers to a function call or a cell, without the return value
Answered = TypeVar("Answered")
_open: weakref.WeakSet[CommandSandbox] = weakref.WeakSet()


class CommandSandbox(Sandbox):
    """A sandbox that starts one command per run and sends it a job for inside.py on stdin."""

    def __init__(self, *, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        self.closed = False
        self._processes: weakref.WeakSet[CommandProcess] = weakref.WeakSet()
        self._sessions: weakref.WeakSet[InterpreterSession] = weakref.WeakSet()
        _open.add(self)

    @abstractmethod
    def _start(self, limits: Limits, *, for_session: bool) -> CommandProcess:
        """Start inside.py under isolation.

        Args:
            limits: limits of the run.
            for_session: whether the process serves a session. A session has a time limit per cell, not for the process.
        """

    def _rlimits(self, limits: Limits) -> dict[str, tuple[int, int]]:
        """Return the resource limits to set before the program starts: name in module resource → (soft, hard)."""
        cpu_s = max(1, round(limits.cpu_seconds))
        return {
            "RLIMIT_CPU": (cpu_s, cpu_s + 1),
            "RLIMIT_FSIZE": (limits.disk_bytes, limits.disk_bytes),
            "RLIMIT_CORE": (0, 0),
        }

    def session(self, *, limits: Limits | None = None) -> Session:
        limits = limits or self.limits
        job = self._encoded(_relay_job("cells", {}), replace(limits, cpu_s=limits.cpu_s or SESSION_CPU_S))
        session = InterpreterSession(
            lambda: _CommandInterpreter(self._started(limits, for_session=True), job, limits), limits
        )
        self._sessions.add(session)
        return session

    def close(self) -> None:
        self.closed = True
        for session in list(self._sessions):
            session.close()
        for process in list(self._processes):  # each process is closed by the thread that started it
            process.kill()

    def _run(self, job: Job) -> Result:
        limits, program = job.limits, {"source": as_base64(job.program), "modules": _sources("program")}
        data = self._encoded({"command": job.command} if job.command else program, limits, job.files)
        out, err = Capture(limits.output_bytes), Capture(limits.output_bytes)
        with contextlib.closing(self._started(limits)) as process:
            ended, killed_for, wall_s = _supervise(process, data + as_bytes(job.stdin), out, err, limits, last=True)
        return ended.result(killed_for or status_of(ended, limits, wall_s), out, err, wall_s)

    def _run_case(self, job: Job, case: Case) -> Result:
        if job.function is None:
            return super()._run_case(job, case)
        limits, value_bytes = job.limits, VALUE_BYTES if case.value_bytes is None else case.value_bytes
        call: dict[str, Any] = {
            "source": as_base64(job.program),
            "function": job.function,
            "arguments": case.arguments or "[]",
        }
        call |= {"value_bytes": value_bytes, "any_sequence": case.any_sequence}
        data = self._encoded(_relay_job("inside_relay", call, case.stdin), limits)
        relay = RelayOutput(limits.output_bytes, value_bytes)
        with contextlib.closing(self._started(limits)) as process:
            ended, killed_for, wall_s = _supervise(process, data, relay, relay.relay_errors, limits, last=False)
        ended = relay.program_exit(ended)
        status = killed_for or status_of(ended, limits, wall_s)
        return ended.result(status, relay.out, relay.err, wall_s, value=relay.answered("value", str))

    def _encoded(self, job: Mapping[str, Any], limits: Limits, files: Mapping[str, bytes] | None = None) -> bytes:
        """Encode a job for inside.py."""
        contents = {path: as_base64(content) for path, content in (files or {}).items()}
        data = json.dumps({**job, "files": contents, "rlimits": self._rlimits(limits)}).encode()
        return b"%08x" % len(data) + data

    def _started(self, limits: Limits, *, for_session: bool = False) -> CommandProcess:
        """Start inside.py. The caller must close the returned process."""
        if self.closed:
            raise SandboxError(f"this {type(self).__name__} is closed")
        process = self._start(limits, for_session=for_session)
        self._processes.add(process)
        return process


def _supervise(
    process: CommandProcess, data: bytes, out: Sink, err: Capture, limits: Limits, *, last: bool
) -> tuple[ProcessExit, Status | None, float]:
    """Send data to a command, read its output, and kill the command if it exceeds a limit.

    When this function returns, all remaining processes of the command have been killed.

    Args:
        last: whether to close stdin after the data.

    Returns:
        How the command ended, the limit for which the host killed it or None, and the seconds that it took.

    Raises:
        SandboxError: if inside.py did not start.
    """
    with contextlib.closing(ProcessStreams(process, out, err)) as streams:
        streams.send(data, last=last)
        streams.wait_until_started()
        start = time.monotonic()
        killed_for = streams.serve(deadline=start + limits.wall_s, max_bytes=FLOOD_FACTOR * limits.output_bytes)
        ended = process.finish()
        streams.drain()
        return ended, killed_for, time.monotonic() - start


class RelayOutput:
    """Decodes the messages of inside_relay.py: the output, the answers and the exit code of the program.

    Args:
        limit: maximum number of bytes to keep of stdout, and of stderr.
        value_bytes: maximum number of bytes of a return value. Answers that are longer, which only a program that
            tampers with its interpreter can send, are not decoded and count as output.

    Attributes:
        out, err: the output of the program.
        answers: the answers of the program, oldest first.
        relay_errors: stderr of the relay process itself; empty unless the relay failed.
        exit_code: exit code of the program; None until the program has ended.
    """

    def __init__(self, limit: int, value_bytes: int = 0) -> None:
        self.relay_errors = Capture(limit)
        self.exit_code: int | None = None
        self.answer_bytes = ANSWER_BYTES + 2 * value_bytes  # in the answer, the quotes in the value are escaped
        self._pending, self._pending_answer = b"", bytearray()
        self.reset(limit)

    def reset(self, limit: int) -> None:
        """Discard the output and the answers received so far."""
        self.out, self.err = Capture(limit), Capture(limit)
        self.answers: list[dict[str, Any]] = []
        self._answered_bytes = 0

    @property
    def total(self) -> int:
        return max(self.out.total, self.err.total, len(self._pending), self._answered_bytes - self.answer_bytes)

    def add(self, data: bytes) -> None:
        *lines, self._pending = (self._pending + data).split(b"\n")
        for line in lines:
            with contextlib.suppress(ValueError, TypeError, AttributeError):  # not a message of the relay
                self._read_message(loads(line, "a message of the relay", MESSAGE))

    def _read_message(self, message: dict[str, Any]) -> None:
        for name, text in message.items():
            data = base64.b64decode(text)
            if name == "stdout":
                self.out.add(data)
            elif name == "stderr":
                self.err.add(data)
            elif name == "answer":
                self._read_answer(data)
            elif name == "exit_code":
                self.exit_code = int(data)

    def _read_answer(self, data: bytes) -> None:
        self._answered_bytes += len(data)
        if self._answered_bytes <= self.answer_bytes:
            *lines, self._pending_answer = (self._pending_answer + data).split(b"\n")
            bounds = MESSAGE._replace(bytes=self.answer_bytes)
            self.answers += [dict(loads(bytes(line), "an answer", bounds, keep_surrogates=True)) for line in lines]

    def program_exit(self, relay: ProcessExit) -> ProcessExit:
        """Return how the program or its last cell ended. If the relay reported neither, return how the relay ended."""
        if self.exit_code is None and not self.answers:
            return relay
        return ProcessExit.of(
            self.exit_code or self.answered("exit_code", int) or 0,
            cpu_s=self.answered("cpu_s", float) or relay.cpu_s,
            max_rss_bytes=relay.max_rss_bytes,
            out_of_memory=bool(self.answered("out_of_memory", bool)),
        )

    def answered(self, key: str, kind: type[Answered]) -> Answered | None:
        """Return a field of the first answer; None if there is none of that type."""
        value = self.answers[0].get(key) if self.answers else None
        return value if isinstance(value, kind) else None


class _CommandInterpreter:
    """The interpreter of a session, in a process that runs inside.py.

    Args:
        process: just started; this object closes it.
        job: the encoded job that inside.py receives.
        limits: output_bytes applies to each cell.
    """

    def __init__(self, process: CommandProcess, job: bytes, limits: Limits) -> None:
        self.process, self.limits = process, limits
        self.relay = RelayOutput(limits.output_bytes)
        self.streams = ProcessStreams(process, self.relay, self.relay.relay_errors)
        try:
            self.streams.send(job)
            self.streams.wait_until_started()
            self._serve(START_S)
        except BaseException:
            self.close()
            raise

    def run(self, name: str, code: str, wall_s: float) -> Result:
        start = time.monotonic()
        self.relay.reset(self.limits.output_bytes)
        self._send(json.dumps({"name": name, "code": code}).encode())
        limit_reached = self._serve(wall_s)
        if limit_reached is not None and not self.relay.answers:
            self._send(b"")  # an interrupt
            self._serve(INTERRUPT_S, floods=2)
        answered = bool(self.relay.answers)
        ended = self.relay.program_exit(ProcessExit(0, None) if answered else self.process.finish())
        wall_s = time.monotonic() - start
        status = limit_reached or status_of(ended, self.limits, wall_s)
        if status is Status.OK and not answered:
            status = Status.ERROR  # the interpreter exited in the middle of a cell
        return ended.result(status, self.relay.out, self.relay.err, wall_s, state_lost=not answered)

    def kill(self) -> None:
        self.process.kill()

    def close(self) -> None:
        self.streams.close()
        self.process.close()

    def _serve(self, wall_s: float, floods: int = 1) -> Status | None:
        return self.streams.serve(
            lambda: bool(self.relay.answers) or self.relay.exit_code is not None,
            deadline=time.monotonic() + wall_s,
            max_bytes=floods * FLOOD_FACTOR * self.limits.output_bytes,
        )

    def _send(self, data: bytes) -> None:
        self.streams.send(LENGTH.pack(len(data)) + data)


def _relay_job(module: str, options: Mapping[str, Any], stdin: str | bytes = "") -> dict[str, Any]:
    """Return a job that runs ``module.run(options, fds)`` in a child process of inside_relay.py."""
    names = dict.fromkeys(("program", "values", "inside_relay", module))
    return {"relay": module, "options": options, "stdin": as_base64(stdin), "modules": _sources(*names)}


def _sources(*names: str) -> dict[str, str]:
    """Return the sources of the modules that inside.py loads: name → source, in import order."""
    return {name: MODULE_SOURCES[name] for name in names}


def environment(folder: str, prefix: str) -> dict[str, str]:
    """Return the environment variables of a program. None of the host's variables are inherited.

    Args:
        folder: working directory of the program.
        prefix: installation prefix of the interpreter.
    """
    path = f"{prefix}/bin:/usr/local/bin:/usr/bin:/bin"
    threads = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}  # each additional thread would reserve memory
    return {"PATH": path, "HOME": folder, "TMPDIR": folder, "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8", **threads}


@atexit.register
def _close_all() -> None:
    for sandbox in list(_open):
        sandbox.close()
