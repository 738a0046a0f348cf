"""HTTP search server: wire protocols, batching, routes and metrics, in one module because they depend on each other.

Needs the extra [search].

    POST /retrieve   documents for queries
    POST /access     documents for {"urls": […]}: {"result": [{"contents"} or null, …]}; only for local indexes
    GET  /health     {"status": "ok", …}
    GET  /metrics    metrics in the Prometheus text format

Error responses are {"error": …}, with status 400 for an invalid request, 413 for one that is too large, 502 or 504 if
a service behind the server failed or timed out, and 503 if too many queries are waiting.

/retrieve accepts two protocols. The server detects the encoding from the first byte of the body, because clients may
send a wrong Content-Type. The response uses the same encoding.

    published     msgpack  {"query", "topk", "return_scores"}    {"result": [{"document", "score"}, …]}
    Search-R1's   JSON     {"queries", "topk", "return_scores"}  {"result": [[{"document", "score"}, …], …]}

Both encodings accept both fields: "query" returns one list of results, "queries" a list of lists. ``topk_rerank`` takes
precedence over ``topk``. Without ``return_scores``, msgpack responses contain scores and JSON responses do not.
A document is {"id", "contents"}, and "url" if the document has one.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import sys
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any, Literal, TypeAlias, TypeVar

import msgspec

from gem._internal.construction import warn_without_effect
from gem._internal.http_server import ServerLimits, bind_socket, make_server, url_of
from gem._internal.inbound import MESSAGE, check_json
from gem.errors import BadInput, ToolError, require
from gem.tools.search.corpus import Hit
from gem.tools.search.index import Retriever

MAX_QUERIES = 1024  # per request
MAX_TOPK = 100
MAX_URLS = 1024
LIMITS = ServerLimits(body_bytes=MESSAGE.bytes)
MAX_WAITING = 10_000  # queries; further requests are refused with status 503
SHUTDOWN_S = 10  # time limit for completing requests in flight when the server stops
BUCKETS_S = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)

logger = logging.getLogger(__name__)
Codec: TypeAlias = Literal["json", "msgpack"]
Search: TypeAlias = Callable[[Sequence[str], int], Awaitable[list[list[Hit]]]]
Body = TypeVar("Body")


# --- protocol --------------------------------------------------------------------------------------------------------


class BadRequest(Exception):
    """An invalid request; the message is sent to the client."""


class RetrieveRequest(msgspec.Struct):
    """A request to /retrieve, with either ``query`` or ``queries``."""

    query: str | None = None
    queries: Annotated[list[str], msgspec.Meta(min_length=1, max_length=MAX_QUERIES)] | None = None
    topk: Annotated[int, msgspec.Meta(ge=1, le=MAX_TOPK)] | None = None
    topk_rerank: Annotated[int, msgspec.Meta(ge=1, le=MAX_TOPK)] | None = None
    return_scores: bool | None = None

    def texts(self) -> list[str]:
        return self.queries or [self.query or ""]


class AccessRequest(msgspec.Struct):
    """A request to /access."""

    urls: Annotated[list[str], msgspec.Meta(max_length=MAX_URLS)]


def codec_of(body: bytes) -> Codec:
    """Return the encoding of a request: msgpack if the first byte starts a map, else JSON."""
    return "msgpack" if body[:1] and (0x80 <= body[0] <= 0x8F or body[0] in (0xDE, 0xDF)) else "json"


def decode_body(body: bytes, codec: Codec, kind: type[Body]) -> Body:
    """Decode the body of a request. Raises BadRequest if the body is not a valid request of this kind."""
    try:
        if codec == "msgpack":
            return msgspec.msgpack.decode(body, type=kind)
        check_json(body, "the request", MESSAGE)
        return msgspec.json.decode(body.removeprefix(b"\xef\xbb\xbf"), type=kind)
    except (BadInput, msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as e:
        raise BadRequest(f"the body must be a JSON object or a msgpack map; read as {codec}: {e}") from None


def decode_request(body: bytes) -> RetrieveRequest:
    """Decode a request to /retrieve. Raises BadRequest if the request is invalid."""
    request = decode_body(body, codec_of(body), RetrieveRequest)
    if (request.query is None) == (request.queries is None):
        raise BadRequest("the request needs either 'query', a string, or 'queries', a list of strings")
    return request


def encode(codec: Codec, data: Any) -> bytes:
    return msgspec.json.encode(data) if codec == "json" else msgspec.msgpack.encode(data)


def encode_reply(request: RetrieveRequest, codec: Codec, found: Sequence[Sequence[Hit]]) -> bytes:
    scores = codec == "msgpack" if request.return_scores is None else request.return_scores
    result: list[Any] = [
        [{"document": hit.document, "score": hit.score} if scores else hit.document for hit in hits] for hits in found
    ]
    return encode(codec, {"result": result if request.query is None else result[0]})


# --- batching --------------------------------------------------------------------------------------------------------


class Busy(Exception):
    """Raised when too many queries are waiting."""


class Batcher:
    """Groups concurrent queries into batches and searches the batches in threads.

    Queries that arrive while all workers are busy are collected for the next batches.

    Args:
        retriever: its search() is called once per batch.
        workers: maximum number of batches searched at the same time.
        max_batch: maximum number of queries per batch. All queries of a batch have the same topk.

    ``waiting`` is the number of queries that are not yet in a batch, ``batches`` the number of batches started so far.
    """

    def __init__(self, retriever: Retriever, *, workers: int = 2, max_batch: int = 64) -> None:
        self._retriever, self._max_batch = retriever, max_batch
        self._queues: dict[int, deque[tuple[str, asyncio.Future[list[Hit]]]]] = {}  # by topk
        self._idle = workers
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="gem-search")
        self._running: set[asyncio.Task[None]] = set()
        self.waiting = self.batches = 0

    async def search(self, queries: Sequence[str], topk: int) -> list[list[Hit]]:
        """See Retriever.search. Raises Busy, or the exception with which the search of a batch failed."""
        if self.waiting + len(queries) > MAX_WAITING:
            raise Busy
        loop = asyncio.get_running_loop()
        futures = [loop.create_future() for _ in queries]
        self._queues.setdefault(topk, deque()).extend(zip(queries, futures, strict=True))
        self.waiting += len(queries)
        self._start_batches()
        try:
            return list(await asyncio.gather(*futures))
        finally:
            for future in futures:
                future.cancel()  # has no effect on completed futures

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _start_batches(self) -> None:
        while self._idle and self._queues:
            topk, queue = next(iter(self._queues.items()))
            batch = [queue.popleft() for _ in range(min(len(queue), self._max_batch))]
            del self._queues[topk]
            if queue:
                self._queues[topk] = queue  # moved behind the queues of other topk values
            self.waiting -= len(batch)
            if batch := [(query, future) for query, future in batch if not future.done()]:
                self._idle -= 1
                self.batches += 1
                task = asyncio.create_task(self._run_batch(batch, topk))
                self._running.add(task)
                task.add_done_callback(self._running.discard)

    async def _run_batch(self, batch: list[tuple[str, asyncio.Future[list[Hit]]]], topk: int) -> None:
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
            self._idle += 1
            self._start_batches()


# --- application -----------------------------------------------------------------------------------------------------


class UpstreamTimeout(ToolError):
    """Raised when a service behind the server timed out."""


@dataclass
class Service:
    """The search function of a server and its optional extensions.

    Args:
        search: returns the hits for (queries, topk). Raises ToolError if a service behind the server failed.
        topk: number of documents per query if the request does not set topk.
        about: additional fields of /health.
        access: returns the contents for each URL, None for an unknown URL. If ``access`` is None, there is no /access.
        gauges: maps the name of a gauge in /metrics to a function that returns its value.
        close: called once when the server stops.
    """

    search: Search
    topk: int
    about: dict[str, Any] = field(default_factory=dict)
    access: Callable[[Sequence[str]], list[str | None]] | None = None
    gauges: dict[str, Callable[[], float]] = field(default_factory=dict)
    close: Callable[[], Awaitable[None] | None] = lambda: None


class Metrics:
    """The Prometheus metrics of one server, in a separate registry."""

    def __init__(self, gauges: dict[str, Callable[[], float]]) -> None:
        self._prometheus = prometheus = require("prometheus_client", extra="search")
        self._registry = registry = prometheus.CollectorRegistry()
        self.requests = prometheus.Counter("gem_search_requests", "Requests by status.", ["status"], registry=registry)
        self.queries = prometheus.Counter("gem_search_queries", "Queries answered.", registry=registry)
        self.in_flight = prometheus.Gauge("gem_search_in_flight", "Requests in flight.", registry=registry)
        self.seconds = prometheus.Histogram(
            "gem_search_request_seconds", "Duration of requests.", buckets=BUCKETS_S, registry=registry
        )
        for name, value in gauges.items():
            gauge = prometheus.Gauge(f"gem_search_{name}", name.replace("_", " ").capitalize() + ".", registry=registry)
            gauge.set_function(value)

    def render(self) -> tuple[bytes, str]:
        """Return the metrics in the Prometheus text format, as (body, media type)."""
        return self._prometheus.generate_latest(self._registry), self._prometheus.CONTENT_TYPE_LATEST


def make_app(service: Service) -> Any:
    """Create the Starlette application of a service. Raises MissingDependency without the extra [search]."""
    applications = require("starlette.applications", extra="search")
    routing = require("starlette.routing", extra="search")
    app = _App(service, require("starlette.responses", extra="search").Response)

    @asynccontextmanager
    async def lifespan(_: Any) -> Any:
        yield
        if (closing := service.close()) is not None:
            await closing

    routes = [
        routing.Route("/retrieve", partial(app.respond, app.retrieve), methods=["POST"]),
        routing.Route("/health", app.health, methods=["GET"]),
        routing.Route("/metrics", app.metrics, methods=["GET"]),
    ]
    if service.access is not None:
        routes.append(routing.Route("/access", partial(app.respond, app.access), methods=["POST"]))
    return applications.Starlette(routes=routes, lifespan=lifespan)


class _App:
    """The HTTP endpoints of a service. response: Starlette's Response class."""

    def __init__(self, service: Service, response: Any) -> None:
        self._service, self._response = service, response
        self._metrics, self._started = Metrics(service.gauges), time.monotonic()

    async def health(self, request: Any) -> Any:
        about = {"status": "ok", "seconds_up": round(time.monotonic() - self._started, 1), **self._service.about}
        return self._response(json.dumps(about), media_type="application/json")

    async def metrics(self, request: Any) -> Any:
        text, media_type = self._metrics.render()
        return self._response(text, media_type=media_type)

    async def retrieve(self, body: bytes, codec: Codec) -> bytes:
        request = decode_request(body)
        texts = request.texts()
        found = await self._service.search(texts, request.topk_rerank or request.topk or self._service.topk)
        self._metrics.queries.inc(len(texts))
        return encode_reply(request, codec, found)

    async def access(self, body: bytes, codec: Codec) -> bytes:
        urls = decode_body(body, codec, AccessRequest).urls
        assert self._service.access is not None
        texts = await asyncio.to_thread(self._service.access, urls)  # the first call may read all documents
        return encode(codec, {"result": [None if text is None else {"contents": text} for text in texts]})

    async def respond(self, answer: Callable[[bytes, Codec], Awaitable[bytes]], request: Any) -> Any:
        """Answer a request with a body, and count it. An exception becomes an error response."""
        codec: Codec = "json"
        started, status, error, headers = time.perf_counter(), 200, "", {}
        self._metrics.in_flight.inc()
        try:
            body = await request.body()
            codec = codec_of(body)
            data = await answer(body, codec)
        except BadRequest as e:
            status, error = 400, str(e)
        except Busy:
            status, error, headers = 503, "too many queries are waiting", {"Retry-After": "1"}
        except ToolError as e:
            status, error = 504 if isinstance(e, UpstreamTimeout) else 502, str(e)
        except Exception as e:
            logger.exception("a search failed")
            status, error = 500, f"the search failed: {type(e).__name__}"
        finally:
            self._metrics.in_flight.dec()
            self._metrics.seconds.observe(time.perf_counter() - started)
        self._metrics.requests.labels(status).inc()
        if status != 200:
            data = encode(codec, {"error": error})
        return self._response(data, status_code=status, media_type=f"application/{codec}", headers=headers)


# --- process ---------------------------------------------------------------------------------------------------------


def add_address(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on; 0.0.0.0 admits other machines")
    parser.add_argument("--port", type=int, default=8000, help="0 chooses a free port")


class WithoutEffect(argparse.Action):
    """An option of the published servers that has no effect here. It may have a value.

    Args:
        reason: why it has no effect.
    """

    def __init__(self, option_strings: Sequence[str], dest: str, reason: str) -> None:
        super().__init__(option_strings, argparse.SUPPRESS, nargs="?", metavar="VALUE", help=f"has no effect: {reason}")
        self.reason = reason

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        warn_without_effect(f"{parser.prog}: {self.option_strings[0]}", self.reason)


def serve(service: Service, host: str, port: int) -> None:
    """Print the URL, serve until SIGINT or SIGTERM, then complete the requests in flight.

    Raises:
        BadValue: the address is not available.
    """
    app = make_app(service)
    listener = bind_socket(host, port)
    server = make_server(app, listener, host, LIMITS, extra="search", timeout_graceful_shutdown=SHUTDOWN_S)
    print(f"serving on {url_of(listener)}/retrieve", flush=True)
    try:
        server.run(sockets=[listener])
    except KeyboardInterrupt:  # uvicorn raises the signal again when it has stopped
        pass
    finally:
        listener.close()
    if not server.started:
        sys.exit(1)
