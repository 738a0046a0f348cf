"""Read pages from a MediaWiki server, such as Wikipedia, through its API (action=query). Needs the extra [wiki].

Requests follow https://www.mediawiki.org/wiki/API:Etiquette: one at a time, with a contact in the User-Agent and
``maxlag``. Failures of the server raise MediaWikiError, after all attempts; they are never a reward.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Mapping
from typing import Any

import msgspec

from gem._internal.http_client import HttpClient, HttpRequest, RequestError, check_url, wait_for
from gem._internal.inbound import MESSAGE, loads, shaped
from gem._internal.text import shorten
from gem.envs.web.wiki.pages import BaseWikiTrawler, WikiPage
from gem.errors import BadInput, BadValue, ToolError

CONTACT = "GEM_CONTACT"  # environment variable: an address or a URL for the administrators of a server
MAXLAG_S = 5  # the server refuses a request while its replicas are further behind
MAX_REPLIES = 20  # of one page, whose links come in parts of 500

# Errors in a reply with status 200 after which another attempt may succeed. Others are final.
_TRANSIENT = ("maxlag", "ratelimited", "readonly", "internal_api_error", "cirrussearch-too-busy", "timeout")


class MediaWikiError(ToolError):
    """A MediaWiki server is unreachable, refuses a request, or sends an invalid reply.

    Args:
        code: code of the error in the API, such as "maxlag"; the HTTP status, such as "503"; or "" without a reply.
    """

    def __init__(self, message: str, code: str = "") -> None:
        super().__init__(message)
        self.code = code

    def __reduce__(self) -> tuple[Any, ...]:
        return MediaWikiError, (str(self), self.code)


class _ApiError(RequestError):
    """An error inside a reply with status 200."""

    def __init__(self, code: str, text: str, wait_s: float) -> None:
        super().__init__(f"{code}: {text}", retryable=code.startswith(_TRANSIENT), retry_after=wait_s, status=200)
        self.code = code


class MediaWikiTrawler(BaseWikiTrawler):
    """The articles of a MediaWiki server. The first arguments are those of the published package.

    Args:
        url: address of api.php.
        query_delay_ms: least number of milliseconds between two requests.
        max_query_attempts: maximum number of attempts for a request. Status 429 and 5xx, connection errors, timeouts
            and transient errors of the API are tried again; the server's Retry-After or lag is waited for, up to a
            minute.
        query_use_cache: keep pages in memory.
        contact: an address or a URL for the User-Agent; None: from the environment variable GEM_CONTACT.
        timeout: seconds per attempt.
        backoff: maximum seconds before the second attempt; doubles with each further one.

    Raises:
        BadValue: the URL is invalid, or there is no contact.
    """

    def __init__(
        self,
        url: str = "https://en.wikipedia.org/w/api.php",
        query_delay_ms: int = 25,
        max_query_attempts: int = 5,
        query_use_cache: bool = False,
        *,
        contact: str | None = None,
        timeout: float = 30.0,
        backoff: float = 1.0,
    ) -> None:
        super().__init__(url, query_delay_ms, max_query_attempts, query_use_cache)
        self.url = check_url(url, "url", "https://en.wikipedia.org/w/api.php", "the API takes no key")
        contact = (contact or os.environ.get(CONTACT, "")).strip()
        if not contact or not contact.isprintable():
            raise BadValue(
                f"MediaWiki servers ask for a contact: pass trawler_kwargs={{'contact': ADDRESS}} or set {CONTACT}"
            )
        self._headers = {"User-Agent": f"gem-gym WikiGame ({contact})", "Accept": "application/json"}
        self._client = _Client(timeout=timeout, retries=max_query_attempts - 1, backoff=backoff)
        self._timeout, self._last = timeout, 0.0
        self._turn = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_turn"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._turn = threading.Lock()

    @shaped("the reply of the MediaWiki server", "of its API", MediaWikiError)
    def read_page(self, title: str) -> WikiPage | None:
        if not title.strip() or "|" in title:  # "|" separates titles
            return None
        wanted = {"prop": "extracts|links", "titles": title, "redirects": "1", "plnamespace": "0", "pllimit": "max"}
        more: Mapping[str, str] = {"explaintext": "1", "exintro": "1", "exlimit": "1"}
        found, text, links = "", "", dict[str, None]()
        for _ in range(MAX_REPLIES):
            reply = self._query({**wanted, **more})
            page = _first(reply.get("query", {}).get("pages", []), title)
            if "missing" in page or "invalid" in page:
                return None
            found, text = str(page.get("title", title)), text or str(page.get("extract", ""))
            links |= {str(link["title"]): None for link in page.get("links", [])}
            if "continue" not in reply:
                break
            more = {name: str(value) for name, value in reply["continue"].items()}
            if "plcontinue" in more:
                wanted = wanted | {"prop": "links"}
        links.pop(found, None)
        return WikiPage(found, text, tuple(links))

    @shaped("the reply of the MediaWiki server", "of its API", MediaWikiError)
    def random(self, rng: random.Random | None = None) -> str:
        reply = self._query({"list": "random", "rnnamespace": "0", "rnlimit": "1"})
        return str(_first(reply.get("query", {}).get("random", []), "a random page")["title"])

    def close(self) -> None:
        self._client.close()

    def _query(self, params: Mapping[str, str]) -> dict[str, Any]:
        fixed = {"action": "query", "format": "json", "formatversion": "2", "maxlag": str(MAXLAG_S)}
        request = HttpRequest("GET", self.url, None, self._timeout, self._headers, {**fixed, **params})
        with self._turn:
            time.sleep(max(0.0, self._last + self.query_delay_ms / 1000 - time.monotonic()))
            try:
                return wait_for(self._client.send(request, _parse))
            finally:
                self._last = time.monotonic()


class _Client(HttpClient):
    def __init__(self, *, timeout: float, retries: int, backoff: float) -> None:
        super().__init__(extra="wiki", timeout=timeout, concurrency=1, retries=retries, backoff=backoff)

    def failure_error(self, request: HttpRequest, error: RequestError, attempts: int) -> MediaWikiError:
        code = error.code if isinstance(error, _ApiError) else str(error.status or "")
        times = f"; {attempts} attempts" if attempts > 1 else ""
        return MediaWikiError(f"MediaWiki server at {request.url}: {error}{times}", code)

    def closed_error(self, request: HttpRequest) -> MediaWikiError:
        return MediaWikiError(f"the client of {request.url} was closed during a request")


def _parse(body: bytes) -> dict[str, Any]:
    """Decode a reply. Raises RequestError if it is invalid, and _ApiError if it reports an error."""
    try:
        reply: dict[str, Any] = msgspec.convert(loads(body, "it", MESSAGE), dict[str, Any])
    except (msgspec.ValidationError, BadInput) as e:
        raise RequestError(f"the reply is not that of the API ({e})", status=200) from None
    if (error := reply.get("error")) is not None:
        error = error if isinstance(error, dict) else {"code": str(error)}
        lag = error.get("lag")
        wait_s = max(float(lag), 1.0) if isinstance(lag, int | float) else 0.0
        raise _ApiError(str(error.get("code", "unknown")), shorten(str(error.get("info", "")), 300), wait_s)
    return reply


def _first(found: Any, what: str) -> dict[str, Any]:
    if not isinstance(found, list) or not found or not isinstance(found[0], dict):
        raise MediaWikiError(f"the MediaWiki server sent no entry for {what!r}", "200")
    return found[0]
