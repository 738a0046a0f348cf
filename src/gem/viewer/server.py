"""Server of the viewer for recordings that are too large for one file. Standard library only.

GET /               the page
GET /rows?from=N    rows from number N on, at most ROWS_PER_PAGE, and how many there are
GET /body?n=N       one episode, read from its file at its offset
GET /search?q=TEXT  numbers of the episodes that contain a text
"""

from __future__ import annotations

import socket
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from gem._internal.http_server import bind_socket
from gem.errors import BadValue
from gem.viewer.episodes import Json, body_of, dump, parse, searchable
from gem.viewer.page import build_served_page
from gem.viewer.recordings import Recordings
from gem.viewer.tokens import Vocabulary

ROWS_PER_PAGE = 5_000
_LOCAL = ("127.0.0.1", "::1", "localhost")


class ViewerServer(ThreadingHTTPServer):
    """Serves recordings. Lines that are appended to the files are shown when the page is loaded again.

    Args:
        host: address to listen on. A server on this machine's own address answers only requests that name it, so that
            pages of other sites cannot read the recordings.
        port: port to listen on; 0 selects a free port, which ``url`` contains.

    Raises:
        BadValue: the address is not available.
    """

    daemon_threads = True

    def __init__(self, recordings: Recordings, vocabulary: Vocabulary, *, host: str = "127.0.0.1", port: int = 0):
        listening = bind_socket(host, port)
        address, port = listening.getsockname()[:2]
        super().__init__((address, port), _Handler, bind_and_activate=False)
        self.socket.close()
        self.socket, self.server_name, self.server_port = listening, address, port
        self.recordings, self.vocabulary = recordings, vocabulary
        name = f"[{address}]" if listening.family == socket.AF_INET6 else address
        self.url = f"http://{name}:{port}/"
        self.hosts = {f"{known}:{port}" for known in (name, "localhost")} if address in _LOCAL else None

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exc_info()[1], ConnectionError):  # a browser closes connections that it no longer needs
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    server: ViewerServer
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        if self.server.hosts is not None and self.headers.get("Host") not in self.server.hosts:
            return self._reply(403, "text/plain", "open the address that gem view printed")
        try:
            if url.path == "/":
                self.server.recordings.update()
                page = build_served_page(self.server.recordings, self.server.vocabulary)
                return self._reply(200, "text/html", page)
            answers = {"/rows": self._rows, "/body": self._body, "/search": self._search}
            if url.path not in answers:
                return self._reply(404, "text/plain", "no such page")
            self._reply(200, "application/json", dump(answers[url.path](query)))
        except (BadValue, ValueError, IndexError, KeyError, OSError) as e:
            self._reply(400, "text/plain", f"{type(e).__name__}: {e}")

    def _rows(self, query: dict[str, str]) -> Json:
        first, rows = max(0, int(query["from"])), self.server.recordings.rows
        return {"rows": rows[first : first + ROWS_PER_PAGE], "total": len(rows)}

    def _body(self, query: dict[str, str]) -> Json:
        return self.server.recordings.body(_index(query["n"]))

    def _search(self, query: dict[str, str]) -> list[int]:
        wanted = query["q"].lower()
        plain = wanted.encode() if wanted.isascii() and wanted.replace(" ", "").isalnum() else b""
        found = []
        for number in range(len(self.server.recordings.rows)):
            line = self.server.recordings.line(number)
            if plain in line.lower():  # letters, digits and spaces are not escaped in JSON; the test skips most lines
                texts = searchable(body_of(parse(line)))
                found += [number] if any(wanted in text.lower() for text in texts) else []
        return found

    def _reply(self, status: int, kind: str, text: str) -> None:
        data = text.encode("utf-8", "replace")
        self.send_response(status)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing per request."""


def _index(text: str) -> int:
    number = int(text)
    if number < 0:
        raise IndexError(f"episodes are numbered from 0, got {number}")
    return number
