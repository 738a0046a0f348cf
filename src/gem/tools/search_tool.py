r"""A tool that finds passages: at a search server, or in an index within the process.

>>> from gem.messages import ToolCall
>>> from gem.tools.search_engine.index import LexicalIndex
>>> index = LexicalIndex.of([{"id": "1", "title": "Faust", "text": "A play by Goethe."}])
>>> SearchTool(index=index).call(ToolCall("search", {"query": "who wrote Faust?"})).text
'Doc 1(Title: "Faust") A play by Goethe.\n'
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from gem.errors import BadValue
from gem.messages import ToolCall, ToolErrorType, ToolResult
from gem.tools.base_tool import BaseTool, Function

if TYPE_CHECKING:
    from gem.tools.search_engine.client import SearchClient
    from gem.tools.search_engine.index import Hit, Retriever
    from gem.tools.search_engine.wire import Protocol

URL_VARIABLE = "SEARCH_URL"
NOTHING = "No documents found.\n"
MOST_CHARACTERS = 2_000  # of a query; services refuse longer ones, which would make the agent's doing a failure


class SearchTool(BaseTool):
    """Answers a query with the passages found for it. The arguments before the asterisk are the published ones.

    Args:
        num_workers: without effect.
        search_url: of a server's /retrieve, as "http://localhost:8000/retrieve". None takes $SEARCH_URL, read at each
            call.
        topk: passages of an answer at most.
        timeout: seconds for the server to answer; a slower query returns ToolErrorType.TIMEOUT.
        index: search here, within the process, and ask no server: what finds documents (see
            gem.tools.search_engine.index.Retriever), the folder of an index, or a file of some thousands of JSON lines.
        protocol: of the server: "gem", the published one, or "search-r1".
        retries: attempts after the first one, where the server was not reached, was busy or failed.
        backoff: seconds before the first retry, at most; each pause may be twice as long as the one before.
        concurrency: queries in flight at most, of all tools of this process that have the same options; others wait.
        cache: a server's answers that are kept; 0 keeps none.

    A query of more than 2,000 characters is refused, with ToolErrorType.BAD_ARGUMENTS, before anyone is asked.

    call() raises BadValue where there is neither a URL nor an index, and ToolError where the server failed after all
    retries. Tools share connections and indexes; they may be called from threads, event loops and forked processes.
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
        timeout: float = 5,
        *,
        index: Retriever | str | Path | None = None,
        protocol: Protocol = "gem",
        retries: int = 3,
        backoff: float = 0.2,
        concurrency: int = 64,
        cache: int = 1024,
    ) -> None:
        super().__init__(num_workers)
        if isinstance(topk, bool) or not isinstance(topk, int) or topk < 1:
            raise BadValue(f"topk must be a whole number of passages, at least 1, got {topk!r}")
        if protocol not in ("gem", "search-r1"):
            raise BadValue(f"protocol must be 'gem' or 'search-r1', got {protocol!r}")
        if not timeout > 0 or not backoff >= 0 or retries < 0 or concurrency < 1 or cache < 0:
            raise BadValue(
                "timeout must be seconds above 0, backoff seconds >= 0, retries and cache >= 0 and concurrency >= 1, "
                f"got {timeout!r}, {backoff!r}, {retries!r}, {cache!r} and {concurrency!r}"
            )
        if search_url is not None and index is not None:
            raise BadValue(f"either search_url or index: got {search_url!r} and {index!r:.80}")
        self.search_url, self.topk, self.timeout, self.protocol = search_url, topk, timeout, protocol
        self._index, self._retriever = index, None if isinstance(index, str | Path) else index
        self._options = {"retries": retries, "backoff": backoff, "concurrency": concurrency, "cache": cache}
        self._client: SearchClient | None = None

    def functions(self) -> list[Function]:
        query = {"type": "string", "description": "What to look for, in words.", "maxLength": MOST_CHARACTERS}
        parameters = {"type": "object", "properties": {"query": query}, "required": ["query"]}
        what = f"Search for passages. Answers with up to {self.topk}, each with its title, the best first."
        return [Function("search", what, {**parameters, "additionalProperties": False})]

    def call(self, call: ToolCall) -> ToolResult:
        if (query := _query(call)) is None:
            return _EMPTY
        if self._index is not None:
            return _result(self._open().search([query], self.topk)[0])
        from gem._internal.http_client import wait_for
        from gem.tools.search_engine.client import QueryTimeout

        try:
            return _result(wait_for(self._ask(query)))
        except QueryTimeout:
            return self._too_slow()

    async def acall(self, call: ToolCall) -> ToolResult:
        if (query := _query(call)) is None:
            return _EMPTY
        if self._index is not None:
            retriever = self._open()
            if retriever.quick:
                return self.call(call)
            return await asyncio.to_thread(self.call, call)
        from gem.tools.search_engine.client import QueryTimeout

        try:
            return _result(await asyncio.wrap_future(self._ask(query)))
        except QueryTimeout:
            return self._too_slow()

    def close(self) -> None:
        """Let go of connections and of an index opened here; they are closed when no other tool holds them."""
        client, self._client = self._client, None
        if client is not None:
            from gem.tools.search_engine.client import release

            release(self, client)
        if isinstance(self._index, str | Path):
            self._retriever = None

    def instruction_string(self) -> str:
        return (
            "You can search for passages by writing a query between <search> and </search>, for example\n"
            "<search>capital of France</search>\n"
            f"The up to {self.topk} passages found for it follow. Search as often as you need and are allowed to, and "
            "then answer."
        )

    def _ask(self, query: str) -> Any:
        url = self.search_url or os.environ.get(URL_VARIABLE, "")
        if not url:
            raise BadValue(
                f"where to search? Give SearchTool(search_url=…), set {URL_VARIABLE}, or give it an index=…, which "
                "needs no server"
            )
        if self._client is None:
            from gem.tools.search_engine.client import shared_client

            self._client = shared_client(self, timeout=self.timeout, **self._options)
        return self._client.find(url, self.protocol, query, self.topk)

    def _open(self) -> Retriever:
        if self._retriever is None:
            assert isinstance(self._index, str | Path)
            self._retriever = _opened(Path(self._index))
        return self._retriever

    def _too_slow(self) -> ToolResult:
        return ToolResult(f"The search took longer than {self.timeout:g} s and was given up.\n", ToolErrorType.TIMEOUT)


def shown(hits: Sequence[Hit]) -> str:
    """Passages as the agent reads them: the first line of each is its title."""
    lines = []
    for number, hit in enumerate(hits, start=1):
        title, _, text = hit.document["contents"].partition("\n")
        lines.append(f"Doc {number}(Title: {title}) {text}\n")
    return "".join(lines) or NOTHING


_EMPTY = ToolResult("The search query is empty: write what to look for.\n", ToolErrorType.EMPTY)
_OPEN: WeakValueDictionary[tuple[Path, int], Retriever] = WeakValueDictionary()


def _query(call: ToolCall) -> str | None:
    """The query of a call; None for one of nothing but space."""
    return str(call.arguments.get("query", "")).strip() or None


def _result(hits: Sequence[Hit]) -> ToolResult:
    return ToolResult(shown(hits))


def _opened(path: Path) -> Retriever:
    """The index in a folder or of a corpus, opened once for all tools that hold it."""
    from gem.tools.search_engine.index import open_corpus, open_index

    if not path.exists():
        raise BadValue(f"index={str(path)!r}: no such folder or file")
    key = path.resolve(), path.stat().st_mtime_ns
    if (index := _OPEN.get(key)) is None:
        index = _OPEN[key] = open_index(path) if path.is_dir() else open_corpus(path)
    return index
