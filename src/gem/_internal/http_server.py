"""The base of the HTTP servers: listening sockets, checks of a request's headers, limits and deadlines.

Servers run ASGI applications on uvicorn (make_server) behind the middleware Gate. The viewer is served by the standard
library, so that it needs no extra. Both check requests with HeaderRules before they read their bodies.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import ipaddress
import json
import os
import re
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import Any

from gem.errors import BadValue, require

BACKLOG = 2048  # connections waiting to be accepted
ACCEPTED_AT_ONCE = 16  # before those beyond the limit are closed; without descriptors, asyncio logs an error for each
STALL_S = 60.0  # seconds after which a client that does not read its response is disconnected
BODIES = 8  # bodies of the largest size may be in memory
MAX_HEADERS, MAX_HEADER_BYTES = 100, 32 << 10
LINGER_S, LINGER_BYTES = 1.0, 32 << 20  # how much of a refused request's body is discarded before the connection ends
NO_SNIFF = ("X-Content-Type-Options", "nosniff")  # a browser must not take text of others for HTML
FULL = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
SINGLE = (b"host", b"origin", b"authorization", b"content-length", b"transfer-encoding")  # headers sent at most once
_HOST = re.compile(rb"(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9._-]+?)\.?)(?::[0-9]{1,5})?")


def bind_socket(host: str, port: int) -> socket.socket:
    """Open a listening TCP socket.

    Args:
        host: address or host name.
        port: 0 selects a free port.

    Raises:
        BadValue: if the address is invalid or in use.
    """
    if not 0 <= port < 1 << 16:
        raise BadValue(f"cannot listen on {host}:{port}: the port must be below {1 << 16}")
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, _, _, address = found[0]
        # asyncio sets TCP_NODELAY only if the protocol is given. Without TCP_NODELAY, small replies are 40 ms late.
        listening = socket.socket(family, kind, socket.IPPROTO_TCP)
    except (OSError, UnicodeError) as e:  # UnicodeError: a name that cannot be encoded for DNS
        raise BadValue(f"cannot listen on {host}:{port}: {e}") from e
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if hasattr(socket, "TCP_USER_TIMEOUT"):  # on Linux; its connections inherit it
            listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, round(STALL_S * 1000))
        listening.bind(address)
        listening.listen(BACKLOG)  # before the caller announces the address, so that early clients wait
    except OSError as e:
        listening.close()
        raise BadValue(f"cannot listen on {host}:{port}: {e}") from e
    return listening


def url_of(listening: socket.socket) -> str:
    """Return the URL of a listening socket, without a path."""
    address, port = listening.getsockname()[:2]
    return f"http://[{address}]:{port}" if ":" in address else f"http://{address}:{port}"


class Refused(Exception):
    """A request that is answered with an error status; the text is sent to the client."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


@dataclass(frozen=True, kw_only=True)
class ServerLimits:
    """Limits of a server that runs on uvicorn."""

    body_bytes: int  # of the body of a request
    requests: int = 2048  # in progress
    connections: int = 4096  # further ones are closed; at most half of the files that the process may open
    head_s: float = 20.0  # seconds for the headers of a request
    body_s: float = 300.0  # seconds for the body of a request
    idle_s: float = 60.0  # seconds without a byte of the body
    keep_alive_s: int = 5  # seconds between two requests of a connection


class HeaderRules:
    """Checks the headers of requests, before anything of their bodies is read.

    Args:
        listening: the server's socket. If its address is a loopback address, requests must name one, or ``host``.
        host: the name that the server was told to listen on.
        token: the token with which clients authenticate; "" if they do not.
        body_bytes: limit on the body; 0 refuses every body.
    """

    def __init__(self, listening: socket.socket, host: str, *, token: str = "", body_bytes: int = 0) -> None:
        self._loopback, self._host = is_loopback(listening.getsockname()[0]), host.lower()
        self._authorization = f"Bearer {token}".encode() if token else None
        self._body_bytes = body_bytes

    def check(self, headers: Sequence[tuple[bytes, bytes]]) -> None:
        """Check headers, with names in lower case. Raises Refused."""
        values = dict(headers)
        if self._loopback:
            self._check_site(values.get(b"host", b""), values.get(b"origin"))
        # compare_digest: the time that == takes tells how many characters of a token are right
        given = values.get(b"authorization", b"")
        if self._authorization is not None and not hmac.compare_digest(given, self._authorization):
            raise Refused(401, "wrong token")
        length = values.get(b"content-length", b"0")
        if not length.isdigit():
            raise Refused(400, f"Content-Length must be a number, got {length[:100]!r}")
        if len(length) > 18 or int(length) > self._body_bytes:
            raise Refused(413, f"the body is larger than {self._body_bytes} bytes")
        if len(headers) > MAX_HEADERS or sum(map(len, chain.from_iterable(headers))) > MAX_HEADER_BYTES:
            raise Refused(431, f"more than {MAX_HEADERS} headers or {MAX_HEADER_BYTES} bytes of headers")
        # Request smuggling: a proxy in front may choose another one of two values than this server
        if len(values) < len(headers):
            names = [name for name, _ in headers]
            if repeated := [name.decode() for name in SINGLE if names.count(name) > 1]:
                raise Refused(400, f"more than one header {repeated[0]}")
        if b"transfer-encoding" in values and (b"content-length" in values or not self._body_bytes):
            raise Refused(400, "Transfer-Encoding is not accepted here")

    def _check_site(self, host: bytes, origin: bytes | None) -> None:
        """Refuse what browsers send for pages of other sites to a server for this machine alone."""
        # DNS rebinding: the name of such a page is made to point to 127.0.0.1. The browser sends this name as Host.
        named = _HOST.fullmatch(host)
        name = (named[1] or named[2]).decode().lower() if named else ""
        if not (name in ("localhost", self._host) or is_loopback(name)):
            raise Refused(403, f"the server answers only to its loopback address, not to the Host {host[:100]!r}")
        # The pages of other servers on this machine have loopback addresses as well, but not this port
        if origin is not None and origin.lower() not in (b"http://" + host.lower(), b"https://" + host.lower()):
            raise Refused(403, f"requests of pages from {origin[:100]!r} are refused")


@lru_cache(100)
def is_loopback(address: str) -> bool:
    """Return whether a text is an IP address, perhaps of IPv4 in IPv6 form, that only this machine reaches."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return False
    return (getattr(parsed, "ipv4_mapped", None) or parsed).is_loopback


class Gate:
    """ASGI middleware that checks requests, and reads their bodies within limits before the application is called.

    Refused requests get {"error": text}, and their connection is closed.
    """

    def __init__(self, app: Any, rules: HeaderRules, limits: ServerLimits) -> None:
        self._app, self._rules, self._limits = app, rules, limits
        self._requests = self._bodies_bytes = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        try:
            await self._answer(scope, receive, send)
        except Refused as e:
            await _refuse(scope, receive, send, e)

    async def _answer(self, scope: Any, receive: Any, send: Any) -> None:
        self._rules.check(scope["headers"])
        size, messages, more = 0, list[Any](), scope["type"] == "http"
        self._requests += 1
        try:
            while more:
                message = await receive()
                if message["type"] == "http.disconnect":
                    return
                messages.insert(0, message)
                size += len(message["body"])
                self._bodies_bytes += len(message["body"])
                if size > self._limits.body_bytes:
                    raise Refused(413, f"the body is larger than {self._limits.body_bytes} bytes")
                if self._requests > self._limits.requests or self._bodies_bytes > BODIES * self._limits.body_bytes:
                    raise Refused(503, "too many requests; try again later")
                more = message["more_body"]

            async def receive_again() -> Any:
                return messages.pop() if messages else await receive()

            await self._app(scope, receive_again, send)
        finally:
            self._requests -= 1
            self._bodies_bytes -= size


async def _refuse(scope: Any, receive: Any, send: Any, error: Refused) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008})  # uvicorn answers the handshake with status 403
        return
    text = json.dumps({"error": str(error)}).encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", b"%d" % len(text)),
        (b"connection", b"close"),
    ]
    headers += [(b"retry-after", b"1")] if error.status == 503 else []
    await send({"type": "http.response.start", "status": error.status, "headers": headers})
    await send({"type": "http.response.body", "body": text, "more_body": True})

    async def discard() -> None:
        rest = LINGER_BYTES
        while rest > 0 and (message := await receive()).get("more_body"):
            rest -= len(message["body"])

    with contextlib.suppress(asyncio.TimeoutError):  # a close with unread bytes is a reset, which may lose the response
        await asyncio.wait_for(discard(), LINGER_S)
    await send({"type": "http.response.body"})


def make_server(
    app: Any, listening: socket.socket, host: str, limits: ServerLimits, *, extra: str, token: str = "", **options: Any
) -> Any:
    """Make a uvicorn.Server for an ASGI application without WebSockets, behind a Gate.

    uvicorn logs exceptions of the application, and answers with status 500.

    Args:
        listening: pass it to the server's run(sockets=[listening]). For ``host`` and ``token`` see HeaderRules.
        extra: the extra that contains uvicorn; without it MissingDependency is raised.
        options: further options of uvicorn.Config.
    """
    uvicorn, h11_impl = require("uvicorn", extra=extra), require("uvicorn.protocols.http.h11_impl", extra=extra)
    rules = HeaderRules(listening, host, token=token, body_bytes=limits.body_bytes)
    config = uvicorn.Config(
        Gate(app, rules, limits),
        http=_connection_class(h11_impl, limits),
        ws="none",
        proxy_headers=False,
        server_header=False,
        headers=[NO_SNIFF],
        h11_max_incomplete_event_size=MAX_HEADER_BYTES,
        log_level="warning",
        access_log=False,
        backlog=ACCEPTED_AT_ONCE,
        timeout_keep_alive=limits.keep_alive_s,
        **options,
    )

    class Server(uvicorn.Server):  # type: ignore[misc, name-defined]
        async def startup(self, sockets: Any = None) -> None:
            await super().startup(sockets)
            listening.listen(BACKLOG)  # asyncio has made the queue as short as what it accepts at once

    return Server(config)


def _connection_class(h11_impl: Any, limits: ServerLimits) -> type[Any]:
    """Return uvicorn's HTTP protocol with a limit on connections, and with the deadlines that it lacks (slowloris)."""
    most = min(limits.connections, os.sysconf("SC_OPEN_MAX") // 2)
    h11 = h11_impl.h11
    deadlines = {h11.IDLE: (limits.head_s, limits.head_s), h11.SEND_BODY: (limits.body_s, limits.idle_s)}

    class Connection(h11_impl.H11Protocol):  # type: ignore[misc]
        _timer: asyncio.TimerHandle | None = None
        _phase, _since = None, 0.0

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._set_timer()
            if len(self.connections) > most:
                transport.write(FULL)
                transport.close()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self._set_timer()

        def on_response_complete(self) -> None:
            super().on_response_complete()
            if self.conn.their_state is h11.SEND_BODY:  # of the next request, which arrived during the response
                self._set_timer()

        def shutdown(self) -> None:
            if self.conn.their_state is h11.SEND_BODY:  # a request that has not arrived is not waited for
                self.transport.abort()
            else:
                super().shutdown()

        def _set_timer(self) -> None:
            """Set the time at which the connection ends unless more of a request arrives."""
            if self._timer is not None:
                self._timer.cancel()
            phase, now = self.conn.their_state, self.loop.time()
            if phase is not self._phase:
                self._phase, self._since = phase, now
            if phase in deadlines:
                total, idle = deadlines[phase]
                self._timer = self.loop.call_at(min(self._since + total, now + idle), self.transport.abort)

    return Connection
