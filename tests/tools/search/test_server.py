"""The search server: protocols, batching and the retrieval server."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import signal
import socket
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from search_fakes import running

from gem._internal.http_client import RequestError
from gem.errors import ToolError
from gem.messages import ToolCall
from gem.tools.search import retrieval_server
from gem.tools.search.client import decode_reply, encode_request
from gem.tools.search.corpus import Hit
from gem.tools.search.index import LexicalIndex
from gem.tools.search.server import (
    MAX_QUERIES,
    MAX_TOPK,
    BadRequest,
    Batcher,
    Busy,
    codec_of,
    decode_request,
    encode_reply,
)
from gem.tools.search.tool import SearchTool

ROWS = [
    {"id": "1", "title": "Faust", "text": "A play by Goethe.", "url": "http://faust"},
    {"id": "2", "title": "Hamlet", "text": "A play by Shakespeare."},
    {"id": "3", "title": "Emma", "text": "A novel by Austen."},
    *({"id": f"more{number}", "title": f"Play {number}", "text": "One more play."} for number in range(20)),
]


def corpus(folder: Path) -> Path:
    path = folder / "corpus.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return path


# --- protocols -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", ["gem", "search-r1"])
def test_client_and_server_agree_on_the_protocol(protocol):
    body = encode_request(protocol, "wer schrieb Fäust?", 2)
    request = decode_request(body)
    assert request.texts() == ["wer schrieb Fäust?"] and request.topk == 2
    [hits] = LexicalIndex.of(ROWS).search(["Faust"], 2)
    assert decode_reply(protocol, encode_reply(request, codec_of(body), [hits])) == hits


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "JSON object"),
        (b"\xff", "JSON object"),  # msgpack of -1
        (b"[1]", "JSON object"),
        (b"null", "JSON object"),
        (b"{", "read as json"),
        (b"\x81", "read as msgpack"),
        (b"{}", "'query'"),
        (b'{"query": "a", "queries": ["a"]}', "'query'"),
        (b'{"query": 5}', "`str"),
        (b'{"queries": []}', "length >= 1"),
        (b'{"queries": "a"}', "`array"),
        (b'{"queries": ["a", null]}', "queries"),
        (b'{"query": "a", "topk": 0}', "topk"),
        (b'{"query": "a", "topk": true}', "topk"),
        (b'{"query": "a", "topk": 2.5}', "topk"),
        (b'{"query": "a", "topk": "3"}', "topk"),
        (b'{"query": "a", "return_scores": "yes"}', "return_scores"),
        (json.dumps({"query": "a", "topk": MAX_TOPK + 1}).encode(), "topk"),
        (json.dumps({"queries": ["a"] * (MAX_QUERIES + 1)}).encode(), "length <= 1024"),
        (b'{"query": "\xff"}', "read as json"),
    ],
)
def test_an_invalid_request_is_refused_with_the_reason(body, message):
    with pytest.raises(BadRequest, match=message):
        decode_request(body)


@given(st.binary(max_size=200))
def test_any_body_is_either_a_request_or_refused(body):
    for each in (body, b"{" + body, b"\x82" + body):
        with contextlib.suppress(BadRequest):
            decode_request(each)


@given(st.binary(max_size=200))
def test_any_reply_is_either_hits_or_an_error(body):
    for protocol in ("gem", "search-r1"):
        for each in (body, b'{"result": [[' + body + b"]]}", msgspec.msgpack.encode({"result": [{"document": 5}]})):
            with contextlib.suppress(RequestError):
                decode_reply(protocol, each)


@pytest.mark.parametrize("asks", [{"query": "a"}, {"queries": ["a"]}])
@pytest.mark.parametrize("scores", [None, False, True])
@pytest.mark.parametrize("codec", [msgspec.json, msgspec.msgpack])
def test_scores_are_sent_on_request_and_by_default_in_msgpack(codec, scores, asks):
    body = codec.encode({**asks, "return_scores": scores})
    reply = encode_reply(decode_request(body), codec_of(body), [[Hit({"id": "1", "contents": "x"}, 0.5)]])
    result = codec.decode(reply)["result"]
    [found] = result if "query" in asks else result[0]
    wanted = codec is msgspec.msgpack if scores is None else scores
    assert found == (
        {"document": {"id": "1", "contents": "x"}, "score": 0.5} if wanted else {"id": "1", "contents": "x"}
    )


def test_requests_for_reranking_and_unknown_fields_are_accepted():
    request = decode_request(b' {"queries": ["a"], "topk_retrieval": 10, "topk_rerank": 4}')
    assert request.topk_rerank == 4
    assert json.loads(encode_reply(request, "json", [[Hit({"id": "1", "contents": "x"}, 0.5)]])) == {
        "result": [[{"id": "1", "contents": "x"}]]
    }


# --- batching --------------------------------------------------------------------------------------------------------


class Recording:
    """A retriever that echoes its queries and records its batches. It blocks until ``go`` is set."""

    quick = False

    def __init__(self) -> None:
        self.batches: list[tuple[list[str], int]] = []
        self.go = threading.Event()

    def search(self, queries, topk):
        assert self.go.wait(30)
        self.batches.append((list(queries), topk))
        if "bad" in queries:
            raise ToolError("broken")
        return [[Hit({"id": query, "contents": query}, 1.0)] * topk for query in queries]

    def close(self) -> None:
        pass


def batched(queries: list[tuple[str, int]], retriever: Recording, **options: int) -> list[object]:
    """Search (query, topk) pairs concurrently and return the ids found, or the exception, of each."""

    async def go() -> list[object]:
        batcher = Batcher(retriever, **options)
        asked = [asyncio.create_task(batcher.search([query], topk)) for query, topk in queries]
        await asyncio.sleep(0)
        retriever.go.set()
        answers = await asyncio.gather(*asked, return_exceptions=True)
        assert batcher.waiting == 0 and batcher.batches == len(retriever.batches)
        batcher.close()
        return [
            answer if isinstance(answer, BaseException) else [h.document["id"] for h in answer[0]] for answer in answers
        ]

    return asyncio.run(go())


def test_concurrent_queries_are_batched_by_topk():
    retriever = Recording()
    queries = [(f"q{number}", number % 3 + 1) for number in range(100)]
    answers = batched(queries, retriever, workers=1, max_batch=16)
    assert answers == [[query] * topk for query, topk in queries]
    assert len(retriever.batches) <= 12
    assert max(len(batch) for batch, _ in retriever.batches) == 16


def test_a_failure_is_isolated_to_its_batch():
    retriever = Recording()
    answers = batched([("a", 1), ("bad", 2), ("c", 3)], retriever, workers=1)
    assert answers[0] == ["a"] and answers[2] == ["c"] * 3 and isinstance(answers[1], ToolError)


def test_a_cancelled_query_is_not_searched():
    retriever = Recording()

    async def go() -> None:
        batcher = Batcher(retriever, workers=1)
        first = asyncio.create_task(batcher.search(["first"], 1))
        given_up = asyncio.create_task(batcher.search(["given up"], 1))
        await asyncio.sleep(0)
        given_up.cancel()
        await asyncio.sleep(0)
        retriever.go.set()
        await first
        await batcher.search(["last"], 1)
        batcher.close()

    asyncio.run(go())
    assert [batch for batch, _ in retriever.batches] == [["first"], ["last"]]


def test_queries_beyond_the_queue_limit_are_refused(monkeypatch):
    monkeypatch.setattr("gem.tools.search.server.MAX_WAITING", 3)
    retriever = Recording()
    answers = batched([(f"q{number}", 1) for number in range(6)], retriever, workers=1, max_batch=1)
    assert [isinstance(answer, Busy) for answer in answers] == [False] * 4 + [True] * 2


# --- the retrieval server --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    for module in ("starlette", "uvicorn", "prometheus_client"):
        pytest.importorskip(module, reason="needs the extra [search]")
    folder = tmp_path_factory.mktemp("server")
    with running("retrieval_server", "--corpus", corpus(folder), "--index", folder / "index", "--topk", 2) as server:
        yield server
        code, stderr = server.stop()
        assert code == -signal.SIGTERM and "Error" not in stderr, stderr


def test_ctrl_c_ends_the_server_at_once_and_without_a_traceback(tmp_path):
    for module in ("starlette", "uvicorn", "prometheus_client"):
        pytest.importorskip(module, reason="needs the extra [search]")
    with (
        running("retrieval_server", "--corpus", corpus(tmp_path), "--index", tmp_path / "index") as server,
        socket.create_connection(("127.0.0.1", urlsplit(server.url).port), timeout=30) as slow,
    ):
        slow.sendall(b"POST /retrieve HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{")
        assert server.get("/health")  # the half request has arrived
        code, stderr = server.stop(signal.SIGINT)
        assert code == 0 and not stderr.strip()
        assert slow.recv(1) == b""


def test_a_flood_of_connections_leaves_the_server_descriptors_and_an_empty_log(tmp_path):
    for module in ("starlette", "uvicorn", "prometheus_client"):
        pytest.importorskip(module, reason="needs the extra [search]")
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.ExitStack() as stack:
        stack.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))  # which the server inherits
        options = ["--corpus", corpus(tmp_path), "--index", tmp_path / "index"]
        server = stack.enter_context(running("retrieval_server", *options))
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        with contextlib.ExitStack() as flood:
            for _ in range(500):
                connection = flood.enter_context(socket.socket())
                connection.setblocking(False)
                connection.connect_ex(("127.0.0.1", urlsplit(server.url).port))
            with contextlib.suppress(OSError):  # most likely status 503
                server.get("/health")
        assert server.stop()[1].strip() == ""


def test_both_protocols_return_the_same_as_an_index_in_the_process(server):
    calls = [ToolCall("search", {"query": query}) for query in ("who wrote Faust?", "a play", "zebra", "more7")]
    expected = [SearchTool(index=LexicalIndex.of(ROWS), topk=3).call(call) for call in calls]
    for protocol in ("gem", "search-r1"):
        tool = SearchTool(search_url=server.url, protocol=protocol)
        assert [tool.call(call) for call in calls] == expected
        tool.close()


def test_each_request_has_its_own_topk_and_scores(server):
    assert len(server.ask(queries=["play"])[0]) == 2
    assert [len(hits) for hits in server.ask(queries=["play", "Faust", "zebra"], topk=7)] == [7, 1, 0]
    bare = server.ask(queries=["Faust"])[0][0]
    assert bare == {"id": "1", "contents": '"Faust"\nA play by Goethe.', "url": "http://faust"}
    scored = server.ask(queries=["Faust"], return_scores=True)[0][0]
    assert scored["document"] == bare and scored["score"] > 0
    assert server.ask(query="Faust") == [bare]


def test_concurrent_clients_get_their_own_answers(server):
    def ask(number: int) -> bool:
        topk = number % 5 + 1
        [hits] = server.ask(queries=[f"play more{number % 20}"], topk=topk)
        return len(hits) == topk

    with ThreadPoolExecutor(16) as pool:
        assert all(pool.map(ask, range(200)))


@pytest.mark.parametrize("body", [b"", b"\xff", b"{broken", b'{"queries": []}', b'{"query": "a", "topk": -1}'])
def test_an_invalid_request_gets_status_400_and_the_next_one_is_answered(body, server):
    status, reply = server.post(body)
    assert status == 400 and json.loads(reply)["error"]
    assert server.ask(query="Faust")


def test_an_invalid_msgpack_request_is_answered_in_msgpack(server):
    status, reply = server.post(msgspec.msgpack.encode({"query": 5}))
    assert status == 400 and "str" in msgspec.msgpack.decode(reply)["error"]


def test_an_oversized_body_is_refused(server):
    status, reply = server.post(b"{" + b" " * (17 << 20))
    assert status == 413 and "larger" in json.loads(reply)["error"]


def test_a_client_that_disconnects_causes_no_traceback(tmp_path):
    for module in ("starlette", "uvicorn", "prometheus_client"):
        pytest.importorskip(module, reason="needs the extra [search]")
    with running("retrieval_server", "--corpus", corpus(tmp_path), "--index", tmp_path / "index") as server:
        address = urlsplit(server.url)
        with socket.create_connection((address.hostname, address.port)) as leaving:
            leaving.sendall(b"POST /retrieve HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99\r\n\r\n{")
        assert server.ask(query="Faust")
        assert "Traceback" not in server.stop()[1]


def test_access_returns_documents_by_url(server):
    status, reply = server.post(b'{"urls": ["http://faust", "http://nowhere"]}', "/access")
    assert status == 200
    assert json.loads(reply) == {"result": [{"contents": '"Faust"\nA play by Goethe.'}, None]}
    assert server.post(b'{"urls": "http://faust"}', "/access")[0] == 400


def test_health_and_metrics_report_the_requests(server):
    about = json.loads(server.get("/health"))
    assert about["status"] == "ok" and about["documents"] == len(ROWS)

    def value(name: str) -> float:
        return float(re.search(rf"^{re.escape(name)} (\S+)$", server.get("/metrics"), re.MULTILINE)[1])

    server.ask(queries=["a", "b", "c"])
    server.post(b"nonsense")
    before = value("gem_search_queries_total"), value('gem_search_requests_total{status="400"}')
    server.ask(queries=["a", "b", "c"])
    server.post(b"nonsense")
    assert value("gem_search_queries_total") == before[0] + 3
    assert value('gem_search_requests_total{status="400"}') == before[1] + 1
    assert value("gem_search_request_seconds_count") == value('gem_search_request_seconds_bucket{le="+Inf"}')
    assert value("gem_search_in_flight") == 0 and value("gem_search_documents") == len(ROWS)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--index", "nowhere"], "--corpus is needed"),
        (["--index", "new", "--corpus", "bad.jsonl"], "bad.jsonl, line 2"),
        (["--index", "new", "--corpus", "nothing.jsonl"], "no such file"),
        (["--index", "new", "--corpus", "good.jsonl", "--topk", "0"], "at least 1"),
        (["--index", "new", "--corpus", "good.jsonl", "--port", "99999"], "cannot listen"),
    ],
)
def test_startup_errors_are_one_line_on_stderr(options, message, tmp_path, monkeypatch, capsys):
    for module in ("starlette", "uvicorn", "prometheus_client"):
        pytest.importorskip(module, reason="needs the extra [search]")
    (tmp_path / "good.jsonl").write_text('{"contents": "x"}\n')
    (tmp_path / "bad.jsonl").write_text('{"contents": "x"}\n{\n')
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit, match="2"):
        sys.exit(retrieval_server.main(options))
    assert re.search(rf"error: .*{message}.*\n\Z", capsys.readouterr().err)
