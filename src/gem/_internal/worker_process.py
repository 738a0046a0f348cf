"""One worker process: a fresh Python interpreter that can be killed and that ends with its parent.

The parent holds a WorkerProcess. The child runs run_worker(), which calls ``"module:function"`` with the child's end of
the channel. Vector workers and the fork server of worker_pool are started this way.
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

# Set the parent's sys.path before any other import: the working directory may hold a json.py.
_BOOTSTRAP = """\
import sys
target, control, lifeline, forks, *sys.path[:] = sys.argv[1:]
del sys.argv[1:]
from gem._internal.worker_process import run_worker
run_worker(target, int(control), int(lifeline), forks=forks == "True")
"""


class WorkerDied(Exception):
    """A worker process ended or stopped responding. The message gives the reason."""


class WorkerProcess:
    """A worker process, as seen by its parent.

    The worker leads a process group of its own, reads nothing from stdin and prints to stderr. A pipe (the lifeline)
    ends the group when the parent ends, however it ends.

    Args:
        target: ``"module:function"``, called in the worker with its Channel.
        environ: environment variables set in addition to the parent's.
        forks: the worker forks, so it is started without a second thread.

    Raises:
        OSError: the process cannot be started.
    """

    def __init__(self, target: str, environ: Mapping[str, str] | None = None, *, forks: bool = False) -> None:
        with ExitStack() as child_ends, ExitStack() as parent_ends:
            sock, child_sock = socket.socketpair()
            child_ends.callback(child_sock.close)
            parent_ends.callback(sock.close)
            child_lifeline, lifeline = os.pipe()  # never written to
            child_ends.callback(os.close, child_lifeline)
            parent_ends.callback(os.close, lifeline)
            arguments = [target, str(child_sock.fileno()), str(child_lifeline), str(forks), *sys.path]
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
        self.alive = True  # until kill(); a process that ended by itself counts as alive until then

    @property
    def pid(self) -> int:
        return self._process.pid

    def has_exited(self) -> bool:
        """Return whether the process has ended. A child of it may still hold the channel open."""
        return self._process.poll() is not None

    def exit_reason(self) -> str:
        """Describe how the process ended, waiting up to a second for it: ``"killed by signal 9 (Killed)"``."""
        try:
            status = self._process.wait(1.0)
        except subprocess.TimeoutExpired:
            return "it closed its connection"
        return f"killed by signal {-status} ({signal.strsignal(-status)})" if status < 0 else f"exit status {status}"

    def terminate(self) -> None:
        """Ask the process to end: it receives SIGTERM and the end of its channel."""
        if self.alive:
            with suppress(OSError):  # already dead
                self.channel.sock.shutdown(socket.SHUT_WR)
            self._process.terminate()

    def join(self, deadline: float) -> None:
        """Wait until the process has ended, or until a deadline on the monotonic clock."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(max(0.0, deadline - time.monotonic()))

    def kill(self) -> None:
        """Kill the process and its process group at once. Safe to call twice."""
        if not self.alive:
            return
        self.alive = False
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._parent_ends.close()


def run_worker(target: str, control: int, lifeline: int, *, forks: bool) -> None:
    """Run in the worker: call ``"module:function"`` with the channel.

    Args:
        control: file descriptor of the channel's socket.
        lifeline: file descriptor of a pipe that closes when the parent ends.
        forks: start no thread.
    """
    # Ctrl-C is handled by the parent, which closes its workers. SIG_IGN would be inherited by child processes.
    signal.signal(signal.SIGINT, lambda signum, frame: None)
    os.set_inheritable(control, False)
    os.set_inheritable(lifeline, False)
    if hasattr(fcntl, "F_SETSIG"):  # Linux: the kernel sends SIGKILL, even while C code holds the interpreter lock
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
