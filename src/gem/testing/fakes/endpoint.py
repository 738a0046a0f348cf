"""A fake chat endpoint for tests, which returns scripted responses on a free local port. Requires the extra [eval]."""

from __future__ import annotations

import asyncio
import itertools
import json
import random
import socket
import threading
import zlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeAlias

from gem._internal.event_loop import BackgroundLoop
from gem.errors import BadValue, require
from gem.testing.fakes.openai_schema import problem

MOST_CALLS = 64  # of a script function at the same time


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The response to one request.

    Args:
        text: content of the assistant message in the chat completion.
        finish: finish_reason of the chat completion.
        delay: seconds to wait before the response.
        status, headers: status and headers of the HTTP response.
        body: response body to send instead of a chat completion, e.g. invalid JSON; None sends a chat completion.
        drop: whether to close the connection after the delay without a response.
        cut: whether to close the connection after half of the body.
    """

    text: str = ""
    finish: str | None = "stop"
    delay: float = 0.0
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: str | None = None
    drop: bool = False
    cut: bool = False


@dataclass(frozen=True)
class ReceivedRequest:
    """A request that the fake endpoint received.

    Args:
        body: the parsed JSON body.
        headers: lower-case name → value.
    """

    body: dict[str, Any]
    headers: dict[str, str]

    @property
    def last(self) -> str:
        """The content of the last message, as a str."""
        return str(self.body["messages"][-1]["content"])


FakeScript: TypeAlias = Sequence[str | Answer] | Callable[[ReceivedRequest], str | Answer]


class FakeEndpoint:
    """A chat endpoint with scripted answers. The server runs inside the `with` block.

    Args:
        script: a sequence of texts and Answers, or a function. The items of a sequence are sent in the order in which
            requests arrive; the last item is repeated. A function maps a request to a text or an Answer. Up to 64
            calls run concurrently.
        strict: whether to refuse requests with status 400 that a strict server refuses; see
            gem.testing.fakes.openai_schema.

    Attributes:
        requests: all requests in order of arrival, including retries.
        refused: why requests were refused, in order of arrival; empty unless ``strict``.
        most_at_once: largest number of concurrent requests.
        errors: exceptions raised by a script function. The response to such a request has status 500. At the end of the
            `with` block, the first of these exceptions is raised again, unless the block itself raised an exception.

    Raises:
        BadValue: the script is empty.
    """

    def __init__(self, script: FakeScript, *, strict: bool = False) -> None:
        if isinstance(script, str) or (not callable(script) and not script):
            raise BadValue(f"script must be a non-empty list of answers or a function, got {script!r}")
        self.requests: list[ReceivedRequest] = []
        self.errors: list[Exception] = []
        self.refused: list[str] = []
        self.strict = strict
        self.most_at_once = self._open = 0
        self._script = script if callable(script) else list(script)
        self._server: LocalServer | None = None

    @property
    def url(self) -> str:
        """The ``base_url`` argument for an Endpoint."""
        if self._server is None:
            raise BadValue("the fake endpoint is not running; use it in a `with` statement")
        return self._server.url + "/v1"

    def __enter__(self) -> FakeEndpoint:
        aiohttp_web = require("aiohttp.web", extra="eval")
        handle = partial(self._handle, aiohttp_web)
        routes = {("POST", path): handle for path in ("/v1/chat/completions", "/v1/completions")}
        self._server = LocalServer(aiohttp_web, routes)
        return self

    def __exit__(self, kind: type[BaseException] | None, *exception: object) -> None:
        if self._server is not None:
            self._server.close()
        self._server = None
        if self.errors and kind is None:
            raise self.errors[0]

    async def _handle(self, web: Any, request: Any) -> Any:
        self._open += 1
        self.most_at_once = max(self.most_at_once, self._open)
        try:
            headers = {name.lower(): value for name, value in request.headers.items()}
            body = await request.read()
            received = ReceivedRequest(json.loads(body), headers)
            self.requests.append(received)
            if self.strict and (why := problem(request.path, body)) is not None:
                self.refused.append(why)
                error = {"message": why, "type": "invalid_request_error", "param": None, "code": None}
                return web.json_response({"error": error}, status=400)
            answer = await self._answer(received)
            await asyncio.sleep(answer.delay)
            if answer.drop:
                request.transport.abort()
            text = json.dumps(_completion(received, answer)) if answer.body is None else answer.body
            headers = {"Content-Type": "application/json", **answer.headers}
            if not answer.cut:
                return web.Response(text=text, status=answer.status, headers=headers)
            data = text.encode()
            response = web.StreamResponse(
                status=answer.status, headers={**headers, "Content-Length": str(len(data) + 1)}
            )
            await response.prepare(request)
            await response.write(data[: len(data) // 2])
            request.transport.close()
            return response
        finally:
            self._open -= 1

    async def _answer(self, received: ReceivedRequest) -> Answer:
        try:
            if callable(self._script):  # in a thread, because the function may wait for another request
                answer = await asyncio.to_thread(self._script, received)
            else:
                answer = self._script[min(len(self.requests), len(self._script)) - 1]
        except Exception as e:
            self.errors.append(e)
            return Answer(status=500, body=f"the script raised {type(e).__name__}: {e}")
        return Answer(text=answer) if isinstance(answer, str) else answer


class FaultyModel:
    """A script for FakeEndpoint: replies to token prompts as vLLM and SGLang do, with faults and random latencies.

    The reply to a prompt is always the same; see reply(). Each fault comes with the same probability: status 500, no
    reply before the client's timeout, a cut body, a refusal (status 400 and finish_reason "content_filter" in turn),
    and a reset connection.

    Args:
        faults: probability of each of the five faults.
        latency: median of the log-normal latency, in seconds; its sigma is 1.
        stalled: seconds of a request that times out.
        seed: seed of latencies and faults.
    """

    def __init__(self, *, faults: float = 0.02, latency: float = 0.0, stalled: float = 3600.0, seed: int = 0) -> None:
        self._rng, self._lock = random.Random(seed), threading.Lock()
        self._latency = latency
        refusals = itertools.cycle([Answer(status=400, body="refused"), self._answer([], finish="content_filter")])
        self._faults: list[tuple[float, Callable[[Answer], Answer]]] = [
            (faults, lambda answer: Answer(status=500, delay=answer.delay)),
            (faults, lambda answer: Answer(delay=stalled)),
            (faults, lambda answer: replace(answer, cut=True)),
            (faults, lambda answer: replace(next(refusals), delay=answer.delay)),
            (faults, lambda answer: replace(answer, drop=True)),
        ]

    def __call__(self, asked: ReceivedRequest) -> Answer:
        ids, logprobs = self.reply(asked.body["prompt"])
        with self._lock:
            delay, draw = self._latency * self._rng.lognormvariate(0.0, 1.0), self._rng.random()
            answer = self._answer(ids, logprobs, delay)
            for probability, fault in self._faults:
                draw -= probability
                if draw < 0.0:
                    return fault(answer)
        return answer

    @staticmethod
    def reply(prompt: Sequence[int]) -> tuple[list[int], list[float]]:
        """Return the ids of the reply to a prompt (lower-case letters, then the end token 3) and their log-probs."""
        rng = random.Random(zlib.crc32(json.dumps(list(prompt)).encode()))
        ids = [*(rng.randint(ord("a"), ord("z")) for _ in range(rng.randint(1, 12))), 3]
        return ids, [-rng.random() for _ in ids]

    @staticmethod
    def _answer(ids: Sequence[int], logprobs: Sequence[float] = (), delay: float = 0.0, finish: str = "stop") -> Answer:
        choice = {
            "text": "".join(map(chr, ids[:-1])),
            "finish_reason": finish,
            "token_ids": list(ids),
            "logprobs": {"tokens": list(map(chr, ids)), "token_logprobs": list(logprobs)},
        }
        return Answer(body=json.dumps({"choices": [choice], "usage": {"completion_tokens": len(ids)}}), delay=delay)


class LocalServer:
    """Serves routes, (method, path) → handler, on a free local port until close().

    Attributes:
        url: the URL of the server, without a path.
    """

    def __init__(self, web: Any, routes: Mapping[tuple[str, str], Any]) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        serving = partial(_serving, web, routes, self._listener)
        self._background = BackgroundLoop(serving, executor_threads=MOST_CALLS)
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def close(self) -> None:
        """Cancel all handlers, and close the port and the connections. Closing again has no effect."""
        if not self._background.closing:
            # First accept no more: asyncio leaves a connection open whose task is cancelled before it has started.
            self._background.submit(self._stop_accepting()).result()
            self._background.close()

    async def _stop_accepting(self) -> None:
        asyncio.get_running_loop().remove_reader(self._listener)


@asynccontextmanager
async def _serving(web: Any, routes: Mapping[tuple[str, str], Any], listener: socket.socket) -> AsyncIterator[None]:
    app = web.Application(client_max_size=1 << 28)
    for (method, path), handler in routes.items():
        app.router.add_route(method, path, handler)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1, handler_cancellation=True)
    await runner.setup()
    try:
        await web.SockSite(runner, listener).start()
        yield
    finally:
        await runner.cleanup()


def _completion(received: ReceivedRequest, answer: Answer) -> dict[str, Any]:
    """Build a chat completion in the format of the OpenAI API. Its token counts are word counts."""
    prompt = sum(len(str(message.get("content")).split()) for message in received.body.get("messages", ()))
    words = len(answer.text.split())
    return {
        "id": "fake",
        "object": "chat.completion",
        "model": received.body["model"],
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": answer.text},
                "finish_reason": answer.finish,
            }
        ],
        "usage": {"prompt_tokens": prompt, "completion_tokens": words, "total_tokens": prompt + words},
    }
