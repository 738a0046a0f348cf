"""Grading in worker processes that can be killed: one pool for all environments of a process.

An answer may keep a computer algebra system busy for ever. Its worker is killed at the time limit and replaced, the
other workers go on meanwhile, and the call raises GraderError: an answer nobody judged is neither right nor wrong.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
import queue
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Any

from gem._internal.framing import Channel
from gem.errors import BadValue, GraderError

START_S = 120.0  # seconds for the libraries to load, on a machine that is busy
TIMEOUT_S = 5.0  # seconds per answer


class GraderPool:
    """A few persistent workers, used from any thread, event loop or forked process.

    Args:
        workers: processes. None: the CPUs that this process may use, at most 4.
        timeout: seconds for one call, from when a worker begins it.
        modules: imported before the workers are forked.

    Nothing is started before the first call. A pickled pool starts anew where it is unpickled; a forked process starts
    workers of its own. Raises BadValue for workers < 1 or timeout <= 0.
    """

    def __init__(self, workers: int | None = None, *, timeout: float = TIMEOUT_S, modules: Sequence[str] = ()) -> None:
        if workers is not None and (isinstance(workers, bool) or workers < 1):
            raise BadValue(f"workers must be at least 1, got {workers!r}")
        if not timeout > 0:
            raise BadValue(f"timeout must be seconds above 0, got {timeout!r}")
        self.workers = workers or min(4, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 2)
        self.timeout, self.modules = timeout, tuple(modules)
        self._lock = threading.Lock()
        self._crew: _Crew | None = None

    def run(self, function: str, *arguments: Any, timeout: float | None = None) -> Any:
        """Call ``"module:function"`` with picklable arguments in a worker, and wait.

        Returns what it returns. Raises what it raises, and GraderError when it took longer than timeout seconds (None:
        the pool's), its worker died, or the pool is closed.
        """
        return self.submit(function, *arguments, timeout=timeout).result()

    async def arun(self, function: str, *arguments: Any, timeout: float | None = None) -> Any:
        """run(), for event loops."""
        return await asyncio.wrap_future(self.submit(function, *arguments, timeout=timeout))

    def submit(self, function: str, *arguments: Any, timeout: float | None = None) -> Future[Any]:
        """run(), as a future."""
        return self._started().submit(function, arguments, self.timeout if timeout is None else timeout)

    def close(self) -> None:
        """End all workers; calls under way raise GraderError. The next call starts anew. Safe to call twice."""
        with self._lock:
            crew, self._crew = self._crew, None
        if crew is not None:
            crew.close()

    def __enter__(self) -> GraderPool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __reduce__(self) -> tuple[Callable[..., GraderPool], tuple[Any, ...]]:
        return _rebuilt, (self.workers, self.timeout, self.modules)

    def _started(self) -> _Crew:
        if self._crew is not None and self._crew.pid != os.getpid():  # forked: the lock may be held by nobody here
            self._lock, self._crew = threading.Lock(), None
        with self._lock:
            if self._crew is None:
                self._crew = _Crew(self.workers, self.modules)
            return self._crew


class _Crew:
    """The processes of a pool, and one thread for each worker: it hands it a call and waits, no longer than it may."""

    def __init__(self, workers: int, modules: Sequence[str]) -> None:
        self.pid = os.getpid()
        self._warm = _Warm(modules)
        self._idle: queue.LifoQueue[_Worker] = queue.LifoQueue()
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="gem-grader")
        self._busy: set[_Worker] = set()
        self._closed = False
        atexit.register(self.close)

    def submit(self, function: str, arguments: tuple[Any, ...], timeout: float) -> Future[Any]:
        try:
            return self._threads.submit(self._call, function, arguments, timeout)
        except RuntimeError as e:  # closed between the caller's look and now
            raise GraderError("the grader pool is closed") from e

    def close(self) -> None:
        if self.pid != os.getpid():
            return  # a forked process: they are its parent's
        self._closed = True
        atexit.unregister(self.close)
        for worker in list(self._busy):
            worker.kill()
        self._threads.shutdown(wait=True, cancel_futures=True)
        while not self._idle.empty():
            self._idle.get_nowait().kill()
        self._warm.close()

    def _call(self, function: str, arguments: tuple[Any, ...], timeout: float) -> Any:
        worker = self._take()
        self._busy.add(worker)
        try:
            value, error = worker.call(function, arguments, timeout)
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

    def _take(self) -> _Worker:
        if self._closed:
            raise GraderError("the grader pool is closed")
        try:
            return self._idle.get_nowait()
        except queue.Empty:
            return self._warm.worker()


class _Worker:
    def __init__(self, sock: socket.socket) -> None:
        self._channel = Channel(sock)
        sock.settimeout(START_S)
        self._pid: int = self._channel.receive()

    def call(self, function: str, arguments: tuple[Any, ...], timeout: float) -> tuple[Any, Exception | None]:
        started = time.monotonic()
        try:
            self._channel.send((function, arguments), timeout)
            self._channel.sock.settimeout(max(0.001, timeout - (time.monotonic() - started)))
            answer: tuple[Any, Exception | None] = self._channel.receive()
        except TimeoutError as e:
            raise GraderError(f"grading took over {timeout:g} s and was stopped ({function})") from e
        except (EOFError, OSError) as e:
            raise GraderError(f"the grading worker died ({function})") from e
        return answer

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGKILL)
        self._channel.close()


class _Warm:
    """The process that workers are forked from, started again where it died."""

    def __init__(self, modules: Sequence[str]) -> None:
        self._modules = list(modules)
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None

    def worker(self) -> _Worker:
        """A new worker. Raises GraderError when none can be started."""
        for last_try in (False, True):
            mine, theirs = socket.socketpair()
            try:
                with theirs, self._lock:
                    if self._control is None:
                        self._start()
                    assert self._control is not None
                    socket.send_fds(self._control, [b"w"], [theirs.fileno()])
                return _Worker(mine)
            except (OSError, EOFError) as e:
                mine.close()
                self.close()
                if last_try:
                    raise GraderError(f"no grading worker could be started: {e or type(e).__name__}") from e
        raise AssertionError

    def close(self) -> None:
        with self._lock:
            if self._control is not None:
                self._control.close()
            if self._process is not None:
                self._process.kill()
                self._process.wait()
            self._control = self._process = None

    def _start(self) -> None:
        control, theirs = socket.socketpair()
        path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "gem.graders.warm", str(theirs.fileno()), *self._modules],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
            )
        control.settimeout(START_S)
        self._control = control
        if control.recv(16) != b"ready":
            raise EOFError("it ended while its libraries were loaded")


def _rebuilt(workers: int, timeout: float, modules: tuple[str, ...]) -> GraderPool:
    return GraderPool(workers, timeout=timeout, modules=modules)
