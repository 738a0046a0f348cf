"""Web search for a search server: a client for search APIs, a fetcher of web pages, and a disk cache of results.

API keys never appear in messages, logs or the cache. A search result may contain any URL, so requests to addresses
outside the public internet are blocked, including requests after a redirect.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import socket
import sqlite3
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from gem._internal.counts import check_count
from gem._internal.http_client import (
    HttpClient,
    HttpRequest,
    RequestError,
    check_url,
    open_session,
    read_body,
)
from gem._internal.inbound import MESSAGE, loads
from gem._internal.text import one_line
from gem._internal.worker_pool import WorkerPool
from gem.errors import BadInput, BadValue, CallerError, InfraError, ToolError, require
from gem.tools.search.addresses import check_host, public_addresses
from gem.tools.search.corpus import Hit, words
from gem.tools.search.server import Service, UpstreamTimeout, WithoutEffect, add_address, serve

MAX_PAGE_BYTES = 1 << 23  # maximum number of bytes of a page, decompressed; a longer one is not read
USED_PAGE_BYTES = 1 << 21  # from the beginning of a page
MAX_TAGS = 20_000  # read per page: nested ones take quadratic time
MAX_REDIRECTS = 5
MAX_URL = 8192  # characters; a host of a million letters that are not ASCII takes the parser minutes
EXCERPT_WORDS = 300  # words of a page that are shown
MAX_WORDS = 200_000  # words of a page among which they are looked for

# Elements that are not part of the content, and elements that start a new line.
_HIDDEN = ["script", "style", "noscript", "template", "nav", "header", "footer", "aside", "form", "svg", "head"]
_BLOCKS = "p, div, br, li, tr, td, th, h1, h2, h3, h4, h5, h6, section, article"


class WebResult(NamedTuple):
    """A result of a web search. Either the title or the text may be empty, but not both."""

    title: str
    text: str
    url: str = ""


class SearchApi(HttpClient):
    """Client of a web search API with GET requests and JSON replies. Error messages never contain the API key."""

    def __init__(self, *, timeout: float, retries: int = 2, backoff: float = 0.5, concurrency: int = 32) -> None:
        super().__init__(extra="search", timeout=timeout, concurrency=concurrency, retries=retries, backoff=backoff)

    async def get(self, url: str, params: Mapping[str, str], secret: str) -> dict[str, Any]:
        """Return the JSON object of the reply. Raises UpstreamTimeout after a timeout, ToolError for other failures."""
        request = HttpRequest("GET", url, None, self.timeout, params=params, secret=secret)
        return await asyncio.wrap_future(self.send(request, _parse_object))

    def failure_error(self, request: HttpRequest, error: RequestError, attempts: int) -> ToolError:
        kind = UpstreamTimeout if error.timed_out else ToolError
        return kind(f"{request.url}: {error}; {attempts} attempts")

    def closed_error(self, request: HttpRequest) -> ToolError:
        return ToolError(f"the server stopped during a request to {request.url}")


def _parse_object(body: bytes) -> dict[str, Any]:
    try:
        return msgspec.convert(loads(body, "it", MESSAGE), dict[str, Any])
    except (msgspec.MsgspecError, BadInput) as e:
        raise RequestError(f"the reply is not a JSON object: {e}") from None


def string_in(data: Mapping[str, Any], *keys: str) -> str:
    """Return the value of the first of these keys that has a non-blank string, or "" if there is none."""
    return next((value for key in keys if isinstance(value := data.get(key), str) and value.strip()), "")


def objects_in(data: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    """Return the JSON objects in the list at a key, or a single object as a list of one; else an empty list."""
    value = data.get(key)
    return [each for each in (value if isinstance(value, list) else [value]) if isinstance(each, dict)]


class WebSearch:
    """Answers queries from the cache or with ``fetch``.

    Args:
        fetch: returns the results for (query, topk). Raises ToolError if the search fails.
        cache: stores results on disk; None disables caching.
    """

    def __init__(self, fetch: Callable[[str, int], Awaitable[list[WebResult]]], cache: DiskCache | None = None) -> None:
        self._fetch, self._cache = fetch, cache

    async def search(self, queries: Sequence[str], topk: int) -> list[list[Hit]]:
        return list(await asyncio.gather(*(self._search_one(query.strip(), topk) for query in queries)))

    async def _search_one(self, query: str, topk: int) -> list[Hit]:
        if not query:
            return []
        results = self._cache.get(query, topk) if self._cache else None
        if results is None:
            results = await self._fetch(query, topk)
            if self._cache:
                self._cache.put(query, topk, results)
        return [_hit(result, rank) for rank, result in enumerate(results[:topk], start=1)]


def _hit(result: WebResult, rank: int) -> Hit:
    """Convert a result to a hit. The score is 1 / rank, because search APIs return no scores."""
    title = " ".join(result.title.split())
    document = {"id": result.url or f"result-{rank}", "contents": f'"{title}"\n{result.text.strip()}'}
    return Hit({**document, **({"url": result.url} if result.url else {})}, round(1 / rank, 4))


class DiskCache:
    """Caches the results of queries in an SQLite file. Several servers can share the file.

    Args:
        path: the SQLite file, created if missing.
        kind: part of the cache key, so that servers with different search APIs can share a file.

    Raises:
        BadValue: the file cannot be opened as an SQLite database.
    """

    def __init__(self, path: Path, kind: str) -> None:
        self._kind = kind
        try:
            self._base = sqlite3.connect(path, timeout=10, isolation_level=None, check_same_thread=False)
            self._base.execute("PRAGMA journal_mode=WAL")
            self._base.execute(
                "CREATE TABLE IF NOT EXISTS found (kind TEXT, query TEXT, topk INTEGER, results TEXT, "
                "PRIMARY KEY (kind, query, topk))"
            )
        except sqlite3.Error as e:
            raise BadValue(f"{path}: cannot be used as a cache ({e})") from e

    def get(self, query: str, topk: int) -> list[WebResult] | None:
        sql = "SELECT results FROM found WHERE kind = ? AND query = ? AND topk = ?"
        row = self._base.execute(sql, (self._kind, query, topk)).fetchone()
        return None if row is None else [WebResult(*each) for each in loads(row[0], "the cache")]

    def put(self, query: str, topk: int, results: Sequence[WebResult]) -> None:
        row = (self._kind, query, topk, json.dumps(results))
        self._base.execute("INSERT OR REPLACE INTO found VALUES (?, ?, ?, ?)", row)

    def close(self) -> None:
        self._base.close()


# --- pages -----------------------------------------------------------------------------------------------------------


class PageError(Exception):
    """Raised when a page cannot be read; the message gives the reason."""


class PageFetcher:
    """Fetches web pages as text. All calls must be made on the same event loop.

    PageFetcher does not use HttpClient, because it follows redirects and checks the address of each connection.

    Args:
        timeout: seconds per page, including redirects.
        allow_private: also fetch from this machine and private networks; for tests.
    """

    def __init__(self, *, timeout: float, allow_private: bool = False) -> None:
        self._timeout, self._allow_private = timeout, allow_private
        self._session: Any = None
        # Deep HTML and some encodings (punycode) take quadratic time, and hold up the process: a worker is killed.
        self._readers = WorkerPool(timeout=timeout, modules=("gem.tools.search.web", "selectolax.lexbor"))

    async def text(self, url: str) -> str:
        """Return the text of a page.

        Raises:
            PageError: the URL is not allowed, the request failed or timed out, or the response is not HTML or text.
        """
        try:
            return await asyncio.wait_for(self._fetch(url), self._timeout)
        except asyncio.TimeoutError:
            raise PageError(f"timed out after {self._timeout:g} s") from None

    async def close(self) -> None:
        self._readers.close()
        if self._session is not None:
            await self._session.close()

    async def _fetch(self, url: str) -> str:
        aiohttp = require("aiohttp", extra="search")
        parse = require("yarl", extra="search").URL  # the parser of aiohttp: what is checked is what is connected to
        if self._session is None:
            resolver = {} if self._allow_private else {"resolver": _resolver(aiohttp)}
            headers = {"User-Agent": "Mozilla/5.0 (compatible; gem-search)", "Accept": "text/html, text/plain"}
            self._session = open_session(aiohttp, aiohttp.TCPConnector(limit=64, **resolver), **headers)
        if len(url) > MAX_URL:
            raise PageError(f"the URL has {len(url):,} characters; at most {MAX_URL:,} are read")
        try:
            address = parse(url)
            for _ in range(MAX_REDIRECTS + 1):
                self._check_url(address)
                async with self._session.get(address, allow_redirects=False) as response:
                    if response.status in (301, 302, 303, 307, 308) and "Location" in response.headers:
                        address = address.join(parse(response.headers["Location"]))
                        continue
                    return await self._read(response)
        except (aiohttp.ClientError, OSError, ValueError, InfraError) as e:
            raise PageError(f"{type(e).__name__}: {e}") from None
        raise PageError(f"more than {MAX_REDIRECTS} redirects")

    async def _read(self, response: Any) -> str:
        kind = response.content_type
        if response.status != 200 or kind not in ("text/html", "application/xhtml+xml", "text/plain"):
            raise PageError(f"status {response.status}, {kind}")
        data = (await read_body(response, MAX_PAGE_BYTES))[:USED_PAGE_BYTES]
        plain, charset = kind == "text/plain", response.charset or "utf-8"
        text: str = await self._readers.arun("gem.tools.search.web:page_text", data, charset, plain)
        return text

    def _check_url(self, url: Any) -> None:
        """Raise PageError if the URL is not an http or https URL of a name or a public address."""
        if url.scheme not in ("http", "https") or not url.raw_host:
            raise PageError("not an http or https URL")
        if url.raw_user is not None or url.raw_password is not None:  # as in http://example.com@127.0.0.1/
            raise PageError("the URL has a user or a password")
        if not self._allow_private:
            check_host(url.raw_host)  # aiohttp asks no resolver for an address


def _resolver(aiohttp: Any) -> Any:
    class Resolver(aiohttp.abc.AbstractResolver):  # type: ignore[misc]
        """Resolves a name to addresses that are checked, and that aiohttp then connects to."""

        async def resolve(self, host: str, port: int = 0, family: Any = socket.AF_INET) -> Any:
            return [
                {"hostname": host, "host": to[0], "port": to[1], "family": kind, "proto": proto, "flags": 0}
                for kind, _, proto, _, to in await public_addresses(host, port, family)
            ]

        async def close(self) -> None:
            pass

    return Resolver()


def page_text(data: bytes, charset: str, plain: bool) -> str:
    """Return the text of a page, in HTML unless ``plain``. An unknown charset is read as UTF-8."""
    try:
        text = data.decode(charset, "replace")
    except LookupError:
        text = data.decode("utf-8", "replace")
    return text if plain else html_to_text(text)


def html_to_text(html: str) -> str:
    """Return the text of an HTML page, one line per block element, without navigation, forms and scripts."""
    html = "<".join(html.split("<", MAX_TAGS)[:MAX_TAGS])
    tree = require("selectolax.lexbor", extra="search").LexborHTMLParser(html)
    if tree.body is None:
        return ""
    tree.strip_tags(_HIDDEN, recursive=True)
    for node in tree.css(_BLOCKS):
        node.insert_before("\n")
        node.insert_after("\n")
    lines = (" ".join(line.split()) for line in tree.body.text().split("\n"))
    return "\n".join(line for line in lines if line)


def excerpt(text: str, wanted: Sequence[str], size: int = EXCERPT_WORDS) -> str:
    """Return the first run of ``size`` words with the largest number of distinct wanted words.

    A text of at most ``size`` words is returned whole.

    >>> excerpt("one two three four five six", words("four six"), 3)
    'four five six'
    """
    spans = [match.span() for match in islice(re.finditer(r"\S+", text), MAX_WORDS)]
    if len(spans) <= size:
        return text.strip()
    wanted_words = set(wanted)
    nothing = set[str]()  # one for all words, as a page may have many
    matches = [wanted_words.intersection(words(text[a:b])) or nothing for a, b in spans]
    counts: dict[str, int] = {}
    best, best_at = -1, 0
    for at, each in enumerate(matches):
        for word in each:
            counts[word] = counts.get(word, 0) + 1
        for word in matches[at - size] if at >= size else ():
            counts[word] -= 1
        distinct = sum(count > 0 for count in counts.values())
        if distinct > best and at >= size - 1:
            best, best_at = distinct, at - size + 1
    return text[spans[best_at][0] : spans[best_at + size - 1][1]]


# --- command lines ---------------------------------------------------------------------------------------------------


def read_key(given: str | None, variable: str, option: str) -> str:
    """Return the API key from the command line, or from the environment, which other users cannot read.

    Raises:
        BadValue: there is no key, or the key is not printable ASCII.
    """
    key = (given or os.environ.get(variable, "")).strip()
    if not key or not key.isascii() or not key.isprintable():
        raise BadValue(f"a key is required: {option}, or the environment variable {variable}")
    return key


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--topk", type=int, default=3, help="results for a request without topk")
    parser.add_argument("--timeout", type=float, default=10.0, help="seconds per attempt")
    parser.add_argument("--cache", type=Path, help="SQLite file in which results are kept and looked up first")
    for option in ("--max_batch_size", "--num_workers", "--max_wait_time"):
        parser.add_argument(option, action=WithoutEffect, reason="each query is sent at once, from one event loop")
    add_address(parser)


def serve_web(args: argparse.Namespace, kind: str, make: Callable[[], tuple[Any, list[Any]]]) -> int:
    """Serve a web search.

    Args:
        args: parsed options of add_options(), and ``search_url``.
        kind: see DiskCache; also shown by /health.
        make: returns the ``fetch`` function of a WebSearch and the objects to close when the server stops.

    Returns:
        The exit code: 0, or 2 after a CallerError.
    """
    try:
        check_url(args.search_url, "--search_url", "https://host/search", "pass the key with its own option")
        check_count("--topk", args.topk)
        if not args.timeout > 0:
            raise BadValue(f"--timeout must be above 0, got {args.timeout:g}")
        fetch, opened = make()
        cache = DiskCache(args.cache, kind) if args.cache else None

        async def close() -> None:
            for each in [*opened, *([cache] if cache else [])]:
                if (closing := each.close()) is not None:
                    await closing

        service = Service(WebSearch(fetch, cache).search, args.topk, {"searches": kind}, close=close)
        serve(service, args.host, args.port)
    except CallerError as e:
        print(f"error: {one_line(str(e))}", file=sys.stderr)
        return 2
    return 0
