"""Serve a sandbox over HTTP with the protocol in protocol.py. Requires Starlette and uvicorn.

Clients that have the token can run programs on this machine and choose the limits themselves, so restrict network
access to the server.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import msgspec

from gem._internal.http_server import ServerLimits, bind_socket, make_server, url_of
from gem._internal.inbound import FILE, loads
from gem.errors import BadValue, CallerError, InfraError, SandboxError, require
from gem.sandbox.base import Sandbox, Session
from gem.sandbox.machine import Machine
from gem.sandbox.machine_protocol import pack, unpack
from gem.sandbox.remote import protocol
from gem.sandbox.results import Report, Result

LIMITS = ServerLimits(body_bytes=FILE.bytes, keep_alive_s=300)
MAX_THREADS = 512  # requests served at the same time
SHUTDOWN_S = 5  # seconds for requests in flight to finish at shutdown
SESSION_IDLE_S = 3600.0  # seconds before an idle session or machine may be closed

Opened = TypeVar("Opened")


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
        self._api = _Api(sandbox)
        app = _app(self._api)
        self._socket = bind_socket(host, port)
        self.url = url_of(self._socket)
        options = {"lifespan": "off", "timeout_graceful_shutdown": SHUTDOWN_S}
        self._server = make_server(app, self._socket, host, LIMITS, extra="serve", token=token, **options)
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
        """Stop serving, and close all sessions and machines."""
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
    """Implements the operations of the protocol. Thread-safe.

    An operation returns what response() can encode: plain data, bytes and dataclasses.
    """

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox = sandbox
        self.threads = ThreadPoolExecutor(MAX_THREADS, thread_name_prefix="gem-sandbox-server")
        self.sessions: dict[str, Session] = {}
        self.machines: dict[str, Machine] = {}
        self.states: dict[str, dict[str, Any]] = {}  # hash → state of a machine
        self.last_used: dict[str, float] = {}  # id of a session or machine → time.monotonic()

    def close(self) -> None:
        for name in list(self.last_used):
            self.close_session({}, name)
        self.threads.shutdown(wait=False)

    def run(self, body: dict[str, Any]) -> Result:
        return self.sandbox.run(_bytes(body["program"]), **_options(body))

    def exec(self, body: dict[str, Any]) -> Result:
        return self.sandbox.exec(body["command"], **_options(body))

    def tests(self, body: dict[str, Any]) -> dict[str, Any]:
        results = self.sandbox.run_tests(
            _bytes(body["program"]),
            protocol.unpacked_cases(body["cases"]),
            function=body.get("function"),
            limits=protocol.unpacked_limits(body.get("limits")),
        )
        return {"results": results}

    def report(self, body: dict[str, Any]) -> Report:
        return self.sandbox.report()

    def open_session(self, body: dict[str, Any]) -> dict[str, Any]:
        self._close_idle_sessions()
        session_id = uuid.uuid4().hex
        self.last_used[session_id] = time.monotonic()
        self.sessions[session_id] = self.sandbox.session(limits=protocol.unpacked_limits(body.get("limits")))
        return {"id": session_id}

    def run_cell(self, body: dict[str, Any], session_id: str) -> Result:
        return self._find(self.sessions, "session", session_id).run(body["code"], wall_s=body.get("wall_s"))

    def open_machine(self, body: dict[str, Any]) -> dict[str, Any]:
        self._close_idle_sessions()
        state = body.get("state")
        if state is not None and (state := self.states.get(str(state["hash"]))) is None:
            raise BadValue("the server does not have this state; it keeps states until it shuts down")
        machine = self.sandbox.machine(
            files=list(unpack(_bytes(body["files"]))),
            folder=body["folder"],
            limits=protocol.unpacked_limits(body.get("limits")),
            state=state,
        )
        machine_id = uuid.uuid4().hex
        self.last_used[machine_id], self.machines[machine_id] = time.monotonic(), machine
        return {"id": machine_id, "folder": machine.folder}

    def use_machine(self, body: dict[str, Any], session_id: str, operation: str) -> dict[str, Any]:
        machine = self._find(self.machines, "machine", session_id)
        answer: dict[str, Any] = {}
        try:
            answer["value"] = self._operate(machine, operation, body)
        except OSError as e:
            path = e.filename.decode(errors="replace") if isinstance(e.filename, bytes) else e.filename
            answer["os_error"] = [e.errno or 0, e.strerror or str(e), path]
        except SandboxError as e:
            if not machine.ended:
                raise
            answer["failure"] = str(e)
        return {**answer, "folder": machine.folder, "ended": machine.ended}

    def _operate(self, machine: Machine, operation: str, body: dict[str, Any]) -> Any:
        """Call a method of a machine, and return its value. Raises BadValue if there is no such method."""
        if operation == "exec":
            return machine.exec(body["command"], wall_s=body.get("wall_s"))
        if operation == "run":
            return machine.run(body["arguments"], stdin=_bytes(body["stdin"]), wall_s=body.get("wall_s"))
        if operation == "type_keys":
            return machine.type_keys(**{**body, "keys": _bytes(body["keys"])})._asdict()
        if operation == "read":
            return machine.read(body["path"])
        if operation == "entries":
            return pack(machine.entries(body["folder"]))
        if operation == "write":
            return machine.write(list(unpack(_bytes(body["files"]))))
        if operation == "stop":
            return machine.stop(keep=body["keep"])
        if operation == "sleep":
            return machine.sleep(body["seconds"])
        if operation == "get_state":
            state = machine.get_state()
            digest = hashlib.sha256(json.dumps(state, sort_keys=True).encode()).hexdigest()
            self.states[digest] = state
            return {"hash": digest}
        raise BadValue(f"a machine has no operation {operation!r}")

    def _find(self, opened: Mapping[str, Opened], kind: str, name: str) -> Opened:
        if name not in opened:
            raise SandboxError(f"no {kind} {name}; idle ones are closed after {SESSION_IDLE_S:g} s")
        self.last_used[name] = time.monotonic()
        return opened[name]

    def close_session(self, body: dict[str, Any], session_id: str) -> dict[str, Any]:
        self.last_used.pop(session_id, None)
        for opened in (self.sessions.pop(session_id, None), self.machines.pop(session_id, None)):
            if opened is not None:
                opened.close()
        return {}

    def _close_idle_sessions(self) -> None:
        now = time.monotonic()
        for session_id in [name for name, used in list(self.last_used.items()) if now - used > SESSION_IDLE_S]:
            self.close_session({}, session_id)


def _app(api: _Api) -> Any:
    applications = require("starlette.applications", extra="serve")
    routing = require("starlette.routing", extra="serve")
    exceptions = require("starlette.exceptions", extra="serve")
    plain = require("starlette.responses", extra="serve").Response

    def response(answer: Any, status: int) -> Any:
        # JSONResponse cannot encode names of files that are not UTF-8
        return plain(json.dumps(answer), status, media_type="application/json")

    def endpoint(operation: Callable[..., Any]) -> Callable[[Any], Any]:
        async def handle(request: Any) -> Any:
            status, answer = await _answer(api, operation, request)
            return response(answer, status)

        return handle

    async def not_found(request: Any, error: Exception) -> Any:
        return response({"error": f"nothing at {request.method} {request.url.path}"}, protocol.NOT_FOUND)

    operations: list[tuple[str, str, Callable[..., Any]]] = [
        ("POST", "/run", api.run),
        ("POST", "/exec", api.exec),
        ("POST", "/tests", api.tests),
        ("POST", "/sessions", api.open_session),
        ("POST", "/sessions/{session_id}/cells", api.run_cell),
        ("DELETE", "/sessions/{session_id}", api.close_session),
        ("POST", "/machines", api.open_machine),
        ("POST", "/machines/{session_id}/{operation}", api.use_machine),
        ("DELETE", "/machines/{session_id}", api.close_session),
        ("GET", "/report", api.report),
    ]
    routes = [routing.Route(path, endpoint(operation), methods=[method]) for method, path, operation in operations]
    return applications.Starlette(routes=routes, exception_handlers={exceptions.HTTPException: not_found})


async def _answer(api: _Api, operation: Callable[..., Any], request: Any) -> tuple[int, Any]:
    """Run an operation in a thread. Returns (HTTP status, response body), also for errors."""
    body = await request.body()

    def work() -> Any:
        return msgspec.to_builtins(operation(loads(body or b"{}", "the request"), **request.path_params))

    try:
        return protocol.OK, await asyncio.get_running_loop().run_in_executor(api.threads, work)
    except InfraError as e:
        return protocol.FAILED, {"error": str(e)}
    except CallerError as e:
        return protocol.BAD_VALUE, {"error": str(e)}
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as e:
        return protocol.BAD_VALUE, {"error": f"the request does not follow the protocol: {type(e).__name__}: {e}"}


def _options(body: dict[str, Any]) -> dict[str, Any]:
    return {
        "stdin": _bytes(body.get("stdin", "")),
        "limits": protocol.unpacked_limits(body.get("limits")),
        "files": msgspec.convert(body.get("files", {}), dict[str, bytes]),
    }


def _bytes(text: Any) -> bytes:
    """Decode base64. Raises ValueError."""
    return msgspec.convert(text, bytes)
