"""Run slots in worker processes: for environments that need much CPU time, hang, or crash their process.

Workers are new interpreters that do not import the main script, so the script needs no ``if __name__ == "__main__"``.
Functions and classes defined in the script are pickled by value, which requires cloudpickle (extra ``process``).
"""

from __future__ import annotations

import os
import time
import weakref
from collections.abc import Mapping

from gem._internal.worker_process import WorkerDied, WorkerProcess, usable_cpus
from gem.vector.engine import wait_readable
from gem.vector.slots import Factory, SlotOutcome, SlotSettings
from gem.vector.worker import PackedCall, WorkerSpec, unpack_messages
from gem.vector.worker_engine import SlotWorker, WorkerEngine

CLOSE_TIMEOUT = 3.0  # seconds that workers have to close their environments; afterwards, they are killed
_SEND_TIMEOUT = 30.0  # seconds that an idle worker has to read a message; afterwards, it is replaced


class ProcessEngine(WorkerEngine):
    """Run slots in worker processes. Each worker steps its slots one after another.

    Args:
        factories: slot → callable that builds its environment in a worker.
        settings: of the slots. A call that exceeds the timeout in Python code is interrupted, and only its slot fails.
            If a call cannot be interrupted (C code that does not return), its worker is killed worker_engine.KILL_DELAY
            seconds after the limit, and the episodes of all slots of that worker fail. The same happens KILL_DELAY
            seconds after twice the limit if the interrupted call goes on, or closing and rebuilding its environment
            take that long. If a worker dies, all of its environments count as failed.
        num_workers: number of processes, at most one per slot. None uses one per CPU available to this process.

    The standard output of workers is redirected to standard error, and their standard input is empty. Workers exit when
    the main process exits, even if it is killed. A slot is disabled, so that all its calls raise EnvFailed, after
    slots.MAX_FAILURES workers in a row have died while running only a call of this slot. All slots of a worker are
    disabled after worker_engine.MAX_DEATHS workers in a row have died without returning a result.
    """

    def __init__(
        self, factories: Mapping[int, Factory], settings: SlotSettings, *, num_workers: int | None = None
    ) -> None:
        self._processes: list[SlotProcess] = []
        self._finalizer = weakref.finalize(self, _kill_all, self._processes, os.getpid())
        super().__init__(factories, settings, usable_cpus() if num_workers is None else num_workers)

    def start_worker(self, spec: WorkerSpec) -> SlotProcess:
        self._processes[:] = [worker for worker in self._processes if worker.process.alive]
        try:
            worker = SlotProcess()
        except OSError as e:
            raise WorkerDied(f"it cannot be started: {e}") from e
        self._processes.append(worker)
        worker.start(spec)
        return worker

    def filenos(self) -> list[int]:
        return [worker.fileno for worker in self._processes if worker.process.alive]

    def wait_for_workers(self, timeout: float) -> None:
        wait_readable(self.filenos(), timeout)

    def close(self) -> None:
        """Ask the workers to close their environments. Kill workers that still run after CLOSE_TIMEOUT seconds."""
        for worker in self._processes:
            worker.process.terminate()
        deadline = time.monotonic() + CLOSE_TIMEOUT
        for worker in self._processes:
            worker.process.join(deadline)
        self._finalizer()


class SlotProcess(SlotWorker):
    """A worker process that runs slots."""

    def __init__(self) -> None:
        self.process = WorkerProcess("gem.vector.worker:main")
        self.fileno = self.process.channel.sock.fileno()

    def start(self, spec: WorkerSpec) -> None:
        """Send the WorkerSpec to the worker. Raises WorkerDied if the worker has died or does not read."""
        self._send(spec)

    def send(self, batch: list[PackedCall]) -> None:
        self._send(batch)

    def receive(self) -> list[SlotOutcome] | None:
        try:
            messages = self.process.channel.drain()
        except EOFError:
            raise WorkerDied(self.process.exit_reason()) from None
        if not messages:
            return None
        outcomes, report = unpack_messages(messages)
        if report is not None:
            self.accept(report)
        return outcomes

    def check_alive(self) -> None:
        if self.process.has_exited():  # a child process of the worker may keep the socket open
            raise WorkerDied(self.process.exit_reason())

    def kill(self) -> None:
        self.process.kill()

    def _send(self, message: object) -> None:
        try:
            self.process.channel.send(message, timeout=_SEND_TIMEOUT)
        except TimeoutError:
            raise WorkerDied(f"it read nothing for {_SEND_TIMEOUT:g} s") from None
        except OSError:
            raise WorkerDied(self.process.exit_reason()) from None


def _kill_all(workers: list[SlotProcess], owner: int) -> None:
    if os.getpid() == owner:  # a fork of the main process must not kill the workers
        for worker in workers:
            worker.kill()
