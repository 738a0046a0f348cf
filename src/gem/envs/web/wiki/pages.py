"""Pages of an encyclopedia, and the base class of the sources that pages are read from."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from gem._internal.counts import check_count
from gem._internal.text import shorten
from gem.envs.web.text import plain_text


class WikiPage(NamedTuple):
    """A page.

    Args:
        title: its title, after redirects.
        text: plain text, without links.
        links: titles of the pages that the text links to, in order, each once. A title may redirect to another page.
    """

    title: str
    text: str
    links: tuple[str, ...]


class BaseWikiTrawler(ABC):
    """A source of pages. The class has its published name and arguments.

    Args:
        url: address of the source.
        query_delay_ms: milliseconds between two requests.
        max_query_attempts: maximum number of attempts for a request.
        query_use_cache: keep pages in memory.

    Raises:
        BadValue: query_delay_ms is negative or max_query_attempts is not positive.
    """

    cached_pages: int = 4096  # number of pages after which the cache is emptied
    graph: Mapping[str, tuple[str, ...]] | None = None  # title → titles of the linked pages after redirects, if known

    def __init__(
        self,
        url: str = "https://en.wikipedia.org/w/api.php",
        query_delay_ms: int = 25,
        max_query_attempts: int = 5,
        query_use_cache: bool = False,
    ) -> None:
        check_count("query_delay_ms", query_delay_ms, 0)
        check_count("max_query_attempts", max_query_attempts)
        self.url, self.query_delay_ms, self.max_query_attempts = url, query_delay_ms, max_query_attempts
        self.query_use_cache = query_use_cache
        self._cache: dict[str, WikiPage | None] = {}

    def get_page(self, page_name: str) -> WikiPage | None:
        """Return the page with a title, after redirects, or None if there is none.

        Raises:
            ToolError: the source cannot be read.
        """
        key, cache = title_key(page_name), self._cache
        if key in cache:  # entries are never removed, so that threads can share the cache without a lock
            return cache[key]
        page = self.read_page(page_name)
        if self.query_use_cache:
            cache[key] = page
            if len(cache) > self.cached_pages:
                self.empty_cache()
        return page

    @abstractmethod
    def read_page(self, title: str) -> WikiPage | None:
        """Read the page with a title. See get_page()."""

    @abstractmethod
    def random(self, rng: random.Random | None = None) -> str:
        """Return the title of a random page.

        Args:
            rng: the stream to draw from; None for a fresh one. A server that draws itself does not use it.
        """

    def empty_cache(self) -> None:
        self._cache = {}

    def close(self) -> None:  # noqa: B027  a source without files has nothing to close
        """Close files and connections."""


def title_key(title: str) -> str:
    """Return a form of a title that is equal for titles that differ only in case, spaces and underscores."""
    return " ".join(title.replace("_", " ").split()).casefold()


@lru_cache(maxsize=16_384)  # a step shows up to 50 titles
def shown(title: str) -> str:
    """Return a title as it is shown: safe inside a box."""
    return plain_text(title).replace("{", "(").replace("}", ")")


def shown_box(title: str) -> str:
    return rf"\boxed{{{shown(title)}}}"


def summary(text: str, length: int, unit: str) -> str:
    """Return the beginning of a text, with an ellipsis if it was cut.

    >>> summary("One two. Three.", 1, "sentences"), summary("One two. Three.", 2, "words")
    ('One two. …', 'One two. …')
    """
    text = plain_text(text)
    if unit == "characters":
        return shorten(text, max(length, 1))
    parts = text.replace(". ", ".\n").split("\n") if unit == "sentences" else text.split(" ")
    return " ".join(parts[:length]) + (" …" if len(parts) > length else "")
