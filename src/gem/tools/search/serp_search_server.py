"""Serve SerpAPI: ``python -m gem.tools.search.serp_search_server --search_url … --topk 3 --serp_api_key …``.

The results are the answer box, the organic results and the related questions, in this order, at most topk in total.
For the API, see gem.tools.search.server.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from gem.errors import ToolError
from gem.tools.search.web import SearchApi, WebResult, add_options, objects_in, read_key, serve_web, string_in

URL = "https://serpapi.com/search"
KEY_VARIABLE = "SERP_API_KEY"
_NO_RESULTS = "hasn't returned any results"  # part of the "error" text that SerpAPI sends if there are no results


def parse_results(data: Mapping[str, Any]) -> list[WebResult]:
    """Return the results in a SerpAPI reply, in order. Raises ToolError if the reply is an error."""
    error = string_in(data, "error")
    if error and _NO_RESULTS not in error:
        raise ToolError(f"SerpAPI: {error[:300]}")
    found = [
        *(_result(box, "answer", "snippet", "result") for box in objects_in(data, "answer_box")),
        *(_result(each, "snippet") for each in objects_in(data, "organic_results")),
        *(_result(each, "snippet") for each in objects_in(data, "related_questions")),
    ]
    return [each for each in found if each.title or each.text]


def _result(data: Mapping[str, Any], *text_keys: str) -> WebResult:
    return WebResult(string_in(data, "title", "question"), string_in(data, *text_keys), string_in(data, "link"))


def make_fetch(api: SearchApi, url: str, key: str, engine: str) -> Callable[[str, int], Awaitable[list[WebResult]]]:
    """Return the ``fetch`` function of a WebSearch."""

    async def fetch(query: str, topk: int) -> list[WebResult]:
        params = {"engine": engine, "q": query, "api_key": key, "output": "json"}
        return parse_results(await api.get(url, params, key))

    return fetch


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="serp_search_server", description=__doc__)
    parser.add_argument("--search_url", default=URL)
    parser.add_argument("--serp_api_key", help=f"default: ${KEY_VARIABLE}, hidden from other users")
    parser.add_argument(
        "--engine", "--serp_engine", default="google", help="search engine that SerpAPI uses: google, bing, …"
    )
    add_options(parser)
    args = parser.parse_args(argv)

    def make() -> tuple[Any, list[Any]]:
        key = read_key(args.serp_api_key, KEY_VARIABLE, "--serp_api_key")
        api = SearchApi(timeout=args.timeout)
        return make_fetch(api, args.search_url, key, args.engine), [api]

    return serve_web(args, f"serpapi {args.engine}", make)


if __name__ == "__main__":
    sys.exit(main())
