"""An asyncio event loop in a background thread, for callers on any thread or loop."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections.abc import Callable, Coroutine, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any, Generic, TypeVar

CANCEL_TIMEOUT = 1.0  # seconds for cancelled tasks to end
JOIN_TIMEOUT = 5.0  # seconds for the thread to end; it is a daemon and does not block interpreter exit

Resource = TypeVar("Resource")
Result = TypeVar("Result")


class BackgroundLoop(Generic[Resource]):
    """An event loop in a daemon thread, with an async context manager that is open while it runs.

    Args:
        enter: creates the context manager; called in the loop's thread.
        executor_threads: size of the loop's default executor. None keeps asyncio's default.

    Attributes:
        resource: the value of the context manager.
        closing: whether close() was called. A cancelled task can check it for the cause.
        pid: process that the loop was started in.

    Raises:
        Exception: whatever entering the context manager raised.
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
        self._tasks: set[asyncio.Task[Any]] = set()  # the loop itself holds only weak references
        self._thread = threading.Thread(target=self._run, name="gem-background", daemon=True)
        self._thread.start()
        self.resource = self._entered.result()

    def submit(self, coroutine: Coroutine[Any, Any, Result]) -> Future[Result]:
        """Run a coroutine on the loop. Raises RuntimeError after close()."""
        with self._lock:
            if not self.closing:
                return asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        coroutine.close()
        raise RuntimeError("the event loop is closed")

    def spawn(self, functions: Iterable[Callable[[], Coroutine[Any, Any, object]]]) -> None:
        """Start coroutines, waking up the loop once, without returning their results. RuntimeError after close()."""
        self.call_soon(partial(self._spawn, functions))

    def call_soon(self, function: Callable[[], object]) -> None:
        """Call a function soon in the loop's thread. Raises RuntimeError after close()."""
        with self._lock:
            if self.closing:
                raise RuntimeError("the event loop is closed")
            self._loop.call_soon_threadsafe(function)

    def close(self) -> None:
        """Cancel all tasks, exit the context manager and end the thread, within seconds.

        Safe to call twice. Does nothing in a forked process.
        """
        if self.pid != os.getpid():
            return
        with self._lock:
            self.closing = True
            if not self._thread.is_alive():
                return
            with contextlib.suppress(RuntimeError):  # closed by another thread a moment ago
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
            self._loop.close()

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
