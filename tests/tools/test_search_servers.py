"""Search servers: protocols, batching, the retrieval server and the web search servers."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import signal
import socket
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from search_fakes import command, running

import gem
from gem._internal.http_client import RequestError
from gem.errors import ToolError
from gem.messages import ToolCall
from gem.tools.search_engine.client import decode_reply, encode_request
from gem.tools.search_engine.corpus import Hit
from gem.tools.search_engine.index import LexicalIndex
from gem.tools.search_engine.server import (
    MAX_QUERIES,
    MAX_TOPK,
    BadRequest,
    Batcher,
    Busy,
    codec_of,
    decode_request,
    encode_reply,
)
from gem.tools.search_tool import SearchTool

ROWS = [
    {"id": "1", "title": "Faust", "text": "A play by Goethe.", "url": "http://faust"},
    {"id": "2", "title": "Hamlet", "text": "A play by Shakespeare."},
    {"id": "3", "title": "Emma", "text": "A novel by Austen."},
    *({"id": f"more{number}", "title": f"Play {number}", "text": "One more play."} for number in range(20)),
]
KEY = "sk-a-very/secret+key"


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
    monkeypatch.setattr("gem.tools.search_engine.server.MAX_WAITING", 3)
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
    assert status == 400 and "larger" in json.loads(reply)["error"]


def test_a_client_that_disconnects_is_counted_without_a_traceback(tmp_path):
    for module in ("starlette", "uvicorn", "prometheus_client"):
        pytest.importorskip(module, reason="needs the extra [search]")
    with running("retrieval_server", "--corpus", corpus(tmp_path), "--index", tmp_path / "index") as server:
        address = urlsplit(server.url)
        with socket.create_connection((address.hostname, address.port)) as leaving:
            leaving.sendall(b"POST /retrieve HTTP/1.1\r\nHost: x\r\nContent-Length: 99\r\n\r\n{")
        while 'requests_total{status="400"} 1' not in server.get("/metrics"):
            time.sleep(0.01)
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
def test_startup_errors_are_one_line_on_stderr(options, message, tmp_path):
    for module in ("starlette", "uvicorn", "prometheus_client"):
        pytest.importorskip(module, reason="needs the extra [search]")
    (tmp_path / "good.jsonl").write_text('{"contents": "x"}\n')
    (tmp_path / "bad.jsonl").write_text('{"contents": "x"}\n{\n')
    done = subprocess.run(
        command("retrieval_server", *options), capture_output=True, text=True, cwd=tmp_path, timeout=60
    )
    assert done.returncode == 2 and message in done.stderr and "Traceback" not in done.stderr


# --- web search servers ----------------------------------------------------------------------------------------------


@pytest.fixture
def web_of():
    for module in ("aiohttp", "starlette", "uvicorn", "prometheus_client"):
        pytest.importorskip(module, reason="needs the extra [search]")
    from gem.testing.fake_search import FakeWeb

    return FakeWeb


@pytest.fixture
def pages():
    for module in ("aiohttp", "selectolax"):
        pytest.importorskip(module, reason="needs the extra [search]")
    from gem.testing.fake_search import Page

    long = "<p>" + " ".join(f"filler{number}" for number in range(2000)) + "</p>"
    body = (
        f"<html><head><title>no</title><style>p {{}}</style></head><body>{long}<p>Goethe wrote &amp; Faust.</p>{long}"
    )
    return {
        "who wrote faust?": [
            Page("Answer", "Goethe"),
            Page("Faust", "Goethe wrote Faust", "/faust", body + "<script>var x</script></body></html>"),
            Page("Other", "no such page", "/missing"),
            Page("Who is Goethe?", "A poet."),
        ]
    }


def serp(web, *options: object):
    return running("serp_search_server", "--search_url", web.serp_url, "--topk", 2, "--serp_api_key", KEY, *options)


def test_the_published_example_of_a_game_with_web_search_runs(web_of, pages):
    from gem.tools.tool_env_wrapper import ToolEnvWrapper

    with web_of(pages, key=KEY) as web, serp(web) as server:
        env = gem.make("game:GuessTheNumber-v0", max_turns=2)
        tool = SearchTool(search_url=server.url, topk=2)
        wrapped_env = ToolEnvWrapper(env, tools=[tool], max_tool_uses=1)
        observation, _ = wrapped_env.reset(seed=0)
        assert "<search>" in observation
        step = wrapped_env.step("<search>who wrote faust?</search>")
        assert 'Doc 1(Title: "Answer") Goethe\nDoc 2(Title: "Faust") Goethe wrote Faust\n' in step.observation
        assert not step.terminated and step.info["tool_use_counter"] == step.info["tool_success_counter"] == 1
        steps = [wrapped_env.step(r"\boxed{1}"), wrapped_env.step(r"\boxed{2}")]
        assert steps[-1].terminated or steps[-1].truncated
        wrapped_env.close()
        assert web.requests == [{"engine": "google", "q": "who wrote faust?", "api_key": KEY, "output": "json"}]
        code, stderr = server.stop()
    assert code == -signal.SIGTERM and KEY not in stderr


def test_serpapi_results_are_answer_box_organic_results_and_related_questions(web_of, pages):
    with web_of(pages, key=KEY) as web, serp(web) as server:
        [hits] = server.ask(queries=["who wrote faust?"], topk=9, return_scores=True)
        assert [hit["document"]["contents"] for hit in hits] == [
            '"Answer"\nGoethe',
            '"Faust"\nGoethe wrote Faust',
            '"Other"\nno such page',
            '"Who is Goethe?"\nA poet.',
        ]
        assert hits[1]["document"]["url"].endswith("/faust")
        assert [hit["score"] for hit in hits] == [1, 0.5, 0.3333, 0.25]
        assert len(server.ask(queries=["who wrote faust?"])[0]) == 2
        assert server.ask(queries=["no such thing", "  "]) == [[], []]
        assert json.loads(server.get("/health"))["searches"] == "serpapi google"


def test_errors_of_the_search_api_never_contain_the_key(web_of, pages):
    from gem.testing.fakes import Answer

    with web_of(pages, key="another") as web, serp(web) as server:
        status, reply = server.post(b'{"query": "who wrote faust?"}')
        assert status == 502 and "Invalid API key" in json.loads(reply)["error"]
        tool = SearchTool(search_url=server.url, retries=0)
        with pytest.raises(ToolError, match="Invalid API key") as raised:
            tool.call(ToolCall("search", {"query": "who wrote faust?"}))
        tool.close()
        _, stderr = server.stop()
    output = reply.decode() + str(raised.value) + stderr
    assert KEY not in output and "sk-a-very" not in output
    spent = [Answer(body='{"error": "You have run out of searches."}')]
    with web_of(pages, key=KEY, failures=spent) as web, serp(web) as server:
        status, reply = server.post(b'{"query": "x"}')
    assert status == 502 and "run out" in json.loads(reply)["error"]


def test_transient_errors_are_retried_and_timeouts_get_status_504(web_of, pages):
    from gem.testing.fakes import Answer

    with web_of(pages, key=KEY, failures=[Answer(status=503), Answer(body="nonsense")]) as web, serp(web) as server:
        assert len(server.ask(query="who wrote faust?")) == 2
    slow = [Answer(delay=30)] * 3
    with web_of(pages, key=KEY, failures=slow) as web, serp(web, "--timeout", 0.2) as server:
        status, reply = server.post(b'{"query": "who wrote faust?"}')
    assert status == 504 and "0.2 s" in json.loads(reply)["error"]


def test_results_are_cached_on_disk_across_servers(web_of, pages, tmp_path):
    cache = tmp_path / "cache.sqlite"
    with web_of(pages, key=KEY) as web:
        found = []
        for _ in range(2):
            with serp(web, "--cache", cache) as server:
                found += [server.ask(queries=["who wrote faust?", "no such thing"]) for _ in range(2)]
                server.stop()
        assert found == [found[0]] * 4
        assert len(web.requests) == 2
    assert KEY.encode() not in cache.read_bytes()


def test_the_key_is_read_from_the_environment_and_required(web_of, pages):
    with web_of(pages, key=KEY) as web:
        options = ("--search_url", web.serp_url)
        with running("serp_search_server", *options, SERP_API_KEY=KEY) as server:
            assert server.ask(query="who wrote faust?")
        done = subprocess.run(command("serp_search_server", *options), capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and "SERP_API_KEY" in done.stderr


def google(web, *options: object):
    return running(
        "google_search_server",
        "--search_url",
        web.google_url,
        "--api_key",
        KEY,
        "--cse_id",
        "engine",
        "--topk",
        3,
        *options,
    )


def test_google_returns_snippets_or_excerpts_of_pages(web_of, pages):
    with web_of(pages, key=KEY) as web:
        with google(web, "--snippet_only") as server:
            snippets = [each["contents"] for each in server.ask(query="who wrote faust?")]
        assert snippets == ['"Answer"\nGoethe', '"Faust"\nGoethe wrote Faust', '"Other"\nno such page']
        assert web.fetched == [] and web.requests == [{"key": KEY, "cx": "engine", "q": "who wrote faust?", "num": "3"}]
        with google(web, "--private_pages") as server:
            first, second, third = [each["contents"] for each in server.ask(query="who wrote faust?")]
        assert sorted(web.fetched) == ["/faust", "/missing", "/page"]
    assert (first, third) == (snippets[0], snippets[2])
    assert "Goethe wrote & Faust." in second and "filler" in second and "var x" not in second
    assert 250 < len(second.split()) <= 310


def test_pages_of_private_networks_are_fetched_only_on_request(web_of, pages):
    with web_of(pages, key=KEY) as web, google(web) as server:
        assert [each["contents"] for each in server.ask(query="who wrote faust?")][1] == '"Faust"\nGoethe wrote Faust'
        assert web.fetched == []


@pytest.mark.parametrize(
    "url", ["http://localhost:1/", "http://127.0.0.1/", "http://[::1]/", "file:///etc/passwd", "http://", "x"]
)
def test_addresses_that_are_not_public_are_refused(url):
    pytest.importorskip("aiohttp", reason="needs the extra [search]")
    from gem.tools.search_engine.web import PageError, PageFetcher

    async def fetch() -> None:
        pages = PageFetcher(timeout=10)
        with pytest.raises(PageError):
            await pages.text(url)
        await pages.close()

    asyncio.run(fetch())


def test_requests_in_flight_are_answered_before_shutdown(web_of, pages):
    from gem.testing.fakes import Answer

    with web_of(pages, key=KEY, failures=[Answer(delay=1.0, status=503)]) as web, serp(web) as server:
        with ThreadPoolExecutor(1) as pool:
            asked = pool.submit(server.ask, query="who wrote faust?")
            while not web.requests:
                time.sleep(0.01)
            server.process.send_signal(signal.SIGTERM)
            assert len(asked.result(30)) == 2
        assert server.process.wait(30) == -signal.SIGTERM
