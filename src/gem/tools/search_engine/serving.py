"""A search server: what the retrieval server and those for the web have in common.

    POST /retrieve   see gem.tools.search_engine.wire; 400 for what cannot be read, 502 or 504 where what stands behind
                     the server failed, 503 when too many queries wait; always with {"error": …}
    POST /access     {"urls": […]}, answered by {"result": [{"contents"} or null, …]}
    GET  /health     {"status": "ok", …}
    GET  /metrics    for Prometheus

Needs the extra [search].
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import socket
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from gem.errors import BadValue, ToolError, require
from gem.tools.search_engine.batching import Busy
from gem.tools.search_engine.index import Hit
from gem.tools.search_engine.wire import (
    BadRequest,
    Codec,
    decoded,
    encoded,
    media_type,
    read_request,
    write_reply,
)

MOST_BYTES = 1 << 24  # of a request
MOST_URLS = 1024
BACKLOG = 2048  # connections that wait to be accepted
LEAVING_S = 10  # seconds that requests under way have when the server is told to end

logger = logging.getLogger(__name__)
Search: TypeAlias = Callable[[Sequence[str], int], Awaitable[list[list[Hit]]]]


class UpstreamTimeout(ToolError):
    """What stands behind the server took too long."""


@dataclass
class Service:
    """What a server does.

    Args:
        search: queries and topk to hits. Raises ToolError where what stands behind the server failed.
        topk: where a request names none.
        about: shown by /health.
        access: URLs to texts, None for those that are not there; None where the server has no /access.
        gauges: numbers to be shown by /metrics, by name.
        close: called once when the server has ended.
    """

    search: Search
    topk: int
    about: dict[str, Any] = field(default_factory=dict)
    access: Callable[[Sequence[str]], list[str | None]] | None = None
    gauges: Callable[[], dict[str, float]] = dict
    close: Callable[[], Awaitable[None] | None] = lambda: None


class Metrics:
    """Counts and times of requests, in the text form of Prometheus."""

    BOUNDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)  # seconds

    def __init__(self) -> None:
        self.statuses: Counter[int] = Counter()
        self.queries = self.in_flight = 0
        self._seconds, self._below = 0.0, [0] * (len(self.BOUNDS) + 1)

    def observe(self, seconds: float) -> None:
        self._seconds += seconds
        self._below[sum(seconds > bound for bound in self.BOUNDS)] += 1

    def text(self, gauges: dict[str, float]) -> str:
        lines = ["# TYPE gem_search_requests_total counter"]
        lines += [f'gem_search_requests_total{{status="{status}"}} {n}' for status, n in sorted(self.statuses.items())]
        lines += ["# TYPE gem_search_queries_total counter", f"gem_search_queries_total {self.queries}"]
        lines += ["# TYPE gem_search_in_flight gauge", f"gem_search_in_flight {self.in_flight}"]
        for name, value in gauges.items():
            lines += [f"# TYPE gem_search_{name} gauge", f"gem_search_{name} {value:g}"]
        lines.append("# TYPE gem_search_request_seconds histogram")
        total = 0
        for bound, n in zip([*map(str, self.BOUNDS), "+Inf"], self._below, strict=True):
            total += n
            lines.append(f'gem_search_request_seconds_bucket{{le="{bound}"}} {total}')
        lines += [f"gem_search_request_seconds_sum {self._seconds:.6f}", f"gem_search_request_seconds_count {total}"]
        return "\n".join(lines) + "\n"


def make_app(service: Service) -> Any:
    """The Starlette application of a service. Raises MissingDependency without the extra [search]."""
    applications = require("starlette.applications", extra="search")
    routing = require("starlette.routing", extra="search")
    app = _App(service, require("starlette.responses", extra="search").Response)

    @asynccontextmanager
    async def lifespan(_: Any) -> Any:
        yield
        if (closing := service.close()) is not None:
            await closing

    routes = [
        routing.Route("/retrieve", app.retrieve, methods=["POST"]),
        routing.Route("/health", app.health, methods=["GET"]),
        routing.Route("/metrics", app.show_metrics, methods=["GET"]),
    ]
    if service.access is not None:
        routes.append(routing.Route("/access", app.access, methods=["POST"]))
    return applications.Starlette(routes=routes, lifespan=lifespan)


class _App:
    def __init__(self, service: Service, response: Any) -> None:
        self._service, self._response = service, response
        self._metrics, self._began = Metrics(), time.monotonic()

    async def retrieve(self, request: Any) -> Any:
        async def answer(body: bytes) -> tuple[Codec, bytes]:
            asked = read_request(body, self._service.topk)
            try:
                found = await self._service.search(asked.queries, asked.topk)
            except Exception as e:
                raise _Failed(e, asked.codec) from e
            self._metrics.queries += len(asked.queries)
            return asked.codec, write_reply(asked, found)

        return await self._answered(request, answer)

    async def access(self, request: Any) -> Any:
        async def answer(body: bytes) -> tuple[Codec, bytes]:
            codec, data = decoded(body)
            urls = data.get("urls")
            if not isinstance(urls, list) or not all(isinstance(url, str) for url in urls) or len(urls) > MOST_URLS:
                raise BadRequest(f"needs 'urls', a list of at most {MOST_URLS} texts", codec)
            assert self._service.access is not None
            texts = await asyncio.to_thread(self._service.access, urls)  # the first call reads all documents
            pages = [None if text is None else {"contents": text} for text in texts]
            return codec, encoded(codec, {"result": pages})

        return await self._answered(request, answer)

    async def health(self, request: Any) -> Any:
        about = {"status": "ok", "seconds_up": round(time.monotonic() - self._began, 1), **self._service.about}
        return self._response(json.dumps(about), media_type="application/json")

    async def show_metrics(self, request: Any) -> Any:
        text = self._metrics.text(self._service.gauges())
        return self._response(text, media_type="text/plain; version=0.0.4")

    async def _answered(self, request: Any, answer: Callable[[bytes], Awaitable[tuple[Codec, bytes]]]) -> Any:
        began = time.perf_counter()
        self._metrics.in_flight += 1
        status, headers = 200, {}
        try:
            codec, data = await answer(await _body(request))
        except BadRequest as e:
            status, codec, data = 400, e.codec, encoded(e.codec, {"error": str(e)})
        except _Failed as e:
            status, codec = e.status, e.codec
            data = encoded(codec, {"error": e.told})
            headers = {"Retry-After": "1"} if status == 503 else {}
        finally:
            self._metrics.in_flight -= 1
            self._metrics.observe(time.perf_counter() - began)
        self._metrics.statuses[status] += 1
        return self._response(data, status_code=status, media_type=media_type(codec), headers=headers)


class _Failed(Exception):
    """A search that failed. status: to answer with. told: to whoever asked."""

    def __init__(self, why: Exception, codec: Codec) -> None:
        self.codec = codec
        if isinstance(why, Busy):
            self.status, self.told = 503, "too many queries wait"
        elif isinstance(why, ToolError):
            self.status, self.told = 504 if isinstance(why, UpstreamTimeout) else 502, str(why)
        else:
            logger.error("a search failed", exc_info=why)
            self.status, self.told = 500, f"the search failed: {type(why).__name__}"


async def _body(request: Any) -> bytes:
    from starlette.requests import ClientDisconnect

    data = bytearray()
    try:
        async for chunk in request.stream():
            data += chunk
            if len(data) > MOST_BYTES:
                raise BadRequest(f"the body is larger than {MOST_BYTES} bytes")
    except ClientDisconnect:
        raise BadRequest("the body has no end") from None  # read by nobody, but counted
    return bytes(data)


def add_address(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on; 0.0.0.0 lets other machines in")
    parser.add_argument("--port", type=int, default=8000, help="0 takes a free one, which is printed")


def serve(service: Service, host: str, port: int) -> None:
    """Serve until SIGINT or SIGTERM; requests under way are answered first. Prints where, once it listens.

    Raises BadValue for an address that cannot be had.
    """
    uvicorn = require("uvicorn", extra="search")
    listening = _listening(host, port)
    config = uvicorn.Config(
        make_app(service),
        log_level="warning",
        access_log=False,
        backlog=BACKLOG,
        timeout_graceful_shutdown=LEAVING_S,
        lifespan="on",
    )
    server = uvicorn.Server(config)
    print(f"serving on http://{host}:{listening.getsockname()[1]}/retrieve", flush=True)
    try:
        server.run(sockets=[listening])
    finally:
        listening.close()
    if not server.started:
        sys.exit(1)


def _listening(host: str, port: int) -> socket.socket:
    if not 0 <= port < 1 << 16:
        raise BadValue(f"cannot listen on {host}:{port}: a port is a number below {1 << 16}")
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[
            0
        ]
        # Of TCP by name: on a socket that does not say so asyncio leaves small packets waiting, 40 ms for each reply.
        listening = socket.socket(family, kind, socket.IPPROTO_TCP)
    except OSError as e:
        raise BadValue(f"cannot listen on {host}:{port}: {e}") from e
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(BACKLOG)  # before it is told where: who comes early waits
    except OSError as e:
        listening.close()
        raise BadValue(f"cannot listen on {host}:{port}: {e}") from e
    return listening
