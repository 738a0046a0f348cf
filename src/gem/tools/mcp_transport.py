"""How bytes go to MCP servers and back: the SDK's client over stdio, streamable HTTP or server-sent events.

Imports the SDK, so it is imported when a tool connects, and not before.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx2
from mcp import Client, StdioServerParameters, stdio_client
from mcp.client.sse import sse_client
from mcp.client.streamable_http import MCP_SESSION_ID, streamable_http_client

from gem.tools.mcp_config import Server

HTTP_S = 30.0  # seconds to connect, and to send a request
STDERR_KEPT = 2000  # bytes, for the message that says why a server ended
READS = 16  # of a process's stderr before others get a turn

log = logging.getLogger(__name__)
# What servers do wrong comes as errors of calls. The SDK's tracebacks are for those who set logging up.
logging.getLogger("mcp").addHandler(logging.NullHandler())


@dataclass(frozen=True)
class Options:
    """What connections have in common; MCPTool says what each means."""

    auth: Any = None
    headers: tuple[tuple[str, str], ...] = ()
    log_handler: Callable[..., Any] | None = None
    progress_handler: Callable[..., Any] | None = None
    sampling_handler: Callable[..., Any] | None = None
    max_retries: int = 3
    delay: float = 1.0
    timeout: float = 30.0
    connect_timeout: float = 60.0
    protocol: str = "auto"


def make_client(
    server: Server, options: Options, tail: Tail, on_end: Callable[[], None], on_forgotten: Callable[[], None]
) -> Client:
    """A client, to be entered.

    tail: gets the stderr of a process. on_end: called when nothing will come from the server any more. on_forgotten:
    called when a server over HTTP does not know the session.
    """
    return Client(
        _watched(server, options, tail, on_end, on_forgotten),
        sampling_callback=coroutine(options.sampling_handler),
        logging_callback=coroutine(options.log_handler),
        log_level="debug" if options.log_handler else None,
        mode=options.protocol,
    )


def coroutine(handler: Callable[..., Any] | None) -> Any:
    """A handler as the SDK wants it. A plain function runs on a thread, so that it keeps no session waiting."""
    if handler is None or inspect.iscoroutinefunction(handler):
        return handler

    async def called(*args: Any, **kwargs: Any) -> Any:
        answer = await asyncio.to_thread(handler, *args, **kwargs)
        return await answer if inspect.isawaitable(answer) else answer

    return called


class Tail:
    """The last of what a process writes to its stderr, all of which goes to the log."""

    def __init__(self, name: str) -> None:
        self._name, self._kept = name, b""
        self._reading: int | None = None
        self._writing: Any = None

    def open(self) -> Any:
        """The file that the process writes to."""
        self._reading, writing = os.pipe()
        os.set_blocking(self._reading, False)
        self._writing = os.fdopen(writing, "w")
        asyncio.get_running_loop().add_reader(self._reading, self._read)
        return self._writing

    def text(self) -> str:
        self._read()
        return self._kept.decode("utf-8", "replace").strip()

    def close(self) -> None:
        if self._reading is not None:
            self._read()
            asyncio.get_running_loop().remove_reader(self._reading)
            os.close(self._reading)
            self._writing.close()
            self._reading = None

    def _read(self) -> None:
        for _ in range(READS if self._reading is not None else 0):
            try:
                written = os.read(self._reading, 1 << 16)  # type: ignore[arg-type]
            except BlockingIOError:
                return
            log.debug("MCP server %r: %s", self._name, written.decode("utf-8", "replace").rstrip())
            self._kept = (self._kept + written)[-STDERR_KEPT:]


@asynccontextmanager
async def _watched(
    server: Server, options: Options, tail: Tail, on_end: Callable[[], None], on_forgotten: Callable[[], None]
) -> AsyncIterator[Any]:
    async with _streams(server, options, tail, on_forgotten) as (read, write):
        yield _Watched(read, on_end), write


class _Watched:
    """What comes from a server, and who is to be told when nothing will come any more: the SDK tells nobody."""

    def __init__(self, stream: Any, on_end: Callable[[], None]) -> None:
        self._stream, self._on_end = stream, on_end

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def __aiter__(self) -> _Watched:
        return self

    async def __anext__(self) -> Any:
        try:
            return await self._stream.__anext__()
        except BaseException:
            self._on_end()
            raise

    async def __aenter__(self) -> _Watched:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> Any:
        return await self._stream.__aexit__(*error)


@asynccontextmanager
async def _streams(
    server: Server, options: Options, tail: Tail, on_forgotten: Callable[[], None]
) -> AsyncIterator[Any]:
    if server.transport == "stdio":
        process = StdioServerParameters(
            command=server.command, args=list(server.args), env=dict(server.env), cwd=server.cwd
        )
        async with stdio_client(process, errlog=tail.open()) as streams:
            yield streams
        return

    def http_client(*_: Any, **__: Any) -> httpx2.AsyncClient:
        return _http_client(server, options, on_forgotten)

    if server.transport == "sse":
        async with sse_client(server.url, httpx_client_factory=http_client) as streams:
            yield streams
    else:
        async with http_client() as client, streamable_http_client(server.url, http_client=client) as streams:
            yield streams


def _http_client(server: Server, options: Options, on_forgotten: Callable[[], None]) -> httpx2.AsyncClient:
    headers = dict(options.headers) | dict(server.headers)
    if isinstance(options.auth, str):
        headers["Authorization"] = f"Bearer {options.auth}"

    async def note(response: httpx2.Response) -> None:
        if response.status_code == 404 and MCP_SESSION_ID in response.request.headers:
            on_forgotten()  # the status says so; what servers say besides differs

    return httpx2.AsyncClient(
        headers=headers,
        auth=None if isinstance(options.auth, str) else options.auth,
        # Answers take as long as calls may: who calls keeps the time. Sessions wait for hours while a model trains.
        timeout=httpx2.Timeout(HTTP_S, read=None),
        limits=httpx2.Limits(max_connections=None),
        event_hooks={"response": [note]},
    )
