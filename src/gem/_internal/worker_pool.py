"""A pool of worker processes that call functions by name, with a time limit per call.

A fork server imports large libraries once and then forks each worker in milliseconds. If a call exceeds its time limit,
its worker is killed and replaced. The other workers are not affected.
"""

from __future__ import annotations

import atexit
import os
import queue
import resource
import signal
import socket
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any, TypeVar

from gem._internal.counts import check_count
from gem._internal.framing import Channel, to_picklable
from gem._internal.imports import resolve
from gem._internal.worker_process import WorkerProcess, usable_cpus
from gem.errors import BadValue, GemError, InfraError

START_TIMEOUT = 120.0  # seconds to import the modules; long enough for a busy machine
CALL_TIMEOUT = 5.0  # seconds per call
MEMORY_BYTES = 3 << 30  # address space per worker; sympy alone maps a few hundred MiB

_retired: list[bool] = []  # in a worker: not empty if it is to be replaced

PoolT = TypeVar("PoolT", bound="WorkerPool")


class WorkerPool:
    """A pool of persistent worker processes, usable from any thread, event loop or forked process.

    The first call starts the fork server, and workers are started as calls need them. A copy of the pool in another
    process, made by pickling or forking, starts its own processes.

    Args:
        workers: maximum number of workers. None means the number of CPUs available to this process, at most 4.
        timeout: seconds per call. The time that a call waits for a free worker does not count.
        modules: names of the modules that the fork server imports before it forks workers.

    Raises:
        BadValue: if workers < 1 or timeout <= 0.
    """

    error: type[GemError] = InfraError  # raised for timeouts, dead workers and calls to a closed pool

    def __init__(
        self, workers: int | None = None, *, timeout: float = CALL_TIMEOUT, modules: Sequence[str] = ()
    ) -> None:
        check_count("workers", workers, optional=True)
        if not timeout > 0:
            raise BadValue(f"timeout must be seconds above 0, got {timeout!r}")
        self.workers = workers or min(4, usable_cpus())
        self.timeout, self.modules = timeout, tuple(modules)
        self._lock = threading.Lock()
        self._running: _RunningPool | None = None

    def run(self, function: str, *arguments: Any, timeout: float | None = None) -> Any:
        """Call ``"module:function"`` with picklable arguments in a worker and return its result.

        Args:
            timeout: seconds for this call. None means the timeout of the pool.

        Raises:
            GemError: of the class ``self.error``, if the call timed out, its worker died, or the pool was closed.
            Exception: the exception raised by the function.
        """
        return self.submit(function, *arguments, timeout=timeout).result()

    async def arun(self, function: str, *arguments: Any, timeout: float | None = None) -> Any:
        """Asynchronous run()."""
        import asyncio  # imported here, because workers import this module and do not need asyncio

        return await asyncio.wrap_future(self.submit(function, *arguments, timeout=timeout))

    def submit(self, function: str, *arguments: Any, timeout: float | None = None) -> Future[Any]:
        """Start a call as in run(), and return a future of its result."""
        return self._started().submit(function, arguments, self.timeout if timeout is None else timeout)

    def close(self) -> None:
        """Kill all workers. Calls in progress raise ``self.error``. A later call starts new workers."""
        with self._lock:
            running, self._running = self._running, None
        if running is not None:
            running.close()

    def __enter__(self: PoolT) -> PoolT:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[Callable[..., WorkerPool], tuple[Any, ...]]:
        return _unpickle, (type(self), self.workers, self.timeout, self.modules)

    def _started(self) -> _RunningPool:
        if self._running is not None and self._running.pid != os.getpid():  # forked: another thread may hold the lock
            self._lock, self._running = threading.Lock(), None
        with self._lock:
            if self._running is None:
                self._running = _RunningPool(self.workers, self.modules, self.error)
            return self._running


class _RunningPool:
    """The processes of a pool, and a thread per worker that forwards calls and enforces time limits."""

    def __init__(self, workers: int, modules: Sequence[str], error: type[GemError]) -> None:
        self.pid = os.getpid()
        self._error = error
        self._server = _ForkServer(modules)
        self._idle: queue.LifoQueue[_ForkedWorker] = queue.LifoQueue()
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="gem-worker-pool")
        self._busy: set[_ForkedWorker] = set()
        self._closed = False
        atexit.register(self.close)

    def submit(self, function: str, arguments: tuple[Any, ...], timeout: float) -> Future[Any]:
        try:
            return self._threads.submit(self._call_within_limit, function, arguments, timeout)
        except RuntimeError as e:  # another thread has just closed the pool
            raise self._error("the worker pool is closed") from e

    def close(self) -> None:
        if self.pid != os.getpid():
            return  # a forked process does not own the workers
        self._closed = True
        atexit.unregister(self.close)
        for worker in list(self._busy):
            worker.kill()
        self._threads.shutdown(wait=True, cancel_futures=True)
        while not self._idle.empty():
            self._idle.get_nowait().kill()
        self._server.close()

    def _call_within_limit(self, function: str, arguments: tuple[Any, ...], timeout: float) -> Any:
        worker = self._take_worker()
        self._busy.add(worker)
        try:
            value, error, is_fit = worker.call(function, arguments, timeout)
        except TimeoutError as e:
            worker.kill()
            raise self._error(f"{function} timed out after {timeout:g} s") from e
        except (EOFError, OSError) as e:
            worker.kill()
            raise self._error(f"the worker process died in {function}") from e
        except BaseException:
            worker.kill()
            raise
        else:
            if is_fit:
                self._idle.put(worker)
            else:
                worker.kill()
        finally:
            self._busy.discard(worker)
        if error is not None:
            raise error
        return value

    def _take_worker(self) -> _ForkedWorker:
        if self._closed:
            raise self._error("the worker pool is closed")
        try:
            return self._idle.get_nowait()
        except queue.Empty:
            pass
        try:
            return self._server.fork()
        except (OSError, EOFError) as e:
            raise self._error(f"no worker process could be started: {e or type(e).__name__}") from e


class _ForkedWorker:
    """A worker forked from the server, as seen by the parent."""

    def __init__(self, sock: socket.socket) -> None:
        self._channel = Channel(sock)
        sock.settimeout(START_TIMEOUT)
        self._pid: int = self._channel.receive()

    def call(self, function: str, arguments: tuple[Any, ...], timeout: float) -> tuple[Any, Exception | None, bool]:
        """Call a function in the worker.

        Returns:
            (result, None, is_fit), or (None, error, is_fit) if the function raised an error. A worker that is not fit
            has called retire().

        Raises:
            TimeoutError: if the call timed out.
            EOFError, OSError: if the worker died.
        """
        started = time.monotonic()
        self._channel.send((function, arguments), timeout)
        self._channel.sock.settimeout(max(0.001, timeout - (time.monotonic() - started)))
        answer: tuple[Any, Exception | None, bool] = self._channel.receive()
        return answer

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGKILL)
        self._channel.close()


class _ForkServer:
    """The process from which workers are forked. If forking fails, the process is restarted once."""

    def __init__(self, modules: Sequence[str]) -> None:
        self._modules = list(modules)
        self._lock = threading.Lock()
        self._process: WorkerProcess | None = None

    def fork(self) -> _ForkedWorker:
        """Fork and return a new worker. Raises OSError or EOFError if this also fails after a server restart."""
        try:
            return self._fork()
        except (OSError, EOFError):
            self.close()
            return self._fork()

    def close(self) -> None:
        with self._lock:
            if self._process is not None:
                self._process.kill()
            self._process = None

    def _fork(self) -> _ForkedWorker:
        sock, worker_sock = socket.socketpair()
        try:
            with worker_sock, self._lock:
                if self._process is None:
                    self._process = self._start()
                socket.send_fds(self._process.channel.sock, [b"w"], [worker_sock.fileno()])
            return _ForkedWorker(sock)
        except (OSError, EOFError):
            sock.close()
            raise

    def _start(self) -> WorkerProcess:
        threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        process = WorkerProcess("gem._internal.worker_pool:serve_forks", threads, forks=True)
        try:
            process.channel.send(self._modules, START_TIMEOUT)
            process.channel.sock.settimeout(START_TIMEOUT)
            process.channel.receive()
        except (OSError, EOFError) as e:
            process.kill()
            raise EOFError("it ended while importing its modules") from e
        return process


def serve_forks(channel: Channel) -> None:
    """Run the fork server: import modules, then fork a worker for each socket received.

    The server has a single thread, so that forking is safe. When the parent closes the channel, the server kills itself
    and all workers.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps dead workers
    for module in channel.receive():
        resolve(module)
    channel.send("ready")
    while True:
        _, sockets, _, _ = socket.recv_fds(channel.sock, 1, 1)
        if not sockets:
            os.killpg(0, signal.SIGKILL)
        if os.fork() == 0:
            channel.close()
            _serve_calls(Channel(socket.socket(fileno=sockets[0])))
            os._exit(0)
        os.close(sockets[0])


def _serve_calls(channel: Channel) -> None:
    with suppress(ValueError, OSError):  # a lower limit is already set
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    with suppress(EOFError, OSError):
        channel.send(os.getpid())
        while True:
            function, arguments = channel.receive()
            channel.send((*_call_function(function, arguments), not _retired))


def retire() -> None:
    """Replace the worker that calls this after its present call, because its state may be broken."""
    _retired.append(True)


def _call_function(function: str, arguments: tuple[Any, ...]) -> tuple[Any, Exception | None]:
    try:
        return resolve(function)(*arguments), None
    except (Exception, SystemExit) as e:  # Exception includes MemoryError
        return None, to_picklable(e)


def _unpickle(cls: type[WorkerPool], workers: int, timeout: float, modules: tuple[str, ...]) -> WorkerPool:
    return cls(workers, timeout=timeout, modules=modules)
