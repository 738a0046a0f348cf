"""Remote sandboxes: the client against the server, and against servers that misbehave."""

import base64
import http.client
import json
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import pytest

from gem.errors import BadValue, SandboxError
from gem.sandbox import Case, Limits, Status, make_sandbox
from gem.sandbox.remote.protocol import packed_cases, unpacked_cases
from gem.sandbox.remote.server import SandboxServer
from gem.sandbox.results import Result
from gem.testing.sandbox.check_sandbox import check_sandbox

for library in ("aiohttp", "starlette", "uvicorn"):
    pytest.importorskip(library, reason="needs the extra [serve]")


@pytest.fixture(scope="module")
def inner():
    with make_sandbox("subprocess") as made:
        yield made


@pytest.fixture(scope="module")
def server(inner):
    with SandboxServer(inner, token="right") as running:
        yield running


@pytest.fixture
def remote(server):
    with make_sandbox("remote", url=server.url, token="right") as made:
        yield made


def ask(server, method, path, body=None, token="right"):
    """Send a request with the standard library only."""
    connection = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=30)
    try:
        connection.request(method, path, body, {"Authorization": f"Bearer {token}"})
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    finally:
        connection.close()


class Misbehaving:
    """Accepts connections, reads one request from each, and answers with the given bytes. Counts the requests."""

    def __init__(self, answer):
        self.answer, self.requests = answer, 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        self.thread = threading.Thread(target=self._serve)

    def _serve(self):
        while True:
            connection, _ = self.listener.accept()
            with connection:
                if not connection.recv(65536):
                    return
                self.requests += 1
                connection.sendall(self.answer)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        with socket.create_connection(self.listener.getsockname()) as last:
            last.shutdown(socket.SHUT_WR)
            self.thread.join(30)
        self.listener.close()


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b'{"status": "ok", "wall_s": ' + b"9" * 100_000 + b"}",
        b'{"a": "\xff"}',
        b"",
        b"[]",
    ],
)
@pytest.mark.parametrize("status", [b"200 OK", b"400 Bad Request", b"503 Failed"])
def test_a_hostile_response_is_an_error_of_the_sandbox(body, status):
    answer = b"HTTP/1.1 " + status + b"\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    with Misbehaving(answer) as server, make_sandbox("remote", url=server.url, token="") as remote:
        with pytest.raises(BadValue if status.startswith(b"400") else SandboxError) as caught:
            remote.run("1")
        assert len(str(caught.value)) < 1000


def test_a_remote_sandbox_passes_the_sandbox_checks(remote):
    findings = check_sandbox(remote)
    assert [(finding.name, finding.detail) for finding in findings if finding.status == "failed"] == []


def test_the_report_is_that_of_the_served_sandbox(remote, inner):
    assert remote.report() == inner.report()


def test_the_server_follows_the_documented_protocol(server):
    program = base64.b64encode(b"print(input())").decode()
    body = {"program": program, "stdin": base64.b64encode(b"hi").decode(), "limits": {"wall_s": 5}}
    status, result = ask(server, "POST", "/run", json.dumps(body))
    assert (status, result["status"], result["stdout"]) == (200, "ok", "hi\n")
    assert ask(server, "POST", "/exec", json.dumps({"command": "exit 3"}))[1]["exit_code"] == 3
    status, opened = ask(server, "POST", "/sessions", "{}")
    assert ask(server, "POST", f"/sessions/{opened['id']}/cells", '{"code": "1 + 1"}')[1]["stdout"] == "2\n"
    assert ask(server, "DELETE", f"/sessions/{opened['id']}") == (200, {})
    assert ask(server, "POST", f"/sessions/{opened['id']}/cells", '{"code": "1"}')[0] == 503
    assert ask(server, "GET", "/report")[1]["backend"] == "subprocess"


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("GET", "/nothing", "{}", 404),
        ("GET", "/run", "{}", 404),
        ("POST", "/run", "{}", 400),
        ("POST", "/run", "no json", 400),
        ("POST", "/run", "[]", 400),
        ("POST", "/run", '{"program": "%%%"}', 400),
        ("POST", "/run", '{"program": "", "limits": {"wal_s": 1}}', 400),
        ("POST", "/run", '{"program": "", "limits": {"wall_s": -1}}', 400),
        ("POST", "/run", '{"program": "", "files": {"../x": ""}}', 400),
    ],
)
def test_an_invalid_request_is_answered_with_an_error(server, method, path, body, status):
    found, answer = ask(server, method, path, body)
    assert found == status and answer["error"]


def test_a_wrong_token_runs_nothing(server):
    assert ask(server, "POST", "/run", "{}", token="wrong") == (401, {"error": "wrong token"})
    with make_sandbox("remote", url=server.url, token="wrong") as client, pytest.raises(SandboxError, match="401"):
        client.run("print(1)")


def test_a_server_requires_a_token(inner):
    with pytest.raises(BadValue, match="token"):
        SandboxServer(inner, token="")


def test_invalid_arguments_raise_bad_value(remote):
    with pytest.raises(BadValue, match="relative"):
        remote.run("", files={"/x": ""})


def test_the_token_may_come_from_the_environment(server, monkeypatch):
    monkeypatch.setenv("GEM_SANDBOX_TOKEN", "right")
    with make_sandbox("remote", url=server.url) as remote:
        assert remote.run("print(1)").stdout == "1\n"


def test_the_limits_of_the_sandbox_are_sent_with_every_call(server):
    with make_sandbox("remote", url=server.url, token="right", limits=Limits(wall_s=0.5)) as remote:
        assert remote.run("while True: pass").status is Status.TIMEOUT


def test_all_fields_of_a_case_are_transferred():
    case = Case(stdin=b"\xff", arguments="[1]", value_bytes=100)
    assert unpacked_cases(json.loads(json.dumps(packed_cases([case])))) == [case]


def test_connections_are_reused_by_all_threads(inner):
    with SandboxServer(inner, token="t") as server, make_sandbox("remote", url=server.url, token="t") as remote:
        with ThreadPoolExecutor(8) as pool:
            outputs = list(pool.map(lambda n: remote.run(f"print({n})").stdout, range(24)))
        assert outputs == [f"{n}\n" for n in range(24)]
        before = set(server._server.server_state.connections)
        assert 1 <= len(before) <= 8
        remote.run("1")
        assert set(server._server.server_state.connections) == before


def test_a_forked_process_opens_its_own_connections(server):
    with make_sandbox("remote", url=server.url, token="right") as remote:
        remote.run("1")
        parent = remote._client._background
        parent.pid += 1  # as in a forked process
        assert remote.run("print(2)").stdout == "2\n"
        assert remote._client._background is not parent
        parent.pid -= 1
        parent.close()


@pytest.mark.parametrize("url", ["localhost:1", "ftp://x", "http://", ""])
def test_an_invalid_url_raises_bad_value(url):
    with pytest.raises(BadValue, match=r"url .*http://host:port"):
        make_sandbox("remote", url=url, token="t")


def test_a_url_is_required():
    with pytest.raises(BadValue, match="requires the option url="):
        make_sandbox("remote")


def test_an_unreachable_server_raises_sandbox_error():
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    with make_sandbox("remote", url=f"http://127.0.0.1:{port}", token="t") as remote:
        for work in (lambda: remote.run("1"), remote.session, remote.report):
            with pytest.raises(SandboxError, match="Cannot connect"):
                work()


OBJECT = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
ANSWERS = [b"", b"nonsense\r\n\r\n", OBJECT, OBJECT.replace(b"{}", b"[]"), OBJECT.replace(b"{}", b"!!")]


@pytest.mark.parametrize("answer", ANSWERS)
def test_an_invalid_response_raises_sandbox_error_and_the_request_is_not_repeated(answer):
    with Misbehaving(answer) as server, make_sandbox("remote", url=server.url, token="t") as remote:
        with pytest.raises(SandboxError):
            remote.run("1")
        assert server.requests == 1


def test_a_client_reconnects_to_a_server_that_restarts(inner):
    with socket.socket() as reserved:
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        reserved.bind(("127.0.0.1", 0))  # nothing else gets the port
        port = reserved.getsockname()[1]
        with SandboxServer(inner, token="t", port=port) as first:
            remote = make_sandbox("remote", url=first.url, token="t")
            assert remote.run("print(1)").stdout == "1\n"
        with SandboxServer(inner, token="t", port=port), remote:
            assert remote.run("print(2)").stdout == "2\n"


def test_a_failure_of_the_served_sandbox_raises_sandbox_error(inner):
    closed = make_sandbox("subprocess")
    closed.close()
    with (
        SandboxServer(closed, token="t") as server,
        make_sandbox("remote", url=server.url, token="t") as remote,
        pytest.raises(SandboxError, match=r"status 503: .*SubprocessSandbox is closed"),
    ):
        remote.run("1")


def test_stop_cancels_the_remaining_tests(remote):
    seen = []
    cases = [Case(stdin=str(n)) for n in range(4)]
    results = remote.run_tests("print(input())", cases, stop=lambda index, result: seen.append(index) or index == 1)
    assert seen == [0, 1]
    assert [result and result.stdout for result in results] == ["0\n", "1\n", None, None]


def test_idle_sessions_are_closed_when_another_is_opened(inner, monkeypatch):
    with SandboxServer(inner, token="t") as server, make_sandbox("remote", url=server.url, token="t") as remote:
        left = remote.session()
        left.run("1")
        monkeypatch.setattr("gem.sandbox.remote.server.SESSION_IDLE_S", 0.0)
        with remote.session() as other:
            assert other.run("2").stdout == "2\n"
            with pytest.raises(SandboxError, match="idle"):
                left.run("1")
        left.close()


def test_a_closed_session_and_a_closed_sandbox_raise(server):
    remote = make_sandbox("remote", url=server.url, token="right")
    session = remote.session()
    assert isinstance(session.run("1"), Result)
    remote.close()
    session.close()
    for work in (lambda: remote.run("1"), lambda: session.run("1")):
        with pytest.raises(SandboxError, match="closed"):
            work()


def test_numbers_and_texts_of_other_libraries_are_sent(remote):
    class Text(str):
        pass

    np = pytest.importorskip("numpy")
    with remote.session() as session:
        with pytest.raises(TypeError):
            session.run(b"print(1)")
        assert session.run(Text("print(1)"), wall_s=np.float64(5)).stdout == "1\n"
