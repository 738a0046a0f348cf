"""What goes into a run and what comes out: limits, files, test cases, results, reports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from gem.errors import BadValue

# Maps a path relative to the working directory to the content of the file.
Files = Mapping[str, str | bytes]
# The largest value of each limit. Above it the kernel refuses the number, or poll() the time.
MOST = {"wall_s": 10**6, "cpu_s": 10**9, "memory_bytes": 1 << 50, "processes": 10**6}
MOST |= {"disk_bytes": 1 << 50, "output_bytes": 1 << 50}


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
        BadValue: if a limit is not a number above 0, a whole one except for seconds, or is out of range.
    """

    wall_s: float = 10.0
    cpu_s: float | None = None
    memory_bytes: int = 1 << 30
    processes: int = 64
    disk_bytes: int = 64 << 20
    output_bytes: int = 128_000
    network: bool = False

    def __post_init__(self) -> None:
        for name in MOST:
            if name != "cpu_s" or self.cpu_s is not None:
                _check_limit(name, getattr(self, name))
        if not isinstance(self.network, bool):
            raise BadValue(f"limit network must be True or False, got {_shown(self.network)}")

    @property
    def cpu_seconds(self) -> float:
        return self.wall_s + 1 if self.cpu_s is None else self.cpu_s


def call_seconds(limits: Limits, wall_s: float | None) -> float:
    """Return the wall-clock limit of one call: ``wall_s``, or that of ``limits`` if it is None. Raises BadValue."""
    if wall_s is None:
        return limits.wall_s
    _check_limit("wall_s", wall_s)
    return wall_s


def _check_limit(name: str, value: Any) -> None:
    whole = not name.endswith("_s")
    if isinstance(value, bool) or not isinstance(value, int if whole else (int, float)) or not 0 < value <= MOST[name]:
        kind = "whole number" if whole else "number"
        raise BadValue(f"limit {name} must be a {kind} above 0 and at most {MOST[name]:,}, got {_shown(value)}")


def _shown(value: Any) -> str:
    if isinstance(value, int) and value.bit_length() > 256:  # Python refuses to print long integers
        return f"an integer of {value.bit_length()} bits"
    return f"{value!r:.80}"


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
        any_sequence: whether the return value may contain a deque, range or array.array, which becomes a list.
    """

    stdin: str | bytes = ""
    arguments: str | None = None
    value_bytes: int | None = None
    any_sequence: bool = False


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
        machines: how machines (see Sandbox.machine) are isolated; None if this sandbox has none here.
    """

    backend: str
    level: str
    guarantees: dict[str, str | None]
    notes: list[str] = field(default_factory=list)
    machines: str | None = None
