"""Search of the web for the servers that ask others: results as documents, requests that survive what passes, a cache.

The keys of those others are in no message, log or cache.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sqlite3
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from gem._internal.http_client import HttpClient, HttpRequest, RequestError, check_url
from gem.errors import BadValue, CallerError, ToolError
from gem.tools.search_engine.index import Hit
from gem.tools.search_engine.serving import Service, UpstreamTimeout, add_address, serve


@dataclass(frozen=True)
class Found:
    """A result of a web search. Any of them may be empty, not all."""

    title: str
    text: str
    url: str = ""


class Upstream(HttpClient):
    """What answers for the web, asked with GET for JSON. Failures are ToolErrors that name the host alone."""

    def __init__(self, *, timeout: float, retries: int = 2, backoff: float = 0.5, concurrency: int = 32) -> None:
        super().__init__(extra="search", timeout=timeout, concurrency=concurrency, retries=retries, backoff=backoff)

    async def ask(self, url: str, params: Mapping[str, str], secret: str) -> dict[str, Any]:
        """The object that it answers. Raises ToolError, UpstreamTimeout where it took too long."""
        request = HttpRequest("GET", url, None, self.timeout, params=params, secret=secret)
        return await asyncio.wrap_future(self.send(request, _object))

    def failure_error(self, request: HttpRequest, error: RequestError, attempts: int) -> ToolError:
        kind = UpstreamTimeout if error.timed_out else ToolError
        return kind(f"{request.url}: {error}; {attempts} attempts")

    def closed_error(self, request: HttpRequest) -> ToolError:
        return ToolError(f"the server ended while {request.url} was asked")


def _object(body: bytes) -> dict[str, Any]:
    try:
        return msgspec.json.decode(body, type=dict[str, Any])
    except (msgspec.MsgspecError, RecursionError) as e:
        raise RequestError(f"an answer that is no JSON object: {e}") from None


class WebSearch:
    """Queries, answered by ``ask`` or from the cache.

    Args:
        ask: the results for a query, of which topk are wanted. Raises ToolError.
        cache: of what was found, on disk; None keeps nothing.
    """

    def __init__(self, ask: Callable[[str, int], Awaitable[list[Found]]], cache: DiskCache | None = None) -> None:
        self._ask, self._cache = ask, cache

    async def search(self, queries: Sequence[str], topk: int) -> list[list[Hit]]:
        return list(await asyncio.gather(*(self._one(query.strip(), topk) for query in queries)))

    async def _one(self, query: str, topk: int) -> list[Hit]:
        if not query:
            return []
        found = self._cache.get(query, topk) if self._cache else None
        if found is None:
            found = await self._ask(query, topk)
            if self._cache:
                self._cache.keep(query, topk, found)
        return [_hit(each, rank) for rank, each in enumerate(found[:topk], start=1)]


def _hit(found: Found, rank: int) -> Hit:
    """The score is 1 / rank: what answers for the web tells none."""
    title = " ".join(found.title.split())
    document = {"id": found.url or f"result-{rank}", "contents": f'"{title}"\n{found.text.strip()}'}
    return Hit({**document, **({"url": found.url} if found.url else {})}, round(1 / rank, 4))


class DiskCache:
    """What was found for queries, in a file of SQLite that several servers may share.

    kind: of the results, so that servers that find different things may use one file. Raises BadValue for a file of
    something else.
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
            raise BadValue(f"{path}: no cache of searches ({e})") from e

    def get(self, query: str, topk: int) -> list[Found] | None:
        sql = "SELECT results FROM found WHERE kind = ? AND query = ? AND topk = ?"
        row = self._base.execute(sql, (self._kind, query, topk)).fetchone()
        return None if row is None else [Found(*each) for each in json.loads(row[0])]

    def keep(self, query: str, topk: int, found: Sequence[Found]) -> None:
        results = json.dumps([[each.title, each.text, each.url] for each in found])
        self._base.execute("INSERT OR REPLACE INTO found VALUES (?, ?, ?, ?)", (self._kind, query, topk, results))

    def close(self) -> None:
        self._base.close()


def text_in(data: Mapping[str, Any], *keys: str) -> str:
    """The first of these that is text and not empty; what others answer is not to be relied on."""
    return next((value for key in keys if isinstance(value := data.get(key), str) and value.strip()), "")


def objects_in(data: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    """The objects of a list, or the object itself; none where it is something else."""
    value = data.get(key)
    return [each for each in (value if isinstance(value, list) else [value]) if isinstance(each, dict)]


def key_of(given: str | None, variable: str, option: str) -> str:
    """A key from the command line or, so that no other user of the machine reads it there, from the environment."""
    key = (given or os.environ.get(variable, "")).strip()
    if not key or not key.isascii() or not key.isprintable():
        raise BadValue(f"a key is needed: {option}, or the environment variable {variable}")
    return key


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--topk", type=int, default=3, help="results for a request that names no topk")
    parser.add_argument("--timeout", type=float, default=10.0, help="seconds for one attempt of asking")
    parser.add_argument("--cache", type=Path, help="file to keep what was found in; searches found there cost nothing")
    add_address(parser)


def serve_web(args: argparse.Namespace, kind: str, make: Callable[[], tuple[Any, list[Any]]]) -> int:
    """Serve a web search. make: gives its ``ask``, and what is to be closed in the end. Returns the exit code."""
    cache = None
    try:
        check_url(args.search_url, "--search_url", "https://host/search", "the key goes by an option of its own")
        if args.topk < 1 or not args.timeout > 0:
            raise BadValue(f"--topk should be at least 1 and --timeout above 0, got {args.topk} and {args.timeout:g}")
        ask, opened = make()
        cache = DiskCache(args.cache, kind) if args.cache else None
        search = WebSearch(ask, cache).search

        async def close() -> None:
            for each in [*opened, *([cache] if cache else [])]:
                if (closing := each.close()) is not None:
                    await closing

        serve(Service(search, args.topk, {"searches": kind}, close=close), args.host, args.port)
    except CallerError as e:
        print(f"error: {e}", file=sys.stderr)
        return 2
    return 0
