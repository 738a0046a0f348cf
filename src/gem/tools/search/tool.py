r"""SearchTool: search for passages with a search server or an index in this process.

>>> from gem.messages import ToolCall
>>> from gem.tools.search.index import LexicalIndex
>>> index = LexicalIndex.of([{"id": "1", "title": "Faust", "text": "A play by Goethe."}])
>>> SearchTool(index=index).call(ToolCall("search", {"query": "who wrote Faust?"})).text
'<information>\nDoc 1(Title: "Faust") A play by Goethe.\n</information>\n'
"""

from __future__ import annotations

import asyncio
import os
import re
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable
from weakref import WeakValueDictionary

from gem._internal.counts import check_count
from gem._internal.text import short_repr
from gem.core import unwrapped
from gem.errors import BadValue
from gem.messages import ToolCall, ToolErrorType, ToolResult
from gem.tools.base_tool import BaseTool, Function

if TYPE_CHECKING:
    from gem.tools.search.client import SearchClient, SearchProtocol
    from gem.tools.search.corpus import Hit
    from gem.tools.search.index import Retriever

TIMEOUT = 5.0  # seconds; the published default
URL_VARIABLE = "SEARCH_URL"
NO_DOCUMENTS = "No documents found.\n"
MAX_QUERY_CHARACTERS = 2_000  # a server may refuse a longer query, which would fail the episode

_CLOSING = re.compile(r"</(?=\s*information\s*>)", re.IGNORECASE)
_EMPTY = ToolResult("The search query is empty. Write what to search for.\n", ToolErrorType.EMPTY)


@runtime_checkable
class HasSearchIndex(Protocol):
    """An environment that brings the pages that SearchTool searches."""

    def search_index(self) -> Retriever:
        """Return the index of the running episode."""


class SearchTool(BaseTool):
    """Return the passages that best match a query. The positional arguments are the same as in the published package.

    Without a URL and an index, an environment of the protocol HasSearchIndex, such as qa:Encyclopedia, is asked for
    the index of its open task; elsewhere, call() then raises BadValue. A query of more than 2,000 characters is refused
    with ToolErrorType.BAD_ARGUMENTS. call() raises ToolError if the server still fails after all retries. SearchTools
    share connections and indexes. They may be called from threads, event loops and forked processes.

    Args:
        num_workers: has no effect.
        search_url: URL of a search server, such as "http://localhost:8000/retrieve". If None, each call reads the URL
            from the environment variable SEARCH_URL.
        topk: maximum number of passages per query.
        timeout: seconds to wait for the server. If the server takes longer, the result has the error
            ToolErrorType.TIMEOUT.
        index: an index to search in this process instead of on a server: a Retriever (see
            gem.tools.search.index), the folder of an index, or a JSON Lines file of a few thousand passages.
        protocol: protocol of the server: "gem" (the protocol of the published package) or "search-r1".
        retries: maximum number of further attempts if the server is unreachable, busy or failing.
        backoff: maximum delay in seconds before the first retry. The maximum doubles with each retry.
        concurrency: maximum number of simultaneous queries of all SearchTools in this process with the same options.
        cache: maximum number of server responses in the cache; 0 disables the cache.
    """

    tool_type = "search"
    tag = "search"
    tag_argument = "query"
    concurrent = True

    def __init__(
        self,
        num_workers: int = 1,
        search_url: str | None = None,
        topk: int = 3,
        timeout: float = TIMEOUT,
        *,
        index: Retriever | str | Path | None = None,
        protocol: SearchProtocol = "gem",
        retries: int = 3,
        backoff: float = 0.2,
        concurrency: int = 64,
        cache: int = 1024,
    ) -> None:
        super().__init__(num_workers)
        for name, count, least in (
            *(("topk", topk, 1), ("concurrency", concurrency, 1)),
            *(("retries", retries, 0), ("cache", cache, 0)),
        ):
            check_count(name, count, least)
        if protocol not in ("gem", "search-r1"):
            raise BadValue(f"protocol must be 'gem' or 'search-r1', got {protocol!r}")
        if not timeout > 0 or not backoff >= 0:
            raise BadValue(f"timeout must be above 0 s and backoff at least 0 s, got {timeout!r} and {backoff!r}")
        if search_url is not None and index is not None:
            raise BadValue(f"give either search_url or index, got {search_url!r} and {short_repr(index, 80)}")
        self.search_url, self.topk, self.timeout, self.protocol = search_url, int(topk), timeout, protocol
        self._index, self._retriever = index, None if isinstance(index, str | Path) else index
        self._options = {"retries": retries, "backoff": backoff, "concurrency": concurrency, "cache": cache}
        self._client: SearchClient | None = None
        self._env: HasSearchIndex | None = None  # the environment, if its index is searched

    def attach(self, env: Any) -> None:
        """Search the index of the environment, if it has one and neither a URL nor an index was given."""
        given = self._index is not None or self.search_url is not None or os.environ.get(URL_VARIABLE)
        self._env = inner if not given and isinstance(inner := unwrapped(env), HasSearchIndex) else None

    def functions(self) -> list[Function]:
        query = {"type": "string", "description": "Words to search for.", "maxLength": MAX_QUERY_CHARACTERS}
        parameters = {"type": "object", "properties": {"query": query}, "required": ["query"]}
        what = f"Search for passages. Returns up to {self.topk} passages with their titles, best match first."
        return [Function("search", what, {**parameters, "additionalProperties": False})]

    def call(self, call: ToolCall) -> ToolResult:
        query = str(call.arguments.get("query", "")).strip()
        if not query:
            return _EMPTY
        if (index := self._index_here()) is not None:
            return ToolResult(format_hits(index.search([query], self.topk)[0]))
        from gem._internal.http_client import wait_for
        from gem.tools.search.client import QueryTimeout

        try:
            return ToolResult(format_hits(wait_for(self._send(query))))
        except QueryTimeout:
            return self._timed_out()

    async def acall(self, call: ToolCall) -> ToolResult:
        query = str(call.arguments.get("query", "")).strip()
        index = self._index_here() if query else None
        if index is not None and not index.quick:
            return await asyncio.to_thread(self.call, call)
        if index is not None or not query:
            return self.call(call)
        from gem.tools.search.client import QueryTimeout

        try:
            return ToolResult(format_hits(await asyncio.wrap_future(self._send(query))))
        except QueryTimeout:
            return self._timed_out()

    def close(self) -> None:
        """Release the connections and the index. They are closed when no other SearchTool uses them."""
        client, self._client = self._client, None
        if client is not None:
            from gem.tools.search.client import release_client

            release_client(self, client)
        if isinstance(self._index, str | Path):
            self._retriever = None

    def instruction_string(self) -> str:
        return (
            "You can search for passages by writing a query between <search> and </search>, for example\n"
            "<search>capital of France</search>\n"
            f"You will receive up to {self.topk} passages between <information> and </information>. You may search "
            "several times before you answer."
        )

    def _send(self, query: str) -> Future[list[Hit]]:
        url = self.search_url or os.environ.get(URL_VARIABLE, "")
        if not url:
            raise BadValue(
                f"no search server: pass search_url=… or set {URL_VARIABLE}, or pass index=…, which needs no server"
            )
        if self._client is None:
            from gem.tools.search.client import shared_client

            self._client = shared_client(self, timeout=self.timeout, **self._options)
        return self._client.search(url, self.protocol, query, self.topk)

    def _index_here(self) -> Retriever | None:
        """Return the index in this process, opened if necessary; None if a server is searched."""
        if self._env is not None:
            return self._env.search_index()
        if self._retriever is None and isinstance(self._index, str | Path):
            self._retriever = _shared_index(Path(self._index))
        return self._retriever

    def _timed_out(self) -> ToolResult:
        return ToolResult(f"The search timed out after {self.timeout:g} s.\n", ToolErrorType.TIMEOUT)


def format_hits(hits: list[Hit]) -> str:
    """Format passages for the agent, in one ``<information>`` element, whose closing tag is escaped within it.

    The first line of a passage's contents is its title.
    """
    lines = []
    for number, hit in enumerate(hits, start=1):
        title, _, text = hit.document["contents"].partition("\n")
        lines.append(f"Doc {number}(Title: {title}) {text}\n")
    passages = _CLOSING.sub("&lt;/", "".join(lines) or NO_DOCUMENTS)
    return f"<information>\n{passages}</information>\n"


_OPEN_INDEXES: WeakValueDictionary[tuple[Path, int], Retriever] = WeakValueDictionary()


def _shared_index(path: Path) -> Retriever:
    """Open an index folder or a corpus file, or return the index if another SearchTool has already opened it."""
    from gem.tools.search.index import open_corpus, open_index

    if not path.exists():
        raise BadValue(f"index={str(path)!r}: no such folder or file")
    key = path.resolve(), path.stat().st_mtime_ns
    if (index := _OPEN_INDEXES.get(key)) is None:
        index = _OPEN_INDEXES[key] = open_index(path) if path.is_dir() else open_corpus(path)
    return index
