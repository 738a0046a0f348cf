"""The contract on top of any way to start a command.

A backend says how to start a command, and a Running how to end everything that it started. The command is always
inside.py, which runs programs and commands, calls functions, and keeps sessions.
"""

from __future__ import annotations

import atexit
import base64
import contextlib
import json
import time
import weakref
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

from gem.errors import BadValue, SandboxError
from gem.sandbox.base import Case, Files, Limits, Result, Sandbox, Session, Status
from gem.sandbox.running import Ending, Running, status_of
from gem.sandbox.scripted_session import ScriptedSession
from gem.sandbox.streams import FLOOD, Capture, Sink, Streams
from gem.sandbox.told import Told

# -u: what was printed before a time-out is there.
INTERPRETER_FLAGS = ("-I", "-u", "-X", "utf8", "-c", Path(__file__).with_name("inside.py").read_text("utf-8"))
SENT = {  # what can be loaded inside
    file.stem: file.read_text("utf-8")
    for file in map(
        Path(__file__).parent.joinpath,
        ("inside_relay.py", "inside_call.py", "zygote/program.py", "zygote/values.py", "zygote/cells.py"),
    )
}
LASTING_S = 10.0**9  # of CPU: a session is limited by the cell, unless told otherwise
_open: weakref.WeakSet[ScriptedSandbox] = weakref.WeakSet()


class ScriptedSandbox(Sandbox):
    """A sandbox that starts one command for every run, with a job for inside.py on its stdin."""

    def __init__(self, *, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        self.closed = False
        self._running: weakref.WeakSet[Running] = weakref.WeakSet()
        self._sessions: weakref.WeakSet[ScriptedSession] = weakref.WeakSet()
        _open.add(self)

    @abstractmethod
    def _start(self, limits: Limits, *, lasting: bool) -> Running:
        """Start inside.py, contained. lasting: for a session, whose cells alone are limited in time."""

    def _rlimits(self, limits: Limits) -> dict[str, tuple[int, int]]:
        """Names of the resource module → (soft, hard), set before the program begins."""
        return {}

    def run(
        self,
        program: str | bytes,
        *,
        stdin: str | bytes = "",
        limits: Limits | None = None,
        files: Files | None = None,
    ) -> Result:
        job = {"source": as_text(program), "modules": sent("program")}
        return self._run(job, stdin, limits, files)

    def exec(
        self,
        command: str | Sequence[str],
        *,
        stdin: str | bytes = "",
        limits: Limits | None = None,
        files: Files | None = None,
    ) -> Result:
        return self._run({"command": arguments_of(command)}, stdin, limits, files)

    def session(self, *, limits: Limits | None = None) -> Session:
        limits = limits or self.limits
        job = self.envelope(relayed("cells", {}), replace(limits, cpu_s=limits.cpu_s or LASTING_S))
        session = ScriptedSession(lambda: self.start(limits, lasting=True), job, limits)
        self._sessions.add(session)
        return session

    def close(self) -> None:
        self.closed = True
        for session in list(self._sessions):
            session.close()
        for running in list(self._running):  # of other threads, which close them
            running.kill()

    def _run(self, job: Mapping[str, Any], stdin: str | bytes, limits: Limits | None, files: Files | None) -> Result:
        limits = limits or self.limits
        sent = self.envelope(job, limits, files) + as_bytes(stdin)
        out, err = Capture(limits.output_bytes), Capture(limits.output_bytes)
        with contextlib.closing(self.start(limits)) as running:
            return attend(running, sent, out, err, limits, last=True).result(out, err, limits)

    def _run_case(self, program: str | bytes, case: Case, function: str | None, limits: Limits | None) -> Result:
        if function is None:
            return self.run(program, stdin=case.stdin, limits=limits)
        limits = limits or self.limits
        call = {"source": as_text(program), "function": function, "arguments": case.arguments or "[]"}
        job = relayed("inside_call", call, case.stdin)
        told = Told(limits.output_bytes)
        with contextlib.closing(self.start(limits)) as running:
            attended = attend(running, self.envelope(job, limits), told, told.own, limits, last=False)
        attended = replace(attended, ending=told.ending(attended.ending))
        return replace(attended.result(told.out, told.err, limits), value=told.value)

    def envelope(self, job: Mapping[str, Any], limits: Limits, files: Files | None = None) -> bytes:
        """A job as inside.py reads it."""
        laid_out = {path: as_text(content) for path, content in checked_files(files).items()}
        data = json.dumps({**job, "files": laid_out, "rlimits": self._rlimits(limits)}).encode()
        return b"%08x" % len(data) + data

    def start(self, limits: Limits, *, lasting: bool = False) -> Running:
        """Start inside.py; the caller closes what is returned."""
        if self.closed:
            raise SandboxError(f"this {type(self).__name__} is closed")
        running = self._start(limits, lasting=lasting)
        self._running.add(running)
        return running


@dataclass(frozen=True)
class Attended:
    """How a command went. why: the limit that the host ended it for, None where it ended by itself."""

    ending: Ending
    why: Status | None
    wall_s: float

    def result(self, out: Capture, err: Capture, limits: Limits) -> Result:
        return Result(
            status=self.why or status_of(self.ending, limits, self.wall_s),
            exit_code=self.ending.exit_code,
            signal=self.ending.signal,
            stdout=out.text(),
            stderr=err.text(),
            truncated=out.truncated or err.truncated,
            wall_s=self.wall_s,
            cpu_s=self.ending.cpu_s,
            max_rss_bytes=self.ending.max_rss_bytes,
        )


def attend(running: Running, sent: bytes, out: Sink, err: Capture, limits: Limits, *, last: bool) -> Attended:
    """Feed a command, read it, and end it at the limits. Returns when nothing of it is left.

    last: whether its stdin ends with what is sent.

    Raises SandboxError where inside.py never began.
    """
    with contextlib.closing(Streams(running, out, err)) as streams:
        streams.send(sent, last=last)
        streams.await_beginning()
        start = time.monotonic()
        why = streams.serve(deadline=start + limits.wall_s, flood=FLOOD * limits.output_bytes)
        ending = running.finish()
        streams.drain()
        return Attended(ending, why, time.monotonic() - start)


def relayed(module: str, options: Mapping[str, Any], stdin: str | bytes = "") -> dict[str, Any]:
    """The job of running a module of gem's under inside_relay.py."""
    modules = sent("inside_relay", "program", "values", module)
    return {"relay": module, "options": options, "stdin": as_text(stdin), "modules": modules}


def sent(*names: str) -> dict[str, str]:
    """Modules to be loaded inside, in the order in which they need each other."""
    return {name: SENT[name] for name in names}


def environment(folder: str, prefix: str) -> dict[str, str]:
    """The environment variables of a program, whatever the host's are. prefix: where the interpreter is installed."""
    threads = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"), "1")  # each would reserve memory of its own
    path = f"{prefix}/bin:/usr/local/bin:/usr/bin:/bin"
    return {"PATH": path, "HOME": folder, "TMPDIR": folder, "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8", **threads}


def as_bytes(text: str | bytes) -> bytes:
    return text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text


def as_text(data: str | bytes) -> str:
    """Anything, in base64: JSON has no bytes, and no lone surrogates that every reader takes."""
    return base64.b64encode(as_bytes(data)).decode()


def arguments_of(command: str | Sequence[str]) -> list[str]:
    """A command as the list of its arguments. Raises BadValue for one that cannot be started anywhere."""
    arguments = ["/bin/sh", "-c", command] if isinstance(command, str) else list(command)
    if not arguments or any(not isinstance(argument, str) or "\0" in argument for argument in arguments):
        raise BadValue(f"a command is a line of shell or a list of texts without NUL, got {command!r}")
    return arguments


def checked_files(files: Files | None) -> dict[str, bytes]:
    """The files as bytes. Raises BadValue for a path that leads out of the working directory."""
    for path in files or {}:
        if not path or "\0" in path or ".." in PurePosixPath(path).parts or PurePosixPath(path).is_absolute():
            raise BadValue(f"files are named by relative paths without '..', got {path!r}")
    return {path: as_bytes(content) for path, content in (files or {}).items()}


@atexit.register
def _close_all() -> None:
    for sandbox in list(_open):
        sandbox.close()
