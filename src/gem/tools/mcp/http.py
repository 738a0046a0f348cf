"""The transports to an MCP server over HTTP: those of the SDK, with limits on each answer, and without compression.

This module imports the MCP SDK. MCPTool therefore imports the module only when a tool connects.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx2
from mcp.client.sse import sse_client
from mcp.client.streamable_http import MCP_SESSION_ID, streamable_http_client

from gem.tools.mcp.config import ClientOptions, ServerConfig
from gem.tools.mcp.limits import MAX_MESSAGE_BYTES, limit_body, limit_events

HTTP_TIMEOUT_S = 30.0  # to connect and to send a request; there is no limit on reading a response
MAX_SSE_BYTES = (1 << 20) - 1024  # the SDK ends a session over server-sent events at an event of 1 MiB


@asynccontextmanager
async def open_http(
    server: ServerConfig, options: ClientOptions, on_forgotten: Callable[[], None]
) -> AsyncIterator[Any]:
    """Connect to a server over HTTP or server-sent events, and yield the SDK's streams of messages (read, write).

    Args:
        on_forgotten: called when the server answers that it does not know the session.
    """

    def create_client(*_: Any, **__: Any) -> httpx2.AsyncClient:
        return _create_client(server, options, on_forgotten)

    if server.transport == "sse":
        async with sse_client(server.url, httpx_client_factory=create_client) as streams:
            yield streams
        return
    async with (
        create_client() as client,
        streamable_http_client(server.url, http_client=client, max_sse_event_size=MAX_MESSAGE_BYTES) as streams,
    ):
        yield streams


def _create_client(
    server: ServerConfig, options: ClientOptions, on_forgotten: Callable[[], None]
) -> httpx2.AsyncClient:
    auth, headers = options.auth, dict(options.headers) | dict(server.headers)
    if isinstance(auth, str):
        headers["Authorization"] = f"Bearer {auth}"

    async def check_session(response: httpx2.Response) -> None:
        if response.status_code == 404 and MCP_SESSION_ID in response.request.headers:
            on_forgotten()  # defined by the MCP specification; the response body differs between servers

    async def limit_length(response: httpx2.Response) -> None:
        if (encoding := response.headers.get("content-encoding", "").strip().lower()) not in ("", "identity"):
            # The SDK would decompress before the limit: 64 KiB become 64 MiB, and 64 GiB if compressed twice.
            raise httpx2.DecodingError(f"the body is encoded as {encoding[:80]!r}, although no encoding was asked for")
        response.encoding = "utf-8"  # that of the protocol; a server could name a slow one, such as punycode
        read, kind = response.aiter_bytes, response.headers.get("content-type", "")
        is_stream = kind.lower().startswith("text/event-stream")
        limit = MAX_SSE_BYTES if server.transport == "sse" else MAX_MESSAGE_BYTES

        def limited(chunk_size: int | None = None) -> AsyncGenerator[bytes, None]:
            return (limit_events if is_stream else limit_body)(read(chunk_size), limit)

        setattr(response, "aiter_bytes", limited)  # noqa: B010  mypy refuses to assign to a method

    return httpx2.AsyncClient(
        headers={"Accept-Encoding": "identity"} | headers,
        auth=None if isinstance(auth, str) else auth,
        # No read timeout: each call has its own timeout, and a session may be idle for hours during training.
        timeout=httpx2.Timeout(HTTP_TIMEOUT_S, read=None),
        limits=httpx2.Limits(max_connections=None),
        event_hooks={"response": [check_session, limit_length]},
    )
