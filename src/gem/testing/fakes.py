"""Servers that tests talk to in place of real ones.

FakeEndpoint is a chat endpoint with a script, on a free port of this machine. Needs the extra [eval].
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

from gem._internal.event_loop import BackgroundLoop
from gem.errors import BadValue, require


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What the endpoint does with one request.

    Args:
        text, finish: of the reply.
        delay: seconds before it.
        status, headers: of the response.
        body: sent as it is in place of a reply; what no client can read, for one.
        drop: cut the connection instead, after the delay.
    """

    text: str = ""
    finish: str | None = "stop"
    delay: float = 0.0
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: str | None = None
    drop: bool = False


@dataclass(frozen=True)
class Received:
    """A request as it came. body: its JSON. headers: by name, in lower case."""

    body: dict[str, Any]
    headers: dict[str, str]

    @property
    def last(self) -> str:
        """The text of the last message."""
        return str(self.body["messages"][-1]["content"])


Script: TypeAlias = Sequence[str | Answer] | Callable[[Received], str | Answer]


class FakeEndpoint:
    """A chat endpoint that answers by a script, from entering it to leaving it.

    Args:
        script: texts and Answers, given out in the order in which requests come, the last one from then on; or a
            function of a request, which may be called by several at once.

    ``requests`` are those that came, in order, retries included; ``most_at_once`` is how many were open together. A
    function that raises answers with status 500 and leaves its exception in ``errors``; leaving the endpoint raises
    the first one, unless something else is being raised. Raises BadValue for an empty script.
    """

    def __init__(self, script: Script) -> None:
        if isinstance(script, str) or (not callable(script) and not script):
            raise BadValue(f"a script is a list of at least one answer, or a function, got {script!r}")
        self.requests: list[Received] = []
        self.errors: list[Exception] = []
        self.most_at_once = self._open = 0
        self._script = script if callable(script) else list(script)
        self._background: BackgroundLoop[str] | None = None

    @property
    def url(self) -> str:
        """For Endpoint's base_url."""
        if self._background is None:
            raise BadValue("the fake endpoint is not running; enter it with `with`")
        return self._background.resource + "/v1"

    def __enter__(self) -> FakeEndpoint:
        aiohttp_web = require("aiohttp.web", extra="eval")
        routes = {("POST", "/v1/chat/completions"): partial(self._handle, aiohttp_web)}
        self._background = BackgroundLoop(lambda: serving(aiohttp_web, routes))
        return self

    def __exit__(self, kind: type[BaseException] | None, *exception: object) -> None:
        if self._background is not None:
            self._background.close()
        self._background = None
        if self.errors and kind is None:
            raise self.errors[0]

    async def _handle(self, web: Any, request: Any) -> Any:
        self._open += 1
        self.most_at_once = max(self.most_at_once, self._open)
        try:
            headers = {name.lower(): value for name, value in request.headers.items()}
            received = Received(json.loads(await request.read()), headers)
            self.requests.append(received)
            answer = await self._answer(received)
            await asyncio.sleep(answer.delay)
            if answer.drop:
                request.transport.abort()
            text = json.dumps(_completion(received, answer)) if answer.body is None else answer.body
            kind = {"Content-Type": "application/json"}
            return web.Response(text=text, status=answer.status, headers={**kind, **answer.headers})
        finally:
            self._open -= 1

    async def _answer(self, received: Received) -> Answer:
        try:
            if callable(self._script):  # in a thread, for it may wait for what another request does
                answer = await asyncio.to_thread(self._script, received)
            else:
                answer = self._script[min(len(self.requests), len(self._script)) - 1]
        except Exception as e:
            self.errors.append(e)
            return Answer(status=500, body=f"the script raised {type(e).__name__}: {e}")
        return Answer(text=answer) if isinstance(answer, str) else answer


@asynccontextmanager
async def serving(web: Any, routes: Mapping[tuple[str, str], Any]) -> AsyncIterator[str]:
    """Serve handlers by (method, path), on a free port of this machine; gives the URL that paths are appended to."""
    app = web.Application(client_max_size=1 << 28)
    for (method, path), handler in routes.items():
        app.router.add_route(method, path, handler)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1, handler_cancellation=True)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


def _completion(received: Received, answer: Answer) -> dict[str, Any]:
    """The reply in the form of the protocol; a "token" is a word."""
    prompt = sum(len(str(message.get("content")).split()) for message in received.body["messages"])
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
