"""Serves SerpAPI: ``python -m gem.tools.search_engine.serp_search_server --search_url … --topk 3 --serp_api_key …``.

Results are its answer box, then what it found, then related questions, topk of them together. See
gem.tools.search_engine.serving for what it answers.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from gem.errors import ToolError
from gem.tools.search_engine.web import Found, Upstream, add_options, key_of, objects_in, serve_web, text_in

URL = "https://serpapi.com/search"
KEY_VARIABLE = "SERP_API_KEY"
_NOTHING = "hasn't returned any results"  # part of the "error" that stands for an empty list


def results(data: Mapping[str, Any]) -> list[Found]:
    """What an answer of SerpAPI holds, in order. Raises ToolError for one that is an error."""
    error = text_in(data, "error")
    if error and _NOTHING not in error:
        raise ToolError(f"SerpAPI: {error[:300]}")
    found = [
        *(_found(box, "answer", "snippet", "result") for box in objects_in(data, "answer_box")),
        *(_found(each, "snippet") for each in objects_in(data, "organic_results")),
        *(_found(each, "snippet") for each in objects_in(data, "related_questions")),
    ]
    return [each for each in found if each.title or each.text]


def _found(data: Mapping[str, Any], *text: str) -> Found:
    return Found(text_in(data, "title", "question"), text_in(data, *text), text_in(data, "link"))


def asker(upstream: Upstream, url: str, key: str, engine: str) -> Callable[[str, int], Awaitable[list[Found]]]:
    async def ask(query: str, topk: int) -> list[Found]:
        params = {"engine": engine, "q": query, "api_key": key, "output": "json"}
        return results(await upstream.ask(url, params, key))

    return ask


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="serp_search_server", description=__doc__)
    parser.add_argument("--search_url", default=URL)
    parser.add_argument("--serp_api_key", help=f"or ${KEY_VARIABLE}, where other users of the machine do not see it")
    parser.add_argument("--engine", default="google", help="of SerpAPI: google, bing, …")
    add_options(parser)
    args = parser.parse_args(argv)

    def make() -> tuple[Any, list[Any]]:
        key = key_of(args.serp_api_key, KEY_VARIABLE, "--serp_api_key")
        upstream = Upstream(timeout=args.timeout)
        return asker(upstream, args.search_url, key, args.engine), [upstream]

    return serve_web(args, f"serpapi {args.engine}", make)


if __name__ == "__main__":
    sys.exit(main())
