"""Requests over HTTP that survive what passes: the part that clients of models and of search servers have in common.

One pool of connections on an event loop of its own thread serves all threads and loops of a process; requests in flight
are bounded, each attempt has a time-out, and what may pass is tried again. Needs aiohttp.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
import threading
import weakref
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import Future
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar
from urllib.parse import quote, quote_plus, urlsplit

from gem._internal.event_loop import BackgroundLoop
from gem.errors import BadValue, require

LONGEST_PAUSE_S = 60.0  # between two attempts, whatever the server asks for
PASSING = frozenset({408, 429})  # statuses besides 5xx that another attempt may not meet
_CONNECTING = 0.9  # of the time-out: a server that cannot be reached is told from one that does not answer

logger = logging.getLogger(__name__)
Result = TypeVar("Result")
ClientT = TypeVar("ClientT", bound="HttpClient")


@dataclass(frozen=True)
class HttpRequest:
    """What is sent. secret: never shown, in whatever a server or an error says. timeout: seconds for one attempt."""

    method: str
    url: str
    body: bytes | None
    timeout: float
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    params: Mapping[str, str] = field(default_factory=dict, repr=False)
    secret: str = field(default="", repr=False)

    def hide(self, text: str) -> str:
        """A text without the secret, should it be repeated there."""
        for form in {self.secret, quote(self.secret, safe=""), quote_plus(self.secret)} - {""}:
            text = text.replace(form, "…")
        return text


class Failure(Exception):
    """An attempt that failed.

    passing: whether another may not. after: seconds that the server asks to wait. timed_out: it was sent, and no answer
    came in time. status: of the answer, 0 where there was none or it was no good.
    """

    def __init__(
        self, why: str, *, passing: bool = True, after: float = 0.0, timed_out: bool = False, status: int = 0
    ) -> None:
        super().__init__(why)
        self.passing, self.after, self.timed_out, self.status = passing, after, timed_out, status


class HttpClient:
    """See the module docstring. Nothing is opened before the first request.

    Args:
        extra: of the package, to be named where aiohttp is missing.
        timeout: seconds for one attempt, from sending it to the last byte of the reply.
        concurrency: requests in flight at most; others wait, without a limit on the time.
        retries: attempts after the first one, where it met a status of 408, 429 or 5xx, a connection that failed, a
            time-out or a broken reply.
        backoff: seconds before the first retry, at most. Each pause may be twice as long as the one before, up to a
            minute, and a random part of up to half is taken off, so that many clients do not come back at once. It is
            as long as the server's Retry-After, where that is more.

    A pickled or forked client opens connections of its own. Raises BadValue for values out of range.
    """

    _background: BackgroundLoop[_Connections] | None

    def __init__(self, *, extra: str, timeout: float, concurrency: int, retries: int, backoff: float) -> None:
        if not timeout > 0 or not backoff >= 0:
            raise BadValue(f"timeout must be seconds above 0 and backoff seconds >= 0, got {timeout!r} and {backoff!r}")
        if concurrency < 1 or retries < 0:
            raise BadValue(f"concurrency must be at least 1 and retries at least 0, got {concurrency} and {retries}")
        self.extra, self.timeout, self.concurrency = extra, timeout, concurrency
        self.retries, self.backoff = retries, backoff
        self._forget()

    def send(self, request: HttpRequest, read: Callable[[bytes], Result]) -> Future[Result]:
        """The reply as read makes it of its bytes; cancelling the future gives up the request.

        read raises Failure for what is no reply. The future raises what failed() makes of the last Failure.
        """
        with self._lock_of_this_process():
            background = self._background = self._background or self._opened()
            return background.submit(self._answer(background, request, read))

    def failed(self, request: HttpRequest, failure: Failure, attempts: int) -> Exception:
        """What to raise when attempts, one at least, came to nothing."""
        raise NotImplementedError

    def closed(self, request: HttpRequest) -> Exception:
        """What to raise when the client was closed while a request was under way."""
        raise NotImplementedError

    def _worth_another(self, failure: Failure) -> bool:
        """Whether to try again after a failure."""
        return failure.passing

    def close(self) -> None:
        """Close all connections; requests under way raise. The next request opens anew."""
        with self._lock_of_this_process():
            background, self._background = self._background, None
        if background is not None:
            background.close()

    def __enter__(self: ClientT) -> ClientT:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in ("_chance", "_lock", "_background")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._forget()

    def _forget(self) -> None:
        """Be a client with nothing open."""
        self._chance = random.Random()  # of the pauses alone
        self._lock = threading.Lock()
        self._background = None

    def _lock_of_this_process(self) -> threading.Lock:
        if self._background is not None and self._background.pid != os.getpid():  # forked: nobody here holds the lock
            self._lock, self._background = threading.Lock(), None
        return self._lock

    def _opened(self) -> BackgroundLoop[_Connections]:
        aiohttp = require("aiohttp", extra=self.extra)
        background = BackgroundLoop(partial(_connections, aiohttp, self.concurrency))
        weakref.finalize(self, background.close)  # for who forgets close(), at the latest when Python ends
        return background

    async def _answer(
        self, background: BackgroundLoop[_Connections], request: HttpRequest, read: Callable[[bytes], Result]
    ) -> Result:
        try:
            for attempt in range(self.retries + 1):
                try:
                    return read(await background.resource.attempt(request))
                except Failure as failure:
                    if attempt == self.retries or not self._worth_another(failure):
                        raise self.failed(request, failure, attempt + 1) from None
                    pause = self._pause(attempt, failure.after)
                    logger.info("%s: %s; again in %.1f s", request.url, failure, pause)
                await asyncio.sleep(pause)
        except asyncio.CancelledError:
            if background.closing:
                raise self.closed(request) from None
            raise
        raise AssertionError

    def _pause(self, attempt: int, asked: float) -> float:
        own = self.backoff * 2.0**attempt * self._chance.uniform(0.5, 1.0)
        return min(max(own, asked), LONGEST_PAUSE_S)


class _Connections:
    """A pool of connections, on its loop."""

    def __init__(self, aiohttp: Any, session: Any, concurrency: int) -> None:
        self._aiohttp, self._session = aiohttp, session
        self._free = asyncio.Semaphore(concurrency)

    async def attempt(self, request: HttpRequest) -> bytes:
        """Send a request once. Raises Failure."""
        limit = self._aiohttp.ClientTimeout(total=request.timeout, sock_connect=request.timeout * _CONNECTING)
        options = {"data": request.body, "headers": dict(request.headers), "params": dict(request.params)}
        async with self._free:
            try:
                async with self._session.request(
                    request.method, request.url, timeout=limit, allow_redirects=False, **options
                ) as response:
                    data: bytes = await response.read()
            except self._aiohttp.ServerTimeoutError:  # of connecting; a time-out, too, by its class
                raise Failure(f"no connection in {limit.sock_connect:g} s") from None
            except asyncio.TimeoutError:  # its own class before Python 3.11
                raise Failure(f"no reply in {request.timeout:g} s", timed_out=True) from None
            except (self._aiohttp.ClientError, OSError) as e:
                raise Failure(request.hide(f"{type(e).__name__}: {e}")) from None
        if response.status == 200:
            return data
        passing = response.status in PASSING or response.status >= 500
        said = request.hide(" ".join(data.decode("utf-8", "replace").split()))[:300]
        after = _seconds(response.headers)
        raise Failure(f"status {response.status}: {said}", passing=passing, after=after, status=response.status)


@asynccontextmanager
async def _connections(aiohttp: Any, concurrency: int) -> AsyncIterator[_Connections]:
    connector = aiohttp.TCPConnector(limit=concurrency)
    async with aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar()) as session:
        yield _Connections(aiohttp, session, concurrency)


def outcome(future: Future[Result]) -> Result:
    """Its result, waited for; who interrupts the wait gives up the request."""
    try:
        return future.result()
    finally:
        future.cancel()


def key_from(variable: str | None, whose: str) -> str:
    """The key in an environment variable; empty for None. Raises BadValue where there is none, without showing it."""
    if variable is None:
        return ""
    key = os.environ.get(variable, "").strip()
    if not key or not key.isascii() or not key.isprintable():
        raise BadValue(f"the environment variable {variable} should hold the key of {whose}")
    return key


def checked_url(url: str, what: str, example: str, hint: str) -> str:
    """A server's URL, without a trailing slash. Raises BadValue for another, and for one with a password or query."""
    try:
        parts = urlsplit(url)
        sound = parts.scheme in ("http", "https") and parts.hostname and (parts.port is None or parts.port > 0)
    except (ValueError, AttributeError, TypeError):
        sound = False
    if not sound:
        raise BadValue(f"{what} should be like {example}, got {url!r}")
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise BadValue(f"{what} should hold no user, password or query; {hint}")
    return url.rstrip("/")


def _seconds(headers: Mapping[str, str]) -> float:
    """Retry-After, where it is a number; a date counts as none."""
    asked = headers.get("Retry-After", "")
    return float(asked) if asked.isascii() and asked.isdigit() else 0.0
