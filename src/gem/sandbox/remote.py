"""A sandbox on another machine, spoken to over HTTP. The protocol is described in remote_protocol.py."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import select
import ssl
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from gem.errors import BadValue, SandboxError
from gem.sandbox import remote_protocol as protocol
from gem.sandbox.base import Case, Files, Limits, Report, Result, Sandbox, Session

CONNECT_S = 10.0
GRACE_S = 60.0  # beyond its limits, for a run to be started and its answer to arrive


class RemoteSandbox(Sandbox):
    """Runs programs where a server of the protocol runs. Any number of threads use as many connections as they need.

    Nothing is sent twice: a request that is not answered is a SandboxError, because its program may have run. A
    connection that the server closed while it was idle is replaced.

    Args:
        url: of the server, "http://host:port" or "https://…".
        token: what it wants to be shown. None takes GEM_SANDBOX_TOKEN.
        limits: the defaults of every call, sent with each.

    Raises BadValue for a url of another form. The server is not asked before it is needed.
    """

    def __init__(self, *, url: str, token: str | None = None, limits: Limits | None = None) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise BadValue(f"url must be http://host:port or https://host:port, got {url!r}")
        self.url, self.limits, self.closed = url.rstrip("/"), limits or Limits(), False
        self._parts, self._token = parts, os.environ.get("GEM_SANDBOX_TOKEN", "") if token is None else token
        self._owner = os.getpid()
        self._idle: list[http.client.HTTPConnection] = []  # append and pop are atomic

    def run(
        self,
        program: str | bytes,
        *,
        stdin: str | bytes = "",
        limits: Limits | None = None,
        files: Files | None = None,
    ) -> Result:
        return self._result("/run", {"program": protocol.packed(program)}, stdin, limits, files)

    def exec(
        self,
        command: str | Sequence[str],
        *,
        stdin: str | bytes = "",
        limits: Limits | None = None,
        files: Files | None = None,
    ) -> Result:
        command = command if isinstance(command, str) else list(command)
        return self._result("/exec", {"command": command}, stdin, limits, files)

    def run_tests(
        self,
        program: str | bytes,
        cases: Sequence[Case],
        *,
        function: str | None = None,
        limits: Limits | None = None,
        stop: Callable[[int, Result], bool] | None = None,
    ) -> list[Result | None]:
        """See Sandbox.run_tests. With stop the cases are sent one by one, without it all at once."""
        limits, results = limits or self.limits, list[Result | None](())
        for batch in ([case] for case in cases) if stop is not None else [list(cases)]:
            body = {"program": protocol.packed(program), "cases": protocol.packed_cases(batch), "function": function}
            answer = self._ask("POST", "/tests", body, limits, limits.wall_s * len(batch))
            results += [_read(protocol.unpacked_result, result) for result in answer.get("results", ())]
            if stop is not None and results[-1] is not None and stop(len(results) - 1, results[-1]):
                break
        return results + [None] * (len(cases) - len(results))

    def session(self, *, limits: Limits | None = None) -> Session:
        limits = limits or self.limits
        return RemoteSession(self, str(self._ask("POST", "/sessions", {}, limits, 0).get("id")), limits)

    def report(self) -> Report:
        report: Report = _read(protocol.unpacked_report, self._ask("GET", "/report", None, None, 0))
        return report

    def close(self) -> None:
        self.closed = True
        while self._idle:
            self._idle.pop().close()

    def _result(
        self, path: str, body: dict[str, Any], stdin: str | bytes, limits: Limits | None, files: Files | None
    ) -> Result:
        limits = limits or self.limits
        body |= {"stdin": protocol.packed(stdin), "files": protocol.packed_files(files)}
        result: Result = _read(protocol.unpacked_result, self._ask("POST", path, body, limits, limits.wall_s))
        return result

    def _ask(
        self, method: str, path: str, body: Mapping[str, Any] | None, limits: Limits | None, wall_s: float
    ) -> dict[str, Any]:
        """One request. wall_s: what the work may take. Raises SandboxError, or BadValue where the server says so."""
        if self.closed:
            raise SandboxError(f"this sandbox at {self.url} is closed")
        if limits is not None:
            body = {**(body or {}), "limits": protocol.packed_limits(limits)}
        data = None if body is None else json.dumps(body).encode()
        try:
            status, answer = self._exchange(method, path, data, wall_s + GRACE_S)
        except (OSError, http.client.HTTPException, ValueError) as e:
            raise SandboxError(f"{method} {path} of {self.url} failed: {type(e).__name__}: {e}") from e
        if status == protocol.BAD_VALUE:
            raise BadValue(str(answer.get("error")))
        if status != protocol.OK:
            raise SandboxError(f"{method} {path} of {self.url} answered {status}: {answer.get('error')}")
        return answer

    def _exchange(self, method: str, path: str, data: bytes | None, timeout: float) -> tuple[int, dict[str, Any]]:
        connection = self._connection()
        try:
            connection.sock.settimeout(timeout)
            headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
            connection.request(method, self._parts.path.rstrip("/") + path, data, headers)
            response = connection.getresponse()
            answer = json.loads(response.read())
            if not isinstance(answer, dict):
                raise ValueError(f"expected an object, got {answer!r:.80}")
        except BaseException:
            connection.close()
            raise
        self._idle.append(connection)
        if self.closed:
            self.close()
        return response.status, answer

    def _connection(self) -> http.client.HTTPConnection:
        """An idle connection that the server has not closed, or a new one. After a fork all are new."""
        if self._owner != os.getpid():
            self._owner, self._idle = os.getpid(), []
        while self._idle:
            with contextlib.suppress(IndexError):  # another thread was faster
                connection = self._idle.pop()
                if not select.select([connection.sock], [], [], 0)[0]:  # else there is its end to read
                    return connection
                connection.close()
        return self._connected()

    def _connected(self) -> http.client.HTTPConnection:
        host, port = self._parts.hostname or "", self._parts.port
        connection: http.client.HTTPConnection
        if self._parts.scheme == "https":
            connection = http.client.HTTPSConnection(
                host, port, timeout=CONNECT_S, context=ssl.create_default_context()
            )
        else:
            connection = http.client.HTTPConnection(host, port, timeout=CONNECT_S)
        connection.connect()
        return connection


class RemoteSession(Session):
    """An interpreter on the server. Made by RemoteSandbox.session."""

    def __init__(self, sandbox: RemoteSandbox, name: str, limits: Limits) -> None:
        self._sandbox, self._path, self._limits = sandbox, f"/sessions/{name}", limits
        self._closed = False

    def run(self, code: str, *, wall_s: float | None = None) -> Result:
        if self._closed:
            raise SandboxError("this session is closed")
        patience_s = self._limits.wall_s if wall_s is None else wall_s
        body = {"code": code, "wall_s": wall_s}
        answer = self._sandbox._ask("POST", f"{self._path}/cells", body, None, patience_s)
        result: Result = _read(protocol.unpacked_result, answer)
        return result

    def close(self) -> None:
        if not self._closed and not self._sandbox.closed:
            self._closed = True
            self._sandbox._ask("DELETE", self._path, None, None, 0)
        self._closed = True


def _read(reader: Callable[[Any], Any], data: Any) -> Any:
    """Raises SandboxError for an answer that does not keep to the protocol."""
    try:
        return reader(data)
    except (KeyError, TypeError, ValueError) as e:
        raise SandboxError(f"the server's answer is none: {type(e).__name__}: {e}") from e
