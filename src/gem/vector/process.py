"""Slots in worker processes: for environments that burn CPU, that hang, or that take their process down with them.

Workers are fresh interpreters. A script needs no ``if __name__ == "__main__"``; what it defines is sent to them by
value, which needs cloudpickle (extra ``process``).
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import weakref
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress

from gem._internal.framing import Channel
from gem.vector.base import Autoreset, VectorEnv
from gem.vector.crew import Crew, usable_cpus
from gem.vector.mailbox import await_readable
from gem.vector.share import Worker, WorkerDied
from gem.vector.slots import Factory, OnFailure, Outcome
from gem.vector.sync import check_slots
from gem.vector.wire import unpack
from gem.vector.worker import Report, Task

CLOSING = 3.0  # seconds that workers have to close their environments, before they are killed
_SENDING = 30.0  # seconds for an idle worker to take a batch
# Only sys is imported before the parent's path is in place: the directory a program runs in may hold a json.py.
_START = """\
import sys
control, lifeline, *sys.path[:] = sys.argv[1:]
del sys.argv[1:]
from gem.vector import worker
worker.main(int(control), int(lifeline))
"""


class ProcessVectorEnv(VectorEnv):
    """Slots shared out to worker processes, which step theirs one after another, all workers at once.

    Args:
        env_fns: one callable per slot that builds its environment in a worker.
        autoreset: see Autoreset.
        timeout: seconds for one call of one environment, from when it starts. A hang in Python is interrupted and costs
            its slot alone. Where that is of no use (in C code that does not return) the worker is killed crew.GRACE
            seconds later, and all its slots lose the episodes they were in. None waits.
        on_failure: see SlotGroup; a worker that dies is an environment that failed, for each of its slots.
        num_workers: None takes one per CPU that this process may use; never more than slots.

    What the workers print goes to standard error; they read nothing. They end with this process, whatever ends it.
    A slot under whose calls alone workers died slots.MAX_FAILURES times in a row raises EnvFailed from then on, and so
    do all slots of a worker that died crew.MAX_DEATHS times in a row without answering.
    """

    def __init__(
        self,
        env_fns: Sequence[Factory],
        autoreset: str | Autoreset = Autoreset.SAME_STEP,
        *,
        timeout: float | None = None,
        on_failure: OnFailure = "raise",
        num_workers: int | None = None,
    ) -> None:
        mode = Autoreset.of(autoreset)
        check_slots(env_fns, on_failure, timeout)
        engine = ProcessEngine(
            dict(enumerate(env_fns)),
            same_step=mode is Autoreset.SAME_STEP,
            on_failure=on_failure,
            timeout=timeout,
            num_workers=num_workers,
        )
        super().__init__(engine, mode)


class ProcessEngine(Crew):
    """See ProcessVectorEnv."""

    def __init__(
        self,
        factories: Mapping[int, Factory],
        *,
        same_step: bool,
        on_failure: OnFailure,
        timeout: float | None,
        num_workers: int | None = None,
    ) -> None:
        self._hired: list[ProcessWorker] = []
        self._finalizer = weakref.finalize(self, _kill_all, self._hired, os.getpid())
        count = usable_cpus() if num_workers is None else num_workers
        super().__init__(factories, same_step=same_step, on_failure=on_failure, timeout=timeout, count=count)

    def hire(self, task: Task) -> ProcessWorker:
        self._hired[:] = [worker for worker in self._hired if worker.alive]
        try:
            worker = ProcessWorker()
        except OSError as e:
            raise WorkerDied(f"it cannot be started: {e}") from e
        self._hired.append(worker)
        worker.begin(task)
        return worker

    def filenos(self) -> list[int]:
        return [worker.fileno() for worker in self._hired if worker.alive]

    def await_news(self, timeout: float) -> None:
        await_readable(self.filenos(), timeout)

    def close(self) -> None:
        """Let the workers close their environments; kill what has not ended after CLOSING seconds."""
        for worker in self._hired:
            worker.dismiss()
        deadline = time.monotonic() + CLOSING
        for worker in self._hired:
            worker.await_end(deadline)
        self._finalizer()


class ProcessWorker(Worker):
    """A process, its socket, and the pipe that it dies with."""

    def __init__(self) -> None:
        with ExitStack() as theirs, ExitStack() as ours:
            sock, their_sock = socket.socketpair()
            theirs.callback(their_sock.close)
            ours.callback(sock.close)
            their_lifeline, lifeline = os.pipe()  # held, and never written to
            theirs.callback(os.close, their_lifeline)
            ours.callback(os.close, lifeline)
            self._process = subprocess.Popen(
                [sys.executable, "-c", _START, str(their_sock.fileno()), str(their_lifeline), *sys.path],
                stdin=subprocess.DEVNULL,
                stdout=2,
                pass_fds=(their_sock.fileno(), their_lifeline),
                start_new_session=True,
            )
            self._ours = ours.pop_all()
        self._channel = Channel(sock)
        self.alive = True

    def fileno(self) -> int:
        return self._channel.fileno()

    def begin(self, task: Task) -> None:
        self._send(task)

    def send(self, batch: list[tuple[int, bytes]]) -> None:
        self._send(batch)

    def receive(self) -> list[Outcome] | None:
        try:
            messages = self._channel.drain()
        except EOFError:
            raise WorkerDied(self._how_it_ended()) from None
        outcomes = []
        for message in messages:
            if isinstance(message, Report):
                self.learn(message)
            else:
                outcomes += [unpack(slot, packed) for slot, packed in message]
        if not messages and self._process.poll() is not None:  # a child of its own may hold the socket open
            raise WorkerDied(self._how_it_ended())
        return outcomes if messages else None

    def dismiss(self) -> None:
        """Ask it to finish the call it is in, to close its environments and to end."""
        if self.alive:
            with suppress(OSError):  # it is dead already
                self._channel.sock.shutdown(socket.SHUT_WR)
            self._process.terminate()

    def await_end(self, deadline: float) -> None:
        """Wait until it has ended, or until deadline on the monotonic clock."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(max(0.0, deadline - time.monotonic()))

    def kill(self) -> None:
        if not self.alive:
            return
        self.alive = False
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)  # what it started, too
        self._process.wait()
        self._ours.close()

    def _send(self, message: object) -> None:
        try:
            self._channel.send(message, timeout=_SENDING)
        except TimeoutError:
            raise WorkerDied(f"it took nothing for {_SENDING:g} s") from None
        except OSError:
            raise WorkerDied(self._how_it_ended()) from None

    def _how_it_ended(self) -> str:
        try:
            status = self._process.wait(1.0)
        except subprocess.TimeoutExpired:
            return "it closed its connection"
        return f"killed by signal {-status} ({signal.strsignal(-status)})" if status < 0 else f"exit status {status}"


def _kill_all(workers: list[ProcessWorker], owner: int) -> None:
    if os.getpid() == owner:  # a fork of this process inherits this, and the workers are not its own
        for worker in workers:
            worker.kill()
