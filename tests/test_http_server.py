"""Hostile requests against the servers: of the sandbox, of search, and of the viewer."""

from __future__ import annotations

import base64
import json
import logging
import logging.handlers
import queue
import re
import select
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import pytest

from gem import make_vec
from gem._internal import http_server
from gem._internal.http_server import HeaderRules, Refused, ServerLimits, bind_socket, is_loopback, make_server, url_of
from gem.errors import BadValue
from gem.policies import RandomPolicy
from gem.rollout import collect
from gem.sandbox import make_sandbox
from gem.sandbox.remote import server as sandbox_server
from gem.tools.search import server as search_server
from gem.tools.search.corpus import Hit
from gem.trajectory import write_jsonl
from gem.viewer import server as viewer_server
from gem.viewer.recordings import Recordings
from gem.viewer.tokens import Vocabulary

MIB = 1 << 20
LIMITS = ServerLimits(body_bytes=MIB)
SHORT = ServerLimits(body_bytes=MIB, head_s=0.2, body_s=0.4, idle_s=0.2, keep_alive_s=1, connections=8)
AUTHORIZATION = "Authorization: Bearer right"
UNSENT = 16 * MIB  # bytes of a response that nobody reads; more than the buffers of a connection hold


@dataclass
class Served:
    """A server.

    Args:
        good: method and path of a request that it answers with status 200.
        post: path of requests with bodies.
        connections: open connections, for servers that run on uvicorn.
    """

    kind: str
    address: tuple[str, int]
    good: tuple[str, str]
    post: str
    connections: Collection[Any] = ()

    @property
    def host(self) -> str:
        name, port = self.address
        return f"[{name}]:{port}" if ":" in name else f"{name}:{port}"

    def head(self, line: str = "", *lines: str, host: str | None = "", auth: bool = True) -> bytes:
        """Return the head of a request: its request line (default: the good one), and further lines."""
        line = line or "{} {}".format(*self.good)
        host_lines = [] if host is None else [f"Host: {host or self.host}"]
        token = [AUTHORIZATION] if auth and self.kind == "sandbox" else []
        version = "" if line.endswith("HTTP/1.0") else " HTTP/1.1"
        return "\r\n".join([line + version, *host_lines, *token, *lines, "", ""]).encode("latin-1")

    def body(self, data: bytes, *lines: str, path: str = "") -> bytes:
        return self.head(f"POST {path or self.post}", f"Content-Length: {len(data)}", *lines) + data

    def open(self) -> socket.socket:
        return socket.create_connection(self.address, timeout=30)

    def ask(self, *pieces: bytes) -> tuple[int | None, bytes]:
        """Send bytes on a new connection; return the status and body of the first response, None without a response."""
        with self.open() as connection:
            return exchange(connection, *pieces)

    def check_alive(self) -> None:
        status, text = self.ask(self.head())
        assert status == 200, text


def exchange(connection: socket.socket, *pieces: bytes) -> tuple[int | None, bytes]:
    received = b""
    with suppress(ConnectionError):
        for piece in pieces:
            connection.sendall(piece)
    with suppress(ConnectionError):
        while True:
            head, found, body = received.partition(b"\r\n\r\n")
            length = re.search(rb"(?i)\r\nContent-Length: *(\d+)", head)
            if found and length and len(body) >= int(length[1]):
                break
            if not (data := connection.recv(1 << 16)):
                break
            received += data
    status = re.match(rb"HTTP/1\.[01] (\d{3}) ", received)
    assert b"Traceback" not in received
    return (int(status[1]) if status else None), received.partition(b"\r\n\r\n")[2]


def _episodes() -> list[Any]:
    with make_vec("game:GuessTheNumber-v0-easy", num_envs=1, seed=0) as envs:
        return collect(envs, RandomPolicy(), episodes=1)


@contextmanager
def thread_of(run: Callable[[], Any], stop: Callable[[], Any]) -> Iterator[None]:
    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        stop()
        thread.join()


async def _search(queries: Any, topk: int) -> list[list[Hit]]:
    if queries == ["fail"]:
        raise AssertionError("a secret of the server")
    text = "x" * UNSENT if queries == ["large"] else "x"
    return [[Hit({"id": "1", "contents": text}, 1.0)] for _ in queries]


@contextmanager
def served(kind: str, tmp_path: Any, limits: ServerLimits, host: str = "127.0.0.1") -> Iterator[Served]:
    """Serve one of the three servers with limits."""
    with ExitStack() as stack, pytest.MonkeyPatch.context() as patch:
        if kind == "view":
            patch.setattr(viewer_server, "HEAD_S", limits.head_s)
            patch.setattr(viewer_server, "MAX_CONNECTIONS", limits.connections)
            patch.setattr(viewer_server._Handler, "timeout", limits.idle_s)
            if not (file := tmp_path / "a.jsonl").exists():
                write_jsonl(file, _episodes())
            viewer = stack.enter_context(
                viewer_server.ViewerServer(Recordings([file]), Vocabulary(), host=host, port=0)
            )
            stack.enter_context(thread_of(lambda: viewer.serve_forever(0.01), viewer.shutdown))
            yield Served(kind, viewer.socket.getsockname()[:2], ("GET", "/rows?from=0"), "/rows?from=0")
            return
        extra = {"sandbox": "serve", "search": "search"}[kind]
        for library in ("aiohttp", "starlette", "uvicorn", *(["prometheus_client"] if kind == "search" else [])):
            pytest.importorskip(library, reason=f"needs the extra [{extra}]")
        if kind == "sandbox":
            patch.setattr(sandbox_server, "LIMITS", limits)
            sandbox = stack.enter_context(make_sandbox("subprocess"))
            running = stack.enter_context(sandbox_server.SandboxServer(sandbox, token="right", host=host))
            yield Served(kind, running._socket.getsockname()[:2], ("GET", "/report"), "/run")
            return
        listening = stack.enter_context(bind_socket(host, 0))
        address = listening.getsockname()[:2]
        app = search_server.make_app(search_server.Service(_search, 3))
        server = make_server(app, listening, host, limits, extra="search", timeout_graceful_shutdown=1)
        stop = lambda: setattr(server, "should_exit", True)  # noqa: E731
        stack.enter_context(thread_of(lambda: server.run(sockets=[listening]), stop))
        yield Served(kind, address, ("GET", "/health"), "/retrieve", server.server_state.connections)


KINDS = ["sandbox", "search", "view"]


@pytest.fixture(scope="module", params=KINDS)
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(request.param, tmp_path_factory.mktemp(request.param), LIMITS) as running:
        yield running


@pytest.fixture(scope="module", params=KINDS)
def hurried(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server with deadlines of a fraction of a second, and room for 8 connections."""
    with served(request.param, tmp_path_factory.mktemp(request.param), SHORT) as running:
        yield running


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served("sandbox", tmp_path_factory.mktemp("sandbox"), LIMITS) as running:
        yield running


@pytest.fixture(scope="module")
def search(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served("search", tmp_path_factory.mktemp("search"), LIMITS) as running:
        yield running


# --- Host and Origin -------------------------------------------------------------------------------------------------

FOREIGN = [
    "evil.example",
    "evil.example:{port}",
    "localhost.evil.example:{port}",
    "127.0.0.1.evil.example",
    "localhostevil.example",
    "127.0.0.1@evil.example",
    "evil.example@127.0.0.1",
    "127.0.0.1, evil.example",
    "127.0.0.1/evil.example",
    "127.0.0.1:99999999",
    "127.0.0.1:{port}:{port}",
    "0.0.0.0:{port}",
    "[::]:{port}",
    "[::ffff:8.8.8.8]",
    "[::1",
    "::1",
    "10.0.0.1:{port}",
    "2130706433",
    "0x7f.1",
    "127.1",
    "127.0.0.01",
    "127\xe3\x80\x820\xe3\x80\x820\xe3\x80\x821",  # ideographic full stops
    "\xef\xbc\x91\xef\xbc\x92\xef\xbc\x97.0.0.1",  # fullwidth digits
    ".",
    "localhost..",
    "a" * 5000,
]
OWN = [
    *("localhost", "LOCALHOST:{port}", "localhost.:{port}", "127.0.0.1", "127.0.0.1:{port}", "127.255.255.254:1"),
    *("[::1]:{port}", "[0:0:0:0:0:0:0:1]", "[::ffff:127.0.0.1]:{port}", "[::FFFF:7f00:1]"),
]


@pytest.mark.parametrize("host", FOREIGN)
def test_a_request_for_another_host_is_refused(host: str, server: Served):
    host = host.replace("{port}", str(server.address[1]))
    assert server.ask(server.head(host=host))[0] == 403


@pytest.mark.parametrize("host", OWN)
def test_every_loopback_name_and_address_is_accepted(host: str, server: Served):
    assert server.ask(server.head(host=host.replace("{port}", str(server.address[1]))))[0] == 200


def test_a_request_without_a_host_or_with_two_is_refused(server: Served):
    assert server.ask(server.head(host=None))[0] in (400, 403)
    assert server.ask(server.head("{} {} HTTP/1.0".format(*server.good), host=None))[0] == 403
    assert server.ask(server.head("", "Host: evil.example"))[0] in (400, 403)
    assert server.ask(server.head("", "Host: localhost", host="evil.example"))[0] in (400, 403)
    assert server.ask(server.head("", "Host: localhost"))[0] == 400


@pytest.mark.parametrize(
    "origin",
    [
        *(
            "http://evil.example",
            "https://evil.example:{port}",
            "null",
            "",
            "http://127.0.0.1:1",
            "http://localhost:{port}",
        ),
        *("http://127.0.0.1:{port}.evil.example", "http://127.0.0.1:{port}/", "file://", "127.0.0.1:{port}"),
        *("chrome-extension://127.0.0.1:{port}", "http://127.0.0.1"),
    ],
)
def test_requests_of_pages_from_elsewhere_are_refused(origin: str, server: Served):
    assert server.ask(server.head("", f"Origin: {origin}".replace("{port}", str(server.address[1]))))[0] == 403


def test_requests_of_the_servers_own_pages_are_answered(server: Served):
    assert server.ask(server.head("", f"Origin: http://{server.host}"))[0] == 200
    assert server.ask(server.head("", f"Origin: http://{server.host}", "Origin: http://evil.example"))[0] in (400, 403)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("address", ["127.0.0.2", "127.1", "0x7f000001", "localhost", "::1", "::ffff:127.0.0.1"])
def test_every_loopback_address_has_the_checks(address: str, kind: str, tmp_path: Any):
    try:
        bind_socket(address, 0).close()
    except BadValue:
        pytest.skip(f"this machine has no {address}")
    with served(kind, tmp_path, LIMITS, address) as running:
        assert running.ask(running.head())[0] == 200
        assert running.ask(running.head(host="127.0.0.2:1"))[0] == 200
        assert running.ask(running.head(host="evil.example"))[0] == 403
        assert running.ask(running.head("", "Origin: http://evil.example"))[0] == 403


@pytest.mark.parametrize("kind", KINDS)
def test_a_server_for_other_machines_is_reached_by_any_name(kind: str, tmp_path: Any):
    with served(kind, tmp_path, LIMITS, "0.0.0.0") as running:
        assert running.ask(running.head(host="thatmachine:80"))[0] == 200


def test_the_name_that_a_server_was_given_is_accepted():
    with bind_socket("127.0.0.1", 0) as listening:
        rules = HeaderRules(listening, "MyMachine")
    rules.check([(b"host", b"mymachine:80")])
    with pytest.raises(Refused, match=r"not to the Host b'mymachine\.evil\.example'"):
        rules.check([(b"host", b"mymachine.evil.example")])


# --- the token -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "lines",
    [
        [],
        ["Authorization: Bearer wrong"],
        ["Authorization: Bearer righ"],
        ["Authorization: Bearer rightt"],
        ["Authorization: Bearer RIGHT"],
        ["Authorization: Bearer"],
        ["Authorization:"],
        ["Authorization: right"],
        ["Authorization: Bearer  right"],
        ["Authorization: Basic " + base64.b64encode(b"right:right").decode()],
        ["Authorization: Bearer r\xefght"],
        ["Cookie: Authorization=Bearer right"],
        ["X-Authorization: Bearer right"],
        ["Authorization: Bearer right", "Authorization: Bearer wrong"],
        ["Authorization: Bearer " + "x" * 10_000],
    ],
)
def test_a_request_without_the_token_is_refused(lines: list[str], sandbox: Served):
    for line in ("GET /report", "POST /exec", "GET /nothing", "DELETE /sessions/x", "GET /report?token=right"):
        assert sandbox.ask(sandbox.head(line, *lines, auth=False)) == (401, b'{"error": "wrong token"}')


def test_two_tokens_are_refused_although_the_last_is_right(sandbox: Served):
    assert sandbox.ask(sandbox.head("", "Authorization: Bearer wrong", AUTHORIZATION, auth=False))[0] == 400


@pytest.mark.parametrize(
    "size", ["Content-Length: 1000000", "Content-Length: 999999999999999", "Transfer-Encoding: chunked"]
)
def test_the_token_is_checked_before_a_byte_of_the_body_is_sent(size: str, sandbox: Served):
    assert sandbox.ask(sandbox.head("POST /run", size, auth=False))[0] == 401


def test_the_host_is_checked_before_the_token_and_the_token_before_the_size(sandbox: Served):
    large = "Content-Length: 999999999"
    assert sandbox.ask(sandbox.head("POST /run", large, host="evil.example", auth=False))[0] == 403
    assert sandbox.ask(sandbox.head("POST /run", large, auth=False))[0] == 401
    assert sandbox.ask(sandbox.head("POST /run", large))[0] == 413


def test_a_client_without_the_token_reads_its_answer_although_it_sends_a_body(sandbox: Served):
    data = b"x" * 8 * MIB
    status, _ = sandbox.ask(sandbox.head("POST /run", f"Content-Length: {len(data)}", auth=False), data)
    assert status == 401


# --- bodies and headers ----------------------------------------------------------------------------------------------

SIZES: list[tuple[list[str], bytes, set[int]]] = [
    (["Content-Length: 999999999999999"], b"", {413}),
    (["Content-Length: 1048577"], b"", {413}),
    (["Content-Length: " + "9" * 40], b"", {400, 413}),
    (["Content-Length: " + "0" * 5000 + "9"], b"123456789", {400, 413}),
    (["Content-Length: -1"], b"", {400}),
    (["Content-Length: +5"], b"12345", {400}),
    (["Content-Length: 0x10"], b"", {400}),
    (["Content-Length: 1_0"], b"", {400}),
    (["Content-Length: 5.0"], b"12345", {400}),
    (["Content-Length: \xb2"], b"12", {400}),
    (["Content-Length:"], b"", {400}),
    (["Content-Length: 5, 6"], b"123456", {400}),
    (["Content-Length: 5", "Content-Length: 6"], b"123456", {400, 413}),
    (["Content-Length: 5", "content-length: 5"], b"12345", {400, 413}),
    (["Content-Length: 5", "Transfer-Encoding: chunked"], b"0\r\n\r\n", {400, 413}),
    (["Transfer-Encoding: chunked", "Transfer-Encoding: chunked"], b"0\r\n\r\n", {400, 501}),
    (["Transfer-Encoding: gzip, chunked"], b"0\r\n\r\n", {400, 501}),
    (["Transfer-Encoding: identity"], b"", {400, 501}),
    (["Transfer-Encoding: \x0bchunked"], b"0\r\n\r\n", {400, 501}),
    ([f"X-{number}: x" for number in range(1000)], b"", {400, 431}),
    ([f"X-{number}: x" for number in range(100)], b"", {400, 431}),
    (["X: " + "x" * 40_000], b"", {400, 431}),
    (["X: " + "x" * MIB], b"", {400, 431}),
    (["x" * MIB + ": x"], b"", {400, 431}),
    (["no header"], b"", {400}),
    (["X : x"], b"", {400}),
    ([": x"], b"", {400}),
    (["X\xff: x"], b"", {400}),
    (["Content-Length: 5\r\n continued"], b"12345", {400}),
]


@pytest.mark.parametrize(("lines", "data", "allowed"), SIZES)
def test_headers_that_say_nothing_clear_are_refused(lines: list[str], data: bytes, allowed: set[int], server: Served):
    method = "GET" if server.kind == "view" else "POST"
    status, _ = server.ask(server.head(f"{method} {server.post}", *lines), data)
    assert status in allowed
    server.check_alive()


CHUNKS = [
    (b"".join(b"40000\r\n" + b" " * 0x40000 + b"\r\n" for _ in range(5)) + b"0\r\n\r\n", 413),
    (b"ffffffffffffffff\r\n" + b" " * 2 * MIB, 413),
    (b"zz\r\n", None),
    (b"-5\r\nhello", None),
    (b"0x5\r\nhello\r\n0\r\n\r\n", None),
    (b"5\r\nhelloo\r\n0\r\n\r\n", None),
    (b"5;" + b"x" * 100_000, None),
    (b"5" * 100 + b"\r\n", None),
    (b"0\r\n" + b"X: x\r\n" * 100_000 + b"\r\n", None),
    (b"\x00\r\n", None),
]


@pytest.mark.parametrize(("data", "status"), CHUNKS)
@pytest.mark.parametrize("kind", ["sandbox", "search"])
def test_a_chunked_body_that_is_too_large_or_damaged_is_refused(
    kind: str, data: bytes, status: int | None, request: pytest.FixtureRequest
):
    server: Served = request.getfixturevalue(kind)
    got, _ = server.ask(server.head(f"POST {server.post}", "Transfer-Encoding: chunked"), data)
    assert got == status if status else got in (None, 400)
    server.check_alive()


@pytest.mark.slow
def test_the_bodies_in_progress_have_a_common_limit(tmp_path: Any):
    limits = replace(LIMITS, body_bytes=1000)
    with served("search", tmp_path, limits) as server, ExitStack() as stack:
        others = [stack.enter_context(server.open()) for _ in range(8)]
        for other in others:
            other.sendall(server.head("POST /retrieve", "Content-Length: 1000") + b"{" + b" " * 998)
        while server.ask(server.body(b" " * 999))[0] != 503:  # until the server has read the bodies of the others
            pass
        assert [exchange(other, b"}")[0] for other in others] == [400] * 8
        assert server.ask(server.body(b" " * 999))[0] == 400


def test_a_request_beyond_the_limit_on_requests_is_told_to_come_later(tmp_path: Any):
    with served("search", tmp_path, replace(LIMITS, requests=1)) as server, server.open() as other:
        other.sendall(server.head("POST /retrieve", "Content-Length: 2") + b"{")
        while True:  # until the server has read the headers of the other
            with server.open() as connection:
                connection.sendall(server.head("", "Connection: close"))
                answer = b"".join(iter(lambda: connection.recv(4096), b""))
            if b" 503 " in answer:
                break
        assert b"\r\nretry-after: 1\r\n" in answer.lower()
        assert exchange(other, b"}")[0] == 400
        server.check_alive()


# --- lines, methods and paths ----------------------------------------------------------------------------------------

LINES: list[tuple[str, set[int | None]]] = [
    ("GET /nothing", {404}),
    ("GET /../../etc/passwd", {404}),
    ("GET /%2e%2e/%2e%2e/etc/passwd", {404}),
    ("GET /rows/../../../etc/passwd", {404}),
    ("GET /..%5c..%5cetc/passwd", {404}),
    ("GET //evil.example/%2e%2e", {404}),
    ("GET /%00", {404}),
    ("GET /%ff%fe", {404}),
    ("GET http://evil.example/rows?from=0", {404}),
    ("GET *", {400, 404}),
    ("GET rows?from=0", {404}),
    ("GET /" + "x" * 20_000, {404}),
    ("GET /" + "x" * MIB, {400, 414}),
    ("GET /a b", {400}),
    ("GET /\x01", {400, 404}),
    ("GET", {400, None}),
    ("PUT {post}", {404, 501}),
    ("PATCH {post}", {404, 405, 501}),
    ("TRACE {post}", {404, 405, 501}),
    ("OPTIONS {post}", {404, 405, 501}),
    ("OPTIONS *", {404, 405, 501}),
    ("CONNECT evil.example:443", {400, 404, 501}),
    ("get {good}", {404, 405, 501}),
    ("__class__ {good}", {404, 405, 501}),
    ("X" * 10_000 + " {good}", {404, 405, 501}),
]


@pytest.mark.parametrize(("line", "allowed"), LINES)
def test_wrong_paths_methods_and_versions_are_refused(line: str, allowed: set[int | None], server: Served):
    if server.kind != "view":
        allowed = allowed | {405} if 501 in allowed else allowed
    line = line.replace("{good}", server.good[1]).replace("{post}", server.post)
    status, text = server.ask(server.head(line))
    assert status in allowed and b"root:" not in text
    server.check_alive()


def test_head_has_no_body(server: Served):
    with server.open() as connection:
        connection.sendall(server.head(f"HEAD {server.good[1]}", "Connection: close"))
        received = b"".join(iter(lambda: connection.recv(1 << 16), b""))
    assert re.match(rb"HTTP/1\.1 (200|404|501) ", received)
    assert received.partition(b"\r\n\r\n")[2] == b""


@pytest.mark.parametrize(
    "data",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500) + b"\n",  # TLS
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"\x00" * 1000 + b"\r\n\r\n",
        b"SSH-2.0-OpenSSH_9.0\r\n\r\n",
        b"EHLO evil.example\r\n\r\n",
        b"*1\r\n$4\r\nPING\r\n\r\n",
        b"\xff" * 100_000 + b"\r\n\r\n",
    ],
)
def test_another_protocol_is_refused(data: bytes, server: Served):
    assert server.ask(data)[0] in (None, 400, 403, 414, 505)
    server.check_alive()


@pytest.mark.parametrize("upgrade", ["websocket", "h2c", "TLS/1.0"])
def test_an_upgrade_is_not_made(upgrade: str, server: Served):
    lines = [f"Upgrade: {upgrade}", "Connection: Upgrade", "Sec-WebSocket-Key: eA==", "Sec-WebSocket-Version: 13"]
    assert server.ask(server.head("", *lines))[0] == 200


def test_pipelined_requests_are_answered_in_order_and_garbage_after_them_ends_the_connection(server: Served):
    with server.open() as connection:
        connection.sendall(server.head() * 2 + b"garbage\r\n\r\n" + server.head())
        received = b""
        with suppress(ConnectionError):
            while data := connection.recv(1 << 16):
                received += data
    statuses = [int(status) for status in re.findall(rb"HTTP/1\.1 (\d{3}) ", received)]
    assert statuses[:2] == [200, 200] and statuses[2:] in ([], [400])
    server.check_alive()


def test_a_body_is_not_read_as_the_next_request(server: Served):
    inner = server.head()
    with server.open() as connection:
        connection.sendall(
            server.head(f"GET {server.good[1]}", f"Content-Length: {len(inner)}", "Connection: close") + inner
        )
        received = b"".join(iter(lambda: connection.recv(1 << 16), b""))
    assert len(re.findall(rb"HTTP/1\.1 \d{3} ", received)) == 1


def test_a_client_that_expects_100_continue_gets_the_answer_at_once(sandbox: Served):
    lines = ["Content-Length: 1000000", "Expect: 100-continue"]
    assert sandbox.ask(sandbox.head("POST /run", *lines, auth=False))[0] == 401


# --- JSON and msgpack ------------------------------------------------------------------------------------------------

DOCUMENTS: list[tuple[bytes, set[int]]] = [
    (b"[" * 100_000, {400}),
    (b"[" * 350 + b"]" * 350, {400}),
    (b'{"query":' * 100_000, {400}),
    (b'{"query": "a", "x": ' + b"[" * 5000 + b"]" * 5000 + b"}", {400}),
    (b'{"query": "\\ud800", "program": "\\ud800"}', {200, 400}),
    (b'{"query": "a", "program": "", "limits": {"wall_s": NaN}}', {400}),
    (b'{"query": NaN, "program": NaN}', {400}),
    (b'{"query": "a", "topk": Infinity, "program": "", "limits": {"memory_bytes": Infinity}}', {400}),
    (b'{"query": "a", "topk": 1e999, "program": "", "limits": {"wall_s": 1e999}}', {400}),
    (b'{"query": "a", "topk": ' + b"9" * 5000 + b', "program": ""}', {400}),
    (
        b'{"query": "a", "topk": ' + b"9" * 30 + b', "program": "", "limits": {"processes": ' + b"9" * 30 + b"}}",
        {200, 400},
    ),
    (b"null", {400}),
    (b"[]", {400}),
    (b"5", {400}),
    (b'"text"', {400}),
    (b"", {400}),
    (b"\x00", {400}),
    (b"{", {400}),
    (b"{}{}", {400}),
    (b'{"query": 5, "program": 5}', {400}),
    (b'{"query": ["a"], "program": ["a"]}', {400}),
    (b'{"query": null, "program": null}', {400}),
    (b'{"query": {}, "program": {}}', {400}),
    (b'{"query": "\xff", "program": "\xff"}', {400}),
    (b"\xff\xfe{\x00}\x00", {400}),
    (b'{"queries": [], "program": "", "files": []}', {400}),
    (b'{"queries": "a", "program": "", "files": {"/etc/passwd": ""}}', {400}),
    (b'{"queries": [null], "program": "", "limits": []}', {400}),
    (b'{"queries": [[]], "program": "", "limits": {"wall_s": []}}', {400}),
    (b'{"queries": {"a": 1}, "program": "", "limits": {"__class__": 1}}', {400}),
    (b'{"query": "a", "topk": true, "program": "", "stdin": true}', {400}),
    (b'{"query": "a", "topk": -1, "program": "", "limits": {"wall_s": -1}}', {400}),
    (b'{"query": "a", "topk": "3", "program": "", "limits": {"wall_s": "3"}}', {400}),
    (b"{" + b",".join(b'"k%d": 0' % number for number in range(50_000)) + b"}", {400}),
]


@pytest.mark.parametrize(("data", "allowed"), DOCUMENTS)
@pytest.mark.parametrize("kind", ["sandbox", "search"])
def test_a_body_that_is_no_request_is_the_clients_mistake(
    kind: str, data: bytes, allowed: set[int], request: pytest.FixtureRequest
):
    server: Served = request.getfixturevalue(kind)
    status, text = server.ask(server.body(data))
    assert status in allowed and (status == 200 or json.loads(text)["error"])


@pytest.mark.parametrize(
    "data",
    [
        b"\x81" * 100_000,
        b"\x81\xa5query" * 100_000,
        b"\x82\xa5query\xa1a\xa1x" + b"\x91" * 100_000,
        b"\xdf\xff\xff\xff\xff",
        b"\x81\xa5query\xdb\xff\xff\xff\xff",
        b"\x81\xa5query\xc6\xff\xff\xff\xff",
        b"\x81\xa5query\xc7\x01\x05x",
        b"\x81\xa5query\xa1\xff",
        b"\x81\x01\x02",
        msgspec.msgpack.encode({"query": "a", "topk": float("nan")}),
        msgspec.msgpack.encode({"query": "a"}) + b"\xc1",
    ],
)
def test_msgpack_that_is_no_request_is_the_clients_mistake(data: bytes, search: Served):
    status, text = search.ask(search.body(data))
    assert status == 400 and msgspec.msgpack.decode(text)["error"]


SANDBOX_BODIES: list[tuple[str, Any]] = [
    ("/exec", {"command": 5}),
    ("/exec", {"command": None}),
    ("/exec", {"command": "\0"}),
    ("/exec", {}),
    ("/tests", {"program": "", "cases": 5}),
    ("/tests", {"program": "", "cases": [5]}),
    ("/tests", {"program": "", "cases": [{"stdin": 5}]}),
    ("/tests", {"program": "", "cases": [{"stdin": "", "arguments": "["}], "function": "f"}),
    ("/tests", {"program": "", "cases": [], "function": 5}),
    ("/sessions", {"limits": 5}),
    ("/machines", {"files": "", "folder": 5}),
    ("/machines", {"files": "%", "folder": "/"}),
    ("/machines", {"files": "", "folder": "/", "state": 5}),
    ("/machines", {"files": "", "folder": "/", "state": {"hash": []}}),
    ("/machines", {"files": "", "folder": "/", "state": {"path": "/etc/passwd", "hash": "x"}}),
    ("/machines/x/__class__", {}),
    ("/machines/x/read", {"path": "/etc/passwd"}),
    ("/sessions/x/cells", {"code": "1"}),
]


@pytest.mark.parametrize(("path", "body"), SANDBOX_BODIES)
def test_arguments_of_wrong_types_are_answered_with_an_error(path: str, body: Any, sandbox: Served):
    status, text = sandbox.ask(sandbox.body(json.dumps(body).encode(), path=path))
    assert status in (200, 400, 503) and (status == 200 or json.loads(text)["error"])
    assert b"root:" not in text


@pytest.fixture
def logged() -> Iterator[Callable[[], str]]:
    """Waits for the next line of the log, with its traceback."""
    records: queue.SimpleQueue[logging.LogRecord] = queue.SimpleQueue()
    handler = logging.handlers.QueueHandler(records)  # type: ignore[arg-type]
    for name in (None, "uvicorn"):  # records of uvicorn are not passed to the root
        logging.getLogger(name).addHandler(handler)
    yield lambda: records.get(timeout=30).getMessage()
    for name in (None, "uvicorn"):
        logging.getLogger(name).removeHandler(handler)


def test_an_exception_of_the_application_is_logged_and_not_sent(search: Served, logged: Callable[[], str]):
    status, text = search.ask(search.body(b'{"query": "fail"}'))
    assert status == 500 and b"secret" not in text
    assert "a secret of the server" in logged()


def test_an_exception_outside_of_the_protocol_is_one_line(
    server: Served, logged: Callable[[], str], monkeypatch: pytest.MonkeyPatch
):
    def fail(*_: Any, **__: Any) -> Any:
        raise AssertionError("a secret of the server")

    monkeypatch.setattr(sandbox_server.protocol, "unpacked_limits", fail)
    monkeypatch.setattr(search_server.Metrics, "render", fail)
    monkeypatch.setattr(viewer_server._Handler, "_rows", fail)
    request = {"sandbox": server.body(b"{}", path="/sessions"), "search": server.head("GET /metrics")}
    status, text = server.ask(request.get(server.kind, server.head()))
    assert status == 500 and b"\n" not in text and b"secret" not in text
    assert "a secret of the server" in logged()


def test_browsers_do_not_guess_the_type_of_a_response(server: Served):
    for head in (server.head(), server.head("GET /nothing"), server.head(host="evil.example")):
        with server.open() as connection:
            connection.sendall(head.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
            received = b"".join(iter(lambda: connection.recv(1 << 16), b"")).lower()
        assert b"\r\nx-content-type-options: nosniff\r\n" in received
        assert b"uvicorn" not in received


# --- deadlines and connections ---------------------------------------------------------------------------------------


def until_closed(connection: socket.socket) -> bytes:
    """Read until the server closes the connection."""
    received = b""
    with suppress(ConnectionError):
        while data := connection.recv(1 << 16):
            received += data
    return received


@pytest.mark.parametrize("part", ["nothing", "half a line", "line", "half a header", "all but the last line"])
def test_a_client_that_does_not_finish_its_headers_is_disconnected(part: str, hurried: Served):
    head = hurried.head()
    ends = {"nothing": 0, "half a line": 6, "line": head.index(b"\n") + 1, "half a header": head.index(b"Host") + 3}
    with hurried.open() as connection:
        connection.sendall(head[: ends.get(part, -2)])
        assert not re.match(rb"HTTP/1\.1 2", until_closed(connection))
    hurried.check_alive()


def trickle(connection: socket.socket, piece: bytes) -> bytes:
    """Send a piece again and again, some times within the idle deadline, until the server ends the connection."""
    with suppress(ConnectionError):
        while not select.select([connection], [], [], SHORT.idle_s / 8)[0]:
            connection.sendall(piece)
    return until_closed(connection)


@pytest.mark.parametrize("piece", [b"x", b"X: x\r\n", b"\r\n"])
def test_a_client_that_sends_its_headers_byte_by_byte_is_disconnected(piece: bytes, hurried: Served):
    with hurried.open() as connection:
        connection.sendall(b"" if piece == b"\r\n" else hurried.head()[:-2])
        assert not re.match(rb"HTTP/1\.1 2", trickle(connection, piece))
    hurried.check_alive()


def test_the_second_request_of_a_connection_has_the_deadlines_too(hurried: Served):
    with hurried.open() as connection:
        assert exchange(connection, hurried.head())[0] == 200
        assert not re.match(rb"HTTP/1\.1 2", trickle(connection, b"x"))


def test_a_client_that_stops_in_its_body_is_disconnected_before_the_time_for_the_body_is_over(tmp_path: Any):
    with served("search", tmp_path, replace(LIMITS, idle_s=0.2)) as server, server.open() as connection:
        connection.sendall(server.head("POST /retrieve", "Content-Length: 1000") + b"{")
        assert until_closed(connection) == b""


def test_a_half_body_behind_another_request_has_the_deadlines_too(hurried: Served):
    if hurried.kind == "view":
        pytest.skip("the viewer takes no bodies")
    with hurried.open() as connection:
        connection.sendall(hurried.head() + hurried.head(f"POST {hurried.post}", "Content-Length: 1000") + b"{")
        received = until_closed(connection)
    assert len(re.findall(rb"HTTP/1\.1 \d{3} ", received)) == 1


@pytest.mark.slow
def test_an_idle_connection_is_closed(hurried: Served):
    with hurried.open() as connection:
        assert exchange(connection, hurried.head())[0] == 200
        assert until_closed(connection) == b""


@pytest.mark.parametrize("encoding", ["Content-Length: 1000", "Transfer-Encoding: chunked"])
def test_a_client_that_does_not_finish_its_body_is_disconnected(encoding: str, hurried: Served):
    if hurried.kind == "view":
        pytest.skip("the viewer takes no bodies")
    half = b"1\r\n{\r\n" if "chunked" in encoding else b"{"
    for send in (until_closed, lambda connection: trickle(connection, half)):
        with hurried.open() as connection:
            connection.sendall(hurried.head(f"POST {hurried.post}", encoding) + half)
            assert send(connection) == b""
    hurried.check_alive()


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="only Linux has this deadline")
@pytest.mark.parametrize("half_closed", [False, True])
def test_a_client_that_does_not_read_its_response_is_disconnected(
    half_closed: bool, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(http_server, "STALL_S", 0.2)
    with served("search", tmp_path, LIMITS) as server, server.open() as connection:
        connection.sendall(server.body(b'{"query": "large"}'))
        connection.recv(1)
        if half_closed:
            connection.shutdown(socket.SHUT_WR)
        until = time.monotonic() + 30
        while server.connections and time.monotonic() < until:
            select.select([], [], [], 0.01)
        assert len(until_closed(connection)) < UNSENT


def test_connections_beyond_the_limit_are_closed_and_the_others_served(hurried: Served):
    with ExitStack() as stack:
        flood = [stack.enter_context(hurried.open()) for _ in range(SHORT.connections * 5)]
        answers = [until_closed(connection) for connection in flood]
    assert not any(re.match(rb"HTTP/1\.1 2", answer) for answer in answers)
    assert any(answer.startswith(b"HTTP/1.1 503 ") for answer in answers)
    while True:  # until the server has noticed that the connections are closed
        status, _ = hurried.ask(hurried.head())
        if status == 200:
            break


# --- addresses -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        *(
            ("127.0.0.1", True),
            ("127.255.0.3", True),
            ("::1", True),
            ("::ffff:127.0.0.1", True),
            ("::FFFF:7f00:1", True),
        ),
        *(("0.0.0.0", False), ("::", False), ("::ffff:1.1.1.1", False), ("128.0.0.1", False), ("", False)),
        *(("localhost", False), ("127.1", False), ("127.0.0.1 ", False), ("\u0661\u0662\u0667.0.0.1", False)),
    ],
)
def test_loopback_addresses_are_recognized(address: str, expected: bool):
    assert is_loopback(address) is expected


def test_urls_of_ipv6_addresses_have_brackets():
    try:
        listening = bind_socket("::1", 0)
    except BadValue:
        pytest.skip("this machine has no IPv6")
    with listening:
        assert re.fullmatch(r"http://\[::1\]:\d+", url_of(listening))


@pytest.mark.parametrize(
    "host", ["", "a" * 300, "no such host", "256.256.256.256", "::1::", "a..b", "\ud800", "1.2.3.4"]
)
def test_an_address_that_cannot_be_listened_on_is_named(host: str):
    with pytest.raises(BadValue, match="cannot listen on"):
        bind_socket(host, 0)


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        ["-m", "gem", "view", "{file}", "--serve"],
        ["-m", "gem", "sandbox", "serve", "--backend", "subprocess"],
        ["-m", "gem.tools.search.retrieval_server", "--corpus", "{corpus}", "--index", "{index}"],
        ["-m", "gem.tools.search.serp_search_server", "--search_url", "http://localhost:1/", "--serp_api_key", "k"],
        ["-m", "gem.tools.search.google_search_server", "--api_key", "k", "--cse_id", "c"],
        ["-m", "gem.tools.mcp.time_server", "--transport", "http"],
        ["-m", "gem.tools.mcp.time_server", "--transport", "sse"],
    ],
    ids=lambda command: " ".join(command[1:4]),
)
def test_a_port_in_use_is_one_line(command: list[str], tmp_path: Any, monkeypatch: pytest.MonkeyPatch):
    library = "mcp" if "time_server" in command[1] else "prometheus_client" if "search" in command[1] else "uvicorn"
    if "view" not in command:
        pytest.importorskip(library, reason="needs an extra")
    monkeypatch.setenv("GEM_SANDBOX_TOKEN", "t")
    write_jsonl(tmp_path / "a.jsonl", _episodes())
    (tmp_path / "corpus.jsonl").write_text('{"contents": "x"}\n')
    paths = {"file": tmp_path / "a.jsonl", "corpus": tmp_path / "corpus.jsonl", "index": tmp_path / "index"}
    with bind_socket("127.0.0.1", 0) as busy:
        argv = [word.format(**paths) for word in command] + ["--port", str(busy.getsockname()[1])]
        done = subprocess.run([sys.executable, *argv], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and done.stdout == ""
    assert re.search(r"^(gem: )?error: cannot listen on .*Address already in use\n\Z", done.stderr, re.MULTILINE)
    assert "Traceback" not in done.stderr
