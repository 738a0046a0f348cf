"""Long answers of MCP servers over HTTP and server-sent events affect one call, not the session."""

import contextlib
import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

pytest.importorskip("mcp")

from plain_mcp_server import TOOLS, Server

from gem.messages import ToolCall
from gem.tools.mcp import http as mcp_http
from gem.tools.mcp.tool import MCPTool

LIMIT = 200_000  # in place of 8 MiB, to be fast


class Handler(BaseHTTPRequestHandler):
    """An MCP server over HTTP at /mcp, and over server-sent events at /sse."""

    protocol_version = "HTTP/1.1"
    form = "event"  # of an answer: "event", "lines" (an event with several lines) or "json"
    sessions = 0

    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        answers = []
        server = self.server.plain
        server.send = answers.append
        server.handle(message)
        wire = b"".join(map(self.event, answers))
        if self.path == "/messages":
            self.server.stream.write(wire)
            self.server.stream.flush()
            self.reply(202, "text/plain", b"")
        elif not answers:
            self.reply(202, "text/plain", b"")
        elif self.form != "json" and message["method"] == "tools/call":
            self.reply(200, "text/event-stream", wire)
        else:
            type(self).sessions += message["method"] == "initialize"
            self.reply(200, "application/json", json.dumps({"jsonrpc": "2.0", **answers[-1]}).encode())

    def do_GET(self):
        if self.path != "/sse":
            self.send_error(405)
            return
        type(self).sessions += 1
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        self.wfile.write(b"event: endpoint\ndata: /messages\n\n")
        self.server.stream = self.wfile
        self.server.done.wait()

    def event(self, message):
        separators = (",\ndata: ", ": ") if self.form == "lines" else None
        return b"data: " + json.dumps({"jsonrpc": "2.0", **message}, separators=separators).encode() + b"\n\n"

    def reply(self, status, kind, body):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


@pytest.fixture
def address(monkeypatch):
    monkeypatch.setattr(mcp_http, "MAX_SSE_BYTES", LIMIT)
    monkeypatch.setattr(mcp_http, "MAX_MESSAGE_BYTES", LIMIT)
    handler = type("TestHandler", (Handler,), {})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.plain, server.done, server.daemon_threads = Server(list(TOOLS), None), threading.Event(), True
        threading.Thread(target=server.serve_forever, args=(0.01,)).start()
        yield f"http://127.0.0.1:{server.server_port}", handler
        server.done.set()
        server.shutdown()


@pytest.mark.parametrize(
    "path, form", [("mcp", "event"), ("mcp", "lines"), ("mcp", "json"), ("sse", "event"), ("sse", "lines")]
)
def test_a_long_answer_over_http_is_cut_and_keeps_the_session(address, path, form):
    url, handler = address
    handler.form = form
    with contextlib.closing(MCPTool(f"{url}/{path}", protocol="legacy", max_chars=1000, max_retries=0)) as tool:
        assert tool.call(ToolCall("count", {})).text == "<tool_response>1</tool_response>"
        for length in (LIMIT * 9 // 10, LIMIT * 6):  # the SDK ends a session over /sse at 1 MiB
            result = tool.call(ToolCall("long", {"n": length}))
            assert result.ok and result.text.startswith("<tool_response>xxx") and len(result.text) < 1200
            assert int(re.search(r"(\d+) more characters", result.text)[1]) < LIMIT
        assert tool.call(ToolCall("count", {})).text == "<tool_response>2</tool_response>"
    assert handler.sessions == 1
