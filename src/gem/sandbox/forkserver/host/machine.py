"""The host side of a machine in the local sandbox."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from gem.errors import BadValue, SandboxError
from gem.sandbox.admission import admission
from gem.sandbox.forkserver.host import probe
from gem.sandbox.forkserver.host.execution import START_S, Launcher
from gem.sandbox.forkserver.host.lasting import LastingRun
from gem.sandbox.machine import (
    HOME,
    SHELL_PATH,
    FileEntry,
    Machine,
    MachineFiles,
    Typed,
    entries_of,
    load_archive,
    save_archive,
    unpacked,
)
from gem.sandbox.machine_protocol import EPOCH_S, HEAD_BYTES, SIZES, message, pack
from gem.sandbox.output import decoded_message
from gem.sandbox.results import Limits, Result, Status, call_seconds

ANSWER_S = 60.0  # time for process 1 to answer, even on a busy machine
DEATH_S = 10.0  # time for a machine to end after process 1 closed its socket
TYPED_BYTES = 1 << 15  # what a terminal may write per call; more is written with the next call
VARIABLES = {
    "PATH": SHELL_PATH,
    "HOME": HOME,
    "USER": "user",
    "LOGNAME": "user",
    "SHELL": "/bin/bash",
    "LANG": "C.UTF-8",
    "LC_ALL": "C.UTF-8",
    "TZ": "UTC",
    "TERM": "dumb",
    "PAGER": "cat",
    "GIT_AUTHOR_DATE": f"{EPOCH_S} +0000",  # commits have the same hash on every day
    "GIT_COMMITTER_DATE": f"{EPOCH_S} +0000",
}


class ZygoteMachine(LastingRun, Machine):
    """A machine at level ns. See Machine.

    Args:
        launch: starts the machine.
        limits: wall_s, cpu_s and output_bytes apply to each command, the others to the machine.
        files: the first files.
        folder: working directory in which the shell starts; it is created.
        state: what get_state() returned, instead of the other two.
    """

    def __init__(
        self,
        launch: Launcher,
        limits: Limits,
        *,
        files: MachineFiles = (),
        folder: str = HOME,
        state: Mapping[str, Any] | None = None,
    ) -> None:
        self.folder, exports = folder, ""
        archive = pack(entries_of(files))
        if state is not None:
            archive, self.folder, exports = load_archive(state), state["folder"], state["exports"]
        options = {"archive": archive, "folder": self.folder, "exports": exports, "variables": VARIABLES}
        super().__init__(launch, "machine", {**options, "shell": probe.bash()}, limits, streams=1)
        (self.output,) = self.outputs
        self.channel.setblocking(False)
        self._received, self._ready = bytearray(), False

    # ---- the contract

    def exec(self, command: str, *, wall_s: float | None = None) -> Result:
        with self._busy(self.limits.cpu_seconds), admission().slot():
            self.listener.renew(self.output)
            start = time.monotonic()
            why, answer = self._limited({"do": "exec"}, command.encode("utf-8", "surrogateescape"), wall_s)
            self.listener.drain(self.output)
            kept = self.listener.captures[self.output]
            found: dict[str, Any] = {"stdout": kept.text(), "truncated": kept.truncated}
            found["wall_s"] = time.monotonic() - start
            if answer is None:
                return Result(status=self._lost(), state_lost=True, **found)
            head, _ = answer
            self.folder, code = head["folder"], head["exit_code"]
            status = why or (Status.OK if code == 0 else Status.ERROR)
            return Result(status=status, exit_code=code, state_lost=not head["shell"], **found)

    def run(self, arguments: Sequence[str], *, stdin: bytes = b"", wall_s: float | None = None) -> Result:
        with self._busy(self.limits.cpu_seconds), admission().slot():
            start = time.monotonic()
            head = {"do": "run", "arguments": list(arguments), "limit": self.limits.output_bytes}
            why, answer = self._limited(head, stdin, wall_s)
            seconds = time.monotonic() - start
            if answer is None:
                return Result(status=self._lost(), state_lost=True, wall_s=seconds)
            if "errno" in answer[0]:
                raise OSError(answer[0]["errno"], answer[0]["reason"], answer[0].get("path"))
            code, over = answer[0]["exit_code"], answer[0]["over"]
            status = why or (Status.OUTPUT_LIMIT if over else Status.OK if code == 0 else Status.ERROR)
            text = answer[1].decode("utf-8", "replace")
            return Result(status=status, exit_code=code, stdout=text, truncated=over, wall_s=seconds)

    def type_keys(
        self, keys: bytes, *, rows: int = 24, columns: int = 80, wait_s: float = 0.0, wall_s: float | None = None
    ) -> Typed:
        most_s = self.limits.wall_s if wall_s is None else wall_s
        with self._busy(self.limits.cpu_seconds), admission().slot():
            head = {"do": "keys", "rows": rows, "columns": columns, "wait_s": wait_s, "most_s": most_s}
            _, answer = self._limited({**head, "limit": TYPED_BYTES}, keys, most_s + ANSWER_S)
            if answer is None:
                self._lost()
                return Typed(b"", open=False)
            if "errno" in answer[0]:
                return Typed(b"", open=False, problem=f"no terminal could be opened: {answer[0]['reason']}")
            untyped = answer[0]["untyped"]
            problem = f"the last {untyped} bytes of the keys were not typed" if untyped else ""
            return Typed(answer[1], open=answer[0]["open"], problem=problem)

    def read(self, path: str) -> bytes:
        return self._request({"do": "read", "path": path, "limit": self.limits.disk_bytes})[1]

    def write(self, files: MachineFiles) -> None:
        self._request({"do": "write"}, pack(entries_of(files)))

    def entries(self, folder: str = "/") -> list[FileEntry]:
        return unpacked(self._pack(folder)[1])

    def stop(self, *, keep: Iterable[int] = ()) -> None:
        self._request({"do": "stop", "keep": list(keep)})

    def sleep(self, seconds: float) -> None:
        self._request({"do": "sleep", "seconds": min(seconds, 10.0)})

    def get_state(self) -> dict[str, Any]:
        head, archive = self._pack("/")
        if head["jobs"]:
            raise BadValue(f"a machine with background processes cannot be saved: {', '.join(head['jobs'])}")
        return {**save_archive(archive), "folder": head["folder"], "exports": head["exports"]}

    def close(self) -> None:
        self.ended = self.ended or "closed"
        super().close()

    # ---- requests

    def _pack(self, folder: str) -> tuple[dict[str, Any], bytes]:
        return self._request({"do": "pack", "folder": folder, "limit": self.limits.disk_bytes})

    def _request(self, head: Mapping[str, Any], body: bytes = b"") -> tuple[dict[str, Any], bytes]:
        """Send a request and return the answer. Raises OSError if process 1 reports one."""
        with self._busy(self.limits.cpu_seconds):
            self._send(head, body)
            _, answer = self._answer(time.monotonic() + ANSWER_S)
            if answer is None:
                raise SandboxError(f"the machine has ended: {self._lost()}")
            if "errno" in answer[0]:
                raise OSError(answer[0]["errno"], answer[0]["reason"], answer[0].get("path"))
            return answer

    def _limited(
        self, head: Mapping[str, Any], body: bytes, wall_s: float | None
    ) -> tuple[Status | None, tuple[dict[str, Any], bytes] | None]:
        """Send a request and cancel it at a limit. Returns the limit or None, and the answer, None if there is none."""
        seconds = call_seconds(self.limits, wall_s)
        self._send(head, body)
        deadline = time.monotonic() + seconds
        why, answer = self._answer(deadline, limited=True)
        if why is not None:
            self._send({"do": "cancel"})
            _, answer = self._answer(time.monotonic() + ANSWER_S)
        return why, answer

    @contextlib.contextmanager
    def _busy(self, cpu_s: float) -> Iterator[None]:
        """Let the processes of the machine run."""
        if self.ended:
            raise SandboxError(f"this machine has ended: {self.ended}")
        kept = False
        try:
            self.launch.wait_until_started()
            if not self._ready:
                _, first = self._answer(time.monotonic() + START_S)
                if first is None or "ready" not in first[0]:
                    raise SandboxError("a machine could not be started" if first is None else str(first[0]))
                self._ready = True
            self.launch.busy(cpu_s)
            yield
            kept = True
        except (OSError, BadValue):
            kept = True
            raise
        finally:
            if kept and not self.ended:
                self.launch.idle()
            else:
                self.close()

    def _lost(self) -> Status:
        """Return the limit for which the machine was killed. Raises SandboxError if it ended for no such reason."""
        ended = self.launch.wait(DEATH_S)
        if ended is None or ended.why is None:
            raise SandboxError(f"process 1 of a machine died: {ended}")
        self.ended = ended.why.value
        return ended.why

    def _send(self, head: Mapping[str, Any], body: bytes = b"") -> None:
        """Send a message. Errors are ignored, because _answer() detects a machine that has ended."""
        rest = memoryview(message(head, body))
        deadline = time.monotonic() + ANSWER_S
        while rest and time.monotonic() < deadline:
            try:
                rest = rest[self.channel.send(rest) :]
            except BlockingIOError:
                self.listener.wait(time.monotonic() + 0.001)
            except OSError:
                return

    def _answer(
        self, deadline: float, *, limited: bool = False
    ) -> tuple[Status | None, tuple[dict[str, Any], bytes] | None]:
        """Wait for an answer.

        Args:
            deadline: value of time.monotonic().
            limited: whether to stop waiting at a limit of the command. Otherwise the deadline raises SandboxError.

        Returns:
            (limit, None) if a limit was reached, (None, answer), or (None, None) if the machine has ended.
        """
        while (now := time.monotonic()) < deadline:
            ready = self.listener.wait(deadline)
            if self.channel.fileno() in ready:
                if not self._read():
                    return None, None
                if (answer := self._decoded()) is not None:
                    return None, answer
            elif ready and self.launch.wait(0) is not None:
                return None, None
            if limited and self.launch.exceeded:
                return Status.TIMEOUT, None
            if limited and self.output in self.listener.floods:
                return Status.OUTPUT_LIMIT, None
        if not limited:
            raise SandboxError(f"process 1 of a machine did not answer in time ({now - deadline:.1f} s late)")
        return Status.TIMEOUT, None

    def _read(self) -> bool:
        """Read part of an answer. Returns False at the end of the stream."""
        try:
            part = self.channel.recv(1 << 20)
        except BlockingIOError:
            return True
        except OSError:
            return False
        self._received += part
        return bool(part)

    def _decoded(self) -> tuple[dict[str, Any], bytes] | None:
        """Remove a complete message from what was received, and return it."""
        if len(self._received) < SIZES.size:
            return None
        head_size, body_size = SIZES.unpack_from(self._received)
        # An archive has a table of at most HEAD_BYTES per 10,000 entries beside the contents, which are limited.
        if head_size > HEAD_BYTES or body_size > 2 * self.limits.disk_bytes + 32 * HEAD_BYTES:
            raise SandboxError("a machine sent a message that is too long")
        end = SIZES.size + head_size + body_size
        if len(self._received) < end:
            return None
        head = decoded_message(bytes(self._received[SIZES.size : SIZES.size + head_size]), "an answer of a machine")
        body = bytes(self._received[SIZES.size + head_size : end])
        del self._received[:end]
        return head, body
