"""The sandbox contract: limits, results, and the methods that every backend implements.

A *program* is Python source written by an agent. Crashes and exceeded limits of the program are reported in a Result.
Only a failure of the sandbox itself raises SandboxError, so an outage cannot be mistaken for a wrong answer.
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
# Maps a path relative to the working directory to the content of the file.
Files = Mapping[str, str | bytes]


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Resource limits of one run. Each limit applies to the program and its child processes together.

    Some backends enforce a limit less strictly, for example per process; Sandbox.report() lists these cases.

    Args:
        wall_s: wall-clock seconds, by the host's clock.
        cpu_s: CPU seconds. None means wall_s + 1.
        memory_bytes: bytes of memory.
        processes: processes and threads alive at the same time.
        disk_bytes: bytes written to files, including shared memory.
        output_bytes: maximum number of bytes to keep of stdout, and of stderr. The middle of longer output is dropped.
            A program that writes more than 32 * output_bytes to one stream is killed.
        network: whether the program may use the network.

    Raises:
        BadValue: if a limit is not a finite number above zero.
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

    OK: exit code 0. ERROR: nonzero exit code, for example after an uncaught exception. TIMEOUT: wall_s or cpu_s was
    exceeded. MEMORY: memory_bytes was exceeded. OUTPUT_LIMIT: killed for writing too much output. KILLED: ended by a
    signal for any other reason.
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
    """Outcome of a run.

    Args:
        status: how the run ended.
        exit_code: None if a signal ended the program.
        signal: signal number; None if the program exited.
        stdout, stderr: everything written before the end (or the timeout), decoded as UTF-8 with replacement
            characters. If a stream exceeded output_bytes, a line with the number of dropped bytes replaces its middle.
        truncated: whether part of the output was dropped.
        wall_s: elapsed wall-clock time in seconds.
        cpu_s: CPU time in seconds; 0 if unknown.
        max_rss_bytes: peak resident memory of the largest process; 0 if unknown.
        value: return value of the called function as JSON text. None if no function was called, if the function
            raised an exception, or if the value is not plain data.
        state_lost: True if the interpreter of a session ended during the cell, so that its variables are lost.
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
        """Return a bracketed message saying why the program was stopped, or an empty string if it ended by itself.

        For a session cell whose interpreter exited, the message gives the exit code.

        Args:
            limits: the limits that applied to the run.
        """
        messages = {
            Status.TIMEOUT: f"[timed out after {limits.wall_s:g} s]",
            Status.MEMORY: "[killed: memory limit exceeded]",
            Status.OUTPUT_LIMIT: "[killed: output limit exceeded]",
            Status.KILLED: f"[killed by signal {self.signal}]",
        }
        if self.state_lost:
            messages[Status.ERROR] = f"[the interpreter exited with code {self.exit_code}]"
        return messages.get(self.status, "")


@dataclass(frozen=True, kw_only=True)
class Case:
    """Input of one test. The expected output never enters the sandbox.

    Args:
        stdin: the complete standard input.
        arguments: JSON text of the list of positional arguments, for tests that call a function. None means no
            arguments.
        value_bytes: maximum number of bytes of the return value as JSON text. None means 1 MiB. A longer value is an
            error of the program, and the host does not decode it.
    """

    stdin: str | bytes = ""
    arguments: str | None = None
    value_bytes: int | None = None


@dataclass(frozen=True)
class Report:
    """What a sandbox enforces on this machine.

    Args:
        backend: name of the backend.
        level: "ns", "lsm" or "basic"; "" if the backend has no levels.
        guarantees: maps each of "network", "files", "processes", "kernel", "memory", "process_limit", "disk", "cpu",
            "wall" and "output" to what enforces it, or to None if it is not enforced. "processes" means that a program
            cannot reach other processes and leaves none behind; "process_limit" is Limits.processes.
        notes: sentences that explain why no higher level is available, and describe other limitations.
        machines: how machines (see ZygoteSandbox.machine) are isolated; None if this sandbox has none here.
    """

    backend: str
    level: str
    guarantees: dict[str, str | None]
    notes: list[str] = field(default_factory=list)
    machines: str | None = None


class Session(ABC):
    """An interpreter that keeps its variables between cells.

    A program can tamper with its interpreter and so falsify results. Do not compute rewards from session results.
    """

    @abstractmethod
    def run(self, code: str, *, wall_s: float | None = None) -> Result:
        """Run one cell. If the last statement is an expression, its repr is printed, as in a notebook.

        A cell that exceeds its time limit is interrupted. If the interrupt does not end the cell, the interpreter is
        killed, ``state_lost`` is True in the result, and the next cell starts a new interpreter.

        Args:
            code: Python source.
            wall_s: wall-clock seconds for this cell. None means the limit of the session.

        Raises:
            SandboxError: if the sandbox fails or the session is closed.
        """

    @abstractmethod
    def close(self) -> None:
        """Kill the interpreter and all processes that it started. A second call has no effect."""

    async def arun(self, code: str, *, wall_s: float | None = None) -> Result:
        return await asyncio.to_thread(self.run, code, wall_s=wall_s)

    def __enter__(self: SessionT) -> SessionT:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Sandbox(ABC):
    """Runs untrusted programs. Safe to use from several threads, event loops and forked processes at once.

    When a run ends, all of its processes, files and shared memory are removed. Programs can read no files of the host
    except the interpreter and the libraries. They inherit no environment variables from the host and start in an empty
    private directory. Backends with weaker isolation say so in report().

    Attributes:
        limits: default limits of every call.
        closed: whether close() was called.
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
            program: source of any length. A syntax error gives a Result with status ERROR; it does not raise.
            stdin: the complete standard input.
            limits: None means the limits of the sandbox.
            files: files to create in the working directory before the run: relative path → content.

        Raises:
            SandboxError: if the sandbox fails.
            BadValue: if a path in ``files`` is not a relative path inside the working directory.
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
        """Run a command: a list of arguments, or a string that is passed to /bin/sh. See run() for the arguments."""

    @abstractmethod
    def session(self, *, limits: Limits | None = None) -> Session:
        """Start an interpreter that keeps its variables between cells.

        Args:
            limits: wall_s, cpu_s and output_bytes apply to each cell; the other limits apply to the interpreter and
                to the processes that its cells have started. None means the limits of the sandbox.
        """

    @abstractmethod
    def report(self) -> Report:
        """Return a description of what this sandbox enforces on this machine, and how."""

    @abstractmethod
    def close(self) -> None:
        """Kill all processes that this sandbox started. A second call has no effect."""

    def run_tests(
        self,
        program: str | bytes,
        cases: Sequence[Case],
        *,
        function: str | None = None,
        limits: Limits | None = None,
        stop: Callable[[int, Result], bool] | None = None,
    ) -> list[Result | None]:
        """Run a program once per case. The runs are isolated from each other.

        Backends may run several tests at once. The local sandbox runs a test once more if it exceeded wall_s but not
        the CPU limit, because other programs may have slowed it down; the second result counts.

        Args:
            program: Python source.
            cases: the inputs.
            function: name of the function to call with the ``arguments`` of each case. ``Class.method`` calls the
                method on a new instance of the class. A name without a dot is also looked up as a method of the class
                ``Solution``. None runs the program as a script.
            limits: limits of each test. None means the limits of the sandbox.
            stop: called with (index, result) after each test; returning True cancels the remaining tests. It may run
                programs, but must not wait for another thread that does.

        Returns:
            One result per case, in the order of the cases. The result is None if stop() cancelled the case.

        Raises:
            SandboxError: if the sandbox fails.
        """
        results: list[Result | None] = [None] * len(cases)
        for index, case in enumerate(cases):
            results[index] = result = self._run_case(program, case, function, limits)
            if stop is not None and stop(index, result):
                break
        return results

    def _run_case(self, program: str | bytes, case: Case, function: str | None, limits: Limits | None) -> Result:
        if function is not None:
            raise BadValue(f"{type(self).__name__} does not support function calls; run the program as a script")
        return self.run(program, stdin=case.stdin, limits=limits)

    async def arun(self, program: str | bytes, **options: Any) -> Result:
        """Asynchronous run()."""
        return await asyncio.to_thread(self.run, program, **options)

    async def aexec(self, command: str | Sequence[str], **options: Any) -> Result:
        """Asynchronous exec()."""
        return await asyncio.to_thread(self.exec, command, **options)

    async def arun_tests(self, program: str | bytes, cases: Sequence[Case], **options: Any) -> list[Result | None]:
        """Asynchronous run_tests()."""
        return await asyncio.to_thread(self.run_tests, program, cases, **options)

    def __enter__(self: SandboxT) -> SandboxT:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
