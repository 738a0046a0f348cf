"""A server of the protocol in remote_protocol.py, for any sandbox: a thread for each connection.

It has to be reachable by those who may use it, and by nobody else: whoever has the token runs programs here, within the
limits that they ask for.
"""

from __future__ import annotations

import hmac
import json
import re
import threading
import time
import uuid
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from gem.errors import BadValue, CallerError, InfraError, SandboxError
from gem.sandbox import remote_protocol as protocol
from gem.sandbox.base import Sandbox, Session

MAX_BODY_BYTES = 256 << 20
IDLE_S = 300.0  # after which a silent connection is closed
SESSION_IDLE_S = 3600.0  # after which a session may be ended


class SandboxServer(ThreadingHTTPServer):
    """Serves a sandbox, which it does not close. Use as a context manager, or call shut_down().

    Args:
        token: what clients have to show. Raises BadValue for an empty one.
        host, port: to listen at; port 0 takes a free one, and ``url`` says which.
    """

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, sandbox: Sandbox, *, token: str, host: str = "127.0.0.1", port: int = 0) -> None:
        if not token:
            raise BadValue("a server needs a token: who has it may run programs here")
        self.sandbox, self.token = sandbox, token
        self.sessions: dict[str, Session] = {}
        self.used: dict[str, float] = {}  # when each session was, by time.monotonic()
        super().__init__((host, port), _Handler)
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        host, port = self.server_address[:2]
        return f"http://{host if isinstance(host, str) else host.decode()}:{port}"

    def start(self) -> SandboxServer:
        """Serve in a thread."""
        self._thread = threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True, name="gem-sandbox-server")
        self._thread.start()
        return self

    def shut_down(self) -> None:
        """Stop serving, and end all sessions."""
        if self._thread is not None:
            self.shutdown()
            self._thread.join()
        self.server_close()
        for session in list(self.sessions.values()):
            session.close()

    def __enter__(self) -> SandboxServer:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.shut_down()

    def answer(self, method: str, path: str, body: dict[str, Any]) -> dict[str, Any] | None:
        """None where there is nothing at this address. Raises what the sandbox raises."""
        session = re.fullmatch(r"/sessions/(\w+)(/cells)?", path)
        if session is not None:
            return self._session(method, session[1], session[2] is not None, body)
        work: Callable[[dict[str, Any]], dict[str, Any]] | None = {
            ("POST", "/run"): self._run,
            ("POST", "/exec"): self._exec,
            ("POST", "/tests"): self._tests,
            ("POST", "/sessions"): self._open,
            ("GET", "/report"): lambda _: protocol.packed_report(self.sandbox.report()),
        }.get((method, path))
        return None if work is None else work(body)

    def _run(self, body: dict[str, Any]) -> dict[str, Any]:
        return protocol.packed_result(self.sandbox.run(protocol.unpacked(body["program"]), **_options(body)))

    def _exec(self, body: dict[str, Any]) -> dict[str, Any]:
        return protocol.packed_result(self.sandbox.exec(body["command"], **_options(body)))

    def _tests(self, body: dict[str, Any]) -> dict[str, Any]:
        results = self.sandbox.run_tests(
            protocol.unpacked(body["program"]),
            protocol.unpacked_cases(body["cases"]),
            function=body.get("function"),
            limits=protocol.unpacked_limits(body.get("limits")),
        )
        return {"results": [protocol.packed_result(result) for result in results if result is not None]}

    def _open(self, body: dict[str, Any]) -> dict[str, Any]:
        self._end_idle_sessions()
        name = uuid.uuid4().hex
        self.used[name] = time.monotonic()
        self.sessions[name] = self.sandbox.session(limits=protocol.unpacked_limits(body.get("limits")))
        return {"id": name}

    def _session(self, method: str, name: str, cells: bool, body: dict[str, Any]) -> dict[str, Any] | None:
        if (method, cells) == ("DELETE", False):
            self.used.pop(name, None)
            if (ended := self.sessions.pop(name, None)) is not None:
                ended.close()
            return {}
        if (method, cells) != ("POST", True):
            return None
        if name not in self.sessions:
            raise SandboxError(f"no session {name}; one that is idle for {SESSION_IDLE_S:g} s is ended")
        self.used[name] = time.monotonic()
        return protocol.packed_result(self.sessions[name].run(body["code"], wall_s=body.get("wall_s")))

    def _end_idle_sessions(self) -> None:
        """Of clients that went without a word."""
        idle = [name for name, used in list(self.used.items()) if time.monotonic() - used > SESSION_IDLE_S]
        for name in idle:
            self._session("DELETE", name, False, {})


class _Handler(BaseHTTPRequestHandler):
    server: SandboxServer
    protocol_version = "HTTP/1.1"
    timeout = IDLE_S
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        self._serve()

    def do_POST(self) -> None:
        self._serve()

    def do_DELETE(self) -> None:
        self._serve()

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: requests are not news."""

    def _serve(self) -> None:
        status, answer = self._answer()
        data = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _answer(self) -> tuple[int, dict[str, Any]]:
        length = self.headers.get("Content-Length", "0")
        if not length.isdigit() or int(length) > MAX_BODY_BYTES:
            self.close_connection = True
            return protocol.BAD_VALUE, {"error": f"a body has at most {MAX_BODY_BYTES} bytes, got {length!r}"}
        data = self.rfile.read(int(length))
        shown = self.headers.get("Authorization", "").encode()
        if not hmac.compare_digest(shown, f"Bearer {self.server.token}".encode()):
            return protocol.UNAUTHORIZED, {"error": "wrong token"}
        try:
            answer = self.server.answer(self.command, self.path, json.loads(data or b"{}"))
        except InfraError as e:
            return protocol.FAILED, {"error": str(e)}
        except CallerError as e:
            return protocol.BAD_VALUE, {"error": str(e)}
        except (KeyError, TypeError, ValueError, AttributeError) as e:
            return protocol.BAD_VALUE, {"error": f"the request does not keep to the protocol: {type(e).__name__}: {e}"}
        if answer is None:
            return protocol.NOT_FOUND, {"error": f"nothing at {self.command} {self.path}"}
        return protocol.OK, answer


def _options(body: dict[str, Any]) -> dict[str, Any]:
    return {
        "stdin": protocol.unpacked(body.get("stdin", "")),
        "limits": protocol.unpacked_limits(body.get("limits")),
        "files": protocol.unpacked_files(body.get("files", {})),
    }
