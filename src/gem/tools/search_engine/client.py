"""Client of search servers. The tools of a process with the same options share one client, its connections and cache.

The two wire protocols are described in gem.tools.search_engine.server.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from concurrent.futures import Future
from typing import Any, Literal, TypeAlias
from weakref import WeakSet, WeakValueDictionary

import msgspec

from gem._internal.http_client import HttpClient, HttpRequest, RequestError, check_url
from gem.errors import ToolError
from gem.tools.search_engine.corpus import Hit

Protocol: TypeAlias = Literal["gem", "search-r1"]
CacheKey: TypeAlias = tuple[str, Protocol, str, int]  # URL, protocol, query, topk


class QueryTimeout(ToolError):
    """A server was reached but did not answer a query in time."""


class SearchClient(HttpClient):
    """See HttpClient. A query that timed out is not sent again, since it would take as long again.

    Args:
        cache: number of answers kept, least recently used first out; 0 keeps none.
    """

    def __init__(self, *, timeout: float, concurrency: int, retries: int, backoff: float, cache: int) -> None:
        super().__init__(extra="search", timeout=timeout, concurrency=concurrency, retries=retries, backoff=backoff)
        self._cache_size, self._cache = cache, OrderedDict[CacheKey, list[Hit]]()
        self.holders: WeakSet[object] = WeakSet()

    def search(self, url: str, protocol: Protocol, query: str, topk: int) -> Future[list[Hit]]:
        """Ask the server at a /retrieve URL.

        Returns:
            A future of at most topk hits. It raises QueryTimeout, or ToolError when all retries have failed.

        Raises:
            BadValue: invalid URL.
        """
        key = (url, protocol, query, topk)
        with self._lock_of_this_process():
            hits = self._cache.get(key)
            if hits is not None:
                self._cache.move_to_end(key)
        if hits is not None:
            future: Future[list[Hit]] = Future()
            future.set_result(hits)
            return future
        check_url(url, "search_url", "http://localhost:8000/retrieve", "search servers take no key")
        media_type = "application/msgpack" if protocol == "gem" else "application/json"
        body = encode_request(protocol, query, topk)
        request = HttpRequest("POST", url, body, self.timeout, {"Content-Type": media_type})
        future = self.send(request, lambda reply: decode_reply(protocol, reply)[:topk])
        if self._cache_size:
            future.add_done_callback(lambda done: self._remember(key, done))
        return future

    def failure_error(self, request: HttpRequest, error: RequestError, attempts: int) -> ToolError:
        if error.timed_out:
            return QueryTimeout(f"search server at {request.url}: {error}")
        times = f"; {attempts} attempts" if attempts > 1 else ""
        return ToolError(f"search server at {request.url}: {error}{times}")

    def closed_error(self, request: HttpRequest) -> ToolError:
        return ToolError(f"the client of {request.url} was closed during a request")

    def should_retry(self, error: RequestError) -> bool:
        return error.retryable and not error.timed_out

    def _remember(self, key: CacheKey, done: Future[list[Hit]]) -> None:
        if done.cancelled() or done.exception() is not None:
            return
        with self._lock_of_this_process():
            self._cache[key] = done.result()
            self._cache.move_to_end(key)
            if len(self._cache) > self._cache_size:
                self._cache.popitem(last=False)


_CLIENTS: WeakValueDictionary[tuple[tuple[str, float], ...], SearchClient] = WeakValueDictionary()


def shared_client(holder: object, **options: float) -> SearchClient:
    """Return this process's client with these options, held until release_client()."""
    key = tuple(sorted(options.items()))
    if (client := _CLIENTS.get(key)) is None:
        # Two threads may create one each; later callers share the second. Both work.
        client = _CLIENTS[key] = SearchClient(**options)  # type: ignore[arg-type]
    client.holders.add(holder)
    return client


def release_client(holder: object, client: SearchClient) -> None:
    """Release a shared client and close it when no holder is left."""
    client.holders.discard(holder)
    if not client.holders:
        client.close()


def encode_request(protocol: Protocol, query: str, topk: int) -> bytes:
    if protocol == "gem":
        return msgspec.msgpack.encode({"query": query, "topk": topk, "return_scores": True})
    return msgspec.json.encode({"queries": [query], "topk": topk, "return_scores": True})


def decode_reply(protocol: Protocol, body: bytes) -> list[Hit]:
    """Decode the reply to one query. Raises RequestError for anything but search results."""
    try:
        if protocol == "gem":
            found: Any = msgspec.msgpack.decode(body)["result"]
        else:
            found = msgspec.json.decode(body)["result"][0]
        if not isinstance(found, list):
            raise TypeError(f"expected a list of results, got {type(found).__name__}")
        return [_hit(each) for each in found]
    except Exception as e:  # servers are not trusted: any malformed reply is an error of the server
        raise RequestError(f"the reply is not a search result ({type(e).__name__}: {e})") from None


def _hit(found: Any) -> Hit:
    document, score = found.get("document", found), found.get("score", 0.0)  # some servers send no scores
    if not isinstance(score, int | float) or not math.isfinite(score):
        raise ValueError(f"score {score!r:.40}")
    texts = {key: value for key, value in document.items() if isinstance(value, str)}
    if "contents" not in texts:
        raise ValueError("a document without 'contents'")
    return Hit({"id": str(document.get("id", "")), **texts}, float(score))
