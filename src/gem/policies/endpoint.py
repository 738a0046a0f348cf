"""Models behind a chat endpoint that speaks OpenAI's protocol, as most servers of models do.

Endpoint is the client: one pool of connections for all threads and event loops of a process, a bound on requests in
flight, a time-out for each, and retries where the fault may pass. gem.policies.endpoint_policy plays with it.
Needs the extra [eval].
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import random
import threading
import weakref
from collections.abc import AsyncIterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from gem.errors import BadValue, EndpointError, require
from gem.policies.background import Background

TIMEOUT_S = 120.0  # seconds for one request; a long answer of a large model takes about a minute
LONGEST_PAUSE_S = 60.0  # between two attempts, whatever the server asks for
PASSING = frozenset({408, 429})  # statuses besides 5xx that another attempt may not meet
_OURS = frozenset({"model", "messages", "stream", "n"})  # of the request's body

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Completion:
    """A model's reply.

    Args:
        text: empty where the model wrote nothing besides what the endpoint keeps to itself, its thinking for one.
        finish: "stop", "length" or what else the endpoint says; None where it says nothing.
        usage: tokens, as the endpoint counts them; empty where it does not.
    """

    text: str
    finish: str | None = None
    usage: dict[str, Any] = field(default_factory=dict)


class Endpoint:
    """The client of one model at one endpoint. Nothing is opened before the first request.

    Args:
        base_url: what "/chat/completions" is appended to, as "http://127.0.0.1:8000/v1".
        model: its name there.
        api_key_env: the environment variable that holds the key, read at each request; None sends none.
        timeout: seconds for one attempt, from sending it to the last byte of the reply.
        concurrency: requests in flight at most; others wait, without a limit on the time.
        retries: attempts after the first one, where it met a status of 408, 429 or 5xx, a connection that failed, a
            time-out or a broken reply.
        backoff: seconds before the first retry, at most. Each pause may be twice as long as the one before, up to a
            minute, and a random part of up to half is taken off, so that many clients do not come back at once. It is
            as long as the server's Retry-After, where that is more.

    Keys are in no message, log, pickle or repr. A pickled or forked client opens connections of its own. Raises
    BadValue for values out of range, and MissingDependency at the first request without the extra [eval].
    """

    def __init__(
        self,
        base_url: str,
        model: str,
        *,
        api_key_env: str | None = None,
        timeout: float = TIMEOUT_S,
        concurrency: int = 32,
        retries: int = 5,
        backoff: float = 0.5,
    ) -> None:
        if not timeout > 0 or not backoff >= 0:
            raise BadValue(f"timeout must be seconds above 0 and backoff seconds >= 0, got {timeout!r} and {backoff!r}")
        if concurrency < 1 or retries < 0:
            raise BadValue(f"concurrency must be at least 1 and retries at least 0, got {concurrency} and {retries}")
        self.url, self.model, self.api_key_env = _chat_url(base_url), model, api_key_env
        self.timeout, self.concurrency, self.retries, self.backoff = timeout, concurrency, retries, backoff
        self._chance = random.Random()  # of the pauses alone
        self._lock = threading.Lock()
        self._background: Background[_Client] | None = None

    def complete(self, messages: Sequence[Mapping[str, Any]], **sampling: Any) -> Completion:
        """The model's reply to a conversation.

        Args:
            messages: in the endpoint's form: {"role": …, "content": …}.
            sampling: whatever else the endpoint takes: temperature, max_tokens, stop, seed, …

        Raises EndpointError after all retries, at once for what a retry cannot help, and when the client is closed
        meanwhile; BadValue for what is no JSON, options that are this client's own, and a key that is not there.
        """
        future = self.submit(messages, **sampling)
        try:
            return future.result()
        finally:
            future.cancel()  # where the wait was interrupted

    async def acomplete(self, messages: Sequence[Mapping[str, Any]], **sampling: Any) -> Completion:
        """complete(), for event loops."""
        return await asyncio.wrap_future(self.submit(messages, **sampling))

    def submit(self, messages: Sequence[Mapping[str, Any]], **sampling: Any) -> Future[Completion]:
        """complete(), as a future; cancelling it gives up the request."""
        if wrong := sorted(_OURS & set(sampling)):
            raise BadValue(f"{', '.join(wrong)} cannot be set: one reply at a time, in one piece, by {self.model!r}")
        try:
            body = json.dumps({"model": self.model, "messages": list(messages), **sampling}, allow_nan=False).encode()
        except (TypeError, ValueError) as e:
            raise BadValue(f"messages and sampling options are sent as JSON: {e}") from e
        request = _Request(self.url, body, self._key(), self.timeout)
        with self._lock_of_this_process():
            background = self._background = self._background or self._opened()
            return background.submit(self._answer(background, request))

    def close(self) -> None:
        """Close all connections; requests under way raise EndpointError. The next request opens anew."""
        with self._lock_of_this_process():
            background, self._background = self._background, None
        if background is not None:
            background.close()

    def __enter__(self) -> Endpoint:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Endpoint({self.url.removesuffix('/chat/completions')!r}, {self.model!r})"

    def __getstate__(self) -> dict[str, Any]:
        own = ("url", "model", "api_key_env", "timeout", "concurrency", "retries", "backoff")
        return {name: getattr(self, name) for name in own}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._chance, self._lock, self._background = random.Random(), threading.Lock(), None

    def _key(self) -> str:
        if self.api_key_env is None:
            return ""
        key = os.environ.get(self.api_key_env, "").strip()
        if not key or not key.isascii() or not key.isprintable():
            raise BadValue(f"the environment variable {self.api_key_env} should hold the key of {self.url}")
        return key

    def _lock_of_this_process(self) -> threading.Lock:
        if self._background is not None and self._background.pid != os.getpid():  # forked: nobody here holds the lock
            self._lock, self._background = threading.Lock(), None
        return self._lock

    def _opened(self) -> Background[_Client]:
        aiohttp = require("aiohttp", extra="eval")
        background = Background(partial(_client, aiohttp, self.concurrency))
        weakref.finalize(self, background.close)  # for who forgets close(), at the latest when Python ends
        return background

    async def _answer(self, background: Background[_Client], request: _Request) -> Completion:
        try:
            for attempt in range(self.retries + 1):
                try:
                    return await background.resource.attempt(request)
                except _Failure as failure:
                    if not failure.passing or attempt == self.retries:
                        times = f"; {attempt + 1} attempts" if attempt else ""
                        raise EndpointError(f"{self.model!r} at {self.url}: {failure}{times}") from None
                    pause = self._pause(attempt, failure.after)
                    logger.info("%s: %s; again in %.1f s", self.url, failure, pause)
                await asyncio.sleep(pause)
        except asyncio.CancelledError:
            if background.closing:
                raise EndpointError(f"the client of {self.url} was closed while it waited for a reply") from None
            raise
        raise AssertionError

    def _pause(self, attempt: int, asked: float) -> float:
        own = self.backoff * 2.0**attempt * self._chance.uniform(0.5, 1.0)
        return min(max(own, asked), LONGEST_PAUSE_S)


@dataclass(frozen=True)
class _Request:
    url: str
    body: bytes
    key: str = field(repr=False)
    timeout: float

    def headers(self) -> dict[str, str]:
        own = {"Authorization": f"Bearer {self.key}"} if self.key else {}
        return {"Content-Type": "application/json", **own}

    def hide(self, text: str) -> str:
        """A server's words without the key, should it repeat it."""
        return text.replace(self.key, "…") if self.key else text


class _Failure(Exception):
    """An attempt that failed. passing: whether another may not. after: seconds that the server asks to wait."""

    def __init__(self, why: str, *, passing: bool = True, after: float = 0.0) -> None:
        super().__init__(why)
        self.passing, self.after = passing, after


class _Client:
    """A pool of connections, on its loop."""

    def __init__(self, aiohttp: Any, session: Any, concurrency: int) -> None:
        self._aiohttp, self._session = aiohttp, session
        self._free = asyncio.Semaphore(concurrency)

    async def attempt(self, request: _Request) -> Completion:
        """Send a request once. Raises _Failure."""
        limit = self._aiohttp.ClientTimeout(total=request.timeout)
        options = {"data": request.body, "headers": request.headers(), "timeout": limit, "allow_redirects": False}
        async with self._free:
            try:
                async with self._session.post(request.url, **options) as response:
                    text = (await response.read()).decode("utf-8", "replace")
            except asyncio.TimeoutError:  # its own class before Python 3.11
                raise _Failure(f"no reply in {request.timeout:g} s") from None
            except (self._aiohttp.ClientError, OSError) as e:
                raise _Failure(request.hide(f"{type(e).__name__}: {e}")) from None
        if response.status == 200:
            return _completion(request, text)
        passing = response.status in PASSING or response.status >= 500
        said = request.hide(" ".join(text.split()))[:300]
        raise _Failure(f"status {response.status}: {said}", passing=passing, after=_seconds(response.headers))


@asynccontextmanager
async def _client(aiohttp: Any, concurrency: int) -> AsyncIterator[_Client]:
    connector = aiohttp.TCPConnector(limit=concurrency)
    async with aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar()) as session:
        yield _Client(aiohttp, session, concurrency)


def _completion(request: _Request, text: str) -> Completion:
    """What a reply says. Raises _Failure for what is no reply, as from a proxy that lost its server."""
    try:
        data = json.loads(text)
        choice = data["choices"][0]
        said, finish, usage = choice["message"].get("content"), choice.get("finish_reason"), data.get("usage")
        if not isinstance(said, str | None) or not isinstance(finish, str | None):
            raise TypeError
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        raise _Failure(f"a reply that is no chat completion: {request.hide(text)[:300]!r}") from None
    return Completion(said or "", finish, usage if isinstance(usage, dict) else {})


def _seconds(headers: Mapping[str, str]) -> float:
    """Retry-After, where it is a number; a date counts as none."""
    asked = headers.get("Retry-After", "")
    return float(asked) if asked.isascii() and asked.isdigit() else 0.0


def _chat_url(base_url: str) -> str:
    try:
        parts = urlsplit(base_url)
        sound = parts.scheme in ("http", "https") and parts.hostname and (parts.port is None or parts.port > 0)
    except ValueError:
        sound = False
    if not sound:
        raise BadValue(f"base_url should be like http://127.0.0.1:8000/v1, got {base_url!r}")
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise BadValue("base_url should hold no user, password or query; keys go by api_key_env")
    return base_url.rstrip("/") + "/chat/completions"
