"""Sandbox, sessions and machines on a remote server over HTTP. See protocol.py. Requires aiohttp."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from gem._internal.http_client import HttpClient, HttpRequest, RequestError, bearer, check_url, wait_for
from gem._internal.inbound import MESSAGE, loads
from gem.errors import BadValue, SandboxError, require
from gem.sandbox.base import Sandbox, Session
from gem.sandbox.inputs import Job, as_base64
from gem.sandbox.machine import HOME, FileEntry, Machine, MachineFiles, Typed, entries_of, unpacked
from gem.sandbox.machine_protocol import pack
from gem.sandbox.remote import protocol
from gem.sandbox.results import Case, Limits, Report, Result, call_seconds

GRACE_S = 60.0  # seconds added to the time limit of a run, for starting the run and transferring the result
CONNECT_S = 10.0  # seconds to open a connection
MAX_CONNECTIONS = 256


class RemoteSandbox(Sandbox):
    """Runs programs on a remote sandbox server. Safe to use from several threads.

    A failed request raises SandboxError. It is never retried, because the program may already have run.

    Args:
        url: URL of the server, "http://host:port" or "https://host:port". The server is first contacted by the first
            call.
        token: the server's token. None means the value of the environment variable GEM_SANDBOX_TOKEN.
        limits: default limits of every call.

    Raises:
        BadValue: if the URL is invalid.
        MissingDependency: if aiohttp is not installed.
    """

    def __init__(self, *, url: str, token: str | None = None, limits: Limits | None = None) -> None:
        hint = "the token is passed as token= or in GEM_SANDBOX_TOKEN"
        self.url = check_url(url, "url", "http://host:port or https://host:port", hint)
        require("aiohttp", extra="serve")
        self.limits, self.closed = limits or Limits(), False
        token = os.environ.get("GEM_SANDBOX_TOKEN", "") if token is None else token
        self._headers = {**bearer(token), "Content-Type": "application/json"}
        self._client = _Client(self.url)

    def _run(self, job: Job) -> Result:
        body: dict[str, Any] = {"command": job.command} if job.command else {"program": as_base64(job.program)}
        files = {path: as_base64(content) for path, content in job.files.items()}
        body |= {"stdin": as_base64(job.stdin), "files": files}
        answer = self._send("POST", "/exec" if job.command else "/run", body, job.limits, job.limits.wall_s)
        return protocol.decoded(answer, Result)

    def _run_tests(
        self, job: Job, cases: Sequence[Case], stop: Callable[[int, Result], bool] | None
    ) -> list[Result | None]:
        """See Sandbox.run_tests. With ``stop``, the cases are sent one at a time; otherwise in a single request."""
        program, results = as_base64(job.program), list[Result | None](())
        for batch in ([case] for case in cases) if stop is not None else [list(cases)]:
            body = {"program": program, "cases": protocol.packed_cases(batch), "function": job.function}
            answer = self._send("POST", "/tests", body, job.limits, job.limits.wall_s * len(batch))
            results += protocol.decoded(answer.get("results"), list[Result])
            if stop is not None and results[-1] is not None and stop(len(results) - 1, results[-1]):
                break
        return results + [None] * (len(cases) - len(results))

    def session(self, *, limits: Limits | None = None) -> Session:
        limits = limits or self.limits
        return RemoteSession(self, str(self._send("POST", "/sessions", {}, limits).get("id")), limits)

    def machine(
        self,
        *,
        files: MachineFiles = (),
        folder: str | None = None,
        limits: Limits | None = None,
        state: Mapping[str, Any] | None = None,
    ) -> Machine:
        """Start a machine on the server, which keeps the states; see Sandbox.machine()."""
        start = {"files": as_base64(pack(entries_of(files))), "folder": folder or HOME, "state": state}
        return RemoteMachine(self, limits or self.limits, start)

    def report(self) -> Report:
        return protocol.decoded(self._send("GET", "/report"), Report)

    def close(self) -> None:
        self.closed = True
        self._client.close()

    def _send(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        limits: Limits | None = None,
        wall_s: float = 0.0,
    ) -> dict[str, Any]:
        """Send a request that takes up to ``wall_s`` seconds on the server, and return the response."""
        if self.closed:
            raise SandboxError(f"the sandbox at {self.url} is closed")
        if limits is not None:
            body = {**(body or {}), "limits": asdict(limits)}
        data = None if body is None else json.dumps(body).encode()
        timeout = wall_s + GRACE_S
        request = HttpRequest(method, self.url + path, data, timeout, self._headers, connect_timeout=CONNECT_S)
        return wait_for(self._client.send(request, _parse))


class RemoteSession(Session):
    """A session whose interpreter runs on the server. Created by RemoteSandbox.session()."""

    def __init__(self, sandbox: RemoteSandbox, session_id: str, limits: Limits) -> None:
        self._sandbox, self._path, self._limits = sandbox, f"/sessions/{session_id}", limits
        self._closed = False

    def run(self, code: str, *, wall_s: float | None = None) -> Result:
        if self._closed:
            raise SandboxError("this session is closed")
        body = {"code": code, "wall_s": wall_s}
        limit_s = call_seconds(self._limits, wall_s)
        answer = self._sandbox._send("POST", f"{self._path}/cells", body, None, limit_s)
        return protocol.decoded(answer, Result)

    def close(self) -> None:
        if not self._closed and not self._sandbox.closed:
            self._closed = True
            self._sandbox._send("DELETE", self._path)
        self._closed = True


class RemoteMachine(Machine):
    """A machine on the server. Created by RemoteSandbox.machine().

    Its states are kept by the server until that shuts down, and can be restored only there.

    Args:
        sandbox: the sandbox of the machine.
        limits: limits of the machine.
        start: files (an archive), folder and state, as in RemoteSandbox.machine().
    """

    def __init__(self, sandbox: RemoteSandbox, limits: Limits, start: Mapping[str, Any]) -> None:
        self._sandbox, self._limits, self._closed = sandbox, limits, False
        answer = sandbox._send("POST", "/machines", start, limits, limits.wall_s)
        self._path, self.folder = f"/machines/{answer.get('id')}", str(answer.get("folder"))

    def exec(self, command: str, *, wall_s: float | None = None) -> Result:
        options = {"command": command, "wall_s": wall_s}
        return self._call("exec", options, Result, self._seconds(wall_s))

    def read(self, path: str) -> bytes:
        return self._call("read", {"path": path}, bytes)

    def write(self, files: MachineFiles) -> None:
        self._call("write", {"files": as_base64(pack(entries_of(files)))}, type(None))

    def entries(self, folder: str = "/") -> list[FileEntry]:
        return unpacked(self._call("entries", {"folder": folder}, bytes))

    def run(self, arguments: Sequence[str], *, stdin: bytes = b"", wall_s: float | None = None) -> Result:
        options = {"arguments": list(arguments), "stdin": as_base64(stdin), "wall_s": wall_s}
        return self._call("run", options, Result, self._seconds(wall_s))

    def type_keys(
        self, keys: bytes, *, rows: int = 24, columns: int = 80, wait_s: float = 0.0, wall_s: float | None = None
    ) -> Typed:
        options = {"keys": as_base64(keys), "rows": rows, "columns": columns, "wait_s": wait_s, "wall_s": wall_s}
        return Typed(**self._call("type_keys", options, protocol.TypedFields, wait_s + self._seconds(wall_s)))

    def stop(self, *, keep: Iterable[int] = ()) -> None:
        self._call("stop", {"keep": list(keep)}, type(None))

    def sleep(self, seconds: float) -> None:
        self._call("sleep", {"seconds": seconds}, type(None), seconds)

    def get_state(self) -> dict[str, Any]:
        return self._call("get_state", {}, dict)

    def close(self) -> None:
        if not self._closed:
            self._closed, self.ended = True, self.ended or "closed"
            if not self._sandbox.closed:
                self._sandbox._send("DELETE", self._path)

    def _seconds(self, wall_s: float | None) -> float:
        return call_seconds(self._limits, wall_s)

    def _call(
        self, operation: str, arguments: Mapping[str, Any], kind: type[protocol.Decoded], seconds: float = 0.0
    ) -> protocol.Decoded:
        """Run an operation, which may take that many seconds, on the server, and return its value, of that type.

        Raises:
            OSError: as the operation raised it there.
            SandboxError: if the sandbox failed, or the response does not follow the protocol.
        """
        if self._closed:
            raise SandboxError("this machine is closed")
        answer = self._sandbox._send("POST", f"{self._path}/{operation}", arguments, None, seconds)
        self.folder, self.ended = str(answer.get("folder")), str(answer.get("ended") or "")
        if (failure := answer.get("failure")) is not None:
            raise SandboxError(str(failure))
        if (error := answer.get("os_error")) is not None:
            raise OSError(*protocol.decoded(error, tuple[int, str, str | None]))
        return protocol.decoded(answer.get("value"), kind)


class _Client(HttpClient):
    max_body = 256 << 20  # files of a machine, in base64

    def __init__(self, url: str) -> None:
        super().__init__(extra="serve", timeout=GRACE_S, concurrency=MAX_CONNECTIONS, retries=0, backoff=0.0)
        self.url = url

    def failure_error(self, request: HttpRequest, error: RequestError, attempts: int) -> Exception:
        where = f"{request.method} {request.url}"
        if not error.status:
            return SandboxError(f"{where} failed: {error}")
        message = _error_message(error)
        if error.status in (protocol.BAD_VALUE, protocol.TOO_LARGE):
            return BadValue(message)
        return SandboxError(f"{where} returned status {error.status}: {message}")

    def closed_error(self, request: HttpRequest) -> Exception:
        return SandboxError(f"the sandbox at {self.url} was closed during a request")


def _parse(data: bytes) -> dict[str, Any]:
    try:
        bounds = MESSAGE._replace(bytes=len(data))  # that much was read already
        answer = loads(data, "the response", bounds, keep_surrogates=True)  # names of files that are not UTF-8
    except ValueError as e:
        raise RequestError(str(e), retryable=False) from None
    if not isinstance(answer, dict):
        raise RequestError(f"the response is not a JSON object: {answer!r:.80}", retryable=False)
    return answer


def _error_message(error: RequestError) -> str:
    try:
        return str(loads(error.body, "the response", MESSAGE)["error"])
    except (ValueError, KeyError, TypeError):
        return str(error)
