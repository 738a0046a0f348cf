"""Queries that come one by one, searched together: while one batch is searched, the next one gathers."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from gem.tools.search_engine.index import Hit, Retriever

MOST_WAITING = 10_000  # queries; whoever comes then is told to come again later


class Busy(Exception):
    """Too many queries wait already."""


class Batcher:
    """Searches of an event loop, performed in threads.

    Args:
        retriever: what searches.
        workers: batches searched at the same time.
        most: queries of a batch.

    Each query keeps its own topk: a batch holds queries of one topk alone. Attributes for who counts: waiting, the
    queries not yet being searched; batches, those begun so far.
    """

    def __init__(self, retriever: Retriever, *, workers: int = 2, most: int = 64) -> None:
        self._retriever, self._most = retriever, most
        self._waiting: dict[int, deque[tuple[str, asyncio.Future[list[Hit]]]]] = {}
        self._free = workers
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="gem-search")
        self._running: set[asyncio.Task[None]] = set()
        self.waiting = self.batches = 0

    async def search(self, queries: Sequence[str], topk: int) -> list[list[Hit]]:
        """See Retriever.search. Raises Busy, and what the retriever raises, for these queries alone."""
        if self.waiting + len(queries) > MOST_WAITING:
            raise Busy
        loop = asyncio.get_running_loop()
        futures = [loop.create_future() for _ in queries]
        self._waiting.setdefault(topk, deque()).extend(zip(queries, futures, strict=True))
        self.waiting += len(queries)
        self._start()
        try:
            return list(await asyncio.gather(*futures))
        finally:
            for future in futures:
                future.cancel()  # where whoever asked has gone

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _start(self) -> None:
        while self._free and self._waiting:
            topk, queue = next(iter(self._waiting.items()))
            batch = [queue.popleft() for _ in range(min(len(queue), self._most))]
            del self._waiting[topk]
            if queue:
                self._waiting[topk] = queue  # behind the others
            self.waiting -= len(batch)
            if batch := [(query, future) for query, future in batch if not future.done()]:
                self._free -= 1
                self.batches += 1
                task = asyncio.create_task(self._search(batch, topk))
                self._running.add(task)
                task.add_done_callback(self._running.discard)

    async def _search(self, batch: list[tuple[str, asyncio.Future[list[Hit]]]], topk: int) -> None:
        loop = asyncio.get_running_loop()
        try:
            found = await loop.run_in_executor(self._threads, self._retriever.search, [q for q, _ in batch], topk)
            for (_, future), hits in zip(batch, found, strict=True):
                if not future.done():
                    future.set_result(hits)
        except BaseException as e:
            for _, future in batch:
                if not future.done():
                    future.set_exception(e)
            if not isinstance(e, Exception):
                raise
        finally:
            self._free += 1
            self._start()
