"""A shell in a container, and single programs there, through the client of an engine.

The shell reports on its standard output after each command, behind a random mark. A command may learn the mark of its
own report and forge it; exit statuses are observations, never rewards.
"""

from __future__ import annotations

import contextlib
import re
import secrets
import shlex
import time
from collections.abc import Sequence

from gem.errors import SandboxError
from gem.sandbox.output import FLOOD_FACTOR, Capture
from gem.sandbox.process import CommandProcess, ProcessStreams
from gem.sandbox.results import Status

_START = (
    'cd "$1" 2>/dev/null; exec 9>&1; printf x; '
    "if command -v bash >/dev/null; then exec bash --norc --noprofile; fi; exec sh"
)
_STATE_BYTES = 1 << 20  # of the exported variables that a shell reports


class ShellOutput:
    """A sink that tells the output of a command from the report of the shell after it.

    Attributes:
        kept: the output.
        report: exit status, working directory, processes and exported variables; None until the shell has reported.
    """

    def __init__(self, limit: int, mark: str) -> None:
        self.kept = Capture(limit)
        self._mark, self._end, self._pending = f"\n{mark}\n".encode(), f"\n{mark} end\n".encode(), bytearray()
        self._reported: bytearray | None = None
        self.report: tuple[int, str, set[int], str] | None = None

    @property
    def total(self) -> int:
        return self.kept.total + len(self._reported or ())

    def add(self, data: bytes) -> None:
        if self._reported is None:
            self._pending += data
            found = self._pending.find(self._mark)
            end = found if found >= 0 else max(0, len(self._pending) - len(self._mark) + 1)
            self.kept.add(bytes(self._pending[:end]))
            if found < 0:
                del self._pending[:end]
                return
            data, self._reported = bytes(self._pending[end + len(self._mark) :]), bytearray()
        if len(self._reported) < _STATE_BYTES:
            self._reported += data
        if self._reported.endswith(self._end):
            text = self._reported[: -len(self._end)].decode("utf-8", "surrogateescape")
            code, pids, folder, exports = [*text.split("\n", 3), "", "", ""][:4]
            listed = set(map(int, re.findall(r"/proc/([0-9]{1,9})(?!\S)", pids)))  # a command may forge all of this
            self.report = int(code) if re.fullmatch("[0-9]{1,9}", code) else 1, folder, listed, exports

    def finish(self) -> None:
        """Keep what may have been the start of a report."""
        if self._reported is None:
            self.kept.add(bytes(self._pending))
            self._pending.clear()


class ContainerShell:
    """A shell of a machine that keeps its state. It reads commands from its standard input.

    Args:
        client: call of the engine that runs a program in the container.
        place: its first working directory there. If that is gone, it starts where the client does.
        exports: bash source that sets its first variables.
        limit: bytes of output to keep of each command.
        wall_s: time for the shell to start, in seconds.
        folder: working directory of the client.

    Attributes:
        pid: its process id in the container.
        before: the processes that there were after the last command.
        output: of the last command.
    """

    def __init__(self, client: Sequence[str], place: str, exports: str, limit: int, wall_s: float, folder: str) -> None:
        self.limit, self.pid, self.before = limit, 0, set[int]()
        self.process = CommandProcess([*client, "/bin/sh", "-c", _START, "sh", place], folder=folder)
        self.output = ShellOutput(limit, secrets.token_hex(16))
        self.streams = ProcessStreams(self.process, self.output, Capture(limit))
        try:
            self.streams.wait_until_started()
            here = '[ . -ef "$PWD" ] || cd -P .'  # the exports set PWD to a folder that may be gone
            if self.run(f"{exports}\n{here}\necho $$", wall_s) is not None or self.output.report is None:
                raise SandboxError("the shell of a container did not start")
            self.pid, self.before = int(self.output.kept.text().split()[-1]), self.output.report[2]
        except BaseException:
            self.close()
            raise

    def run(self, command: str, wall_s: float) -> Status | None:
        """Run a command. Returns the limit that it exceeded, or None."""
        mark = secrets.token_hex(16)
        self.output = ShellOutput(self.limit, mark)
        self.streams.sinks[self.process.stdout] = self.output
        quoted = shlex.quote(command.replace("\0", ""))
        script = (
            f"eval {quoted} </dev/null >&9 2>&1\n"
            f"{{ command printf '\\n{mark}\\n%s\\n' \"$?\"; command printf '%s ' /proc/[0-9]*; "
            f"command printf '\\n%s\\n' \"$PWD\"; export -p; "
            f"command printf '\\n{mark} end\\n'; }} >&9 2>/dev/null\n"
        )
        self.streams.send(script.encode("utf-8", "surrogateescape"))
        return self.serve(wall_s)

    def serve(self, wall_s: float) -> Status | None:
        """Read the output of a command until the shell reports, ends, or a limit is exceeded."""
        why = self.streams.serve(
            lambda: self.output.report is not None,
            deadline=time.monotonic() + wall_s,
            max_bytes=FLOOD_FACTOR * self.limit,
        )
        if self.output.report is None and why is None:  # it has ended
            self.streams.drain()
        return why

    def close(self) -> None:
        self.streams.close()
        self.process.close()


def serve_program(client: CommandProcess, kept: Capture, stdin: bytes, deadline: float) -> Status | None:
    """Transfer the input and output of a single program until it ends. Returns the limit that it exceeded, or None."""
    with contextlib.closing(ProcessStreams(client, kept, Capture(kept.limit))) as streams:
        streams.started = True  # no start signal
        streams.send(stdin, last=True)
        why = streams.serve(deadline=deadline, max_bytes=FLOOD_FACTOR * kept.limit)
        streams.drain()
    return why
