"""Serves Google's custom search: ``python -m gem.tools.search_engine.google_search_server --api_key … --cse_id …``.

With ``--snippet_only`` a result is the snippet that Google shows; without it the page is fetched, and the result is the
part of it that holds most words of the snippet and the query. See gem.tools.search_engine.serving for what it answers.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from gem.tools.search_engine.pages import Pages, Refused, part_about
from gem.tools.search_engine.web import Found, Upstream, add_options, key_of, objects_in, serve_web, text_in
from gem.tools.search_engine.words import words

URL = "https://www.googleapis.com/customsearch/v1"
KEY_VARIABLE = "GOOGLE_API_KEY"
MOST = 10  # results of one request, by the rules of the API

logger = logging.getLogger(__name__)


def results(data: Mapping[str, Any]) -> list[Found]:
    """What an answer of Google holds, in order."""
    found = (
        Found(text_in(each, "title"), text_in(each, "snippet"), text_in(each, "link"))
        for each in objects_in(data, "items")
    )
    return [each for each in found if each.title or each.text]


def asker(
    upstream: Upstream, url: str, key: str, cse_id: str, pages: Pages | None
) -> Callable[[str, int], Awaitable[list[Found]]]:
    """pages: to fetch pages with; None shows snippets."""

    async def ask(query: str, topk: int) -> list[Found]:
        params = {"key": key, "cx": cse_id, "q": query, "num": str(min(topk, MOST))}
        found = results(await upstream.ask(url, params, key))[:topk]
        if pages is None:
            return found
        return list(await asyncio.gather(*(_read(pages, each, query) for each in found)))

    return ask


async def _read(pages: Pages, found: Found, query: str) -> Found:
    """A result with the part of its page that it is about; the snippet where the page cannot be read."""
    try:
        text = part_about(await pages.text(found.url), words(found.text + " " + query))
    except Refused as e:
        logger.info("%s is not read: %s", found.url, e)
        return found
    return Found(found.title, text or found.text, found.url)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="google_search_server", description=__doc__)
    parser.add_argument("--search_url", default=URL)
    parser.add_argument("--api_key", help=f"or ${KEY_VARIABLE}, where other users of the machine do not see it")
    parser.add_argument("--cse_id", required=True, help="of the custom search engine")
    parser.add_argument("--snippet_only", action="store_true", help="do not fetch pages")
    parser.add_argument("--private_pages", action="store_true", help="fetch pages from private networks, too")
    add_options(parser)
    args = parser.parse_args(argv)

    def make() -> tuple[Any, list[Any]]:
        key = key_of(args.api_key, KEY_VARIABLE, "--api_key")
        upstream = Upstream(timeout=args.timeout)
        pages = None if args.snippet_only else Pages(timeout=args.timeout, private=args.private_pages)
        return asker(upstream, args.search_url, key, args.cse_id, pages), [upstream, *([pages] if pages else [])]

    return serve_web(args, f"google {args.cse_id}{' snippets' if args.snippet_only else ''}", make)


if __name__ == "__main__":
    sys.exit(main())
