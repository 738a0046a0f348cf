"""Verification of terminal tasks.

1. The service that the task names, if any, must answer; it gets its requests as files.
2. Every other process of the machine is killed. Process 1, which commands can neither signal nor read, sends the files.
3. The host compares the files with those of the task.
4. The checks of the task run on a copy of the files in a fresh machine, with the environment of a new machine. Their
   programs are those of the system, or what the task asks the agent to write; the host compares what they print.

The expected files and outputs stay in the host. There is no verdict in a machine that could be forged.

If the verification fails for another reason than a wrong file or output, such as a time limit, it is repeated on the
same files in another fresh machine. If that fails too, a control check decides: if it works, the files are the cause
and the task is not solved; if not, the sandbox has failed.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Mapping

from gem.envs.computers.task import HiddenCheck, RequiredService, TerminalTask, first_fault, first_wrong_file, same_text
from gem.errors import SandboxError
from gem.sandbox.machine import HOME, FileEntry, Machine, MachineFiles
from gem.sandbox.results import Status

Start = Callable[[MachineFiles], Machine]
POLL_S = 0.05  # between looks at the replies of a service
SETTLED_POLLS = 40  # a service whose wrong replies stay the same for so long is not waited for
_CONTROL = "the control check of the verifier"


class VerifierError(Exception):
    """The verification could not be completed; the message says why."""


def verify(task: TerminalTask, machine: Machine, start: Start) -> str:
    """Return why the task is not solved, or "" if it is.

    Args:
        task: the task.
        machine: the machine of the agent. Its processes are killed.
        start: starts a fresh machine with files.

    Raises:
        SandboxError: if the sandbox fails.
    """
    try:
        service = "" if task.service is None else service_fault(task.service, machine)
        machine.stop()
        found = machine.entries()
    except OSError as e:  # such as more bytes of files than the disk has
        return f"the files cannot be read: {e.strerror or e}"
    except SandboxError:
        if machine.ended in ("", "closed"):
            raise
        control(start)
        return f"the machine has ended: {machine.ended}"
    if fault := first_fault(task, found) or service:
        return fault
    return checks_fault(task.checks, found, start) if task.checks else ""


def checks_fault(checks: Iterable[HiddenCheck], found: Iterable[FileEntry], start: Start) -> str:
    """Run checks on a copy of the files in a fresh machine. Returns the first fault, or ""."""
    inside = [entry for entry in found if entry.path.startswith(f"{HOME}/")]
    trouble = ""
    for _ in range(2):
        try:
            return next(filter(None, (_check_fault(check, inside, start) for check in checks)), "")
        except VerifierError as e:
            trouble = str(e)
    control(start)
    return f"{trouble}, twice, and the control check works"


def control(start: Start) -> None:
    """Run a check that works unless the sandbox fails. Raises SandboxError if it does not."""
    path = f"{HOME}/control"
    with start({path: _CONTROL}) as machine:
        result = machine.run(["/bin/cat", path])
        if not result.ok or result.stdout != _CONTROL:
            raise SandboxError(f"{_CONTROL} fails: {result.status} {result.stdout[:200]!r}")


def _check_fault(check: HiddenCheck, inside: list[FileEntry], start: Start) -> str:
    """Run one check. Raises VerifierError if there is no result."""
    hidden = [FileEntry(f"{HOME}/{path}", text.encode()) for path, text in check.files.items()]
    taken = [entry for entry in inside if _is_copied(entry.path, check)]
    try:
        with contextlib.closing(start(taken)) as machine:
            if hidden:
                machine.write(hidden)
            result = machine.run(check.arguments, stdin=check.stdin.encode())
            if result.status not in (Status.OK, Status.ERROR):
                raise VerifierError(f"{check.name}: {result.status.value} limit exceeded")
            if check.stdout is not None and not (result.ok and same_text(result.stdout, check.stdout)):
                return f"{check.name}: the output is wrong"
            if not check.expected:
                return ""
            machine.stop()
            after = {entry.path.removeprefix(f"{HOME}/"): entry for entry in machine.entries(HOME)}
    except (SandboxError, OSError) as e:
        raise VerifierError(f"{check.name}: {e}") from e
    fault = first_wrong_file(check.expected, after)
    return fault and f"{check.name}: {fault}"


def _is_copied(path: str, check: HiddenCheck) -> bool:
    inside = path.removeprefix(f"{HOME}/")
    return not check.only or any(inside == name or inside.startswith(f"{name}/") for name in check.only)


def service_fault(service: RequiredService, machine: Machine) -> str:
    """Kill all processes but the service, and give it requests: one, and the others after the first answer.

    Returns what is wrong, or "". Raises OSError.
    """
    try:
        pid = int(machine.read(f"{HOME}/{service.pid_file}")[:20])
    except (OSError, ValueError) as e:
        return f"{service.pid_file} has no process id: {e}"
    if pid <= 1:
        return f"{service.pid_file} has the process id {pid}"
    machine.stop(keep=[pid])
    requests, replies = list(service.requests.items()), list(service.replies.items())
    for part in (slice(1), slice(1, None)):
        if fault := _reply_fault(service, machine, pid, dict(requests[part]), dict(replies[part])):
            return f"the service does not answer: {fault}"
    return ""


def _reply_fault(
    service: RequiredService, machine: Machine, pid: int, requests: Mapping[str, str], expected: Mapping[str, str]
) -> str:
    """Give a service requests and wait for the replies. Returns what is wrong, or ""."""
    machine.write({f"{HOME}/{path}": text for path, text in requests.items()})
    fault, deadline = "", time.monotonic() + service.seconds
    last: dict[str, FileEntry] = {}
    same = 0  # polls since the replies changed
    while time.monotonic() < deadline:
        alive = _is_alive(machine, pid)
        machine.sleep(POLL_S)
        replies = {path: entry for path in expected if (entry := _file(machine, path))}
        left = {path: entry for path in requests if (entry := _file(machine, path))}
        fault = first_wrong_file(expected, replies) or first_wrong_file(dict.fromkeys(requests), left)
        same, last = (same + 1 if replies == last else 0), replies
        complete = len(replies) == len(expected)
        if not fault or not alive or (complete and same >= SETTLED_POLLS):
            break
    return fault


def _is_alive(machine: Machine, pid: int) -> bool:
    """Whether a process runs. A process that has ended may still have an entry, as a zombie."""
    with contextlib.suppress(OSError):
        return machine.read(f"/proc/{pid}/stat").rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    return False


def _file(machine: Machine, path: str) -> FileEntry | None:
    with contextlib.suppress(OSError):
        return FileEntry(path, machine.read(f"{HOME}/{path}"))
    return None
