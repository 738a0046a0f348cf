"""Pages of the web as text: fetched with limits, and from the part of them that a search result is about.

A page may lead anywhere, so addresses that are not of the public internet are refused, at each redirect anew.
"""

from __future__ import annotations

import asyncio
import ipaddress
import re
import socket
from collections.abc import Sequence
from html.parser import HTMLParser
from typing import Any
from urllib.parse import urljoin, urlsplit

from gem.errors import require
from gem.tools.search_engine.words import words

MOST_BYTES = 1 << 21  # of a page are read
MOST_REDIRECTS = 5
PART_WORDS = 300  # of a page are shown

_HIDDEN = frozenset(
    {"script", "style", "noscript", "template", "nav", "header", "footer", "aside", "form", "svg", "head"}
)
_BLOCKS = frozenset(
    {"p", "div", "br", "li", "tr", "td", "th", "h1", "h2", "h3", "h4", "h5", "h6", "section", "article"}
)


class Refused(Exception):
    """A page that is not read. The message says why."""


class Pages:
    """Fetches pages on the event loop that first asks.

    Args:
        timeout: seconds for one page, redirects and all.
        private: fetch from addresses of this machine and of private networks, too; for tests.
    """

    def __init__(self, *, timeout: float, private: bool = False) -> None:
        self._timeout, self._private = timeout, private
        self._session: Any = None

    async def text(self, url: str) -> str:
        """The text of a page. Raises Refused for what is no page, too slow, or not to be reached."""
        try:
            return await asyncio.wait_for(self._fetched(url), self._timeout)
        except asyncio.TimeoutError:
            raise Refused(f"no page in {self._timeout:g} s") from None

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    async def _fetched(self, url: str) -> str:
        aiohttp = require("aiohttp", extra="search")
        if self._session is None:
            connector = aiohttp.TCPConnector(limit=64, resolver=_resolver(aiohttp, self._private))
            headers = {"User-Agent": "Mozilla/5.0 (compatible; gem-search)", "Accept": "text/html, text/plain"}
            jar = aiohttp.DummyCookieJar()
            self._session = aiohttp.ClientSession(connector=connector, cookie_jar=jar, headers=headers)
        try:
            for _ in range(MOST_REDIRECTS + 1):
                self._check(url)
                async with self._session.get(url, allow_redirects=False) as response:
                    if response.status in (301, 302, 303, 307, 308) and "Location" in response.headers:
                        url = urljoin(url, response.headers["Location"])
                        continue
                    return await _read(response)
        except (aiohttp.ClientError, OSError, ValueError) as e:
            raise Refused(f"{type(e).__name__}: {e}") from None
        raise Refused(f"more than {MOST_REDIRECTS} redirects")

    def _check(self, url: str) -> None:
        """Raises Refused for another scheme, and for an address that is given as a number and is not public."""
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise Refused("no page of the web")
        try:
            address = ipaddress.ip_address(parts.hostname)
        except ValueError:
            return  # a name, which the resolver checks
        if not (self._private or address.is_global):
            raise Refused(f"{address} is no public address")


async def _read(response: Any) -> str:
    kind = response.content_type
    if response.status != 200 or kind not in ("text/html", "application/xhtml+xml", "text/plain"):
        raise Refused(f"status {response.status}, {kind}")
    data = bytearray()
    async for chunk in response.content.iter_chunked(1 << 16):
        data += chunk
        if len(data) > MOST_BYTES:
            break
    try:
        text = data.decode(response.charset or "utf-8", "replace")
    except LookupError:
        text = data.decode("utf-8", "replace")
    return text if kind == "text/plain" else text_of(text)


def _resolver(aiohttp: Any, private: bool) -> Any:
    class Resolver(aiohttp.ThreadedResolver):  # type: ignore[misc]
        async def resolve(self, host: str, port: int = 0, family: Any = socket.AF_INET) -> Any:
            found = await super().resolve(host, port, family)
            if not private and not all(ipaddress.ip_address(each["host"]).is_global for each in found):
                raise OSError(f"{host} has no public address")
            return found

    return Resolver()


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self._hidden: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        if tag in _HIDDEN:
            self._hidden.append(tag)
        elif tag in _BLOCKS:
            self.parts.append("\n")

    def handle_endtag(self, tag: str) -> None:
        if tag in self._hidden:
            del self._hidden[self._hidden.index(tag) :]
        elif tag in _BLOCKS:
            self.parts.append("\n")

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.parts.append(data)


def text_of(html: str) -> str:
    """The words that a page shows, a line for each block of it."""
    reader = _Reader()
    reader.feed(html)
    reader.close()
    lines = (" ".join(line.split()) for line in "".join(reader.parts).split("\n"))
    return "\n".join(line for line in lines if line)


def part_about(text: str, wanted: Sequence[str], size: int = PART_WORDS) -> str:
    """The run of ``size`` words of a text that holds most of the words wanted, the first of several such.

    >>> part_about("one two three four five six", words("four six"), 3)
    'four five six'
    """
    spans = [match.span() for match in re.finditer(r"\S+", text)]
    if len(spans) <= size:
        return text.strip()
    asked = set(wanted)
    held = [asked.intersection(words(text[a:b])) for a, b in spans]
    counts: dict[str, int] = {}
    best, best_at = -1, 0
    for at, each in enumerate(held):
        for word in each:
            counts[word] = counts.get(word, 0) + 1
        for word in held[at - size] if at >= size else ():
            counts[word] -= 1
        different = sum(count > 0 for count in counts.values())
        if different > best and at >= size - 1:
            best, best_at = different, at - size + 1
    return text[spans[best_at][0] : spans[best_at + size - 1][1]]
