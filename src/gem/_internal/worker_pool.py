"""A pool of killable worker processes that call functions by name, with a time limit per call.

A fork server imports the heavy libraries once; workers are forked from it in milliseconds. A call that exceeds its time
limit has its worker killed and replaced, and the other workers are not affected.
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
from types import TracebackType
from typing import Any, TypeVar

from gem._internal.framing import Channel, to_picklable
from gem._internal.imports import resolve
from gem._internal.worker_process import WorkerProcess, usable_cpus
from gem.errors import BadValue, GemError, InfraError

START_TIMEOUT = 120.0  # seconds to import the modules, on a busy machine
CALL_TIMEOUT = 5.0  # seconds per call
MEMORY_BYTES = 3 << 30  # address space per worker; sympy alone maps a few hundred MiB

PoolT = TypeVar("PoolT", bound="WorkerPool")


class WorkerPool:
    """A pool of persistent worker processes, usable from any thread, event loop or forked process.

    Processes are started by the first call. A pickled or forked copy of the pool starts its own.

    Args:
        workers: number of processes. None uses the CPUs available to this process, at most 4.
        timeout: seconds per call, measured from when a worker starts it.
        modules: modules imported before workers are forked.

    Raises:
        BadValue: workers < 1 or timeout <= 0.
    """

    error: type[GemError] = InfraError  # raised for time-outs, dead workers and a closed pool

    def __init__(
        self, workers: int | None = None, *, timeout: float = CALL_TIMEOUT, modules: Sequence[str] = ()
    ) -> None:
        if workers is not None and (isinstance(workers, bool) or workers < 1):
            raise BadValue(f"workers must be at least 1, got {workers!r}")
        if not timeout > 0:
            raise BadValue(f"timeout must be seconds above 0, got {timeout!r}")
        self.workers = workers or min(4, usable_cpus())
        self.timeout, self.modules = timeout, tuple(modules)
        self._lock = threading.Lock()
        self._running: _RunningPool | None = None

    def run(self, function: str, *arguments: Any, timeout: float | None = None) -> Any:
        """Call ``"module:function"`` with picklable arguments in a worker and return its result.

        Args:
            timeout: seconds for this call. None uses the pool's.

        Raises:
            Exception: whatever the function raised; or the pool's error type, if the call timed out, its worker died,
                or the pool was closed.
        """
        return self.submit(function, *arguments, timeout=timeout).result()

    async def arun(self, function: str, *arguments: Any, timeout: float | None = None) -> Any:
        """Call run() from an event loop without blocking it."""
        import asyncio  # here, because workers import this module and do without it

        return await asyncio.wrap_future(self.submit(function, *arguments, timeout=timeout))

    def submit(self, function: str, *arguments: Any, timeout: float | None = None) -> Future[Any]:
        """Like run(), but return a future at once."""
        return self._started().submit(function, arguments, self.timeout if timeout is None else timeout)

    def close(self) -> None:
        """Kill all workers; calls in progress raise. The next call starts new workers. Safe to call twice."""
        with self._lock:
            running, self._running = self._running, None
        if running is not None:
            running.close()

    def __enter__(self: PoolT) -> PoolT:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
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
    """The processes of a pool, and one thread per worker that passes on calls and enforces time limits."""

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
        except RuntimeError as e:  # closed by another thread a moment ago
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
            value, error = worker.call(function, arguments, timeout)
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
            self._idle.put(worker)
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

    def call(self, function: str, arguments: tuple[Any, ...], timeout: float) -> tuple[Any, Exception | None]:
        """Return (result, error raised by the function). Raises TimeoutError, and EOFError or OSError if it died."""
        started = time.monotonic()
        self._channel.send((function, arguments), timeout)
        self._channel.sock.settimeout(max(0.001, timeout - (time.monotonic() - started)))
        answer: tuple[Any, Exception | None] = self._channel.receive()
        return answer

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGKILL)
        self._channel.close()


class _ForkServer:
    """The process that workers are forked from. It is restarted if it has died."""

    def __init__(self, modules: Sequence[str]) -> None:
        self._modules = list(modules)
        self._lock = threading.Lock()
        self._process: WorkerProcess | None = None

    def fork(self) -> _ForkedWorker:
        """Return a new worker. Raises OSError or EOFError if that fails twice."""
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

    Single-threaded, so that forking is safe. When the parent closes the channel, all workers end.
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
            channel.send(_call_function(function, arguments))


def _call_function(function: str, arguments: tuple[Any, ...]) -> tuple[Any, Exception | None]:
    try:
        return resolve(function)(*arguments), None
    except (Exception, SystemExit) as e:  # including MemoryError
        return None, to_picklable(e)


def _unpickle(cls: type[WorkerPool], workers: int, timeout: float, modules: tuple[str, ...]) -> WorkerPool:
    return cls(workers, timeout=timeout, modules=modules)
