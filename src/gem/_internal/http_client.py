"""HTTP client with retries for transient errors, shared by the clients of models, search servers and embeddings.

Each client has one connection pool on a background event loop, which all threads and event loops of the process share.
The number of requests in flight is limited, and each attempt has a timeout and a limit on its body. Requires aiohttp.
"""

from __future__ import annotations

import asyncio
import io
import logging
import math
import os
import random
import re
import threading
import time
import weakref
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import Future
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from functools import partial
from typing import Any, TypeVar
from urllib.parse import quote, quote_plus, urlsplit

from gem._internal.annotations import check_arguments
from gem._internal.counts import check_count
from gem._internal.event_loop import BackgroundLoop
from gem._internal.inbound import check_size, inflate
from gem.errors import BadInput, BadValue, require

MAX_PAUSE_S = 60.0  # maximum seconds between two attempts, even if Retry-After is longer
RATE_LIMITED = 429
_PAUSE_GROWTH = 4.0  # of the pauses after rate limits without Retry-After: a few of them last a minute
_MOST_PAUSES = 20  # without a reply in between
LARGE_BODY = 1 << 20  # bytes; larger bodies are sent in chunks so that they do not block the event loop
MAX_BODY = 64 << 20  # embeddings of 256 texts have about 25 MiB
RETRYABLE = frozenset({408, 409, 425, RATE_LIMITED})  # retryable statuses besides 5xx
_CONNECT_SHARE = 0.9  # default connect timeout / timeout; below 1, so that failing to connect is reported as such

_NUMBER = re.compile(r"(\d{1,15}(?:\.\d{1,9})?)", re.ASCII)
_DURATION = re.compile(  # hours, minutes, seconds, milliseconds
    r"(?:(\d{1,6}) ?h(?:ours?)?)? ?(?:(\d{1,6}) ?m(?:in(?:ute)?s?)?)? ?"
    r"(?:(\d{1,9}(?:\.\d{1,9})?) ?s(?:ec(?:ond)?s?)?)? ?(?:(\d{1,9}(?:\.\d{1,9})?) ?ms)?",
    re.ASCII | re.IGNORECASE,
)
_TRY_AGAIN = re.compile(
    r"""(?:(?:try again|retry) (?:in|after) |"retryDelay": ?")((?:\d{1,9}(?:\.\d{1,9})? ?[hms][a-z]{0,6} ?){1,4})""",
    re.ASCII | re.IGNORECASE,
)

logger = logging.getLogger(__name__)
Result = TypeVar("Result")
ClientT = TypeVar("ClientT", bound="HttpClient")


@dataclass(frozen=True)
class HttpRequest:
    """An HTTP request.

    Args:
        timeout: seconds per attempt.
        connect_timeout: seconds to open a connection. None means 0.9 * timeout.
        secret: text to remove from error messages; an empty string removes nothing.
        failures: RequestError.cause → number of attempts that failed so far, which the client counts.
    """

    method: str
    url: str
    body: bytes | None
    timeout: float
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    params: Mapping[str, str] = field(default_factory=dict, repr=False)
    secret: str = field(default="", repr=False)
    connect_timeout: float | None = None
    failures: Counter[str] = field(default_factory=Counter, repr=False, compare=False)

    def redact(self, text: str) -> str:
        """Return the text with the secret, plain or URL-quoted, replaced by an ellipsis."""
        for form in {self.secret, quote(self.secret, safe=""), quote_plus(self.secret)} - {""}:
            text = text.replace(form, "…")
        return text


class RequestError(Exception):
    """A failed attempt.

    Args:
        reason: the message.
        retryable: whether another attempt may succeed.
        retry_after: seconds that the server asks the client to wait; 0 if the server does not say.
        timed_out: whether the request timed out after the connection was opened.
        unreachable: whether no connection could be opened.
        status: status of the response; 0 if there was none, 200 if its body was invalid and ``parse`` says so.
        body: body of an unsuccessful response; empty if there was none.
    """

    def __init__(
        self,
        reason: str,
        *,
        retryable: bool = True,
        retry_after: float = 0.0,
        timed_out: bool = False,
        unreachable: bool = False,
        status: int = 0,
        body: bytes = b"",
    ) -> None:
        super().__init__(reason)
        self.retryable, self.retry_after, self.timed_out, self.status = retryable, retry_after, timed_out, status
        self.unreachable, self.body = unreachable, body

    @property
    def cause(self) -> str:
        """A short name of what went wrong, the same for all failures of its kind."""
        if self.status == 200:
            return "invalid reply"
        return f"status {self.status}" if self.status else "timeout" if self.timed_out else "connection"


@dataclass
class ServerState:
    """What a client has seen of one server.

    Args:
        answered: whether a request has succeeded.
        gave_up: whether a request has failed after its last retry.
        warned: whether a warning has said that requests are tried again.
        pauses, paused_s: number and seconds of the pauses for a rate limit since the last request that succeeded.
        pause: number of the latest pause of all. It tells which requests were in flight when the pause began.
        resumes_at: end of the latest pause.
    """

    answered: bool = False
    gave_up: bool = False
    warned: bool = False
    pauses: int = 0
    paused_s: float = 0.0
    pause: int = 0
    resumes_at: float = -math.inf

    def succeed(self, pause: int) -> None:
        """Note that a request has succeeded, which was sent after the pause of this number."""
        self.answered = True
        if pause == self.pause:
            self.pauses, self.paused_s = 0, 0.0


class Clock:
    """Real time. Tests replace it."""

    def now(self) -> float:
        """Return seconds of a clock that only goes forward."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class HttpClient:
    """HTTP client with a connection pool, timeouts and retries. The first request opens the first connection.

    Subclasses choose the exceptions by implementing failure_error() and closed_error(). A copy of the client in another
    process, made by pickling or forking, opens its own connections.

    Args:
        extra: the extra of this package to name in the error if aiohttp is not installed.
        timeout: seconds per attempt, from opening the connection to the last byte of the response.
        concurrency: maximum number of requests in flight; further requests wait without a time limit.
        retries: maximum number of attempts after the first attempt. Status 408, 409, 425, 429 and 5xx, connection
            errors, timeouts and retryable errors of ``parse`` are retried.
        backoff: maximum seconds before the first retry. The maximum doubles with each retry. Each pause is drawn
            between half the maximum and the maximum, so that clients do not retry in step. If Retry-After is longer,
            it is used instead. No pause exceeds MAX_PAUSE_S.

    Raises:
        BadValue: for values out of range.
    """

    max_body = MAX_BODY  # bytes of a response, decompressed; a larger one is an error that is not retried
    rate_limit_s = 0.0  # seconds that all requests pause after status 429, until one succeeds; 0 only retries them
    clock = Clock()
    _background: BackgroundLoop[_ConnectionPool] | None

    def __new__(cls: type[ClientT], *args: Any, **kwargs: Any) -> ClientT:
        check_arguments(cls, args, kwargs)
        return super().__new__(cls)

    def __init__(self, *, extra: str, timeout: float, concurrency: int, retries: int, backoff: float) -> None:
        if not timeout > 0 or not backoff >= 0:
            raise BadValue(f"timeout must be seconds above 0 and backoff seconds >= 0, got {timeout!r} and {backoff!r}")
        check_count("concurrency", concurrency)
        check_count("retries", retries, 0)
        self.extra, self.timeout, self.concurrency = extra, timeout, concurrency
        self.retries, self.backoff = retries, backoff
        self._reset()

    def send(self, request: HttpRequest, parse: Callable[[bytes], Result]) -> Future[Result]:
        """Send a request, with retries. Canceling the future aborts the request.

        Args:
            parse: converts the body of a response with status 200. Raises RequestError for an invalid body.

        Returns:
            A future of the parsed response. Its exception is failure_error() if all attempts fail, or closed_error() if
            the client is closed during the request.
        """
        with self._lock_of_this_process():
            background = self._background = self._background or self._connect()
            sending = self._send_with_retries(background, request, parse)
            return background.submit(sending, closed_error=partial(self.closed_error, request))

    def failure_error(self, request: HttpRequest, error: RequestError, attempts: int) -> Exception:
        """Return the exception to raise for a failed request; ``error`` is the error of the last attempt."""
        raise NotImplementedError

    def closed_error(self, request: HttpRequest) -> Exception:
        """Return the exception to raise for a request that was in flight when the client was closed."""
        raise NotImplementedError

    def should_retry(self, error: RequestError) -> bool:
        """Return whether to retry a request after this error, if any attempts are left."""
        return error.retryable

    def most_retries(self, error: RequestError, server: ServerState) -> int:
        """Return how many attempts after the first one a request has that failed with a retryable error."""
        return self.retries

    def close(self) -> None:
        """Close all connections. Requests in flight raise closed_error(). Later requests open new connections."""
        with self._lock_of_this_process():
            background, self._background = self._background, None
        if background is not None:
            background.close()

    def __enter__(self: ClientT) -> ClientT:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in ("_jitter", "_lock", "_background")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._reset()

    def _reset(self) -> None:
        """Initialize the attributes that are not pickled."""
        self._jitter = random.Random()  # randomizes the pauses between attempts
        self._lock = threading.Lock()
        self._background = None

    def _lock_of_this_process(self) -> threading.Lock:
        if self._background is not None and self._background.pid != os.getpid():
            # Forked: no thread of this process holds the lock.
            self._lock, self._background = threading.Lock(), None
        return self._lock

    def _connect(self) -> BackgroundLoop[_ConnectionPool]:
        aiohttp = require("aiohttp", extra=self.extra)
        background = BackgroundLoop(partial(_connection_pool, aiohttp, self.concurrency))
        weakref.finalize(self, background.close)  # for clients that are never closed
        return background

    async def _send_with_retries(
        self, background: BackgroundLoop[_ConnectionPool], request: HttpRequest, parse: Callable[[bytes], Result]
    ) -> Result:
        pool, retries, attempts = background.resource, 0, 0
        server = pool.servers[urlsplit(request.url).netloc]
        try:
            while True:
                attempts += 1
                async with pool.semaphore:
                    while (left := server.resumes_at - self.clock.now()) > 0:
                        await self.clock.sleep(left)
                    pause = server.pause
                    try:
                        result = parse(await pool.send_once(request, self.max_body))
                    except RequestError as e:
                        error = e
                    else:
                        server.succeed(pause)
                        return result
                request.failures[error.cause] += 1
                retryable = self.should_retry(error)
                if error.status == RATE_LIMITED and retryable and self.rate_limit_s and self.retries:
                    if self._pause(server, request, error, pause):
                        continue
                elif retryable and retries < (most := self.most_retries(error, server)):
                    delay, retries = self._retry_delay(retries, error.retry_after), retries + 1
                    self._warn(server, "%s: %s; retry %d of %d in %.1f s", request.url, error, retries, most, delay)
                    await self.clock.sleep(delay)
                    continue
                server.gave_up = server.gave_up or retryable
                raise self.failure_error(request, error, attempts)
        except asyncio.CancelledError:
            if background.closing:
                raise self.closed_error(request) from None
            raise

    def _pause(self, server: ServerState, request: HttpRequest, error: RequestError, pause: int) -> bool:
        """Let all requests to a server wait after status 429. Returns False if they have waited too long already.

        Args:
            pause: number of the pause before which the request was sent; if another one has begun, it is enough.
        """
        if pause != server.pause:
            return True
        seconds = max(error.retry_after, min(self.backoff * _PAUSE_GROWTH**server.pauses, MAX_PAUSE_S))
        if server.paused_s + seconds > self.rate_limit_s or server.pauses >= _MOST_PAUSES:
            return False
        advice = "a lower concurrency (--concurrency) avoids such pauses"
        self._warn(server, f"%s: %s; all requests wait for %.1f s; {advice}", request.url, error, seconds)
        server.pause, server.pauses, server.paused_s = pause + 1, server.pauses + 1, server.paused_s + seconds
        server.resumes_at = self.clock.now() + seconds
        return True

    def _warn(self, server: ServerState, message: str, *values: object) -> None:
        """Log that a request is delayed: as a warning the first time, so that waiting is never silent, then as info."""
        logger.log(logging.INFO if server.warned else logging.WARNING, message, *values)
        server.warned = True

    def _retry_delay(self, attempt: int, retry_after: float) -> float:
        own = self.backoff * 2.0**attempt * self._jitter.uniform(0.5, 1.0)
        return min(max(own, retry_after), MAX_PAUSE_S)


class _ConnectionPool:
    """An aiohttp session, and what limits the number of requests in flight. Must be used on its event loop."""

    def __init__(self, aiohttp: Any, session: Any, concurrency: int) -> None:
        self._aiohttp, self._session = aiohttp, session
        self.semaphore = asyncio.Semaphore(concurrency)
        self.servers: defaultdict[str, ServerState] = defaultdict(ServerState)  # by host and port

    async def send_once(self, request: HttpRequest, max_body: int) -> bytes:
        """Send a request once and return the body of its response.

        Raises:
            RequestError: for connection errors, timeouts, a body above ``max_body``, and any status other than 200.
        """
        connect_timeout = request.connect_timeout or request.timeout * _CONNECT_SHARE
        limit = self._aiohttp.ClientTimeout(total=request.timeout, sock_connect=connect_timeout)
        large = request.body is not None and len(request.body) > LARGE_BODY
        data = io.BytesIO(request.body or b"") if large else request.body
        options = {"data": data, "headers": dict(request.headers), "params": dict(request.params)}
        try:
            async with self._session.request(
                request.method, request.url, timeout=limit, allow_redirects=False, **options
            ) as response:
                body = await read_body(response, max_body)
        except BadInput as e:
            raise RequestError(str(e), retryable=False, status=response.status) from None
        except self._aiohttp.ServerTimeoutError:  # a subclass of TimeoutError, so it must come first
            raise RequestError(f"no connection in {connect_timeout:g} s", unreachable=True) from None
        except asyncio.TimeoutError:  # not the builtin before Python 3.11
            raise RequestError(f"no reply in {request.timeout:g} s", timed_out=True) from None
        except (self._aiohttp.ClientError, OSError) as e:
            unreachable = isinstance(e, self._aiohttp.ClientConnectorError)  # refused, unknown host, TLS
            raise RequestError(request.redact(f"{type(e).__name__}: {e}"), unreachable=unreachable) from None
        if response.status == 200:
            return body
        words = text = " ".join(body.decode("utf-8", "replace").split())
        if 300 <= response.status < 400 and "Location" in response.headers:
            text = f"redirects to {response.headers['Location']}"
        text = request.redact(text)[:300]
        raise RequestError(
            f"status {response.status}: {text}",
            retryable=response.status in RETRYABLE or response.status >= 500,
            retry_after=_parse_retry_after(response.headers, words),
            status=response.status,
            body=body,
        )


@asynccontextmanager
async def _connection_pool(aiohttp: Any, concurrency: int) -> AsyncIterator[_ConnectionPool]:
    connector = aiohttp.TCPConnector(limit=concurrency)
    async with open_session(aiohttp, connector) as session:
        yield _ConnectionPool(aiohttp, session, concurrency)


def open_session(aiohttp: Any, connector: Any, **headers: str) -> Any:
    """Return an aiohttp session without cookies, whose bodies are decompressed by read_body()."""
    headers = {"Accept-Encoding": "gzip", **headers}
    jar = aiohttp.DummyCookieJar()
    return aiohttp.ClientSession(connector=connector, cookie_jar=jar, headers=headers, auto_decompress=False)


async def read_body(response: Any, limit: int) -> bytes:
    """Return the body of a response of open_session(). Raises BadInput above ``limit`` bytes, compressed or not."""
    data = bytearray()
    async for chunk in response.content.iter_any():
        data += chunk
        check_size(len(data), "the reply", limit)  # while it arrives: it may never end
    encoding = ",".join(response.headers.getall("Content-Encoding", [])).strip().lower()
    if encoding in ("gzip", "x-gzip", "deflate"):  # one of them: a second one would multiply what the first limits
        return inflate(bytes(data), "the reply", limit)
    if encoding not in ("", "identity"):
        raise BadInput("the reply", f"is encoded as {encoding[:80]!r}, which was not asked for")
    return bytes(data)


def wait_for(future: Future[Result]) -> Result:
    """Wait for a future and return its result. If the wait is interrupted, the future is cancelled."""
    try:
        return future.result()
    finally:
        future.cancel()


def api_key(variable: str | None, server: str) -> str:
    """Return the API key in an environment variable, or an empty string if ``variable`` is None.

    Raises:
        BadValue: if the value of the variable is not a valid key, or ``variable`` is no name. The message has neither.
    """
    if variable is None:
        return ""
    if not variable.isidentifier():  # not shown, as it may be the key itself
        raise BadValue(f"the key of {server} is given by the name of an environment variable, such as MY_KEY")
    key = os.environ.get(variable, "").strip()
    if not key or not key.isascii() or not key.isprintable():
        raise BadValue(f"the environment variable {variable} should hold the key of {server}")
    return key


def bearer(key: str) -> dict[str, str]:
    """Return the Authorization header for a key, or an empty dict if the key is empty."""
    return {"Authorization": f"Bearer {key}"} if key else {}


def check_url(url: str, name: str, example: str, hint: str) -> str:
    """Return a server's URL without a trailing slash.

    Args:
        name: name of the argument, for error messages.
        example: a valid URL, for error messages.
        hint: how to pass the key, for error messages.

    Raises:
        BadValue: if the URL is invalid, or contains a user, a password, a query or a fragment.
    """
    try:
        parts = urlsplit(url)
        valid = parts.scheme in ("http", "https") and parts.hostname and (parts.port is None or parts.port > 0)
    except (ValueError, AttributeError, TypeError):
        valid = False
    if not valid:
        raise BadValue(f"{name} should be like {example}, got {url!r}")
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise BadValue(f"{name} should hold no user, password or query; {hint}")
    return url.rstrip("/")


def _parse_retry_after(headers: Mapping[str, str], text: str = "") -> float:
    """Return the seconds that a server asks to wait; 0 if it does not say.

    Read are, in this order, also with the prefix of LiteLLM: retry-after-ms; Retry-After as seconds or as a date, which
    is compared with the server's own Date; the resets of the limits of which nothing remains (x-ratelimit-reset-…); and
    "try again in …" in the text of the error.
    """
    own = {name.lower().removeprefix("llm_provider-"): value for name, value in headers.items()}
    own |= {name.lower(): value for name, value in headers.items()}
    date = _timestamp(own.get("date", "")) or time.time()
    resets = {name: value for name, value in own.items() if name.startswith("x-ratelimit-reset")}
    spent = [value for name, value in resets.items() if own.get(name.replace("reset", "remaining"), "0") == "0"]
    asked = _TRY_AGAIN.search(text)
    waits = [
        _seconds(own.get("retry-after-ms", ""), date) / 1000.0,
        _seconds(own.get("retry-after", ""), date),
        max((_seconds(value, date) for value in spent), default=0.0),
        _seconds(asked[1], date) if asked else 0.0,
    ]
    return next((wait for wait in waits if 0.0 < wait < math.inf), 0.0)


def _seconds(text: str, date: float) -> float:
    """Read a duration ("12", "1m30.5s", "250ms", "60 seconds") or a point in time, in seconds from ``date``."""
    if number := _NUMBER.fullmatch(text.strip()):
        value = float(number[1])
        if value > 1e8:  # seconds since 1970, or milliseconds
            return (value / 1000.0 if value > 1e11 else value) - date
        return value
    if (parts := _DURATION.fullmatch(text.strip())) and any(parts.groups()):
        return sum(
            float(part) * unit for part, unit in zip(parts.groups(), (3600.0, 60.0, 1.0, 0.001), strict=True) if part
        )
    when = _timestamp(text)
    return when - date if when is not None else 0.0


def _timestamp(text: str) -> float | None:
    try:
        return parsedate_to_datetime(text).timestamp() if text[:1].isalpha() else None
    except (ValueError, TypeError, OverflowError):
        return None
