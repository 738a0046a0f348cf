"""An asyncio event loop in a background thread, usable from any thread or event loop."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections.abc import Callable, Coroutine, Iterable
from concurrent.futures import Future, InvalidStateError, ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any, Generic, TypeVar

CANCEL_TIMEOUT = 1.0  # seconds to wait for cancelled tasks to end
JOIN_TIMEOUT = 5.0  # seconds to wait for the thread, a daemon thread that does not block interpreter exit

Resource = TypeVar("Resource")
Result = TypeVar("Result")


def _closed_error() -> Exception:
    return RuntimeError("the event loop was closed")


class BackgroundLoop(Generic[Resource]):
    """An event loop in a daemon thread, with an async context manager that stays open while the loop runs.

    Args:
        enter: creates the context manager; called in the thread of the loop.
        executor_threads: size of the loop's default executor. None keeps asyncio's default.

    Attributes:
        resource: the value that entering the context manager returned.
        closing: whether close() was called. A cancelled task can check this to find out whether close() cancelled it.
        pid: id of the process that started the loop.

    Raises:
        Exception: the exception raised on entering the context manager.
    """

    def __init__(
        self, enter: Callable[[], AbstractAsyncContextManager[Resource]], *, executor_threads: int | None = None
    ) -> None:
        self.pid, self.closing = os.getpid(), False
        self._enter = enter
        self._entered: Future[Resource] = Future()
        self._lock = threading.Lock()
        self._loop = asyncio.new_event_loop()
        if executor_threads is not None:
            self._loop.set_default_executor(ThreadPoolExecutor(executor_threads, "gem-background-wait"))
        self._stop = asyncio.Event()
        self._tasks: set[asyncio.Task[Any]] = set()  # asyncio holds only weak references to tasks
        self._open: dict[Future[Any], Callable[[], Exception]] = {}  # futures without a result → error on closing
        self._thread = threading.Thread(target=self._run, name="gem-background", daemon=True)
        self._thread.start()
        self.resource = self._entered.result()

    def submit(
        self, coroutine: Coroutine[Any, Any, Result], *, closed_error: Callable[[], Exception] = _closed_error
    ) -> Future[Result]:
        """Start a coroutine on the loop and return a future of its result. Raises RuntimeError after close().

        Args:
            closed_error: makes the exception of the future if close() ends the loop before the coroutine ends, which
                ignored being cancelled for CANCEL_TIMEOUT seconds.
        """
        with self._lock:
            if not self.closing:
                future = asyncio.run_coroutine_threadsafe(_retrieved(coroutine), self._loop)
                self._open[future] = closed_error
                future.add_done_callback(lambda future: self._open.pop(future, None))
                return future
        coroutine.close()
        raise RuntimeError("the event loop is closed")

    def spawn(self, functions: Iterable[Callable[[], Coroutine[Any, Any, object]]]) -> None:
        """Start several coroutines with one wake-up of the loop; their results are discarded.

        Raises RuntimeError after close().
        """
        self.call_soon(partial(self._spawn, functions))

    def call_soon(self, function: Callable[[], object]) -> None:
        """Schedule a function to be called in the thread of the loop. Raises RuntimeError after close()."""
        with self._lock:
            if self.closing:
                raise RuntimeError("the event loop is closed")
            self._loop.call_soon_threadsafe(function)

    def close(self) -> None:
        """Cancel all tasks, exit the context manager, and wait up to JOIN_TIMEOUT seconds for the thread to end.

        Calling close() again has no effect. Does nothing in a forked process.
        """
        if self.pid != os.getpid():
            return
        with self._lock:
            self.closing = True
            if not self._thread.is_alive():
                return
            with contextlib.suppress(RuntimeError):  # the thread has just closed the loop
                self._loop.call_soon_threadsafe(self._stop.set)
        if threading.current_thread() is not self._thread:
            self._thread.join(JOIN_TIMEOUT)

    def _spawn(self, functions: Iterable[Callable[[], Coroutine[Any, Any, object]]]) -> None:
        for function in functions:
            task = self._loop.create_task(function())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._until_closed())
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        except BaseException as e:
            if self._entered.done():
                raise
            self._entered.set_exception(e)
        finally:
            for task in asyncio.all_tasks(self._loop):
                task._log_destroy_pending = False  # type: ignore[attr-defined]  # their futures say so
            self._loop.close()
            for future, closed_error in list(self._open.items()):
                with contextlib.suppress(InvalidStateError):  # cancelled by its owner meanwhile
                    future.set_exception(closed_error())

    async def _until_closed(self) -> None:
        async with self._enter() as resource:
            self._entered.set_result(resource)
            await self._stop.wait()
            running = asyncio.all_tasks() - {asyncio.current_task()}
            for task in running:
                task.cancel()
            if running:
                await asyncio.wait(running, timeout=CANCEL_TIMEOUT)
        await asyncio.sleep(0.01)  # let the transports of closed connections finish


async def _retrieved(coroutine: Coroutine[Any, Any, Result]) -> Result:
    """Await a coroutine whose exception is not logged if its future was cancelled before."""
    task = asyncio.current_task()
    assert task is not None
    task.add_done_callback(lambda task: task.cancelled() or task.exception())
    return await coroutine
