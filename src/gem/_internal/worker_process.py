"""Worker processes: new Python interpreters that can be killed, and that end when their parent process ends.

The parent creates a WorkerProcess. The child runs run_worker(), which calls ``"module:function"`` with the child's end
of the channel. Vector workers and the fork server of worker_pool are started in this way.
"""

from __future__ import annotations

import fcntl
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import ExitStack, suppress

from gem._internal.framing import Channel
from gem._internal.imports import resolve
from gem._internal.text import EscapedStream, escape_output

EXIT_TIMEOUT = 10.0  # seconds that a process that has closed its connection has to end

# Sets the parent's sys.path before any other import: the working directory may contain a json.py, for example.
_BOOTSTRAP = """\
import sys
target, control, lifeline, forks, escapes, *sys.path[:] = sys.argv[1:]
del sys.argv[1:]
from gem._internal.worker_process import run_worker
run_worker(target, int(control), int(lifeline), forks=forks == "True", escapes=escapes == "True")
"""


class WorkerDied(Exception):
    """A worker process ended or stopped responding. The message gives the reason."""


class WorkerProcess:
    """A worker process, as seen by its parent.

    The worker is the leader of a new process group. Its stdin is empty, and its stdout goes to stderr. When the parent
    ends for any reason, a pipe (the lifeline) is closed, and the whole process group is killed.

    Args:
        target: ``"module:function"``, called in the worker with its Channel.
        environ: environment variables set in addition to the parent's.
        forks: whether the worker will fork. If True, no second thread is started in the worker.

    Raises:
        OSError: if the process cannot be started.
    """

    def __init__(self, target: str, environ: Mapping[str, str] | None = None, *, forks: bool = False) -> None:
        with ExitStack() as child_ends, ExitStack() as parent_ends:
            sock, child_sock = socket.socketpair()
            child_ends.callback(child_sock.close)
            parent_ends.callback(sock.close)
            child_lifeline, lifeline = os.pipe()  # never written to
            child_ends.callback(os.close, child_lifeline)
            parent_ends.callback(os.close, lifeline)
            escapes = isinstance(sys.stderr, EscapedStream)  # the worker writes to the same terminal
            arguments = [target, str(child_sock.fileno()), str(child_lifeline), str(forks), str(escapes), *sys.path]
            self._process = subprocess.Popen(
                [sys.executable, "-c", _BOOTSTRAP, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=2,
                pass_fds=(child_sock.fileno(), child_lifeline),
                start_new_session=True,
                env={**os.environ, **(environ or {})},
            )
            self._parent_ends = parent_ends.pop_all()
        self.channel = Channel(sock)
        self.alive = True  # True until kill() is called, even if the process has already ended

    @property
    def pid(self) -> int:
        return self._process.pid

    def has_exited(self) -> bool:
        """Return whether the process has ended. Its child processes may still hold the channel open."""
        return self._process.poll() is not None

    def exit_reason(self) -> str:
        """Wait up to EXIT_TIMEOUT seconds for the process to end and describe how it ended.

        For example, ``"killed by signal 9 (Killed)"`` or ``"exit status 1"``.
        """
        try:
            status = self._process.wait(EXIT_TIMEOUT)
        except subprocess.TimeoutExpired:
            return "it closed its connection"
        return f"killed by signal {-status} ({signal.strsignal(-status)})" if status < 0 else f"exit status {status}"

    def terminate(self) -> None:
        """Send SIGTERM to the process and close its channel for further messages from the parent."""
        if self.alive:
            with suppress(OSError):  # already dead
                self.channel.sock.shutdown(socket.SHUT_WR)
            self._process.terminate()

    def join(self, deadline: float) -> None:
        """Wait for the process to end, at most until ``deadline`` on the clock of time.monotonic()."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(max(0.0, deadline - time.monotonic()))

    def kill(self) -> None:
        """Kill the process group immediately. A second call has no effect."""
        if not self.alive:
            return
        self.alive = False
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._parent_ends.close()


def run_worker(target: str, control: int, lifeline: int, *, forks: bool, escapes: bool) -> None:
    """Run a worker: call the function ``target`` with the channel. Called in the worker process.

    Args:
        target: ``"module:function"``.
        control: file descriptor of the channel's socket.
        lifeline: file descriptor of a pipe that closes when the parent ends.
        forks: whether the worker will fork. If True, no second thread is started.
        escapes: whether what it writes to stdout and stderr is escaped, as in the parent.
    """
    if escapes:
        escape_output()
    # Ctrl-C is handled by the parent, which closes its workers. SIG_IGN would be inherited by child processes.
    signal.signal(signal.SIGINT, lambda signum, frame: None)
    os.set_inheritable(control, False)
    os.set_inheritable(lifeline, False)
    if hasattr(fcntl, "F_SETSIG"):  # Linux: the kernel sends SIGKILL, even while C code holds the GIL
        fcntl.fcntl(lifeline, fcntl.F_SETOWN, -os.getpgrp())
        fcntl.fcntl(lifeline, fcntl.F_SETSIG, signal.SIGKILL)
        fcntl.fcntl(lifeline, fcntl.F_SETFL, fcntl.fcntl(lifeline, fcntl.F_GETFL) | os.O_ASYNC)
    if not forks:
        threading.Thread(target=_kill_group_on_close, args=(lifeline,), daemon=True).start()
    resolve(target)(Channel(socket.socket(fileno=control)))


def usable_cpus() -> int:
    """Return the number of CPUs that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _kill_group_on_close(lifeline: int) -> None:
    os.read(lifeline, 1)
    os.killpg(0, signal.SIGKILL)
