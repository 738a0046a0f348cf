"""FakeEndpoint, tested with http.client."""

from __future__ import annotations

import contextlib
import gc
import http.client
import json
import socket
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

import pytest

pytest.importorskip("aiohttp", reason="needs the extra [eval]")

from gem.errors import BadValue
from gem.testing.fakes.endpoint import Answer, FakeEndpoint, ReceivedRequest

BODY = {"model": "m", "messages": [{"role": "user", "content": "one two"}]}


def post(url: str, body: Any = BODY, headers: dict[str, str] | None = None) -> tuple[int, dict[str, str], str]:
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=30)
    try:
        connection.request("POST", "/v1/chat/completions", json.dumps(body), headers or {})
        response = connection.getresponse()
        return response.status, dict(response.getheaders()), response.read().decode()
    finally:
        connection.close()


def reply_of(url: str) -> str:
    return str(json.loads(post(url)[2])["choices"][0]["message"]["content"])


def test_texts_are_returned_in_order_and_the_last_one_repeats():
    with FakeEndpoint(["a", "b"]) as fake:
        assert [reply_of(fake.url) for _ in range(4)] == ["a", "b", "b", "b"]


def test_a_reply_has_the_openai_format():
    with FakeEndpoint([Answer(text="x y z", finish="length")]) as fake:
        reply = json.loads(post(fake.url)[2])
    assert reply["choices"] == [
        {"index": 0, "message": {"role": "assistant", "content": "x y z"}, "finish_reason": "length"}
    ]
    assert reply["usage"] == {"prompt_tokens": 2, "completion_tokens": 3, "total_tokens": 5}


def test_requests_are_recorded_with_their_headers():
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


def test_script_functions_receive_the_request_and_run_concurrently():
    both = threading.Barrier(2, timeout=30)

    def script(request: ReceivedRequest) -> str:
        both.wait()
        return request.last.upper()

    with FakeEndpoint(script) as fake, ThreadPoolExecutor(2) as threads:
        assert list(threads.map(reply_of, [fake.url] * 2)) == ["ONE TWO"] * 2
    assert fake.most_at_once == 2


def test_an_exception_of_a_script_function_is_raised_on_exit():
    def script(request: ReceivedRequest) -> str:
        raise KeyError("script failed")

    with pytest.raises(KeyError, match="script failed"), FakeEndpoint(script) as fake:
        assert post(fake.url)[0] == 500


def test_leaving_closes_the_port_and_ends_the_thread():
    before = set(threading.enumerate())
    with FakeEndpoint(["a"]) as fake:
        url = fake.url
        reply_of(url)
    with pytest.raises(ConnectionRefusedError):
        post(url)
    assert not [thread for thread in set(threading.enumerate()) - before if thread.name == "gem-background"]


def test_leaving_while_clients_connect_leaves_no_connection_open():
    gc.collect()
    clients, left = [], threading.Event()

    def connect(address: tuple[str, int]) -> None:
        with contextlib.suppress(OSError):
            while not left.is_set():
                clients.append(socket.create_connection(address))

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ResourceWarning)
        with FakeEndpoint(["a"]) as fake:
            url = urlsplit(fake.url)
            connecting = threading.Thread(target=connect, args=((url.hostname, url.port),))
            connecting.start()
            while len(clients) < 20:
                time.sleep(0.001)
        left.set()
        connecting.join()
        for client in clients:
            client.close()
        del fake
        gc.collect()
    assert [str(warning.message) for warning in caught] == []


def test_leaving_does_not_wait_for_a_delayed_answer():
    with FakeEndpoint([Answer(delay=3600)]) as fake, ThreadPoolExecutor(1) as threads:
        cut = threads.submit(post, fake.url)
        while not fake.requests:
            time.sleep(0.001)
        fake.__exit__(None)
        assert isinstance(cut.exception(timeout=30), (http.client.HTTPException, ConnectionError))


@pytest.mark.parametrize("script", [[], "abc", ""])
def test_an_empty_script_or_a_str_raises_bad_value(script):
    with pytest.raises(BadValue, match="non-empty list of answers"):
        FakeEndpoint(script)


def test_the_url_is_available_only_while_running():
    with pytest.raises(BadValue, match="not running"):
        _ = FakeEndpoint(["a"]).url
