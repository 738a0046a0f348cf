"""Endpoint and its HTTP client against a fake server with scripted failures."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import multiprocessing
import os
import pickle
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

pytest.importorskip("aiohttp", reason="needs the extra [eval]")

from aiohttp import web

from gem._internal.http_client import MAX_PAUSE_S, Clock, _parse_retry_after
from gem.errors import BadValue, EndpointError, InfraError
from gem.policies.endpoint import AccessRefused, Completion, Endpoint, RequestRefused, Unreachable
from gem.testing.fakes.endpoint import Answer, FakeEndpoint, LocalServer, ReceivedRequest

ASK = [{"role": "user", "content": "2 + 2?"}]
KEY = "sk-a-very-secret-key"


class FakeClock(Clock):
    """Time that passes only while a request waits."""

    def __init__(self) -> None:
        self.time, self.slept = 0.0, list[float]()

    def now(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.time += seconds
        await asyncio.sleep(0)


def client(fake: FakeEndpoint, **settings: Any) -> Endpoint:
    endpoint = Endpoint(fake.url, "m", **{"backoff": 0.001, **settings})
    endpoint.clock = FakeClock()
    return endpoint


BEFORE: set[threading.Thread] = set()  # other tests' tools have such a thread for as long as their process lives


@pytest.fixture(autouse=True)
def note_threads() -> None:
    BEFORE.clear()
    BEFORE.update(threading.enumerate())


def workers() -> list[threading.Thread]:
    return [thread for thread in set(threading.enumerate()) - BEFORE if thread.name == "gem-background"]


def test_a_completion_has_finish_reason_and_usage():
    with FakeEndpoint([Answer(text="4", finish="length")]) as fake, client(fake) as endpoint:
        usage = {"prompt_tokens": 3, "completion_tokens": 1, "total_tokens": 4}
        assert endpoint.complete(ASK, temperature=0.5, stop=["\n"]) == Completion("4", "length", usage, model="m")
    assert fake.requests[0].body == {"model": "m", "messages": ASK, "temperature": 0.5, "stop": ["\n"]}


def test_completions_can_be_awaited():
    async def both(endpoint: Endpoint) -> list[Completion]:
        return await asyncio.gather(endpoint.acomplete(ASK), endpoint.acomplete(ASK))

    with FakeEndpoint(["4"]) as fake, client(fake) as endpoint:
        assert [c.text for c in asyncio.run(both(endpoint))] == ["4", "4"]
        assert [c.text for c in asyncio.run(both(endpoint))] == ["4", "4"]  # another loop, the same connections


def test_threads_share_a_client():
    with FakeEndpoint(lambda request: request.last) as fake, client(fake) as endpoint, ThreadPoolExecutor(8) as threads:
        asked = [[{"role": "user", "content": str(i)}] for i in range(64)]
        assert [c.text for c in threads.map(endpoint.complete, asked)] == [str(i) for i in range(64)]
        assert len(workers()) == 2  # its own and the server's


PASSING = {
    "a conflict": Answer(status=409),
    "too early": Answer(status=425),
    "a bad gateway": Answer(status=502, body="<html>"),
    "overloaded": Answer(status=529),
    "broken JSON": Answer(body='{"choices": [{"mess'),
    "an error with status 200": Answer(body='{"error": {"message": "no workers"}}'),
    "no choices": Answer(body='{"choices": []}'),
    "not an object": Answer(body="[1]"),
    "content of another type": Answer(body='{"choices": [{"message": {"content": 3}}]}'),
    "nesting without end": Answer(body="[" * 100_000),
    "a dropped connection": Answer(drop=True),
    "a cut body": Answer(text="4", cut=True),
}


@pytest.mark.parametrize("answer", PASSING.values(), ids=PASSING)
def test_transient_errors_are_retried(answer):
    with FakeEndpoint([answer, answer, "4"]) as fake, client(fake) as endpoint:
        assert endpoint.complete(ASK).text == "4"
    assert len(fake.requests) == 3


@pytest.mark.parametrize("answer", PASSING.values(), ids=PASSING)
def test_persistent_errors_raise_endpoint_error(answer):
    why = r"'m' at http://127.*3 attempts"
    with FakeEndpoint([answer]) as fake, client(fake, retries=2) as endpoint, pytest.raises(EndpointError, match=why):
        endpoint.complete(ASK)
    assert len(fake.requests) == 3


def test_an_endpoint_names_its_host_and_the_weights_that_it_serves():
    async def models(request):
        return web.json_response({"data": [{"id": "m", "quantization": "Q4_K_M"}]})

    server = LocalServer(web, {("GET", "/v1/models"): models})
    with contextlib.closing(server), Endpoint(f"{server.url}/v1", "m") as endpoint:
        assert endpoint.backend() == {"endpoint": server.url.removeprefix("http://"), "weights": "Q4_K_M"}
    with FakeEndpoint(["4"]) as fake, client(fake) as endpoint:  # it has no list of models
        assert endpoint.backend() == {"endpoint": fake.url.removeprefix("http://").removesuffix("/v1")}
    assert fake.requests == []


def test_an_endpoint_error_is_an_infra_error():
    assert issubclass(EndpointError, InfraError)


def test_a_timeout_is_retried():
    with FakeEndpoint([Answer(delay=3600), "4"]) as fake, client(fake, timeout=0.3, retries=100) as endpoint:
        assert endpoint.complete(ASK).text == "4"
    with FakeEndpoint([Answer(delay=3600)]) as fake, client(fake, timeout=0.1, retries=0) as twin:
        failure = twin.submit(ASK).exception()
    assert isinstance(failure, EndpointError) and "no reply in 0.1 s" in str(failure)


def test_an_unreachable_server_is_an_endpoint_error():
    with FakeEndpoint(["4"]) as fake:
        url = fake.url
    with Endpoint(url, "m", retries=1, backoff=0.001) as endpoint, pytest.raises(EndpointError, match="2 attempts"):
        endpoint.complete(ASK)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422, 302])
def test_client_errors_are_not_retried(status):
    answer = Answer(status=status, body="context too long", headers={"Location": "/elsewhere"})
    with FakeEndpoint([answer]) as fake, client(fake) as endpoint:
        failure = endpoint.submit(ASK).exception()
    reason = "redirects to /elsewhere" if status == 302 else "context too long"
    assert isinstance(failure, EndpointError) and str(failure).endswith(f"status {status}: {reason}")
    assert len(fake.requests) == 1


def test_pauses_grow_with_jitter_and_respect_retry_after():
    endpoint = Endpoint("http://127.0.0.1/v1", "m", backoff=0.5)
    for attempt in range(4):
        pauses = {endpoint._retry_delay(attempt, 0.0) for _ in range(200)}
        assert 0.25 * 2**attempt <= min(pauses) < max(pauses) <= 0.5 * 2**attempt and len(pauses) > 100
    assert endpoint._retry_delay(0, 7.0) == 7.0
    assert endpoint._retry_delay(60, 0.0) == endpoint._retry_delay(0, 1e9) == MAX_PAUSE_S


def test_retry_after_delays_the_next_attempt():
    answers = [Answer(status=503, headers={"Retry-After": "3"}), Answer(status=503, headers={"Retry-After": "Mon"})]
    with FakeEndpoint([*answers, "4"]) as fake, client(fake) as endpoint:
        endpoint.complete(ASK)
        first, second = endpoint.clock.slept
    assert first == 3.0 and second < 0.01


LIMITED = Answer(status=429, body="Limit 4 requests per minute")


def test_a_limit_per_minute_without_a_header_is_waited_out():
    def script(asked: ReceivedRequest) -> Answer | str:
        return LIMITED if endpoint.clock.time < 60.0 else "4"

    with FakeEndpoint(script) as fake, client(fake, backoff=0.5, retries=1) as endpoint:
        assert endpoint.complete(ASK).text == "4"
        assert endpoint.clock.slept == [0.5, 2.0, 8.0, 32.0, 60.0]
        assert len(fake.requests) == 6


@pytest.mark.parametrize("name", ["Retry-After", "llm_provider-retry-after", "x-ratelimit-reset-requests"])
def test_all_requests_wait_for_a_rate_limit_and_none_is_lost(name):
    """Four requests per window of 60 s: each window costs one request that is refused, and those in flight."""
    windows: dict[int, int] = {}

    def script(asked: ReceivedRequest) -> Answer | str:
        window = int(endpoint.clock.time // 60.0)
        windows[window] = windows.get(window, 0) + 1
        return "4" if windows[window] <= 4 else Answer(status=429, headers={name: "60"})

    with FakeEndpoint(script) as fake, client(fake, concurrency=2, retries=1) as endpoint:
        futures = [endpoint.submit(ASK) for _ in range(12)]
        assert [future.result(60).text for future in futures] == ["4"] * 12
        assert endpoint.clock.time <= 240.0 and max(windows.values()) <= 6


def test_a_run_may_wait_longer_than_one_request_as_long_as_requests_are_answered():
    limited = Answer(status=429, headers={"Retry-After": "60"})
    with FakeEndpoint([limited, "4"] * 12) as fake, client(fake) as endpoint:
        assert [endpoint.complete(ASK).text for _ in range(12)] == ["4"] * 12
        assert endpoint.clock.time == 720.0


def test_a_request_in_flight_when_a_pause_begins_does_not_begin_another():
    together = threading.Barrier(3)

    def script(asked: ReceivedRequest) -> Answer | str:
        if len(fake.requests) > 3:
            return "4"
        together.wait(30)
        return Answer(status=429, headers={"Retry-After": "7"})

    with FakeEndpoint(script) as fake, client(fake) as endpoint:
        futures = [endpoint.submit(ASK) for _ in range(3)]
        assert [future.result(60).text for future in futures] == ["4"] * 3
        assert endpoint.clock.time == 7.0


def test_a_rate_limit_without_end_is_an_error_that_names_it_and_the_way_out():
    with FakeEndpoint([LIMITED]) as fake, client(fake, backoff=0.5) as endpoint:
        with pytest.raises(EndpointError, match=r"Limit 4 requests per minute.*--concurrency") as raised:
            endpoint.complete(ASK)
        assert type(raised.value) is EndpointError and 500 < endpoint.clock.time <= 600
        asked = len(fake.requests)
        with pytest.raises(EndpointError):
            endpoint.complete(ASK)
        assert len(fake.requests) == asked + 1


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ('{"error": {"message": "No credit.", "code": "insufficient_quota"}}', AccessRefused),
        ('{"error": {"message": "Request too large for m on tokens per min (TPM): Limit 1"}}', RequestRefused),
    ],
)
def test_a_limit_that_waiting_does_not_lift_is_an_error_at_once(body, kind):
    with FakeEndpoint([Answer(status=429, body=body)]) as fake, client(fake) as endpoint:
        with pytest.raises(kind):
            endpoint.complete(ASK)
        assert endpoint.clock.slept == [] and len(fake.requests) == 1


@pytest.mark.parametrize("body", ["the prompt is too long", '{"error": {"code": "content_filter"}}'])
def test_a_refusal_with_status_500_is_not_retried(body):
    with FakeEndpoint([Answer(status=500, body=body)]) as fake, client(fake) as endpoint, pytest.raises(RequestRefused):
        endpoint.complete(ASK)
    assert len(fake.requests) == 1


def test_the_first_wait_is_a_warning_and_later_ones_are_not(caplog):
    with FakeEndpoint([Answer(status=500), Answer(status=500), LIMITED, "4"]) as fake, client(fake) as endpoint:
        endpoint.complete(ASK)
    (warning,) = (record.getMessage() for record in caplog.records if record.levelno == logging.WARNING)
    assert "status 500" in warning and "; retry 1 of 5 in " in warning


def test_an_endpoint_that_failed_one_request_after_all_retries_and_answered_none_is_asked_once():
    with FakeEndpoint([Answer(status=500)] * 5 + ["4", Answer(status=500), "4"]) as fake:  # noqa: SIM117
        with client(fake, retries=3) as endpoint:
            for attempts in (4, 5):
                with pytest.raises(EndpointError):
                    endpoint.complete(ASK)
                assert len(fake.requests) == attempts
            assert [endpoint.complete(ASK).text for _ in range(2)] == ["4", "4"]  # it has answered, so it is retried


def test_a_server_that_was_never_reached_is_tried_twice_and_one_that_answered_more_often():
    with FakeEndpoint(["4"]) as fake:
        endpoint, url = client(fake, retries=4), fake.url
        endpoint.complete(ASK)
    with endpoint, pytest.raises(Unreachable, match=r"5 attempts.*check the URL"):
        endpoint.complete(ASK)
    with Endpoint(url, "m", retries=4, backoff=0.0) as never, pytest.raises(Unreachable, match="2 attempts"):
        never.complete(ASK)


DATE = "Sun, 06 Nov 1994 08:49:37 GMT"


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "3"}, 3.0),
        ({"Retry-After": " 2.5 "}, 2.5),
        ({"Retry-After": "Sun, 06 Nov 1994 08:49:57 GMT", "Date": DATE}, 20.0),
        ({"Retry-After": "Sunday, 06-Nov-94 08:49:57 GMT", "Date": DATE}, 20.0),
        ({"Retry-After": "Sun Nov  6 08:49:57 1994", "Date": "Sun Nov  6 08:49:37 1994"}, 20.0),
        ({"Retry-After": DATE}, 0.0),  # in the past
        ({"retry-after-ms": "1500", "Retry-After": "2"}, 1.5),
        *(({"Retry-After": value}, 0.0) for value in ("", "-1", "soon", "nan", "inf", "٣٣x", "Sun, 99 Nov")),
        ({}, 0.0),
        ({"llm_provider-retry-after": "60"}, 60.0),
        ({"llm_provider-retry-after": "60", "retry-after": "5"}, 5.0),
        ({"x-ratelimit-reset-requests": "6m0s"}, 360.0),
        ({"x-ratelimit-reset-tokens": "1m30.5s", "x-ratelimit-remaining-tokens": "0"}, 90.5),
        ({"x-ratelimit-reset-tokens": "250ms"}, 0.25),
        ({"x-ratelimit-reset-requests": "8s", "x-ratelimit-remaining-requests": "3"}, 0.0),
        ({"X-RateLimit-Reset": "784111797000", "Date": DATE}, 20.0),
        ({"X-RateLimit-Reset": "784111797", "Date": DATE}, 20.0),
    ],
    ids=str,
)
def test_retry_after_is_read_in_all_its_forms(headers, seconds):
    assert _parse_retry_after(headers) == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("Please try again in 20s. Visit https://a.com", 20.0),
        ("Please try again in 1m2.5s.", 62.5),
        ("No deployments available, Try again in 60 seconds. Passed model=m", 60.0),
        ("try again in 640ms", 0.64),
        ("try again in 2 minutes", 120.0),
        ('"retryDelay": "34s"', 34.0),
        ("try again later", 0.0),
        ("try again in a few seconds", 0.0),
    ],
)
def test_the_words_of_an_error_say_how_long_to_wait(text, seconds):
    assert _parse_retry_after({}, text) == pytest.approx(seconds)


def test_requests_in_flight_are_bounded():
    three = threading.Barrier(3)

    def script(asked: ReceivedRequest) -> str:
        three.wait(60)
        return "4"

    with FakeEndpoint(script) as fake, client(fake, concurrency=3) as endpoint:
        futures = [endpoint.submit(ASK) for _ in range(12)]
        assert [future.result().text for future in futures] == ["4"] * 12
    assert fake.most_at_once == 3


def test_a_reply_without_text_is_empty():
    body = '{"choices": [{"message": {"content": null}}], "usage": null}'
    with FakeEndpoint([Answer(body=body)]) as fake, client(fake) as endpoint:
        assert endpoint.complete(ASK) == Completion("", None, {})


def test_the_key_is_sent_and_never_shown(monkeypatch, caplog):
    monkeypatch.setenv("MY_KEY", KEY + "\n")
    refusal = Answer(status=500, body=f"no such key: {KEY}")
    with caplog.at_level(logging.DEBUG), FakeEndpoint([refusal, refusal, Answer(body=KEY)]) as fake:
        with client(fake, api_key_env="MY_KEY", retries=2) as endpoint, pytest.raises(EndpointError) as raised:
            endpoint.complete(ASK)
        told = [repr(endpoint), repr(vars(endpoint)), str(pickle.dumps(endpoint)), str(raised.value), caplog.text]
        told += [repr(raised.value.__cause__), repr(raised.value.__context__)]
    assert "no such key: …" in caplog.text
    assert not [text for text in told if KEY in text]
    assert [request.headers["authorization"] for request in fake.requests] == [f"Bearer {KEY}"] * 3


def test_without_a_variable_no_key_is_sent(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with FakeEndpoint(["4"]) as fake, client(fake) as endpoint:
        endpoint.complete(ASK)
    assert "authorization" not in fake.requests[0].headers


@pytest.mark.parametrize("value", [None, "", " ", "a\nb", "é"])
def test_a_missing_key_names_its_variable(monkeypatch, value):
    monkeypatch.delenv("MY_KEY", raising=False)
    if value is not None:
        monkeypatch.setenv("MY_KEY", value)
    with pytest.raises(BadValue, match="environment variable MY_KEY"):
        Endpoint("http://127.0.0.1/v1", "m", api_key_env="MY_KEY").complete(ASK)


def test_closing_fails_requests_in_flight_and_ends_the_thread():
    with FakeEndpoint([Answer(delay=3600)]) as fake:
        endpoint = client(fake)
        futures = [endpoint.submit(ASK) for _ in range(3)]
        while len(fake.requests) < 3:
            time.sleep(0.001)
        endpoint.close()
        for future in futures:
            with pytest.raises(EndpointError, match="was closed while"):
                future.result(timeout=30)
        endpoint.close()
        assert len(workers()) == 1  # the server's


def test_a_request_after_closing_opens_a_new_connection():
    with FakeEndpoint(["4"]) as fake, client(fake) as endpoint:
        endpoint.complete(ASK)
        endpoint.close()
        assert endpoint.complete(ASK).text == "4"


def test_a_garbage_collected_client_leaves_no_thread():
    with FakeEndpoint(["4"]) as fake:
        client(fake).complete(ASK)
        gc.collect()
        assert len(workers()) == 1  # the server's


def test_closing_after_cancelling_a_request_logs_nothing(caplog):
    with FakeEndpoint([Answer(delay=3600)]) as fake, client(fake) as endpoint:
        future, busy = endpoint.submit(ASK), threading.Event()
        while not fake.requests:
            time.sleep(0.001)
        background = endpoint._background
        background.call_soon(lambda: busy.wait(30))  # the loop handles the cancellation after close() has begun
        future.cancel()
        closing = threading.Thread(target=endpoint.close)
        closing.start()
        while not background.closing:
            time.sleep(0.001)
        busy.set()
        closing.join()
        del future  # the last reference to the task
        gc.collect()
    assert caplog.records == []


def test_cancelling_a_request_aborts_it():
    with FakeEndpoint([Answer(delay=3600), "4"]) as fake, client(fake, concurrency=1) as endpoint:
        stuck = endpoint.submit(ASK)
        while not fake.requests:
            time.sleep(0.001)
        stuck.cancel()
        assert endpoint.complete(ASK).text == "4"  # though only one may be in flight


def test_a_pickled_client_opens_its_own_connections():
    with FakeEndpoint(["4"]) as fake, client(fake, retries=2) as endpoint:
        endpoint.complete(ASK)
        with pickle.loads(pickle.dumps(endpoint)) as twin:
            assert twin.complete(ASK).text == "4" and twin.retries == 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_forked_client_opens_its_own_connections():
    with FakeEndpoint(["4"]) as fake, client(fake) as endpoint:
        endpoint.complete(ASK)
        child = multiprocessing.get_context("fork").Process(target=_asks, args=(endpoint,))
        child.start()
        child.join(60)
        assert child.exitcode == 0
        assert endpoint.complete(ASK).text == "4"


def _asks(endpoint: Endpoint) -> None:
    assert endpoint.complete(ASK).text == "4"
    endpoint.close()


@pytest.mark.parametrize("name", ["model", "messages", "stream", "n"])
def test_reserved_fields_cannot_be_set(name):
    endpoint = Endpoint("http://127.0.0.1/v1", "m")
    with pytest.raises((BadValue, TypeError), match=name):
        endpoint.complete(ASK, **{name: 1})


@pytest.mark.parametrize("value", [object(), float("nan"), {1, 2}])
def test_values_that_are_not_json_are_refused(value):
    with pytest.raises(BadValue, match="sent as JSON"):
        Endpoint("http://127.0.0.1/v1", "m").complete(ASK, temperature=value)


@pytest.mark.parametrize(
    "settings",
    [
        {"timeout": 0},
        {"timeout": float("nan")},
        {"backoff": -1},
        {"concurrency": 0},
        {"retries": -1},
        {"timeout": "5"},
        {"concurrency": "5"},
    ],
)
def test_settings_out_of_range_are_refused(settings):
    with pytest.raises(BadValue, match=next(iter(settings))):
        Endpoint("http://127.0.0.1/v1", "m", **settings)


@pytest.mark.parametrize(
    "url", ["", "127.0.0.1:8000", "ftp://host/v1", "http://", "http://host:port/v1", "http://[::1"]
)
def test_an_invalid_base_url_is_refused(url):
    with pytest.raises(BadValue, match="base_url should be like"):
        Endpoint(url, "m")


@pytest.mark.parametrize("url", [f"https://user:{KEY}@host/v1", f"https://host/v1?key={KEY}"])
def test_a_secret_in_the_url_is_refused_and_not_repeated(url):
    with pytest.raises(BadValue, match="api_key_env") as raised:
        Endpoint(url, "m")
    assert KEY not in str(raised.value)


def test_a_key_in_place_of_the_name_of_its_variable_is_refused_and_not_repeated():
    with Endpoint("http://127.0.0.1/v1", "m", api_key_env=KEY) as endpoint, pytest.raises(BadValue) as raised:
        endpoint.complete(ASK)
    assert "environment variable" in str(raised.value) and KEY not in str(raised.value)


def test_the_path_of_the_base_url_is_kept():
    with FakeEndpoint(["4"]) as fake, Endpoint(fake.url + "/", "m") as endpoint:
        assert endpoint.complete(ASK).text == "4"


def test_nothing_is_opened_before_the_first_request():
    before = len(workers())
    Endpoint("http://127.0.0.1:1/v1", "m").close()
    assert len(workers()) == before


def test_the_whole_conversation_is_sent():
    seen: list[ReceivedRequest] = []
    with FakeEndpoint(lambda request: seen.append(request) or "4") as fake, client(fake) as endpoint:
        endpoint.complete([*ASK, {"role": "assistant", "content": "4"}, {"role": "user", "content": "sure?"}])
    assert [message["role"] for message in seen[0].body["messages"]] == ["user", "assistant", "user"]


def test_halves_of_characters_are_replaced_since_servers_refuse_them():
    """opencode 17758, aider 3460; a pair of halves would be one character."""
    with FakeEndpoint(["4"], strict=True) as fake, client(fake) as endpoint:
        endpoint.complete([{"role": "user", "content": "a\ud800b \u00e9 \U0001f600"}])
    assert fake.refused == [] and fake.requests[0].last == "a?b \u00e9 \U0001f600"
