"""The fake search services, over HTTP."""

import json
import urllib.error
import urllib.request

import pytest

from gem.errors import BadValue

pytest.importorskip("aiohttp")
pytest.importorskip("msgspec")

from gem.testing.fakes.endpoint import Answer
from gem.testing.fakes.search import FakeSearchServer, FakeWeb, Page


def get(url):
    with urllib.request.urlopen(url, timeout=10) as response:
        return response.read().decode()


def search(server, query, topk):
    body = json.dumps({"queries": [query], "topk": topk}).encode()
    request = urllib.request.Request(server.url, body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=10) as response:
        return [hit["document"]["contents"] for hit in json.load(response)["result"][0]]


def test_the_search_server_returns_the_requested_number_of_passages():
    with FakeSearchServer(lambda asked: [f"{asked.query} {n}" for n in range(5)]) as server:
        assert search(server, "river", 2) == ["river 0", "river 1"]
    assert [(request.query, request.topk, request.codec) for request in server.requests] == [("river", 2, "json")]


def test_an_answer_replaces_the_passages():
    with (
        FakeSearchServer(lambda asked: Answer(status=503)) as server,
        pytest.raises(urllib.error.HTTPError, match="503"),
    ):
        search(server, "river", 2)
    assert len(server.requests) == server.most_at_once == 1


def test_a_server_has_no_url_before_it_runs():
    with pytest.raises(BadValue, match="use it in a `with` statement"):
        _ = FakeSearchServer(lambda asked: []).url


def test_the_fake_web_serves_the_pages_that_it_finds():
    page = Page("Rivers", "long ones", "/rivers", "<p>The Nile</p>")
    with FakeWeb({"nile": [page]}) as web:
        [item] = json.loads(get(f"{web.google_url}?q=nile&key=a-key"))["items"]
        assert item["title"] == "Rivers" and get(item["link"]) == "<p>The Nile</p>"
        assert "items" not in json.loads(get(f"{web.google_url}?q=rhine&key=a-key"))
        with pytest.raises(urllib.error.HTTPError, match="401"):
            get(f"{web.google_url}?q=nile&key=wrong")
    assert web.fetched == ["/rivers"] and len(web.requests) == 3
