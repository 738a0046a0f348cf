"""Process 1 of a machine: runs the commands of its shell, and reads and writes its files.

It serves one host, over a socket, and is the only process of the machine that the agent cannot signal, trace or read,
because it is process 1 and not dumpable. The shell is bash. It reads commands from a pipe and, after each, reports the
exit status, the working directory and the exported variables, from which a new shell starts if it exits.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import select
import signal
import socket
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NoReturn

from gem.sandbox.forkserver import linux
from gem.sandbox.forkserver.entry.machine_terminal import Terminal, become
from gem.sandbox.forkserver.entry.program import own_descriptor
from gem.sandbox.forkserver.limits.processes import stat_fields
from gem.sandbox.machine_protocol import (
    EPOCH_S,
    SIZES,
    message,
    pack,
    read_entries,
    read_file,
    unpack,
    write_entries,
)

CHANNEL = 3  # index of the socket among the descriptors
COMMANDS, ANSWERS = 62, 61  # descriptors of the shell
ANSWER_BYTES = 1 << 20  # more is not kept: a command may export variables without end
HANGUP_S = 0.5  # time for the shell to answer after its command was killed
STOP_S = 10.0  # time for killed processes to vanish
# The function lets a command see the exit status of the previous one as $?, without a fork.
_SHELL = (
    "shopt -s expand_aliases; __exit_status=0; "
    '__previous() { return "$__exit_status"; }; '
    "while IFS= read -r -d '' -u 62 __command; do "
    '__previous; eval "$__command" </dev/null 62<&- 61>&-; '
    "__exit_status=$?; "
    "{ builtin printf '%d\\0%s\\0' \"$__exit_status\" \"$PWD\"; builtin declare -px; builtin printf '\\0'; } >&61; "
    "done"
)  # one line, so that messages say "line 1"


def run(options: Mapping[str, Any], fds: Sequence[int]) -> NoReturn:
    """Serve the host until it closes the socket.

    Args:
        options: ``archive``, the first files; ``folder``, where the shell starts; ``variables``, its environment;
            ``exports``, text of ``declare -px`` to restore.
        fds: the streams of the shell, and the socket.
    """
    exit_code = 1
    try:
        linux.set_dumpable(False)  # commands could use its socket to the host, and forge answers, through /proc
        Init(fds[CHANNEL], **options).serve()
        exit_code = 0
    finally:
        os._exit(exit_code)


class Init:
    """Serves the requests of the host; see run() for the arguments."""

    def __init__(
        self, channel: int, *, archive: bytes, folder: str, variables: dict[str, str], exports: str, shell: str
    ) -> None:
        self.channel = socket.socket(fileno=_moved(channel))
        self.folder, self.exports, self.variables, self.bash = folder, exports, variables, shell
        self.shell, self.status = 0, 0  # process id of the shell, 0 without one; its exit code
        self.program, self.program_status = 0, 0  # the same for do_run
        self.terminal: Terminal | None = None
        self.woken, self.waker = map(_moved, os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC))
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self.waker, warn_on_full_buffer=False)
        self.commands = self.answers = -1
        os.makedirs(folder, exist_ok=True)
        os.chdir(folder)
        entries = list(unpack(archive))
        write_entries(entries)
        for top in {folder, variables["HOME"]} - {entry.path for entry in entries}:
            with contextlib.suppress(PermissionError):
                os.utime(top, (EPOCH_S, EPOCH_S))
        self._start_shell()

    def serve(self) -> None:
        self._send({"ready": True})
        while (request := self._receive()) is not None:
            head, body = request
            operation: Callable[..., None] = getattr(self, f"do_{head.pop('do')}")
            try:
                operation(body, **head)
            except OSError as e:
                path = e.filename if isinstance(e.filename, str) else None
                self._send({"errno": e.errno or errno.EIO, "reason": e.strerror or str(e), "path": path})
            except ValueError as e:  # a path with a zero byte, or that is no UTF-8
                self._send({"errno": errno.EINVAL, "reason": str(e)})

    # ---- requests

    def do_exec(self, command: bytes) -> None:
        """Run a command in the shell. Answers with its exit code and what became of the shell."""
        before = _processes()
        answer = self._run(command.replace(b"\0", b""), before) if self._has_shell() else None
        kept = answer is not None
        if not kept:
            self._end_shell()
        self._send({"exit_code": self.status if answer is None else answer, "shell": kept, "folder": self.folder})

    def do_cancel(self, body: bytes) -> None:
        """The command that should be cancelled had ended already; its answer was sent."""

    def do_read(self, body: bytes, path: str, limit: int) -> None:
        self._send({}, read_file(os.path.join(self.folder, path), limit=limit))

    def do_write(self, archive: bytes) -> None:
        with _in(self.folder):
            write_entries(unpack(archive))
        self._send({})

    def do_pack(self, body: bytes, folder: str, limit: int) -> None:
        """Answer with an archive of a folder, and what restores the shell. ``jobs`` are the other live processes."""
        jobs = sorted(_processes() - {os.getpid(), self.shell})
        head = {"folder": self.folder, "exports": self.exports, "jobs": [name for pid in jobs if (name := _name(pid))]}
        self._send(head, pack(read_entries(folder, limit=limit)))

    def do_run(self, stdin: bytes, arguments: list[str], limit: int) -> None:
        """Run a program with the first environment. Answers with its exit code and at most ``limit`` bytes of output.

        The output arrives through a pipe of its own, so that no other process can write to it.
        """
        before = _processes()
        source, writer = self._pipe(writes=True)
        reader, target = self._pipe(writes=False)
        null, home = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC), self.variables["HOME"]
        ours = {writer, reader, null}
        try:
            try:
                if (pid := os.fork()) == 0:
                    become(arguments, self.variables, home, {0: source, 1: target, 2: null})
                self.program = pid
            finally:
                os.close(source)
                os.close(target)
            output = self._communicate(writer, stdin, reader, limit, ours)
            self._kill_new(before)
        finally:
            for fd in ours:
                os.close(fd)
        over = len(output) > limit
        self._send({"exit_code": self.program_status, "over": over}, bytes(output[:limit]))

    def do_keys(self, keys: bytes, rows: int, columns: int, wait_s: float, most_s: float, limit: int) -> None:
        """Type into the terminal; start it if there is none. Answers with what was written and whether it is open.

        ``untyped`` is how many of the last bytes of the keys were not typed.
        """
        self._reap()
        if self.terminal is not None and not self.terminal.pid:
            self._close_terminal()
        if self.terminal is None:
            folder = self.folder if os.path.isdir(self.folder) else "/"
            self.terminal = Terminal(self.bash, folder, self.variables, self.exports, rows=rows, columns=columns)
        fds = (self.woken, self.channel.fileno())
        output, untyped = self.terminal.type_keys(
            keys, *fds, wait_s=wait_s, most_s=most_s, limit=limit, reap=self._reap
        )
        if not self.terminal.pid:
            self._close_terminal()
        self._send({"open": self.terminal is not None, "untyped": untyped}, output)

    def _close_terminal(self) -> None:
        if self.terminal is not None:
            self.terminal.close()
        self.terminal = None

    def do_sleep(self, body: bytes, seconds: float) -> None:
        time.sleep(seconds)
        self._send({})

    def do_stop(self, body: bytes, keep: list[int]) -> None:
        """Kill every other process of the machine, except those in ``keep`` and their descendants.

        The shell is always killed; what it has started stays only if it is in ``keep`` itself.
        """
        keep = [pid for pid in keep if pid != self.shell]
        deadline = time.monotonic() + STOP_S
        while victims := _processes() - _with_descendants(keep) - {os.getpid()}:
            for pid in victims if keep else {-1}:  # -1 also reaches those that are forked meanwhile (01_fork_bomb)
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            self._reap()
            if time.monotonic() > deadline:
                raise OSError(errno.ETIMEDOUT, "killed processes did not end")
        self._send({})

    # ---- the shell

    def _run(self, command: bytes, before: set[int]) -> int | None:
        """Write a command to the shell and wait for its answer. Returns the exit code; None if the shell has ended."""
        answer, rest = b"", command + b"\0"
        deadline: float | None = None  # after the host has cancelled the command
        while True:
            poll = select.poll()
            poll.register(self.answers, select.POLLIN)
            poll.register(self.woken, select.POLLIN)
            if deadline is None:
                poll.register(self.channel, select.POLLIN)
            if rest:
                poll.register(self.commands, select.POLLOUT)
            timeout_s = None if deadline is None else max(0.0, deadline - time.monotonic())
            ready = dict(poll.poll(None if timeout_s is None else timeout_s * 1000))
            if deadline is not None and time.monotonic() >= deadline:
                return None
            if self.commands in ready and rest:
                with contextlib.suppress(BlockingIOError, BrokenPipeError):
                    rest = rest[os.write(self.commands, rest) :]
            if self.answers in ready:
                with contextlib.suppress(BlockingIOError):
                    part = os.read(self.answers, 1 << 16)
                    if not part and deadline is None:  # the shell has closed its end, usually because it has exited
                        deadline = time.monotonic() + HANGUP_S
                    answer = (answer + part)[:ANSWER_BYTES]
                    if answer.count(b"\0") >= 3 or len(answer) == ANSWER_BYTES:
                        return self._read_answer(answer)
            if self.woken in ready:
                self._reap()
                if not self.shell:
                    return None
            if self.channel.fileno() in ready:
                if self._receive() is None:
                    os._exit(0)
                self.status = 128 + signal.SIGKILL
                deadline = time.monotonic() + HANGUP_S
            if deadline is not None:
                self._kill_new(before)

    def _read_answer(self, answer: bytes) -> int | None:
        status, folder, exports = (*answer.split(b"\0"), b"", b"")[:3]
        try:
            code = int(status) & 0xFF
        except ValueError:  # the agent has replaced a builtin
            return None
        self.folder, self.exports = os.fsdecode(folder) or self.folder, exports.decode("utf-8", "surrogateescape")
        return code

    def _has_shell(self) -> bool:
        self._reap()
        if not self.shell:
            self._start_shell()
        return bool(self.shell)

    def _start_shell(self) -> None:
        """Start a shell in the last working directory with the last exported variables."""
        for fd in (self.commands, self.answers):
            if fd >= 0:
                os.close(fd)
        commands, self.commands = self._pipe(writes=True)
        self.answers, answers = self._pipe(writes=False)
        if not os.path.isdir(self.folder):
            self.folder = "/"
        try:
            if (pid := os.fork()) == 0:
                command = ["bash", "--norc", "--noprofile", "-c", _SHELL, "bash"]
                fds = {COMMANDS: commands, ANSWERS: answers}
                become(command, self.variables, self.folder, fds, path=self.bash)
            self.shell = pid
        except OSError:  # too many processes
            self.status = 128
        os.close(commands)
        os.close(answers)
        if self.shell and self.exports and self._run(self.exports.encode("utf-8", "surrogateescape"), set()) is None:
            self.exports = ""

    def _pipe(self, *, writes: bool) -> tuple[int, int]:
        """Return (read end, write end), of which this process keeps one that does not block."""
        reader, writer = map(_moved, os.pipe2(os.O_CLOEXEC))
        os.set_blocking(writer if writes else reader, False)
        return reader, writer

    def _end_shell(self) -> None:
        """Kill the shell and start another one, if that is possible now."""
        if self.shell:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.shell, signal.SIGKILL)
            self._reap(self.shell)
        self._start_shell()

    def _communicate(self, writer: int, rest: bytes, reader: int, limit: int, ours: set[int]) -> bytearray:
        """Feed the program and collect its output until it exits, is cancelled or exceeds the limit.

        Closes its ends of the pipes, which are in ``ours``, at the end of the input and of the output.
        """
        output = bytearray()
        while self.program:
            if not rest and writer in ours:
                ours.remove(writer)
                os.close(writer)
            poll = select.poll()
            for fd in {reader, writer} & ours:
                poll.register(fd, select.POLLIN if fd == reader else select.POLLOUT)
            for fd in (self.woken, self.channel.fileno()):
                poll.register(fd, select.POLLIN)
            ready = dict(poll.poll())
            if writer in ready:
                try:
                    rest = rest[os.write(writer, rest) :]
                except BrokenPipeError:
                    rest = b""
            if reader in ready and not _read_into(output, reader, limit):
                ours.remove(reader)
                os.close(reader)
            cancelled = self.channel.fileno() in ready
            if cancelled and self._receive() is None:
                os._exit(0)
            if cancelled or len(output) > limit:
                os.kill(self.program, signal.SIGKILL)
                self._reap(self.program)
            elif self.woken in ready:
                self._reap()
        if reader in ours:
            _read_into(output, reader, limit)
        return output

    def _kill_new(self, before: set[int]) -> None:
        for pid in _processes() - before - {os.getpid(), self.shell}:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def _reap(self, waited: int = 0) -> None:
        """Collect the processes that have ended; first wait for one if its id is given."""
        with contextlib.suppress(BlockingIOError):
            os.read(self.woken, 4096)
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(waited or -1, 0 if waited else os.WNOHANG)
                if pid == 0:
                    return
                code = os.waitstatus_to_exitcode(status)
                code = code if code >= 0 else 128 - code
                if pid == self.shell:
                    self.shell, self.status = 0, code
                elif self.terminal is not None and pid == self.terminal.pid:
                    self.terminal.pid = 0
                elif pid == self.program:
                    self.program, self.program_status = 0, code
                waited = 0

    # ---- messages

    def _send(self, head: Mapping[str, Any], body: bytes = b"") -> None:
        self.channel.sendall(message(head, body))

    def _receive(self) -> tuple[dict[str, Any], bytes] | None:
        """Return the next request, or None if the host closed its socket."""
        sizes = self._read(SIZES.size)
        if sizes is None:
            return None
        head_size, body_size = SIZES.unpack(sizes)
        head, body = self._read(head_size), self._read(body_size)
        return None if head is None or body is None else (json.loads(head), body)

    def _read(self, size: int) -> bytes | None:
        parts = bytearray()
        while len(parts) < size:
            part = self.channel.recv(min(size - len(parts), 1 << 20))
            if not part:
                return None
            parts += part
        return bytes(parts)


def _moved(fd: int) -> int:
    """Give a descriptor a number above those that a shell uses."""
    moved = own_descriptor(fd)
    os.close(fd)
    return moved


def _processes() -> set[int]:
    return {int(name) for name in os.listdir("/proc") if name.isdecimal()}


def _with_descendants(pids: Iterable[int]) -> set[int]:
    """Return the ids of processes and of their live descendants."""
    found = set(pids)
    if not found:
        return found
    parents = {pid: int(fields[1]) for pid in _processes() if (fields := stat_fields(f"/proc/{pid}"))}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return found


def _read_into(output: bytearray, fd: int, limit: int) -> bool:
    """Append what a pipe holds, until there are more than ``limit`` bytes. Returns False at the end of file."""
    with contextlib.suppress(BlockingIOError):
        while len(output) <= limit:
            part = os.read(fd, 1 << 16)
            if not part:
                return False
            output += part
    return True


def _name(pid: int) -> str:
    """Return the command name of a process; empty if it has ended."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/stat", "rb") as file:
        name, _, rest = file.read().rpartition(b")")
        return "" if rest.split()[0] in (b"Z", b"X") else name.partition(b"(")[2].decode("utf-8", "replace")
    return ""


@contextlib.contextmanager
def _in(folder: str) -> Any:
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir("/")
