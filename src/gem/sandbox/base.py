"""The contract of every sandbox: what may run, within which limits, and what comes back.

A *program* is Python source that an agent wrote. What it does, crashing and overrunning included, is a Result. Only the
machinery's own failure is an exception, SandboxError, so that no outage is ever taken for an answer.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from types import TracebackType
from typing import Any, TypeVar

from gem.errors import BadValue

SandboxT = TypeVar("SandboxT", bound="Sandbox")
SessionT = TypeVar("SessionT", bound="Session")
Files = Mapping[str, str | bytes]


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What one run may use. Every limit holds for the run as a whole, its child processes included.

    Args:
        wall_s: seconds of wall clock, by the host's clock.
        cpu_s: seconds of CPU; None is wall_s + 1.
        memory_bytes: bytes of memory.
        processes: processes and threads alive at once.
        disk_bytes: bytes written to files, shared memory included.
        output_bytes: bytes kept of each of stdout and stderr, from head and tail. A program that writes far more is
            stopped.
        network: whether it may reach any.

    Raises BadValue for a limit that is not above zero.
    """

    wall_s: float = 10.0
    cpu_s: float | None = None
    memory_bytes: int = 1 << 30
    processes: int = 64
    disk_bytes: int = 64 << 20
    output_bytes: int = 128_000
    network: bool = False

    def __post_init__(self) -> None:
        for name in ("wall_s", "cpu_s", "memory_bytes", "processes", "disk_bytes", "output_bytes"):
            value = getattr(self, name)
            if value is None and name == "cpu_s":
                continue
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < float("inf"):
                raise BadValue(f"limit {name} must be a finite number above 0, got {value!r}")

    @property
    def cpu_seconds(self) -> float:
        return self.wall_s + 1 if self.cpu_s is None else self.cpu_s


class Status(str, Enum):
    """How a run ended.

    OK: exit code 0. ERROR: another exit code, an uncaught exception included. TIMEOUT: wall_s or cpu_s were used up.
    MEMORY: memory_bytes were. OUTPUT_LIMIT: stopped for writing without end. KILLED: any other signal.
    """

    OK = "ok"
    ERROR = "error"
    TIMEOUT = "timeout"
    MEMORY = "memory"
    OUTPUT_LIMIT = "output_limit"
    KILLED = "killed"

    __str__ = str.__str__


@dataclass(frozen=True, kw_only=True)
class Result:
    """What a program did.

    Args:
        exit_code: None where a signal ended it.
        signal: the signal's number, None where it exited.
        stdout, stderr: what was written until the end, decoded as UTF-8 with replacement characters; what was printed
            before a time-out is there. Where a stream was longer than output_bytes, its middle is replaced by a line
            that counts the bytes cut.
        truncated: whether anything was cut.
        wall_s, cpu_s: seconds.
        max_rss_bytes: peak resident memory of the largest process; 0 where it is not known.
        value: of a called function, as JSON; None where none was called, it raised, or its value is no plain data.
        state_lost: of a session's cell: its interpreter is gone, with all variables.
    """

    status: Status
    exit_code: int | None = None
    signal: int | None = None
    stdout: str = ""
    stderr: str = ""
    truncated: bool = False
    wall_s: float = 0.0
    cpu_s: float = 0.0
    max_rss_bytes: int = 0
    value: str | None = None
    state_lost: bool = False

    @property
    def ok(self) -> bool:
        return self.status is Status.OK

    def stopped(self, limits: Limits) -> str:
        """What ended a program that did not end by itself, or a session's interpreter, in brackets; else empty.

        limits: that it ran under.
        """
        said = {
            Status.TIMEOUT: f"[stopped after {limits.wall_s:g} s]",
            Status.MEMORY: "[stopped: it took more memory than it may]",
            Status.OUTPUT_LIMIT: "[stopped: it wrote without end]",
            Status.KILLED: f"[ended by signal {self.signal}]",
        }
        if self.state_lost:
            said[Status.ERROR] = f"[the interpreter exited with code {self.exit_code}]"
        return said.get(self.status, "")


@dataclass(frozen=True, kw_only=True)
class Case:
    """One test's input. What is expected of it stays outside the sandbox.

    Args:
        stdin: what the program reads; at its end it reads EOF.
        arguments: JSON of the list of positional arguments, where run_tests is given a function to call.
    """

    stdin: str | bytes = ""
    arguments: str | None = None


@dataclass(frozen=True)
class Report:
    """What holds on this machine.

    Args:
        backend: its name. level: "ns", "lsm" or "basic"; "" where the backend has no levels.
        guarantees: "network", "files", "processes", "memory", "disk", "cpu", "wall", "output", "kernel" → how each is
            enforced, None where it is not.
        notes: why the level is no higher, and whatever else a user should know, one sentence each.
    """

    backend: str
    level: str
    guarantees: dict[str, str | None]
    notes: list[str] = field(default_factory=list)


class Session(ABC):
    """An interpreter that keeps its variables between cells. Trusted for observations, never for rewards."""

    @abstractmethod
    def run(self, code: str, *, wall_s: float | None = None) -> Result:
        """Run one cell; like a notebook, the value of a last expression is printed by its repr.

        wall_s: seconds for this cell; None is the session's limit. A cell that overruns is interrupted; where that does
        not help, the interpreter is killed, and the result says ``state_lost``. The next cell starts a new one then.

        Raises SandboxError when the machinery failed, or the session is closed.
        """

    @abstractmethod
    def close(self) -> None:
        """End it and everything that it started. Safe to call twice."""

    async def arun(self, code: str, *, wall_s: float | None = None) -> Result:
        return await asyncio.to_thread(self.run, code, wall_s=wall_s)

    def __enter__(self: SessionT) -> SessionT:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Sandbox(ABC):
    """Runs untrusted programs. One sandbox serves any number of threads, event loops and forked processes at once.

    Nothing outlives a run: processes, files, shared memory. Programs see none of the host's files but the interpreter
    and its libraries, none of its environment variables, and an empty working directory that is theirs alone.

    limits: the defaults of every call. closed: whether close() was called.
    """

    limits: Limits
    closed: bool = False

    @abstractmethod
    def run(
        self,
        program: str | bytes,
        *,
        stdin: str | bytes = "",
        limits: Limits | None = None,
        files: Files | None = None,
    ) -> Result:
        """Run Python source as a script.

        Args:
            program: source of any length; bytes that are no Python are the program's error, not the caller's.
            stdin: what it reads; at its end it reads EOF.
            limits: None takes the sandbox's own.
            files: relative path → content, put into its working directory first.

        Raises SandboxError when the machinery failed, BadValue for a path that leads out of the working directory.
        """

    @abstractmethod
    def exec(
        self,
        command: str | Sequence[str],
        *,
        stdin: str | bytes = "",
        limits: Limits | None = None,
        files: Files | None = None,
    ) -> Result:
        """Run a command: a list is its arguments, a string is a line for /bin/sh. Otherwise like run()."""

    @abstractmethod
    def session(self, *, limits: Limits | None = None) -> Session:
        """A new interpreter that keeps its state. limits.wall_s is the default of a cell, the rest of its lifetime."""

    @abstractmethod
    def report(self) -> Report:
        """What this sandbox enforces on this machine, and how."""

    @abstractmethod
    def close(self) -> None:
        """End everything that this sandbox started. Safe to call twice."""

    def run_tests(
        self,
        program: str | bytes,
        cases: Sequence[Case],
        *,
        function: str | None = None,
        limits: Limits | None = None,
        stop: Callable[[int, Result], bool] | None = None,
    ) -> list[Result | None]:
        """Run a program on many inputs, each apart from the others.

        Tests that are quick may share processors; then their wall clocks run as much more slowly.

        Args:
            function: call this function of the program with each case's ``arguments``, instead of running it as a
                script; ``Class.method`` calls a method of a new instance, and a bare name is also looked for in a class
                ``Solution``.
            limits: of each test. None takes the sandbox's own.
            stop: called with (index, result) as results come in; True ends the rest.

        Returns one result per case, in order; None where a case was not run because stop() said so.
        """
        results: list[Result | None] = [None] * len(cases)
        for index, case in enumerate(cases):
            results[index] = result = self._run_case(program, case, function, limits)
            if stop is not None and stop(index, result):
                break
        return results

    def _run_case(self, program: str | bytes, case: Case, function: str | None, limits: Limits | None) -> Result:
        if function is not None:
            raise BadValue(f"{type(self).__name__} cannot call functions; run the program as a script")
        return self.run(program, stdin=case.stdin, limits=limits)

    async def arun(self, program: str | bytes, **options: Any) -> Result:
        """run(), for event loops."""
        return await asyncio.to_thread(self.run, program, **options)

    async def aexec(self, command: str | Sequence[str], **options: Any) -> Result:
        """exec(), for event loops."""
        return await asyncio.to_thread(self.exec, command, **options)

    async def arun_tests(self, program: str | bytes, cases: Sequence[Case], **options: Any) -> list[Result | None]:
        """run_tests(), for event loops."""
        return await asyncio.to_thread(self.run_tests, program, cases, **options)

    def __enter__(self: SandboxT) -> SandboxT:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
