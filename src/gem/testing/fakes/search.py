"""Fake search services for tests: a search server, an embeddings endpoint, and the web APIs SerpAPI and Google.

Each service is a context manager and runs on a free local port inside its `with` block. Requires the extra [search].
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias, TypeVar

import msgspec

from gem.errors import BadValue, require
from gem.testing.fakes.endpoint import Answer, LocalServer


class _FakeService:
    """Base class of the fake services. Serves _routes() on a free local port inside the `with` block."""

    _server: LocalServer | None = None

    def _routes(self, web: Any) -> dict[tuple[str, str], Any]:
        raise NotImplementedError

    def __enter__(self: ServiceT) -> ServiceT:
        web = require("aiohttp.web", extra="search")
        self._server = LocalServer(web, self._routes(web))
        return self

    def __exit__(self, *exception: object) -> None:
        if self._server is not None:
            self._server.close()

    def _base_url(self) -> str:
        if self._server is None:
            raise BadValue("the fake server is not running; use it in a `with` statement")
        return self._server.url


ServiceT = TypeVar("ServiceT", bound=_FakeService)


@dataclass(frozen=True)
class SearchRequest:
    """A search request that the fake server received.

    Args:
        query: the text to search for.
        topk: number of passages requested.
        codec: "msgpack" or "json".
        connection: host and port of the client, which identify the connection.
    """

    query: str
    topk: int
    codec: str
    connection: tuple[str, int]


Passages: TypeAlias = Sequence[str]  # the contents of documents; the first line is the title
SearchScript: TypeAlias = Callable[[SearchRequest], Passages | Answer]


class FakeSearchServer(_FakeService):
    """A search server whose /retrieve route calls a function and encodes the response in the codec of the request.

    Args:
        script: maps a request to passages or to an Answer. An Answer without text or body produces a response with an
            empty body. The function runs on the server's event loop.

    Attributes:
        requests: all requests in order of arrival, including retries.
        most_at_once: largest number of concurrent requests, not counting requests answered with passages.
    """

    def __init__(self, script: SearchScript) -> None:
        self._script = script
        self.requests: list[SearchRequest] = []
        self.most_at_once = self._open = 0

    @property
    def url(self) -> str:
        """The ``search_url`` argument for a SearchTool."""
        return f"{self._base_url()}/retrieve"

    def _routes(self, web: Any) -> dict[tuple[str, str], Any]:
        return {("POST", "/retrieve"): partial(self._handle, web)}

    async def _handle(self, web: Any, request: Any) -> Any:
        body = await request.read()
        codec = "json" if body.startswith(b"{") else "msgpack"
        asked = msgspec.json.decode(body) if codec == "json" else msgspec.msgpack.decode(body)
        query = asked["queries"][0] if codec == "json" else asked["query"]
        search = SearchRequest(query, asked["topk"], codec, request.transport.get_extra_info("peername"))
        self.requests.append(search)
        answer = self._script(search)
        if isinstance(answer, Answer):
            self._open += 1
            self.most_at_once = max(self.most_at_once, self._open)
            try:
                return await _answered(web, request, answer)
            finally:
                self._open -= 1
        hits = [
            {"document": {"id": str(number), "contents": text}, "score": 1 / number}
            for number, text in enumerate(answer[: search.topk], start=1)
        ]
        encode = msgspec.json.encode if codec == "json" else msgspec.msgpack.encode
        return web.Response(body=encode({"result": [hits] if codec == "json" else hits}))


@dataclass
class FakeEmbeddings(_FakeService):
    """An embeddings endpoint.

    Args:
        embed: maps a text to its vector.
        failures: responses to the first requests, sent instead of embeddings.

    Attributes:
        requests: the request bodies in order of arrival.
    """

    embed: Callable[[str], Sequence[float]]
    failures: Sequence[Answer] = ()
    requests: list[dict[str, Any]] = field(default_factory=list)

    @property
    def url(self) -> str:
        """The ``base_url`` argument for an EmbeddingsEndpoint."""
        return f"{self._base_url()}/v1"

    def _routes(self, web: Any) -> dict[tuple[str, str], Any]:
        return {("POST", "/v1/embeddings"): partial(self._handle, web)}

    async def _handle(self, web: Any, request: Any) -> Any:
        asked = await request.json()
        self.requests.append(asked)
        if len(self.requests) <= len(self.failures):
            return await _answered(web, request, self.failures[len(self.requests) - 1])
        data = [{"index": n, "embedding": list(self.embed(text))} for n, text in enumerate(asked["input"])]
        # In reverse order, to test that clients sort by "index".
        return web.json_response({"object": "list", "data": data[::-1]})


@dataclass(frozen=True)
class Page:
    """A page of the fake web.

    Args:
        title, snippet: the title and the snippet in search results.
        path: the path of the page's URL.
        html: content of the page; with None, the server responds with status 404.
    """

    title: str
    snippet: str
    path: str = "/page"
    html: str | None = None


@dataclass
class FakeWeb(_FakeService):
    """A server that imitates SerpAPI and Google Custom Search, and serves the pages in their search results.

    Args:
        pages: query → pages in the search results. Other queries have no results.
        key: the accepted API key. The error message for any other key contains the rejected key.
        failures: responses to the first searches, sent instead of results.

    Attributes:
        requests: the parameters of the searches in order of arrival.
        fetched: the paths of the requested pages in order of arrival.
    """

    pages: Mapping[str, Sequence[Page]]
    key: str = "a-key"
    failures: Sequence[Answer] = ()
    requests: list[dict[str, str]] = field(default_factory=list)
    fetched: list[str] = field(default_factory=list)

    @property
    def serp_url(self) -> str:
        return f"{self._base_url()}/search"

    @property
    def google_url(self) -> str:
        return f"{self._base_url()}/customsearch/v1"

    def _routes(self, web: Any) -> dict[tuple[str, str], Any]:
        return {
            ("GET", "/search"): partial(self._search, web, self._serp),
            ("GET", "/customsearch/v1"): partial(self._search, web, self._google),
            ("GET", "/{path:.*}"): partial(self._page, web),
        }

    async def _search(self, web: Any, form: Callable[[list[Page], str], dict[str, Any]], request: Any) -> Any:
        asked = dict(request.query)
        self.requests.append(asked)
        if len(self.requests) <= len(self.failures):
            return await _answered(web, request, self.failures[len(self.requests) - 1])
        key = asked.get("api_key", asked.get("key", ""))
        if key != self.key:
            return web.json_response({"error": f"Invalid API key {key}"}, status=401)
        base = f"http://{request.host}"
        return web.json_response(form(list(self.pages.get(asked["q"], ())), base))

    def _serp(self, pages: list[Page], base: str) -> dict[str, Any]:
        """Build a SerpAPI response: first page in the answer box, last page of several as a related question."""
        if not pages:
            return {"error": "Google hasn't returned any results for this query."}
        box, *others = pages
        answer: dict[str, Any] = {"answer_box": {"title": box.title, "answer": box.snippet, "link": base + box.path}}
        if others:
            *organic, related = others
            answer["organic_results"] = [
                {"position": n, "title": page.title, "snippet": page.snippet, "link": base + page.path}
                for n, page in enumerate(organic, start=1)
            ]
            answer["related_questions"] = [{"question": related.title, "snippet": related.snippet}]
        return answer

    def _google(self, pages: list[Page], base: str) -> dict[str, Any]:
        items = [{"title": page.title, "snippet": page.snippet, "link": base + page.path} for page in pages]
        return {"kind": "customsearch#search", **({"items": items} if items else {})}

    async def _page(self, web: Any, request: Any) -> Any:
        self.fetched.append(request.path)
        every = [page for pages in self.pages.values() for page in pages]
        html = next((page.html for page in every if page.path == request.path), None)
        if html is None:
            return web.Response(status=404, text="no such page")
        return web.Response(text=html, content_type="text/html")


async def _answered(web: Any, request: Any, answer: Answer) -> Any:
    await asyncio.sleep(answer.delay)
    if answer.drop:
        request.transport.abort()
    return web.Response(text=answer.body or answer.text, status=answer.status, headers=dict(answer.headers))
