"""Web search: the servers of SerpAPI and Google, page fetching and the disk cache."""

from __future__ import annotations

import json
import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from search_fakes import running

import gem
from gem.errors import ToolError
from gem.messages import ToolCall
from gem.tools.search.tool import SearchTool

pytestmark = pytest.mark.slow
KEY = "sk-a-very/secret+key"


@pytest.fixture
def web_of():
    for module in ("aiohttp", "starlette", "uvicorn", "prometheus_client"):
        pytest.importorskip(module, reason="needs the extra [search]")
    from gem.testing.fakes.search import FakeWeb

    return FakeWeb


@pytest.fixture
def pages():
    for module in ("aiohttp", "selectolax"):
        pytest.importorskip(module, reason="needs the extra [search]")
    from gem.testing.fakes.search import Page

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


def test_serpapi_results_are_returned_and_transient_errors_are_retried(web_of, pages):
    from gem.testing.fakes.endpoint import Answer

    failures = [Answer(status=503), Answer(body="nonsense")]
    with web_of(pages, key=KEY, failures=failures) as web, serp(web) as server:
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
    from gem.testing.fakes.endpoint import Answer

    spent = [Answer(body='{"error": "You have run out of searches."}')]
    with web_of(pages, key="another", failures=spent) as web, serp(web) as server:
        status, reply = server.post(b'{"query": "x"}')
        assert status == 502 and "run out" in json.loads(reply)["error"]
        status, reply = server.post(b'{"query": "who wrote faust?"}')
        assert status == 502 and "Invalid API key" in json.loads(reply)["error"]
        tool = SearchTool(search_url=server.url, retries=0)
        with pytest.raises(ToolError, match="Invalid API key") as raised:
            tool.call(ToolCall("search", {"query": "who wrote faust?"}))
        tool.close()
        _, stderr = server.stop()
    output = reply.decode() + str(raised.value) + stderr
    assert KEY not in output and "sk-a-very" not in output


def test_timeouts_get_status_504(web_of, pages):
    from gem.testing.fakes.endpoint import Answer

    slow = [Answer(delay=30)] * 3
    with web_of(pages, key=KEY, failures=slow) as web, serp(web, "--timeout", 0.2) as server:
        status, reply = server.post(b'{"query": "who wrote faust?"}')
    assert status == 504 and "0.2 s" in json.loads(reply)["error"]


def test_results_are_cached_across_servers_and_the_key_may_be_in_the_environment(web_of, pages, tmp_path):
    cache = tmp_path / "cache.sqlite"
    with web_of(pages, key=KEY) as web:
        options = ("--search_url", web.serp_url, "--topk", 2, "--cache", cache)
        found = []
        for _ in range(2):
            with running("serp_search_server", *options, SERP_API_KEY=KEY) as server:
                found += [server.ask(queries=["who wrote faust?", "no such thing"]) for _ in range(2)]
                server.stop()
        assert found == [found[0]] * 4
        assert len(web.requests) == 2
    assert KEY.encode() not in cache.read_bytes()


def test_a_key_is_required(monkeypatch, capsys):
    for module in ("aiohttp", "starlette", "uvicorn", "prometheus_client"):
        pytest.importorskip(module, reason="needs the extra [search]")
    from gem.tools.search import serp_search_server

    monkeypatch.delenv("SERP_API_KEY", raising=False)
    with pytest.raises(SystemExit, match="2"):
        sys.exit(serp_search_server.main([]))
    assert "SERP_API_KEY" in capsys.readouterr().err


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


def test_google_returns_snippets_or_excerpts_of_pages_in_private_networks_only_on_request(web_of, pages):
    with web_of(pages, key=KEY) as web:
        for options in (["--snippet_only"], []):
            with google(web, *options) as server:
                snippets = [each["contents"] for each in server.ask(query="who wrote faust?")]
            assert snippets == ['"Answer"\nGoethe', '"Faust"\nGoethe wrote Faust', '"Other"\nno such page']
        assert web.fetched == []
        assert web.requests == [{"key": KEY, "cx": "engine", "q": "who wrote faust?", "num": "3"}] * 2
        with google(web, "--private_pages") as server:
            first, second, third = [each["contents"] for each in server.ask(query="who wrote faust?")]
        assert sorted(web.fetched) == ["/faust", "/missing", "/page"]
    assert (first, third) == (snippets[0], snippets[2])
    assert "Goethe wrote & Faust." in second and "filler" in second and "var x" not in second
    assert 250 < len(second.split()) <= 310


def test_requests_in_flight_are_answered_before_shutdown(web_of, pages):
    from gem.testing.fakes.endpoint import Answer

    with web_of(pages, key=KEY, failures=[Answer(delay=1.0, status=503)]) as web, serp(web) as server:
        with ThreadPoolExecutor(1) as pool:
            asked = pool.submit(server.ask, query="who wrote faust?")
            while not web.requests:
                time.sleep(0.01)
            server.process.send_signal(signal.SIGTERM)
            assert len(asked.result(30)) == 2
        assert server.process.wait(30) == -signal.SIGTERM


def test_html_is_reduced_to_its_visible_text_with_a_line_per_block():
    pytest.importorskip("selectolax", reason="needs the extra [search]")
    from gem.tools.search.web import html_to_text

    head, body = "<head><title>t</title></head>", "<p>A <b>bold</b> move &amp; more</p>text<br>next<nav>menu</nav>"
    assert html_to_text(f"{head}{body}<div>x<p>y</p></div>") == "A bold move & more\ntext\nnext\nx\ny"
    assert html_to_text("") == ""
