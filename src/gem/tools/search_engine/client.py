"""The client of search servers: one pool of connections and one cache for all tools of a process that ask alike."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from concurrent.futures import Future
from typing import Any
from weakref import WeakSet, WeakValueDictionary

from gem._internal.http_client import HttpClient, HttpRequest, RequestError, check_url
from gem.errors import ToolError
from gem.tools.search_engine.index import Hit
from gem.tools.search_engine.wire import Protocol, read_reply, write_request

Question = tuple[str, Protocol, str, int]  # the URL, the protocol, the query and topk


class QueryTimeout(ToolError):
    """A server was reached and did not answer a query in time."""


class SearchClient(HttpClient):
    """See HttpClient. cache: answers that are kept, the last ones used; 0 keeps none.

    A query that was not answered in time is not sent again: it would wait as long once more.
    """

    def __init__(self, *, timeout: float, concurrency: int, retries: int, backoff: float, cache: int) -> None:
        super().__init__(extra="search", timeout=timeout, concurrency=concurrency, retries=retries, backoff=backoff)
        self._cache = Cache(cache)
        self.holders: WeakSet[object] = WeakSet()

    def find(self, url: str, protocol: Protocol, query: str, topk: int) -> Future[list[Hit]]:
        """The documents that a server finds. The future raises QueryTimeout, and ToolError after all retries.

        Raises BadValue for what is no URL.
        """
        question = (
            check_url(url, "search_url", "http://localhost:8000/retrieve", "no key is part of it"),
            protocol,
            query,
            topk,
        )
        if (kept := self._cache.get(question)) is not None:
            future: Future[list[Hit]] = Future()
            future.set_result(kept)
            return future
        kind = "application/msgpack" if protocol == "gem" else "application/json"
        request = HttpRequest("POST", url, write_request(protocol, query, topk), self.timeout, {"Content-Type": kind})
        future = self.send(request, lambda body: _read(protocol, body)[:topk])
        future.add_done_callback(lambda done: self._cache.keep(question, done))
        return future

    def failure_error(self, request: HttpRequest, error: RequestError, attempts: int) -> ToolError:
        if error.timed_out:
            return QueryTimeout(f"the search server at {request.url}: {error}")
        times = f"; {attempts} attempts" if attempts > 1 else ""
        return ToolError(f"the search server at {request.url}: {error}{times}")

    def closed_error(self, request: HttpRequest) -> ToolError:
        return ToolError(f"the client of {request.url} was closed while it waited for an answer")

    def should_retry(self, error: RequestError) -> bool:
        return error.retryable and not error.timed_out


class Cache:
    """The answers used last, by question. For threads; a copy or another process begins with an empty one."""

    def __init__(self, size: int) -> None:
        self._size, self._kept = size, OrderedDict[Question, list[Hit]]()
        self._lock, self._pid = threading.Lock(), os.getpid()

    def get(self, question: Question) -> list[Hit] | None:
        with self._lock_of_this_process():
            if (kept := self._kept.get(question)) is not None:
                self._kept.move_to_end(question)
            return kept

    def keep(self, question: Question, answer: Future[list[Hit]]) -> None:
        if not self._size or answer.cancelled() or answer.exception() is not None:
            return
        with self._lock_of_this_process():
            self._kept[question] = answer.result()
            self._kept.move_to_end(question)
            if len(self._kept) > self._size:
                self._kept.popitem(last=False)

    def __reduce__(self) -> tuple[Any, ...]:
        return Cache, (self._size,)

    def _lock_of_this_process(self) -> threading.Lock:
        if self._pid != os.getpid():  # forked: nobody here holds the lock
            self._lock, self._pid = threading.Lock(), os.getpid()
        return self._lock


def _read(protocol: Protocol, body: bytes) -> list[Hit]:
    try:
        return read_reply(protocol, body)
    except ValueError as e:
        raise RequestError(str(e)) from None


_CLIENTS: WeakValueDictionary[tuple[tuple[str, float], ...], SearchClient] = WeakValueDictionary()


def shared_client(holder: object, **options: float) -> SearchClient:
    """The client of this process that has these options, held until release()."""
    key = tuple(sorted(options.items()))
    if (client := _CLIENTS.get(key)) is None:
        # Two threads may make one each, of which the second is shared from then on: harmless.
        client = _CLIENTS[key] = SearchClient(**options)  # type: ignore[arg-type]
    client.holders.add(holder)
    return client


def release(holder: object, client: SearchClient) -> None:
    """Let go of a client; it is closed when nobody holds it any more."""
    client.holders.discard(holder)
    if not client.holders:
        client.close()
