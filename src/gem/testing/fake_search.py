"""Searches that tests talk to in place of real ones: a search server, an encoder, and the web behind SerpAPI or Google.

Each lives from entering it to leaving it, on a free port of this machine. Needs the extra [search].
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

import msgspec

from gem._internal.event_loop import BackgroundLoop
from gem.errors import BadValue, require
from gem.testing.fakes import Answer, serving


@dataclass(frozen=True)
class Question:
    """A request of a search as it came. codec: "msgpack" or "json". connection: which of the client's it came over."""

    query: str
    topk: int
    codec: str
    connection: tuple[str, int]


Passages: TypeAlias = Sequence[str]  # contents, the title in the first line
SearchScript: TypeAlias = Callable[[Question], Passages | Answer]


class FakeSearchServer:
    """A server with /retrieve that answers a query by a function of it, in the protocol in which it came.

    Args:
        script: gives the passages, or an Answer, whose status, headers, delay, drop and body are heeded; one without
            text or body is answered with its status alone. It is called on the server's loop.

    ``questions`` are those that came, in order, retries included; ``most_at_once`` is how many were open together.
    """

    def __init__(self, script: SearchScript) -> None:
        self._script = script
        self.questions: list[Question] = []
        self.most_at_once = self._open = 0
        self._background: BackgroundLoop[str] | None = None

    @property
    def url(self) -> str:
        """For SearchTool's search_url."""
        return f"{_running(self._background)}/retrieve"

    def __enter__(self) -> FakeSearchServer:
        web = require("aiohttp.web", extra="search")
        routes = {("POST", "/retrieve"): partial(self._handle, web)}
        self._background = BackgroundLoop(lambda: serving(web, routes))
        return self

    def __exit__(self, *exception: object) -> None:
        _end(self._background)

    async def _handle(self, web: Any, request: Any) -> Any:
        body = await request.read()
        codec = "json" if body.startswith(b"{") else "msgpack"
        asked = msgspec.json.decode(body) if codec == "json" else msgspec.msgpack.decode(body)
        query = asked["queries"][0] if codec == "json" else asked["query"]
        question = Question(query, asked["topk"], codec, request.transport.get_extra_info("peername"))
        self.questions.append(question)
        answer = self._script(question)
        if isinstance(answer, Answer):
            self._open += 1
            self.most_at_once = max(self.most_at_once, self._open)
            try:
                return await _answered(web, request, answer)
            finally:
                self._open -= 1
        hits = [
            {"document": {"id": str(number), "contents": text}, "score": 1 / number}
            for number, text in enumerate(answer[: question.topk], start=1)
        ]
        encode = msgspec.json.encode if codec == "json" else msgspec.msgpack.encode
        return web.Response(body=encode({"result": [hits] if codec == "json" else hits}))


@dataclass
class FakeEmbeddings:
    """An endpoint of embeddings, whose vectors are made by a function of a text. ``asked`` are the bodies that came."""

    embed: Callable[[str], Sequence[float]]
    faults: Sequence[Answer] = ()
    asked: list[dict[str, Any]] = field(default_factory=list)
    _background: BackgroundLoop[str] | None = None

    @property
    def url(self) -> str:
        """For EmbeddingsEndpoint's base_url."""
        return f"{_running(self._background)}/v1"

    def __enter__(self) -> FakeEmbeddings:
        web = require("aiohttp.web", extra="search")
        routes = {("POST", "/v1/embeddings"): partial(self._handle, web)}
        self._background = BackgroundLoop(lambda: serving(web, routes))
        return self

    def __exit__(self, *exception: object) -> None:
        _end(self._background)

    async def _handle(self, web: Any, request: Any) -> Any:
        asked = await request.json()
        self.asked.append(asked)
        if len(self.asked) <= len(self.faults):
            return await _answered(web, request, self.faults[len(self.asked) - 1])
        data = [{"index": n, "embedding": list(self.embed(text))} for n, text in enumerate(asked["input"])]
        return web.json_response({"object": "list", "data": data[::-1]})  # their order says nothing, "index" does


@dataclass(frozen=True)
class Page:
    """A page of the imitated web. path: its address there. html: what is fetched; None is "not found"."""

    title: str
    snippet: str
    path: str = "/page"
    html: str | None = None


@dataclass
class FakeWeb:
    """SerpAPI, Google's custom search and the pages that both find.

    Args:
        pages: what is found, by query; other queries find nothing.
        key: what the APIs want for a key; they repeat a wrong one in their error.
        faults: Answers given to the first searches in place of results.

    ``asked`` are the parameters of the searches that came, in order; ``fetched`` the paths of the pages.
    """

    pages: Mapping[str, Sequence[Page]]
    key: str = "a-key"
    faults: Sequence[Answer] = ()
    asked: list[dict[str, str]] = field(default_factory=list)
    fetched: list[str] = field(default_factory=list)
    _background: BackgroundLoop[str] | None = None

    @property
    def serp_url(self) -> str:
        return f"{_running(self._background)}/search"

    @property
    def google_url(self) -> str:
        return f"{_running(self._background)}/customsearch/v1"

    def __enter__(self) -> FakeWeb:
        web = require("aiohttp.web", extra="search")
        routes = {
            ("GET", "/search"): partial(self._search, web, self._serp),
            ("GET", "/customsearch/v1"): partial(self._search, web, self._google),
            ("GET", "/{path:.*}"): partial(self._page, web),
        }
        self._background = BackgroundLoop(lambda: serving(web, routes))
        return self

    def __exit__(self, *exception: object) -> None:
        _end(self._background)

    async def _search(self, web: Any, form: Callable[[list[Page], str], dict[str, Any]], request: Any) -> Any:
        asked = dict(request.query)
        self.asked.append(asked)
        if len(self.asked) <= len(self.faults):
            return await _answered(web, request, self.faults[len(self.asked) - 1])
        key = asked.get("api_key", asked.get("key", ""))
        if key != self.key:
            return web.json_response({"error": f"Invalid API key {key}"}, status=401)
        base = f"http://{request.host}"
        return web.json_response(form(list(self.pages.get(asked["q"], ())), base))

    def _serp(self, pages: list[Page], base: str) -> dict[str, Any]:
        """In the form of SerpAPI: the first page in the answer box, the last one as a related question."""
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


def _running(background: BackgroundLoop[str] | None) -> str:
    if background is None:
        raise BadValue("the fake server is not running; enter it with `with`")
    return background.resource


def _end(background: BackgroundLoop[str] | None) -> None:
    if background is not None:
        background.close()
