"""MCP servers that attack their client: it goes on, and the answer or the description is cut, refused or an error."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
import socket
import sys
import threading
import zlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

pytest.importorskip("mcp")

from gem.errors import ToolError
from gem.messages import ToolCall, ToolErrorType
from gem.tools.mcp import session as mcp_session
from gem.tools.mcp.limits import MAX_MESSAGE_BYTES, limit_events
from gem.tools.mcp.tool import MCPTool

SERVER = Path(__file__).parents[1] / "helpers" / "hostile_mcp_server.py"
EVIL = "a" * 60 + "!"


@pytest.fixture
def attacked():
    with contextlib.ExitStack() as stack:

        def build(attack, *args, **settings):
            command = [sys.executable, str(SERVER), attack, *args]
            settings = {"max_retries": 0, "protocol": "legacy", **settings}
            return stack.enter_context(contextlib.closing(MCPTool(command, **settings)))

        yield build


# What a server says about its tools


def test_a_pattern_of_an_input_schema_is_not_run(attacked):
    tool = attacked("input pattern")
    [function] = tool.functions()
    assert tool.argument_validator(function)({"n": EVIL}) == ""
    assert tool.call(ToolCall("go", {"n": EVIL})).text == "<tool_response>called</tool_response>"


def test_a_pattern_of_an_output_schema_is_not_run(attacked):
    assert json.dumps({"a": EVIL}) in attacked("output pattern").call(ToolCall("go", {})).text


@pytest.mark.parametrize(
    "attack, kept, said",
    [
        ("long description", 10_000, "[5990000 more characters omitted]"),
        ("long parameter", 4_000, "[2998000 more characters omitted]"),
        ("long choice", 0, "One of them.\n[a list of allowed values with"),
    ],
)
def test_a_long_text_in_the_description_of_a_tool_is_cut_and_says_so(attacked, attack, kept, said):
    [function] = attacked(attack).functions()
    written = function.description + json.dumps(function.parameters)
    assert written.count("x") == kept and len(written) < kept + 500
    assert said in written.replace("\\n", "\n")


def test_a_value_that_is_not_listed_is_left_to_the_server(attacked):
    tool = attacked("long choice")
    assert tool.call(ToolCall("go", {"n": "choice 2999"})).ok
    assert tool.argument_validator(tool.functions()[0])({"n": "another"}) == ""


@pytest.mark.parametrize(
    "attack", ["long default", "wide", "deep schema", "digits in a schema", "no number in a schema"]
)
def test_a_tool_that_cannot_be_cut_is_not_offered(attacked, attack):
    with pytest.raises(ToolError):
        attacked(attack)


def test_a_long_name_is_offered_as_a_short_one(attacked):
    tool = attacked("long name")
    assert [function.name for function in tool.functions()] == ["x" * 64]
    assert tool.call(ToolCall("x" * 64, {})).ok


@pytest.mark.parametrize("attack, count", [("many", mcp_session.MAX_TOOLS), ("endless", 1)])
def test_a_list_of_tools_ends(attacked, attack, count, caplog):
    assert len(attacked(attack).functions()) == count
    assert f"repeats or is long; {count} are used" in caplog.text


@pytest.mark.slow
def test_all_tools_of_a_server_together_have_a_limit(attacked, monkeypatch, caplog):
    monkeypatch.setattr("gem.tools.mcp.tool.MAX_TOOLS_CHARS", 1000)
    assert 1 < len(attacked("many").functions()) < 50
    assert "is hidden: the tools of the server have more than 1000 characters" in caplog.text


def test_a_long_error_of_connecting_is_cut(attacked):
    with pytest.raises(ToolError, match=r"could not connect.*xxx") as raised:
        attacked("no list")
    assert len(str(raised.value)) < 3000


# What a call does


@pytest.mark.parametrize("attack", ["long error", "long refusal"])
def test_a_long_error_is_cut(attacked, attack):
    result = attacked(attack, max_chars=100).call(ToolCall("go", {}))
    assert not result.ok and "xxx" in result.text and len(result.text) < 250


def test_a_storm_of_notifications_ends_with_the_answer(attacked):
    logged = []
    tool = attacked("storm", log_handler=logged.append)
    assert tool.call(ToolCall("go", {})).text == "<tool_response>calm</tool_response>"
    assert 0 < len(logged) <= 1000  # handlers run beside the call


@pytest.mark.parametrize("attack", ["endless progress", "drip"])
def test_a_call_that_keeps_sending_ends_at_its_deadline(attacked, attack, monkeypatch):
    monkeypatch.setattr(mcp_session, "PROBE_TIMEOUT_S", 0.1)
    tool = attacked(attack, execution_timeout=0.3, progress_handler=lambda *_: None)
    for _ in range(2):
        assert tool.call(ToolCall("go", {})).error is ToolErrorType.TIMEOUT


@pytest.mark.parametrize("attack", ["endless storm", "endless requests", "large logs"])
def test_a_server_that_sends_too_much_is_ended(attacked, attack, monkeypatch):
    monkeypatch.setattr(mcp_session, "MAX_UNASKED", 1000)
    logged = []
    tool = attacked(attack, execution_timeout=60.0, log_handler=logged.append)
    assert "sent over 1000 messages that nobody asked for" in tool.call(ToolCall("go", {})).text
    assert len(logged) <= 1000 and sum(len(str(each.data)) for each in logged) <= 1_000_000


@pytest.mark.parametrize("attack, protocol", [("sampling", "legacy"), ("required input", "auto")])
def test_a_server_may_ask_the_model_a_few_times_per_call(attacked, attack, protocol):
    from mcp.types import CreateMessageResult, TextContent

    asked = []

    def sample(context, params):
        asked.append(params)
        return CreateMessageResult(role="assistant", content=TextContent(type="text", text="me"), model="m")

    tool = attacked(attack, sampling_handler=sample, protocol=protocol)
    assert "nobody asked for" in tool.call(ToolCall("go", {})).text
    assert len(asked) <= 100


@pytest.mark.parametrize(
    "attack, said",
    [("deep", "nested 1000"), ("items", "items"), ("digits", "invalid message"), ("number for infinity", "")],
)
def test_an_answer_above_the_bounds_is_an_error_of_its_call(attacked, attack, said):
    tool = attacked(attack)
    for _ in range(2):
        result = tool.call(ToolCall("go", {}))
        assert result.error is ToolErrorType.ERROR and said in result.text


def test_a_long_line_with_an_odd_id_is_skipped(attacked):
    assert attacked("long line with an odd id").call(ToolCall("go", {})).text == "<tool_response>calm</tool_response>"


def test_pictures_are_few_and_of_common_formats(attacked):
    pytest.importorskip("PIL")
    result = attacked("pictures", vision=True).call(ToolCall("go", {}))
    assert [image.format for image in result.images] == ["PNG"] * 6  # of the first 8, without the EPS and the huge one


def test_pictures_have_a_limit_of_pixels_together(attacked):
    pytest.importorskip("PIL")
    assert len(attacked("large pictures", vision=True).call(ToolCall("go", {})).images) == 1


def test_a_link_is_not_fetched(attacked):
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(0)
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/"
        result = attacked("link", url, vision=True).call(ToolCall("go", {}))
        assert f"[resource: n, {url}]\ninside" in result.text
        with pytest.raises(BlockingIOError):
            listening.accept()


# Over HTTP


class Handler(BaseHTTPRequestHandler):
    """A server whose answer to a call has the headers and the body of ``attack``."""

    protocol_version = "HTTP/1.1"
    attack = ("application/json", {}, b"")
    location = ""
    requests: list[str]
    drips = ()  # methods of requests that are answered with spaces, for ever

    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        method = message["method"]
        self.requests.append(f"{method} {self.headers['Accept-Encoding']}")
        if method in self.drips:
            self.drip()
            return
        if method == "initialize":
            info = {"name": "hostile", "version": "1"}
            result = {"protocolVersion": message["params"]["protocolVersion"], "serverInfo": info, "capabilities": {}}
        elif method == "tools/list":
            result = {"tools": [{"name": "go", "inputSchema": {"type": "object"}}]}
        elif method == "tools/call":
            if self.location:
                self.reply(307, "text/plain", b"", Location=self.location)
                return
            kind, headers, body = self.attack
            self.reply(200, kind, body.replace(b'"ID"', str(message["id"]).encode()), **headers)
            return
        else:
            self.reply(202, "text/plain", b"")
            return
        body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode()
        session = {"Mcp-Session-Id": "1"} if method == "initialize" else {}
        self.reply(200, "application/json", body, **session)

    def do_GET(self):
        self.reply(405, "text/plain", b"")

    def do_DELETE(self):
        self.requests.append("DELETE")
        if "DELETE" in self.drips:
            self.drip()
        else:
            self.reply(200, "text/plain", b"")

    def drip(self):
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        with contextlib.suppress(OSError):
            while not self.server.done.wait(0.01):
                self.wfile.write(b" ")

    def reply(self, status, kind, body, **headers):
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(body)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


@pytest.fixture
def serve():
    with contextlib.ExitStack() as stack:

        def start(**attributes):
            handler = type("TestHandler", (Handler,), {"requests": [], **attributes})
            server = stack.enter_context(ThreadingHTTPServer(("127.0.0.1", 0), handler))
            server.daemon_threads, server.done = True, threading.Event()
            threading.Thread(target=server.serve_forever, args=(0.01,)).start()
            stack.callback(server.shutdown)
            stack.callback(server.done.set)
            return f"http://127.0.0.1:{server.server_port}/mcp", handler

        yield start


def http_tool(url, **settings):
    return contextlib.closing(MCPTool(url, **{"protocol": "legacy", "max_retries": 0, **settings}))


ANSWER = b'{"jsonrpc": "2.0", "id": "ID", "result": {"content": [{"type": "text", "text": "plain"}]}}'
BOMB = gzip.compress(b" " * (64 << 20), 9)


@pytest.mark.parametrize("kind", ["application/json", "text/event-stream"])
@pytest.mark.parametrize(
    "encoding, body",
    [
        ("gzip", BOMB),
        ("deflate", zlib.compress(b" " * (64 << 20), 9)),
        ("gzip, gzip", gzip.compress(BOMB, 9)),
        ("br", b"x"),
        ("zstd", b"x"),
        ("identity, gzip", BOMB),
    ],
)
def test_a_compressed_answer_is_refused_before_it_is_decompressed(serve, kind, encoding, body):
    url, handler = serve(attack=(kind, {"Content_Encoding": encoding}, body))
    with http_tool(url) as tool:
        result = tool.call(ToolCall("go", {}))
        assert result.error is ToolErrorType.ERROR and "no encoding was asked for" in result.text
    assert {request.partition(" ")[2] for request in handler.requests} == {"identity", ""}


@pytest.mark.parametrize(
    "kind, body",
    [
        ("application/json", ANSWER),
        ("text/event-stream", b"data: " + ANSWER + b"\n\n"),
        ("text/event-stream; charset=punycode", b"data: " + ANSWER + b"\n\n"),
        ("text/event-stream; charset=zlib", b"data: " + ANSWER + b"\n\n"),
    ],
)
def test_an_answer_is_read_as_utf_8(serve, kind, body):
    url, _ = serve(attack=(kind, {}, body))
    with http_tool(url) as tool:
        assert tool.call(ToolCall("go", {})).text == "<tool_response>plain</tool_response>"


@pytest.mark.parametrize("before, after", [(b"", b""), (b"data: ", b"\n\n"), (b'event: "\ndata:', b"\r\n\r\n")])
def test_a_deep_answer_over_http_is_an_error_of_its_call(serve, before, after):
    deep = ANSWER.replace(b'"plain"', b"[" * 150 + b"]" * 150)
    kind = "text/event-stream" if before else "application/json"
    url, handler = serve(attack=(kind, {}, before + deep + after))
    with http_tool(url) as tool:
        for _ in range(2):
            result = tool.call(ToolCall("go", {}))
            assert result.error is ToolErrorType.ERROR and "nested 154 deep" in result.text
    assert sum(request.startswith("initialize") for request in handler.requests) == 1


@pytest.mark.parametrize("line", [b"\n", b"data:\n", b"a:b\r\n"])
def test_lines_of_which_an_event_has_too_many_are_not_passed_on(line):
    async def chunks():
        yield line * 1_000_000
        yield b"\ndata: " + ANSWER + b"\n\n"

    async def passed_on():
        return b"".join([part async for part in limit_events(chunks(), MAX_MESSAGE_BYTES)])

    assert asyncio.run(passed_on()).strip() == b"data: " + ANSWER


def test_a_redirect_to_another_server_is_not_followed(serve):
    elsewhere, other = serve()
    url, _ = serve(location=elsewhere)
    with http_tool(url, auth="secret", headers={"X-Api-Key": "secret"}) as tool:
        assert tool.call(ToolCall("go", {})).error is ToolErrorType.ERROR
    assert other.requests == []


@pytest.mark.parametrize("drips", [["tools/call"], ["tools/call", "notifications/cancelled"], ["DELETE"]])
def test_a_server_that_drips_does_not_hold_a_session_for_ever(serve, drips, monkeypatch):
    monkeypatch.setattr(mcp_session, "END_TIMEOUT_S", 0.2)
    monkeypatch.setattr(mcp_session, "PROBE_TIMEOUT_S", 0.2)
    from gem.tools.mcp.client import _process

    url, _ = serve(drips=drips, attack=("application/json", {}, ANSWER))
    with http_tool(url, execution_timeout=0.3) as tool:
        results = [tool.call(ToolCall("go", {})) for _ in range(3)]
        assert {result.error for result in results} == {ToolErrorType.TIMEOUT if "tools/call" in drips else None}
    assert not [session for session in _process.sessions if session.server.url == url]


@pytest.mark.parametrize("drips", ["initialize", "tools/list"])
def test_a_server_that_drips_while_it_is_connected_to_is_an_error(serve, drips):
    url, _ = serve(drips=[drips])
    with pytest.raises(ToolError, match=r"no response within 0\.5 s"):
        MCPTool(url, protocol="legacy", max_retries=0, connect_timeout=0.5)
