"""The HTTP client of models, search servers and embeddings: what a server may send."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

pytest.importorskip("aiohttp", reason="needs an extra with aiohttp")

from aiohttp import web

from gem._internal.http_client import HttpClient, HttpRequest, RequestError, wait_for
from gem.errors import EndpointError, InfraError, SandboxError, ToolError
from gem.policies import Endpoint
from gem.testing.fakes.endpoint import LocalServer

zipped = partial(gzip.compress, mtime=0)  # the same bytes in every process
MIB = 1 << 20


class Client(HttpClient):
    max_body = MIB

    def __init__(self) -> None:
        super().__init__(extra="eval", timeout=20.0, concurrency=1, retries=2, backoff=0.0)

    def failure_error(self, request: HttpRequest, error: RequestError, attempts: int) -> Exception:
        return ToolError(f"{error}; status {error.status}, {attempts} attempts")

    def closed_error(self, request: HttpRequest) -> Exception:
        return ToolError("closed")


@pytest.fixture
def serve() -> Iterator[Callable[..., str]]:
    """Start a server that answers every request with a body, compressed as its header ``encoding`` says."""
    servers = []

    def start(body: bytes, *encodings: str, endless: bool = False, status: int = 200) -> str:
        async def answer(request: Any) -> Any:
            asked.append(request.headers["Accept-Encoding"])
            response = web.StreamResponse(status=status, headers=[("Content-Encoding", each) for each in encodings])
            await response.prepare(request)
            await response.write(body)
            while endless:
                await response.write(body)
            return response

        servers.append(LocalServer(web, {("*", "/{path:.*}"): answer}))
        return servers[-1].url

    asked: list[str] = []
    start.asked = asked  # type: ignore[attr-defined]
    yield start
    for server in servers:
        server.close()


def get(url: str) -> bytes:
    with Client() as client:
        return wait_for(client.send(HttpRequest("GET", url + "/", None, 20.0), lambda body: body))


@pytest.mark.parametrize(
    "body, encodings, read",
    [
        (b"plain", [], b"plain"),
        (b"same", ["identity"], b"same"),
        (zipped(b"gzip"), ["gzip"], b"gzip"),
        (zipped(b"old "), ["X-GZip"], b"old "),
        (zlib.compress(b"deflate"), ["deflate"], b"deflate"),
        (b"x" * MIB, [], b"x" * MIB),
        (zipped(b"x" * MIB), ["gzip"], b"x" * MIB),
        (zipped(b"a") + zipped(b"b"), ["gzip"], b"ab"),
        (b"", ["gzip"], b""),
    ],
)
def test_a_body_is_decompressed(serve: Callable[..., str], body: bytes, encodings: list[str], read: bytes) -> None:
    assert get(serve(body, *encodings)) == read
    assert serve.asked == ["gzip"]  # type: ignore[attr-defined]


_stream = zlib.compressobj(9, wbits=31)
_first, _other = (_stream.compress(b"\0" * MIB) + _stream.flush(zlib.Z_FULL_FLUSH) for _ in range(2))
BOMB = _first + 1000 * _other  # a MiB that becomes a GiB
LIMIT = "1,048,576"


@pytest.mark.parametrize(
    "body, encodings, said",
    [
        (b"x" * (MIB + 1), [], LIMIT),
        (BOMB, ["gzip"], LIMIT),
        (zipped(BOMB), ["gzip", "gzip"], "is encoded as 'gzip,gzip'"),
        (zipped(BOMB), ["gzip, gzip"], "is encoded as 'gzip, gzip'"),
        (BOMB, ["identity, gzip"], "is encoded as"),
        (zlib.compress(b"\0" * (8 * MIB)), ["deflate"], LIMIT),
        (zipped(b"a" * MIB) * 1000, ["gzip"], LIMIT),
        (b"x", ["br"], "is encoded as 'br'"),
        (b"x", ["zstd"], "is encoded as 'zstd'"),
        (b"no gzip", ["gzip"], "invalid compressed data"),
        (zipped(b"x" * 100)[:-9], ["gzip"], "cut off"),
    ],
)
@pytest.mark.parametrize("status", [200, 503])
def test_a_body_above_the_limit_or_with_another_encoding_is_refused_at_once(
    serve: Callable[..., str], body: bytes, encodings: list[str], said: str, status: int
) -> None:
    url = serve(body, *encodings, status=status)
    with pytest.raises(ToolError, match=f"{said}.*status {status}, 1 attempts"):
        get(url)


def test_an_endless_body_ends_at_the_limit(serve: Callable[..., str]) -> None:
    with pytest.raises(ToolError, match=f"{LIMIT} are read"):
        get(serve(b"x" * 65536, endless=True))


def ask_endpoint(url: str) -> object:
    return Endpoint(url + "/v1", "m", backoff=0.0).complete([{"role": "user", "content": "?"}])


def ask_search(url: str) -> object:
    from gem.messages import ToolCall
    from gem.tools.search.tool import SearchTool

    return SearchTool(search_url=url + "/retrieve").call(ToolCall("search", {"query": "x"}))


def ask_embeddings(url: str) -> object:
    pytest.importorskip("numpy")
    from gem.tools.search.dense import EmbeddingsEndpoint

    return EmbeddingsEndpoint(url + "/v1", "m")(["x"])


def ask_sandbox(url: str) -> object:
    from gem.sandbox.remote.client import RemoteSandbox

    return RemoteSandbox(url=url, token="").run("print(1)")


@pytest.mark.parametrize(
    "ask, error",
    [
        (ask_endpoint, EndpointError),
        (ask_search, ToolError),
        (ask_embeddings, ToolError),
        (ask_sandbox, SandboxError),
    ],
)
def test_each_client_reports_a_bomb_as_its_own_kind_of_outage(
    serve: Callable[..., str], ask: Callable[[str], object], error: type[InfraError]
) -> None:
    with pytest.raises(error, match="decompressed"):
        ask(serve(BOMB, "gzip"))
    assert len(serve.asked) == 1  # type: ignore[attr-defined]
