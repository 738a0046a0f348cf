"""Read pages from a ZIM file, the format of Kiwix, with libzim. Needs the extra [wiki]; libzim is under the GPL."""

from __future__ import annotations

import os
import posixpath
import random
from functools import cached_property
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from gem.datasets.load import GEM_DATA
from gem.envs.web.wiki.pages import BaseWikiTrawler, WikiPage, title_key
from gem.errors import BadValue, ToolError, require

_UNSEEN = {"head", "script", "style", "table", "sup", "figure", "nav", "template", "math"}
_BLOCKS = {"p", "div", "li", "br", "h1", "h2", "h3", "h4", "tr", "dd", "dt", "section"}
_ATTEMPTS = 1000  # entries that are drawn to find an article


class KiwixWikiTrawler(BaseWikiTrawler):
    """The articles of a ZIM file. The first arguments are those of the published package.

    Args:
        url: has no effect; no server is needed.
        zimfile: path of a ZIM file, or the name of one in $GEM_DATA/wiki, with or without ".zim".
        max_query_attempts, query_delay_ms: have no effect.
        query_use_cache: keep pages in memory.

    Raises:
        BadValue: there is no such file.
        MissingDependency: libzim is not installed.
    """

    def __init__(
        self,
        url: str = "http://localhost:8080",
        zimfile: str = "wikipedia_en_simple_all_nopic_2025-09",
        max_query_attempts: int = 5,
        query_delay_ms: int = 25,
        query_use_cache: bool = False,
    ) -> None:
        super().__init__(url, query_delay_ms, max_query_attempts, query_use_cache)
        self._libzim = require("libzim.reader", extra="wiki")
        self.path = _find(zimfile)
        self.url = str(self.path)

    @cached_property
    def _archive(self) -> Any:
        try:
            return self._libzim.Archive(self.path)
        except RuntimeError as e:
            raise ToolError(f"{self.path}: libzim cannot open it ({e})") from e

    def __getstate__(self) -> dict[str, Any]:  # an open file is not copied to another process
        return {name: value for name, value in vars(self).items() if name not in ("_archive", "_libzim")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._libzim = require("libzim.reader", extra="wiki")

    def read_page(self, title: str) -> WikiPage | None:
        entry = self._entry(title)
        if entry is None:
            return None
        try:
            entry = _resolved(entry)
            item = entry.get_item()
            html = bytes(item.content).decode("utf-8", "replace")
        except RuntimeError as e:
            raise ToolError(f"{self.path}: {title!r} cannot be read ({e})") from e
        if not item.mimetype.startswith("text/html"):
            return None
        document = _Document()
        document.feed(html)
        document.close()
        return WikiPage(entry.title, document.text(), self._links(document.hrefs, entry))

    def random(self, rng: random.Random | None = None) -> str:
        rng = rng or random.Random()
        for _ in range(_ATTEMPTS):
            entry = self._archive._get_entry_by_id(rng.randrange(self._archive.all_entry_count))
            if _is_article(entry):
                return str(entry.title)
        raise ToolError(f"{self.path}: none of {_ATTEMPTS} random entries is an article")

    def _entry(self, title: str) -> Any:
        """Return the entry with a title, regardless of the case of its first letter and of spaces; else None."""
        name = " ".join(title.replace("_", " ").split())
        for form in dict.fromkeys([title, name, name[:1].upper() + name[1:]]):
            if self._archive.has_entry_by_title(form):
                return self._archive.get_entry_by_title(form)
            for path in (form.replace(" ", "_"), form, f"A/{form.replace(' ', '_')}"):
                if self._archive.has_entry_by_path(path):
                    return self._archive.get_entry_by_path(path)
        return self._suggested(name)

    def _suggested(self, name: str) -> Any:
        """Return the entry whose title is equal regardless of case, by the index of titles if the file has one."""
        if not self._archive.has_title_index:
            return None
        search = require("libzim.suggestion", extra="wiki").SuggestionSearcher(self._archive).suggest(name)
        for path in search.getResults(0, 50):
            entry = self._archive.get_entry_by_path(path)
            if title_key(entry.title) == title_key(name):
                return entry
        return None

    def _links(self, hrefs: list[str], entry: Any) -> tuple[str, ...]:
        """Return the titles of the articles of this file to which hrefs lead, without the page itself."""
        found: dict[str, None] = {}
        for href in hrefs:
            parts = urlsplit(href)
            if parts.scheme or parts.netloc or not parts.path:
                continue
            path = posixpath.normpath(posixpath.join(posixpath.dirname(entry.path), unquote(parts.path))).lstrip("/")
            if not path.startswith("..") and self._archive.has_entry_by_path(path):
                other = self._archive.get_entry_by_path(path)
                resolved = _resolved(other)
                if resolved.path != entry.path and _is_article(resolved):
                    found[str(other.title)] = None
        return tuple(found)


def _find(zimfile: str) -> Path:
    folder = Path(os.environ.get(GEM_DATA, "")) / "wiki"
    for path in (Path(zimfile), folder / zimfile, folder / f"{zimfile}.zim"):
        if path.is_file():
            return path
    raise BadValue(
        f"no ZIM file {zimfile!r}: pass trawler_kwargs={{'zimfile': PATH}}, or put it in ${GEM_DATA}/wiki; "
        "library.kiwix.org has files of Wikipedia"
    )


def _resolved(entry: Any) -> Any:
    return entry.get_redirect_entry() if entry.is_redirect else entry


def _is_article(entry: Any) -> bool:
    return not entry.is_redirect and entry.get_item().mimetype.startswith("text/html")


class _Document(HTMLParser):
    """Collects the text and the links of an HTML page, without tables, notes and scripts."""

    def __init__(self) -> None:
        super().__init__()
        self.hrefs: list[str] = []
        self._parts: list[str] = []
        self._unseen: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _UNSEEN:
            self._unseen.append(tag)
        if tag in _BLOCKS:
            self._parts.append(" ")
        if tag == "a" and "head" not in self._unseen and "nav" not in self._unseen:
            self.hrefs += [value for name, value in attrs if name == "href" and value]

    def handle_endtag(self, tag: str) -> None:
        if tag in self._unseen:
            del self._unseen[self._unseen.index(tag) :]
        if tag in _BLOCKS:
            self._parts.append(" ")

    def handle_data(self, data: str) -> None:
        if not self._unseen:
            self._parts.append(data)

    def text(self) -> str:
        return " ".join("".join(self._parts).split())
