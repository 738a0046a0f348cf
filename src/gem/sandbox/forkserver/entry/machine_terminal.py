"""The terminal of a machine: a pseudo-terminal with an interactive shell. Process 1 holds the other end.

Interactive programs such as editors and pagers draw on it. Process 1 only passes bytes on; the host draws the screen.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import signal
import struct
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from typing import NoReturn

from gem.sandbox.forkserver.limits.processes import stat_fields

KIND = "linux"  # terminal type, which programs look up in terminfo; the screen understands it
POLL_S = 0.05
QUIET_POLLS = 3  # polls without output, in which all foreground processes wait, after which the screen is taken as done
START_FD = 63  # the shell reads its first commands from it
PIPE_BYTES = 60_000  # what a pipe holds
# Some builds of Vim report an error for each time limit that they set, because the sandbox has no timer_create().
# Without the start file and the display of matching brackets, they set one only when they draw the whole screen.
VIM = "set nocompatible backspace=indent,eol,start ruler | let loaded_matchparen = 1"
# Scripts that are typed should do what they do in a file: "!" is not special.
_START = (
    "exec 63<&-\n{exports}\nexport TERM={kind}\nexport VIMINIT='{vim}'\nPS1='\\w \\$ '\n"
    "set +o histexpand\nunset HISTFILE\n"
)


class Terminal:
    """A terminal with a shell.

    Args:
        bash: path of the shell.
        folder: its working directory.
        variables: its environment.
        exports: text of ``declare -px`` to run first; left out if it is too long for a pipe.
        rows, columns: size of the screen.

    Attributes:
        pid: process id of the shell; 0 after it has ended.

    Raises:
        OSError: if there are no terminals here, or too many processes.
    """

    def __init__(
        self, bash: str, folder: str, variables: Mapping[str, str], exports: str, *, rows: int, columns: int
    ) -> None:
        self.is_new = True
        self.fd, line = os.openpty()
        start, commands = os.pipe()
        try:
            os.set_blocking(self.fd, False)
            fcntl.ioctl(line, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
            text = _START.format(exports=exports, kind=KIND, vim=VIM).encode("utf-8", "surrogateescape")
            os.write(
                commands, text if len(text) <= PIPE_BYTES else _START.format(exports="", kind=KIND, vim=VIM).encode()
            )
            if (pid := os.fork()) == 0:
                command = ["bash", "--noprofile", "--rcfile", f"/proc/self/fd/{START_FD}", "-i"]
                fds = {START_FD: start, 0: line, 1: line, 2: line}
                become(command, variables, folder, fds, path=bash, terminal=line)
            self.pid = pid
        except OSError:
            os.close(self.fd)
            raise
        finally:
            for fd in (line, start, commands):
                os.close(fd)

    def type_keys(
        self, keys: bytes, woken: int, stop: int, *, wait_s: float, most_s: float, limit: int, reap: Callable[[], None]
    ) -> tuple[bytes, int]:
        """Type keys. Returns what the programs write, and how many of the last bytes of the keys were not typed.

        Args:
            woken: descriptor that becomes readable when a child has ended; reap() collects it and may set ``pid`` to 0.
            stop: descriptor that becomes readable if this should return at once.
            wait_s: least seconds to wait. Then this returns when all foreground processes wait and write nothing.
            most_s: most seconds to wait.
            limit: number of bytes after which it returns; the programs continue to write with the next call.
        """
        output, quiet, begin = bytearray(), 0, time.monotonic()
        later, keys = (keys, b"") if self.is_new else (b"", keys)  # the first keys are typed at the prompt
        self.is_new = False
        while self.pid and len(output) < limit:
            poll = select.poll()
            poll.register(self.fd, select.POLLIN | (select.POLLOUT if keys else 0))
            for fd in (woken, stop):
                poll.register(fd, select.POLLIN)
            ready = dict(poll.poll(POLL_S * 1000))
            if woken in ready:
                reap()
            if self.fd in ready and keys:
                with contextlib.suppress(BlockingIOError):
                    keys = keys[os.write(self.fd, keys) :]
            part = self._read(limit - len(output))
            output += part
            passed = time.monotonic() - begin
            quiet = 0 if part or keys or ready or self._computing() else quiet + 1
            if quiet >= QUIET_POLLS and later:
                later, keys, quiet = b"", later, 0
            if stop in ready or passed >= most_s or (passed >= wait_s and quiet >= QUIET_POLLS):
                break
        return bytes(output + self._read(limit - len(output))), len(keys) + len(later)

    def close(self) -> None:
        """Close the terminal; the kernel sends SIGHUP to its programs."""
        os.close(self.fd)

    def _read(self, limit: int) -> bytes:
        with contextlib.suppress(BlockingIOError, OSError):  # EIO: no program has the terminal open
            return os.read(self.fd, limit) if limit > 0 else b""
        return b""

    def _computing(self) -> bool:
        """Whether a foreground process runs or waits for a disk."""
        foreground = (stat_fields(f"/proc/{self.pid}") or [])[5:6]
        found = (stat_fields(f"/proc/{name}") or [] for name in os.listdir("/proc") if name.isdecimal())
        return any(fields[0] in (b"R", b"D") for fields in found if fields[2:3] == foreground)


def become(
    arguments: Sequence[str],
    variables: Mapping[str, str],
    folder: str,
    fds: Mapping[int, int],
    *,
    path: str = "",
    terminal: int | None = None,
) -> NoReturn:
    """Replace this forked process with a program in a session of its own.

    Args:
        path: of the program; empty for the first of its arguments.
        fds: maps descriptors of the program to those of this process, whose own are closed on execution.
        terminal: descriptor of the controlling terminal, if there is one.
    """
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setsid()
        if terminal is not None:
            fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
        os.chdir(folder)
        for number, fd in fds.items():
            os.dup2(fd, number)
        os.execve(path or arguments[0], list(arguments), dict(variables))
    finally:
        os._exit(126)
