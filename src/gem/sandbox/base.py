"""The sandbox contract: the methods that every backend has.

A *program* is Python source written by an agent. Crashes and exceeded limits of the program are reported in a Result.
Only a failure of the sandbox itself raises SandboxError, so an outage cannot be mistaken for a wrong answer.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from gem.errors import BadValue, SandboxError
from gem.sandbox.inputs import Job, checked_files, command_arguments
from gem.sandbox.machine import Machine, MachineFiles
from gem.sandbox.results import Case, Files, Limits, Report, Result

NO_MACHINES = "{} has no machines; use the local sandbox at level 'ns', docker or podman"
SandboxT = TypeVar("SandboxT", bound="Sandbox")
SessionT = TypeVar("SessionT", bound="Session")


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

    def __exit__(self, *_: object) -> None:
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
        return self._run(Job(program=program, stdin=stdin, limits=limits or self.limits, files=checked_files(files)))

    def exec(
        self,
        command: str | Sequence[str],
        *,
        stdin: str | bytes = "",
        limits: Limits | None = None,
        files: Files | None = None,
    ) -> Result:
        """Run a command: a list of arguments, or a string that is passed to /bin/sh. See run() for the arguments."""
        arguments, limits = command_arguments(command), limits or self.limits
        return self._run(Job(command=arguments, stdin=stdin, limits=limits, files=checked_files(files)))

    def _run(self, job: Job) -> Result:
        """Run a program or a command. A backend defines this, and _run_case() or _run_tests() to call functions."""
        raise NotImplementedError(f"{type(self).__name__} must define _run(job)")

    @abstractmethod
    def session(self, *, limits: Limits | None = None) -> Session:
        """Start an interpreter that keeps its variables between cells.

        Args:
            limits: wall_s, cpu_s and output_bytes apply to each cell; the other limits apply to the interpreter and
                to the processes that its cells have started. None means the limits of the sandbox.
        """

    def machine(
        self,
        *,
        files: MachineFiles = (),
        folder: str | None = None,
        limits: Limits | None = None,
        state: Mapping[str, Any] | None = None,
    ) -> Machine:
        """Start a machine: a private file system with a shell that keeps its state.

        Args:
            files: the first files; see gem.sandbox.machine.
            folder: working directory in which the shell starts; it is created. None means HOME or, in a container, the
                working directory of the image.
            limits: wall_s, cpu_s and output_bytes apply to each command, the others to the machine. None means the
                limits of the sandbox.
            state: what get_state() of a machine returned. ``files`` and ``folder`` have no effect then.

        Raises:
            SandboxError: if the sandbox fails, or has no machines. The message names what is missing.
            BadValue: if a path is invalid, or the files of the state are gone.
        """
        raise SandboxError(NO_MACHINES.format(type(self).__name__))

    def require_machines(self) -> None:
        """Raise SandboxError, with one line that says what to do, if this sandbox has no machines here."""
        report = self.report()
        if report.machines is None:
            raise SandboxError("; ".join([NO_MACHINES.format(type(self).__name__), *report.notes]))

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
        return self._run_tests(Job(program=program, function=function, limits=limits or self.limits), cases, stop)

    def _run_tests(
        self, job: Job, cases: Sequence[Case], stop: Callable[[int, Result], bool] | None
    ) -> list[Result | None]:
        """Run the program of a job once per case; see run_tests()."""
        results: list[Result | None] = [None] * len(cases)
        for index, case in enumerate(cases):
            results[index] = result = self._run_case(job, case)
            if stop is not None and stop(index, result):
                break
        return results

    def _run_case(self, job: Job, case: Case) -> Result:
        if job.function is not None:
            raise BadValue(f"{type(self).__name__} does not support function calls; run the program as a script")
        return self.run(job.program, stdin=case.stdin, limits=job.limits)

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

    def __exit__(self, *_: object) -> None:
        self.close()
