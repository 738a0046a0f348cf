"""Something of asyncio kept alive on an event loop of its own thread, for callers on any thread or loop."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager
from typing import Any, Generic, TypeVar

CLOSING_S = 5.0  # seconds for the thread to end; it is a daemon and keeps nobody from leaving

Resource = TypeVar("Resource")
Result = TypeVar("Result")


class BackgroundLoop(Generic[Resource]):
    """An async context manager, entered on a loop in a daemon thread and left by close().

    Args:
        enter: makes it, in that thread.

    ``resource`` is what entering it gave; ``closing`` tells a coroutine that is cancelled whether close() did it.
    Raises what entering it raises.
    """

    def __init__(self, enter: Callable[[], AbstractAsyncContextManager[Resource]]) -> None:
        self.pid, self.closing = os.getpid(), False
        self._enter = enter
        self._entered: Future[Resource] = Future()
        self._loop = asyncio.new_event_loop()
        self._end = asyncio.Event()
        self._thread = threading.Thread(target=self._live, name="gem-background", daemon=True)
        self._thread.start()
        self.resource = self._entered.result()

    def submit(self, coroutine: Coroutine[Any, Any, Result]) -> Future[Result]:
        """Run a coroutine on the loop. Not after close()."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    def close(self) -> None:
        """Cancel what runs, leave the context manager, end the thread. Safe to call twice, and in a forked process."""
        if self.pid != os.getpid() or not self._thread.is_alive():
            return
        with contextlib.suppress(RuntimeError):  # another thread closed it just now
            self._loop.call_soon_threadsafe(self._end.set)
        if threading.current_thread() is not self._thread:
            self._thread.join(CLOSING_S)

    def _live(self) -> None:
        try:
            self._loop.run_until_complete(self._until_closed())
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.run_until_complete(self._loop.shutdown_default_executor())
        except BaseException as e:
            if self._entered.done():
                raise
            self._entered.set_exception(e)
        finally:
            self._loop.close()

    async def _until_closed(self) -> None:
        async with self._enter() as resource:
            self._entered.set_result(resource)
            await self._end.wait()
            self.closing = True
            running = asyncio.all_tasks() - {asyncio.current_task()}
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)
        await asyncio.sleep(0.01)  # connections that were closed just now are let go of in the loop's next rounds
