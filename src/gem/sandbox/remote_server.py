"""Serve a sandbox over HTTP with the protocol in remote_protocol.py. Requires Starlette and uvicorn.

Clients that have the token can run programs on this machine and choose the limits themselves, so restrict network
access to the server.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import threading
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from gem._internal.http_server import bind_socket
from gem.errors import BadValue, CallerError, InfraError, SandboxError, require
from gem.sandbox import remote_protocol as protocol
from gem.sandbox.base import Sandbox, Session

MAX_BODY_BYTES = 256 << 20
MAX_THREADS = 512  # requests served at the same time
KEEP_ALIVE_S = 300  # seconds before an idle connection is closed
SHUTDOWN_S = 5  # seconds for requests in flight to finish at shutdown
SESSION_IDLE_S = 3600.0  # seconds before an idle session may be closed


class SandboxServer:
    """Serves a sandbox over HTTP. Shutting down the server does not close the sandbox.

    Use the server as a context manager to serve in a background thread, or call serve_forever().

    Args:
        sandbox: runs the programs.
        token: the token with which clients authenticate.
        host: address to listen on.
        port: port to listen on; 0 selects a free port, which ``url`` contains.

    Raises:
        BadValue: if the token is empty or the address is not available.
        MissingDependency: if Starlette or uvicorn is not installed.
    """

    def __init__(self, sandbox: Sandbox, *, token: str, host: str = "127.0.0.1", port: int = 0) -> None:
        if not token:
            raise BadValue("a sandbox server requires a non-empty token")
        self._api = _Api(sandbox, token)
        uvicorn, app = require("uvicorn", extra="serve"), _app(self._api)
        self._socket = bind_socket(host, port)
        address, port = self._socket.getsockname()[:2]
        self.url = f"http://{address}:{port}"
        self._server = uvicorn.Server(
            uvicorn.Config(
                app,
                log_level="warning",
                access_log=False,
                lifespan="off",
                timeout_keep_alive=KEEP_ALIVE_S,
                timeout_graceful_shutdown=SHUTDOWN_S,
            )
        )
        self._thread: threading.Thread | None = None

    def serve_forever(self) -> None:
        """Serve until SIGINT or SIGTERM."""
        self._server.run(sockets=[self._socket])

    def start(self) -> SandboxServer:
        """Serve in a background thread. Returns when the server accepts requests or has failed to start."""
        self._thread = threading.Thread(target=self.serve_forever, name="gem-sandbox-server", daemon=True)
        self._thread.start()
        while not self._server.started and self._thread.is_alive():
            time.sleep(0.005)
        return self

    def shut_down(self) -> None:
        """Stop serving and close all sessions."""
        self._server.should_exit = True
        if self._thread is not None:
            self._thread.join()
        self._socket.close()
        self._api.close()

    def __enter__(self) -> SandboxServer:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.shut_down()


class _Api:
    """Implements the operations of the protocol. Thread-safe."""

    def __init__(self, sandbox: Sandbox, token: str) -> None:
        self.sandbox, self.authorization = sandbox, f"Bearer {token}".encode()
        self.threads = ThreadPoolExecutor(MAX_THREADS, thread_name_prefix="gem-sandbox-server")
        self.sessions: dict[str, Session] = {}
        self.last_used: dict[str, float] = {}  # session id → time.monotonic()

    def close(self) -> None:
        for session in list(self.sessions.values()):
            session.close()
        self.threads.shutdown(wait=False)

    def run(self, body: dict[str, Any]) -> dict[str, Any]:
        return protocol.packed_result(self.sandbox.run(protocol.unpacked(body["program"]), **_options(body)))

    def exec(self, body: dict[str, Any]) -> dict[str, Any]:
        return protocol.packed_result(self.sandbox.exec(body["command"], **_options(body)))

    def tests(self, body: dict[str, Any]) -> dict[str, Any]:
        results = self.sandbox.run_tests(
            protocol.unpacked(body["program"]),
            protocol.unpacked_cases(body["cases"]),
            function=body.get("function"),
            limits=protocol.unpacked_limits(body.get("limits")),
        )
        return {"results": [protocol.packed_result(result) for result in results if result is not None]}

    def report(self, body: dict[str, Any]) -> dict[str, Any]:
        return protocol.packed_report(self.sandbox.report())

    def open_session(self, body: dict[str, Any]) -> dict[str, Any]:
        self._close_idle_sessions()
        session_id = uuid.uuid4().hex
        self.last_used[session_id] = time.monotonic()
        self.sessions[session_id] = self.sandbox.session(limits=protocol.unpacked_limits(body.get("limits")))
        return {"id": session_id}

    def run_cell(self, body: dict[str, Any], session_id: str) -> dict[str, Any]:
        if session_id not in self.sessions:
            raise SandboxError(f"no session {session_id}; idle sessions are closed after {SESSION_IDLE_S:g} s")
        self.last_used[session_id] = time.monotonic()
        return protocol.packed_result(self.sessions[session_id].run(body["code"], wall_s=body.get("wall_s")))

    def close_session(self, body: dict[str, Any], session_id: str) -> dict[str, Any]:
        self.last_used.pop(session_id, None)
        if (session := self.sessions.pop(session_id, None)) is not None:
            session.close()
        return {}

    def _close_idle_sessions(self) -> None:
        now = time.monotonic()
        for session_id in [name for name, used in list(self.last_used.items()) if now - used > SESSION_IDLE_S]:
            self.close_session({}, session_id)


def _app(api: _Api) -> Any:
    applications = require("starlette.applications", extra="serve")
    routing = require("starlette.routing", extra="serve")
    exceptions = require("starlette.exceptions", extra="serve")
    response = require("starlette.responses", extra="serve").JSONResponse

    def endpoint(operation: Callable[..., dict[str, Any]]) -> Callable[[Any], Any]:
        async def handle(request: Any) -> Any:
            status, answer = await _answer(api, operation, request)
            return response(answer, status)

        return handle

    async def not_found(request: Any, error: Exception) -> Any:
        return response({"error": f"nothing at {request.method} {request.url.path}"}, protocol.NOT_FOUND)

    operations: list[tuple[str, str, Callable[..., dict[str, Any]]]] = [
        ("POST", "/run", api.run),
        ("POST", "/exec", api.exec),
        ("POST", "/tests", api.tests),
        ("POST", "/sessions", api.open_session),
        ("POST", "/sessions/{session_id}/cells", api.run_cell),
        ("DELETE", "/sessions/{session_id}", api.close_session),
        ("GET", "/report", api.report),
    ]
    routes = [routing.Route(path, endpoint(operation), methods=[method]) for method, path, operation in operations]
    return applications.Starlette(routes=routes, exception_handlers={exceptions.HTTPException: not_found})


async def _answer(api: _Api, operation: Callable[..., dict[str, Any]], request: Any) -> tuple[int, dict[str, Any]]:
    """Check the token and run an operation in a thread. Returns (HTTP status, response body), also for errors."""
    body = await _body(request)
    if not hmac.compare_digest(request.headers.get("Authorization", "").encode(), api.authorization):
        return protocol.UNAUTHORIZED, {"error": "wrong token"}
    if body is None:
        return protocol.BAD_VALUE, {"error": f"the body is larger than {MAX_BODY_BYTES} bytes"}

    def work() -> dict[str, Any]:
        return operation(json.loads(body or b"{}"), **request.path_params)

    try:
        return protocol.OK, await asyncio.get_running_loop().run_in_executor(api.threads, work)
    except InfraError as e:
        return protocol.FAILED, {"error": str(e)}
    except CallerError as e:
        return protocol.BAD_VALUE, {"error": str(e)}
    except (KeyError, TypeError, ValueError, AttributeError) as e:
        return protocol.BAD_VALUE, {"error": f"the request does not follow the protocol: {type(e).__name__}: {e}"}


async def _body(request: Any) -> bytes | None:
    """Return the body of a request, or None if the body is larger than MAX_BODY_BYTES."""
    data = bytearray()
    async for chunk in request.stream():
        data += chunk
        if len(data) > MAX_BODY_BYTES:
            return None
    return bytes(data)


def _options(body: dict[str, Any]) -> dict[str, Any]:
    return {
        "stdin": protocol.unpacked(body.get("stdin", "")),
        "limits": protocol.unpacked_limits(body.get("limits")),
        "files": protocol.unpacked_files(body.get("files", {})),
    }
