"""HTTP client for search servers. Tools with the same options share one client per process.

The two wire protocols are described in gem.tools.search.server.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from concurrent.futures import Future
from contextlib import suppress
from typing import Annotated, Any, Literal, TypeAlias
from weakref import WeakSet, WeakValueDictionary

import msgspec

from gem._internal.http_client import HttpClient, HttpRequest, RequestError, check_url
from gem._internal.inbound import MESSAGE, loads
from gem.errors import ToolError
from gem.tools.search.corpus import Hit

SearchProtocol: TypeAlias = Literal["gem", "search-r1"]
CacheKey: TypeAlias = tuple[str, SearchProtocol, str, int]  # URL, protocol, query, topk


class QueryTimeout(ToolError):
    """A server was reached but did not answer a query in time."""


class SearchClient(HttpClient):
    """HTTP client for search servers; see HttpClient. A query that timed out is not retried.

    Args:
        cache: maximum number of cached results. The least recently used result is removed first; 0 disables the cache.
    """

    def __init__(self, *, timeout: float, concurrency: int, retries: int, backoff: float, cache: int) -> None:
        super().__init__(extra="search", timeout=timeout, concurrency=concurrency, retries=retries, backoff=backoff)
        self._cache_size, self._cache = cache, OrderedDict[CacheKey, list[Hit]]()
        self.holders: WeakSet[object] = WeakSet()

    def search(self, url: str, protocol: SearchProtocol, query: str, topk: int) -> Future[list[Hit]]:
        """Send a query to the /retrieve endpoint at ``url``.

        Returns:
            A future of at most topk hits. Its result() raises QueryTimeout after a timeout and ToolError for any other
            failure.

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
    """Return the shared client with these options. ``holder`` keeps the client open until release_client()."""
    key = tuple(sorted(options.items()))
    if (client := _CLIENTS.get(key)) is None:
        # Two threads may each create a client. Later callers share the second client; both clients work.
        client = _CLIENTS[key] = SearchClient(**options)  # type: ignore[arg-type]
    client.holders.add(holder)
    return client


def release_client(holder: object, client: SearchClient) -> None:
    """Release a shared client. The client is closed when its last holder releases it."""
    client.holders.discard(holder)
    if not client.holders:
        client.close()


def encode_request(protocol: SearchProtocol, query: str, topk: int) -> bytes:
    if protocol == "gem":
        return msgspec.msgpack.encode({"query": query, "topk": topk, "return_scores": True})
    return msgspec.json.encode({"queries": [query], "topk": topk, "return_scores": True})


class _Reply(msgspec.Struct):
    result: Annotated[list[msgspec.Raw], msgspec.Meta(max_length=1000)]


_Fields: TypeAlias = Annotated[dict[str, msgspec.Raw], msgspec.Meta(max_length=50)]


def _fields(data: bytes, nested: str = "") -> dict[str, Any]:
    """Return the texts and numbers of a map. Nothing else is decoded: 16 MiB of msgpack may become 1 GiB of objects."""
    fields = dict[str, Any]()
    for key, value in msgspec.msgpack.decode(data, type=_Fields).items():
        with suppress(msgspec.ValidationError):
            fields[key] = _fields(value) if key == nested else msgspec.msgpack.decode(value, type=str | int | float)
    return fields


def decode_reply(protocol: SearchProtocol, body: bytes) -> list[Hit]:
    """Decode the reply to one query. Raises RequestError if the reply is not a list of hits."""
    try:
        if protocol == "gem":
            found: Any = [_fields(each, "document") for each in msgspec.msgpack.decode(body, type=_Reply).result]
        else:
            found = loads(body, "the reply", MESSAGE)["result"][0]
        if not isinstance(found, list):
            raise TypeError(f"expected a list of results, got {type(found).__name__}")
        return [_hit(each) for each in found]
    except Exception as e:  # any malformed reply is an error of the server
        raise RequestError(f"the reply is not a search result ({type(e).__name__}: {e})") from None


def _hit(found: Any) -> Hit:
    document, score = found.get("document", found), found.get("score", 0.0)  # some servers send no scores
    if not isinstance(score, int | float) or not math.isfinite(score):
        raise ValueError(f"score {score!r:.40}")
    texts = {key: value for key, value in document.items() if isinstance(value, str)}
    if "contents" not in texts:
        raise ValueError("a document without 'contents'")
    return Hit({"id": str(document.get("id", "")), **texts}, float(score))
