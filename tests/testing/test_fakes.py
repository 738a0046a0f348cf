"""The servers that stand in for real ones, spoken to without any client of ours."""

from __future__ import annotations

import http.client
import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

import pytest

pytest.importorskip("aiohttp", reason="needs the extra [eval]")

from gem.errors import BadValue
from gem.testing.fakes import Answer, FakeEndpoint, ReceivedRequest

BODY = {"model": "m", "messages": [{"role": "user", "content": "one two"}]}


def post(url: str, body: Any = BODY, headers: dict[str, str] | None = None) -> tuple[int, dict[str, str], str]:
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=30)
    try:
        connection.request("POST", "/v1/chat/completions", json.dumps(body), headers or {})
        response = connection.getresponse()
        return response.status, dict(response.getheaders()), response.read().decode()
    finally:
        connection.close()


def said(url: str) -> str:
    return str(json.loads(post(url)[2])["choices"][0]["message"]["content"])


def test_texts_are_given_out_in_order_and_the_last_one_from_then_on():
    with FakeEndpoint(["a", "b"]) as fake:
        assert [said(fake.url) for _ in range(4)] == ["a", "b", "b", "b"]


def test_a_reply_has_the_form_of_the_protocol():
    with FakeEndpoint([Answer(text="x y z", finish="length")]) as fake:
        reply = json.loads(post(fake.url)[2])
    assert reply["choices"] == [
        {"index": 0, "message": {"role": "assistant", "content": "x y z"}, "finish_reason": "length"}
    ]
    assert reply["usage"] == {"prompt_tokens": 2, "completion_tokens": 3, "total_tokens": 5}


def test_requests_are_kept_with_their_headers():
    with FakeEndpoint(["a"]) as fake:
        post(fake.url, headers={"X-Mine": "yes"})
    assert fake.requests[0].body == BODY and fake.requests[0].last == "one two"
    assert fake.requests[0].headers["x-mine"] == "yes"


def test_failures_happen_as_scripted():
    with FakeEndpoint([Answer(status=429, headers={"Retry-After": "7"}, body="slow down"), Answer(drop=True)]) as fake:
        status, headers, text = post(fake.url)
        assert (status, headers["Retry-After"], text) == (429, "7", "slow down")
        with pytest.raises((http.client.RemoteDisconnected, ConnectionError)):
            post(fake.url)


def test_a_function_sees_the_request_and_several_may_wait_for_each_other():
    both = threading.Barrier(2, timeout=30)

    def script(request: ReceivedRequest) -> str:
        both.wait()
        return request.last.upper()

    with FakeEndpoint(script) as fake, ThreadPoolExecutor(2) as threads:
        assert list(threads.map(said, [fake.url] * 2)) == ["ONE TWO"] * 2
    assert fake.most_at_once == 2


def test_a_function_that_raises_is_not_lost():
    def script(request: ReceivedRequest) -> str:
        raise KeyError("my mistake")

    with pytest.raises(KeyError, match="my mistake"), FakeEndpoint(script) as fake:
        assert post(fake.url)[0] == 500


def test_nothing_is_left_behind():
    before = set(threading.enumerate())
    with FakeEndpoint(["a"]) as fake:
        url = fake.url
        said(url)
    with pytest.raises(ConnectionRefusedError):
        post(url)
    assert not [thread for thread in set(threading.enumerate()) - before if thread.name == "gem-background"]


def test_leaving_does_not_wait_for_an_answer_that_takes_its_time():
    with FakeEndpoint([Answer(delay=3600)]) as fake, ThreadPoolExecutor(1) as threads:
        cut = threads.submit(post, fake.url)
        while not fake.requests:
            time.sleep(0.001)
        fake.__exit__(None)
        assert isinstance(cut.exception(timeout=30), (http.client.HTTPException, ConnectionError))


@pytest.mark.parametrize("script", [[], "abc", ""])
def test_a_script_is_a_list_of_at_least_one_answer(script):
    with pytest.raises(BadValue, match="non-empty list of answers"):
        FakeEndpoint(script)


def test_the_url_is_known_once_it_runs():
    with pytest.raises(BadValue, match="not running"):
        _ = FakeEndpoint(["a"]).url
