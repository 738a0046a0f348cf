"""Search servers, started by their command lines, and their parts."""

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
from gem.errors import ToolError
from gem.messages import ToolCall
from gem.tools.search_engine.batching import Batcher, Busy
from gem.tools.search_engine.index import Hit, LexicalIndex
from gem.tools.search_engine.wire import (
    MOST_QUERIES,
    MOST_TOPK,
    BadRequest,
    read_reply,
    read_request,
    write_reply,
    write_request,
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


# --- the wire --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", ["gem", "search-r1"])
def test_what_one_end_writes_the_other_reads(protocol):
    asked = read_request(write_request(protocol, "wer schrieb Fäust?", 2), 9)
    assert asked.queries == ["wer schrieb Fäust?"] and asked.topk == 2
    [hits] = LexicalIndex.of(ROWS).search(["Faust"], 2)
    assert read_reply(protocol, write_reply(asked, [hits])) == hits


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b"", "object in JSON"),
        (b"\xff", "object in JSON"),  # msgpack of -1
        (b"[1]", "object in JSON"),
        (b"null", "object in JSON"),
        (b"{", "no json"),
        (b"\x81", "no msgpack"),
        (b"{}", "'query'"),
        (b'{"query": "a", "queries": ["a"]}', "'query'"),
        (b'{"query": 5}', "text"),
        (b'{"queries": []}', "one or more"),
        (b'{"queries": "a"}', "list"),
        (b'{"queries": ["a", null]}', "list"),
        (b'{"query": "a", "topk": 0}', "topk"),
        (b'{"query": "a", "topk": true}', "topk"),
        (b'{"query": "a", "topk": 2.5}', "topk"),
        (b'{"query": "a", "topk": "3"}', "topk"),
        (b'{"query": "a", "return_scores": "yes"}', "return_scores"),
        (json.dumps({"query": "a", "topk": MOST_TOPK + 1}).encode(), "topk"),
        (json.dumps({"queries": ["a"] * (MOST_QUERIES + 1)}).encode(), "1024 at most"),
        (b'{"query": "\xff"}', "no json"),
    ],
)
def test_a_request_that_cannot_be_read_is_told_why(body, told):
    with pytest.raises(BadRequest, match=told):
        read_request(body, 3)


@given(st.binary(max_size=200))
def test_no_body_is_anything_but_a_request_or_a_bad_one(body):
    for each in (body, b"{" + body, b"\x82" + body):
        try:
            read_request(each, 3)
        except BadRequest as e:
            assert e.codec in ("json", "msgpack")


@given(st.binary(max_size=200))
def test_no_reply_is_anything_but_hits_or_nonsense(body):
    for protocol in ("gem", "search-r1"):
        for each in (body, b'{"result": [[' + body + b"]]}", msgspec.msgpack.encode({"result": [{"document": 5}]})):
            with contextlib.suppress(ValueError):
                read_reply(protocol, each)


@pytest.mark.parametrize("asks", [{"query": "a"}, {"queries": ["a"]}])
@pytest.mark.parametrize("scores", [None, False, True])
@pytest.mark.parametrize("codec", [msgspec.json, msgspec.msgpack])
def test_scores_are_sent_to_who_asks_for_them_and_by_default_in_msgpack(codec, scores, asks):
    asked = read_request(codec.encode({**asks, "return_scores": scores}), 3)
    result = codec.decode(write_reply(asked, [[Hit({"id": "1", "contents": "x"}, 0.5)]]))["result"]
    [found] = result if "query" in asks else result[0]
    wanted = codec is msgspec.msgpack if scores is None else scores
    assert found == (
        {"document": {"id": "1", "contents": "x"}, "score": 0.5} if wanted else {"id": "1", "contents": "x"}
    )


def test_without_scores_documents_are_bare_and_a_topk_of_reranking_counts():
    asked = read_request(b' {"queries": ["a"], "topk_retrieval": 10, "topk_rerank": 4}', 3)
    assert asked.topk == 4
    assert json.loads(write_reply(asked, [[Hit({"id": "1", "contents": "x"}, 0.5)]])) == {
        "result": [[{"id": "1", "contents": "x"}]]
    }


# --- batches ---------------------------------------------------------------------------------------------------------


class Recording:
    """A retriever that answers with what it was asked, and remembers its batches. It waits for ``go``."""

    quick = False

    def __init__(self) -> None:
        self.batches: list[tuple[list[str], int]] = []
        self.go = threading.Event()

    def search(self, queries, topk):
        assert self.go.wait(30)
        self.batches.append((list(queries), topk))
        if "bad" in queries:
            raise ToolError("out of order")
        return [[Hit({"id": query, "contents": query}, 1.0)] * topk for query in queries]

    def close(self) -> None:
        pass


def batched(queries: list[tuple[str, int]], retriever: Recording, **options: int) -> list[object]:
    """What each query, asked at the same time as the others with a topk of its own, gets."""

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


def test_queries_that_come_together_are_searched_together_each_with_its_own_topk():
    retriever = Recording()
    queries = [(f"q{number}", number % 3 + 1) for number in range(100)]
    answers = batched(queries, retriever, workers=1, most=16)
    assert answers == [[query] * topk for query, topk in queries]
    assert len(retriever.batches) <= 12
    assert max(len(batch) for batch, _ in retriever.batches) == 16


def test_a_search_that_fails_fails_its_own_batch_alone():
    retriever = Recording()
    answers = batched([("a", 1), ("bad", 2), ("c", 3)], retriever, workers=1)
    assert answers[0] == ["a"] and answers[2] == ["c"] * 3 and isinstance(answers[1], ToolError)


def test_a_query_that_nobody_waits_for_is_not_searched():
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


def test_too_many_waiting_queries_are_told_so(monkeypatch):
    monkeypatch.setattr("gem.tools.search_engine.batching.MOST_WAITING", 3)
    retriever = Recording()
    answers = batched([(f"q{number}", 1) for number in range(6)], retriever, workers=1, most=1)
    assert [isinstance(answer, Busy) for answer in answers] == [False] * 4 + [True] * 2


# --- the retrieval server --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    for module in ("starlette", "uvicorn"):
        pytest.importorskip(module, reason="needs the extra [search]")
    folder = tmp_path_factory.mktemp("server")
    with running("retrieval_server", "--corpus", corpus(folder), "--index", folder / "index", "--topk", 2) as server:
        yield server
        code, stderr = server.stop()
        assert code == -signal.SIGTERM and "Error" not in stderr, stderr


def test_both_protocols_are_answered_alike_and_as_within_the_process(server):
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


def test_many_clients_at_once_each_get_their_own_answer(server):
    def ask(number: int) -> bool:
        topk = number % 5 + 1
        [hits] = server.ask(queries=[f"play more{number % 20}"], topk=topk)
        return len(hits) == topk

    with ThreadPoolExecutor(16) as pool:
        assert all(pool.map(ask, range(200)))


@pytest.mark.parametrize("body", [b"", b"\xff", b"{broken", b'{"queries": []}', b'{"query": "a", "topk": -1}'])
def test_a_bad_request_is_told_so_and_the_next_one_is_answered(body, server):
    status, reply = server.post(body)
    assert status == 400 and json.loads(reply)["error"]
    assert server.ask(query="Faust")


def test_a_bad_request_in_msgpack_is_answered_in_msgpack(server):
    status, reply = server.post(msgspec.msgpack.encode({"query": 5}))
    assert status == 400 and "text" in msgspec.msgpack.decode(reply)["error"]


def test_a_body_without_end_is_refused(server):
    status, reply = server.post(b"{" + b" " * (17 << 20))
    assert status == 400 and "larger" in json.loads(reply)["error"]


def test_a_client_that_leaves_within_its_request_is_counted_and_no_more_is_said_of_it(tmp_path):
    for module in ("starlette", "uvicorn"):
        pytest.importorskip(module, reason="needs the extra [search]")
    with running("retrieval_server", "--corpus", corpus(tmp_path), "--index", tmp_path / "index") as server:
        address = urlsplit(server.url)
        with socket.create_connection((address.hostname, address.port)) as leaving:
            leaving.sendall(b"POST /retrieve HTTP/1.1\r\nHost: x\r\nContent-Length: 99\r\n\r\n{")
        while 'requests_total{status="400"} 1' not in server.get("/metrics"):
            time.sleep(0.01)
        assert "Traceback" not in server.stop()[1]


def test_pages_are_given_out_by_their_url(server):
    status, reply = server.post(b'{"urls": ["http://faust", "http://nowhere"]}', "/access")
    assert status == 200
    assert json.loads(reply) == {"result": [{"contents": '"Faust"\nA play by Goethe.'}, None]}
    assert server.post(b'{"urls": "http://faust"}', "/access")[0] == 400


def test_health_and_metrics_tell_how_it_goes(server):
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
    ("options", "told"),
    [
        (["--index", "nowhere"], "--corpus is needed"),
        (["--index", "new", "--corpus", "bad.jsonl"], "bad.jsonl, line 2"),
        (["--index", "new", "--corpus", "nothing.jsonl"], "no such file"),
        (["--index", "new", "--corpus", "good.jsonl", "--topk", "0"], "at least 1"),
        (["--index", "new", "--corpus", "good.jsonl", "--port", "99999"], "cannot listen"),
    ],
)
def test_what_cannot_be_served_is_told_in_one_line(options, told, tmp_path):
    pytest.importorskip("uvicorn", reason="needs the extra [search]")
    (tmp_path / "good.jsonl").write_text('{"contents": "x"}\n')
    (tmp_path / "bad.jsonl").write_text('{"contents": "x"}\n{\n')
    done = subprocess.run(
        command("retrieval_server", *options), capture_output=True, text=True, cwd=tmp_path, timeout=60
    )
    assert done.returncode == 2 and told in done.stderr and "Traceback" not in done.stderr


# --- servers for the web ---------------------------------------------------------------------------------------------


@pytest.fixture
def web_of():
    for module in ("aiohttp", "starlette", "uvicorn"):
        pytest.importorskip(module, reason="needs the extra [search]")
    from gem.testing.fake_search import FakeWeb

    return FakeWeb


@pytest.fixture
def pages():
    pytest.importorskip("aiohttp", reason="needs the extra [search]")
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


def test_published_usage_of_a_game_with_a_search_of_the_web(web_of, pages):
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
        assert web.asked == [{"engine": "google", "q": "who wrote faust?", "api_key": KEY, "output": "json"}]
        code, stderr = server.stop()
    assert code == -signal.SIGTERM and KEY not in stderr


def test_results_of_serpapi_are_its_answer_what_it_found_and_related_questions(web_of, pages):
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
        assert server.ask(queries=["nobody knows", "  "]) == [[], []]
        assert json.loads(server.get("/health"))["searches"] == "serpapi google"


def test_a_wrong_key_and_other_failures_are_told_without_the_key(web_of, pages):
    from gem.testing.fakes import Answer

    with web_of(pages, key="another") as web, serp(web) as server:
        status, reply = server.post(b'{"query": "who wrote faust?"}')
        assert status == 502 and "Invalid API key" in json.loads(reply)["error"]
        tool = SearchTool(search_url=server.url, retries=0)
        with pytest.raises(ToolError, match="Invalid API key") as raised:
            tool.call(ToolCall("search", {"query": "who wrote faust?"}))
        tool.close()
        _, stderr = server.stop()
    told = reply.decode() + str(raised.value) + stderr
    assert KEY not in told and "sk-a-very" not in told
    spent = [Answer(body='{"error": "You have run out of searches."}')]
    with web_of(pages, key=KEY, faults=spent) as web, serp(web) as server:
        status, reply = server.post(b'{"query": "x"}')
    assert status == 502 and "run out" in json.loads(reply)["error"]


def test_what_passes_is_tried_again_and_what_takes_too_long_is_told(web_of, pages):
    from gem.testing.fakes import Answer

    with web_of(pages, key=KEY, faults=[Answer(status=503), Answer(body="nonsense")]) as web, serp(web) as server:
        assert len(server.ask(query="who wrote faust?")) == 2
    slow = [Answer(delay=30)] * 3
    with web_of(pages, key=KEY, faults=slow) as web, serp(web, "--timeout", 0.2) as server:
        status, reply = server.post(b'{"query": "who wrote faust?"}')
    assert status == 504 and "0.2 s" in json.loads(reply)["error"]


def test_what_was_found_is_kept_on_disk_for_servers_to_come(web_of, pages, tmp_path):
    cache = tmp_path / "cache.sqlite"
    with web_of(pages, key=KEY) as web:
        found = []
        for _ in range(2):
            with serp(web, "--cache", cache) as server:
                found += [server.ask(queries=["who wrote faust?", "nobody knows"]) for _ in range(2)]
                server.stop()
        assert found == [found[0]] * 4
        assert len(web.asked) == 2
    assert KEY.encode() not in cache.read_bytes()


def test_a_key_may_come_from_the_environment_and_must_come(web_of, pages):
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


def test_google_shows_snippets_or_the_part_of_the_page_that_they_are_from(web_of, pages):
    with web_of(pages, key=KEY) as web:
        with google(web, "--snippet_only") as server:
            snippets = [each["contents"] for each in server.ask(query="who wrote faust?")]
        assert snippets == ['"Answer"\nGoethe', '"Faust"\nGoethe wrote Faust', '"Other"\nno such page']
        assert web.fetched == [] and web.asked == [{"key": KEY, "cx": "engine", "q": "who wrote faust?", "num": "3"}]
        with google(web, "--private_pages") as server:
            first, second, third = [each["contents"] for each in server.ask(query="who wrote faust?")]
        assert sorted(web.fetched) == ["/faust", "/missing", "/page"]
    assert (first, third) == (snippets[0], snippets[2])
    assert "Goethe wrote & Faust." in second and "filler" in second and "var x" not in second
    assert 250 < len(second.split()) <= 310


def test_pages_of_private_networks_are_not_fetched_unless_asked_for(web_of, pages):
    with web_of(pages, key=KEY) as web, google(web) as server:
        assert [each["contents"] for each in server.ask(query="who wrote faust?")][1] == '"Faust"\nGoethe wrote Faust'
        assert web.fetched == []


@pytest.mark.parametrize(
    "url", ["http://localhost:1/", "http://127.0.0.1/", "http://[::1]/", "file:///etc/passwd", "http://", "x"]
)
def test_what_is_no_public_page_is_refused(url):
    pytest.importorskip("aiohttp", reason="needs the extra [search]")
    from gem.tools.search_engine.pages import Pages, Refused

    async def fetch() -> None:
        pages = Pages(timeout=10)
        with pytest.raises(Refused):
            await pages.text(url)
        await pages.close()

    asyncio.run(fetch())


def test_requests_under_way_are_answered_before_a_server_ends(web_of, pages):
    from gem.testing.fakes import Answer

    with web_of(pages, key=KEY, faults=[Answer(delay=1.0, status=503)]) as web, serp(web) as server:
        with ThreadPoolExecutor(1) as pool:
            asked = pool.submit(server.ask, query="who wrote faust?")
            while not web.asked:
                time.sleep(0.01)
            server.process.send_signal(signal.SIGTERM)
            assert len(asked.result(30)) == 2
        assert server.process.wait(30) == -signal.SIGTERM
