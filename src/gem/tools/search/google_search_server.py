"""Serve Google Custom Search: ``python -m gem.tools.search.google_search_server --api_key … --cse_id …``.

With ``--snippet_only``, results contain the snippets that Google returns. Otherwise each page is fetched, and its
result contains the excerpt with the most words of the snippet and the query. For the API, see
gem.tools.search.server.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from gem.tools.search.corpus import words
from gem.tools.search.web import (
    PageError,
    PageFetcher,
    SearchApi,
    WebResult,
    add_options,
    excerpt,
    objects_in,
    read_key,
    serve_web,
    string_in,
)

URL = "https://www.googleapis.com/customsearch/v1"
KEY_VARIABLE = "GOOGLE_API_KEY"
MAX_RESULTS = 10  # maximum number of results per request that the API allows

logger = logging.getLogger(__name__)


def parse_results(data: Mapping[str, Any]) -> list[WebResult]:
    """Return the results in a Google reply, in order. Results without a title and a text are omitted."""
    found = (
        WebResult(string_in(each, "title"), string_in(each, "snippet"), string_in(each, "link"))
        for each in objects_in(data, "items")
    )
    return [each for each in found if each.title or each.text]


def make_fetch(
    api: SearchApi, url: str, key: str, cse_id: str, pages: PageFetcher | None
) -> Callable[[str, int], Awaitable[list[WebResult]]]:
    """Return the ``fetch`` function of a WebSearch. If ``pages`` is None, results contain only snippets."""

    async def fetch(query: str, topk: int) -> list[WebResult]:
        params = {"key": key, "cx": cse_id, "q": query, "num": str(min(topk, MAX_RESULTS))}
        results = parse_results(await api.get(url, params, key))[:topk]
        if pages is None:
            return results
        return list(await asyncio.gather(*(_read_page(pages, each, query) for each in results)))

    return fetch


async def _read_page(pages: PageFetcher, result: WebResult, query: str) -> WebResult:
    """Return the result with an excerpt of the page as its text, or unchanged if the page cannot be read."""
    try:
        text = excerpt(await pages.text(result.url), words(result.text + " " + query))
    except PageError as e:
        logger.info("%s cannot be read: %s", result.url[:200], e)
        return result
    return WebResult(result.title, text or result.text, result.url)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="google_search_server", description=__doc__)
    parser.add_argument("--search_url", default=URL)
    parser.add_argument("--api_key", help=f"default: ${KEY_VARIABLE}, hidden from other users")
    parser.add_argument("--cse_id", required=True, help="id of the custom search engine")
    parser.add_argument("--snippet_only", action="store_true", help="do not fetch pages")
    parser.add_argument("--private_pages", action="store_true", help="fetch pages from private networks too")
    add_options(parser)
    args = parser.parse_args(argv)

    def make() -> tuple[Any, list[Any]]:
        key = read_key(args.api_key, KEY_VARIABLE, "--api_key")
        api = SearchApi(timeout=args.timeout)
        pages = None if args.snippet_only else PageFetcher(timeout=args.timeout, allow_private=args.private_pages)
        return make_fetch(api, args.search_url, key, args.cse_id, pages), [api, *([pages] if pages else [])]

    return serve_web(args, f"google {args.cse_id}{' snippets' if args.snippet_only else ''}", make)


if __name__ == "__main__":
    sys.exit(main())
