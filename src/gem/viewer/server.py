"""Server of the viewer for recordings that are too large for one file. Standard library only.

GET /               the page
GET /rows?from=N    rows from number N on, at most ROWS_PER_PAGE, and how many there are
GET /body?n=N       one episode, read from its file at its offset
GET /search?q=TEXT  numbers of the episodes that contain a text
"""

from __future__ import annotations

import contextlib
import logging
import socket
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from gem._internal.http_server import FULL, NO_SNIFF, STALL_S, HeaderRules, Refused, bind_socket, url_of
from gem.errors import BadValue
from gem.viewer.episodes import Json, body_of, dump, parse, searchable
from gem.viewer.page import build_served_page
from gem.viewer.recordings import Recordings
from gem.viewer.tokens import Vocabulary

ROWS_PER_PAGE = 5_000
MAX_CONNECTIONS = 128  # each has a thread
HEAD_S = 20.0  # seconds for the headers of a request, from the end of the one before
CHUNK_BYTES = 1 << 16

logger = logging.getLogger(__name__)


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
        self.url, self.rules = url_of(listening) + "/", HeaderRules(listening, host)
        self.head_ends: dict[socket.socket, float] = {}  # open connection → time.monotonic() when its headers are late

    def process_request(self, request: Any, client_address: Any) -> None:
        if len(self.head_ends) < MAX_CONNECTIONS:
            self.head_ends[request] = time.monotonic() + HEAD_S
            return super().process_request(request, client_address)
        request.send(FULL)
        self.shutdown_request(request)

    def service_actions(self) -> None:
        """End connections that send their headers too slowly, several times a second."""
        now = time.monotonic()
        for connection, end in list(self.head_ends.items()):
            if end < now:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    def shutdown_request(self, request: Any) -> None:
        self.head_ends.pop(request, None)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exc_info()[1], OSError):  # a browser closes connections that it no longer needs
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    server: ViewerServer
    protocol_version = "HTTP/1.1"
    timeout = STALL_S

    def handle_one_request(self) -> None:
        self.server.head_ends[self.connection] = time.monotonic() + HEAD_S
        super().handle_one_request()

    def parse_request(self) -> bool:
        """Read and check the headers of a request. Returns False if the request has been answered."""
        if not super().parse_request():
            return False
        self.server.head_ends[self.connection] = float("inf")
        headers = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in self.headers.items()]
        try:
            if self.headers.defects or self.headers.get_payload():  # the parser takes the lines after it for a body
                raise Refused(400, "a line of the headers is not a header")
            self.server.rules.check(headers)
        except Refused as e:
            self.close_connection = True  # there may be a body, which must not be read as the next request
            self._reply(e.status, "text/plain", str(e))
            return False
        return True

    def do_GET(self) -> None:
        try:
            status, (kind, text) = 200, self._answer()
        except Refused as e:
            status, kind, text = e.status, "text/plain", str(e)
        except (BadValue, ValueError, IndexError, KeyError, OSError) as e:
            status, kind, text = 400, "text/plain", f"{type(e).__name__}: {e}"
        except Exception:
            logger.exception("GET %s failed", ascii(self.path[:200]))
            status, kind, text = 500, "text/plain", "internal error; the server's log has details"
        self._reply(status, kind, text)

    def _answer(self) -> tuple[str, str]:
        """Return the media type and text for the path of the request."""
        url = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        if self.path.startswith("/") and url.path == "/":
            self.server.recordings.update()
            return "text/html", build_served_page(self.server.recordings, self.server.vocabulary)
        answers = {"/rows": self._rows, "/body": self._body, "/search": self._search}
        if not self.path.startswith("/") or url.path not in answers:
            raise Refused(404, "no such page")
        return "application/json", dump(answers[url.path](query))

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
        self.send_header("Connection", "close" if self.close_connection else "keep-alive")
        self.send_header("Cache-Control", "no-store")
        self.send_header(*NO_SNIFF)
        self.end_headers()
        for start in range(0, len(data), CHUNK_BYTES):  # the timeout holds for each chunk
            self.wfile.write(data[start : start + CHUNK_BYTES])

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing per request."""


def _index(text: str) -> int:
    number = int(text)
    if number < 0:
        raise IndexError(f"episodes are numbered from 0, got {number}")
    return number
