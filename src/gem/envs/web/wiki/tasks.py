"""Tasks of the Wikipedia game: a start and a target, by level where the graph is known, else by a random walk."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

from gem.envs.web.wiki.articles import Articles
from gem.envs.web.wiki.graph import click_path, distances
from gem.envs.web.wiki.pages import BaseWikiTrawler, WikiPage
from gem.errors import ToolError

_WALK = 4  # clicks from the start to the target in an encyclopedia whose graph is not known
_ATTEMPTS = 50  # random pages that are tried as a start


class Difficulty(NamedTuple):
    """Which tasks belong to a level.

    Args:
        distance: least and greatest number of clicks from the start to the target.
        links: least and greatest number of links of the start page.
    """

    distance: tuple[int, int]
    links: tuple[int, int]


LEVELS = {
    1: Difficulty((1, 2), (1, 6)),
    2: Difficulty((3, 3), (1, 12)),
    3: Difficulty((4, 5), (3, 40)),
    4: Difficulty((6, 8), (5, 40)),
}


def draw_task(source: Articles, level: Difficulty, rng: random.Random, links_per_page: int) -> tuple[str, str, int]:
    """Draw a task of a level: titles of the start and the target, and the turns of a shortest path."""
    while True:
        target = source.random(rng)
        away = distances(target, source.linked_from.__getitem__)
        low, high = level.distance
        fewest, most = level.links
        starts = [
            title
            for title, distance in away.items()
            if low <= distance <= high and fewest <= len(source.graph[title]) <= most
        ]
        if starts:
            first = rng.choice(starts)
            if source.most_links <= links_per_page:
                return first, target, away[first]
            return first, target, turns_of(source, first, target, links_per_page)


def walk_task(source: BaseWikiTrawler, rng: random.Random, links_per_page: int) -> tuple[str, str, int]:
    """Draw a random page, and a target by a random walk from it, so that it can be reached. See draw_task().

    Raises:
        ToolError: no page with links was found.
    """
    for _ in range(_ATTEMPTS):
        start = source.get_page(source.random(rng))
        if start is None or not start.links:
            continue
        page, turns = start, 0
        for _ in range(_WALK):
            number = rng.randrange(len(page.links)) if page.links else 0
            following = source.get_page(page.links[number]) if page.links else None
            if following is None:
                break
            page, turns = following, turns + 1 + number // links_per_page
        if page.title != start.title:
            return start.title, page.title, turns
    raise ToolError(f"{source.url}: no start with links among {_ATTEMPTS} random pages")


def turns_of(source: BaseWikiTrawler, start: str, target: str, links_per_page: int) -> int:
    """Return the number of turns in which the oracle goes from one page to another, one for each request of links."""
    path = click_path(start, target, linked(source))
    assert path is not None
    turns = 0
    for title, following in pairwise(path):
        turns += 1 + place_of(source, title, following) // links_per_page
    return turns


def linked(source: BaseWikiTrawler) -> Callable[[str], tuple[str, ...]]:
    """Return a function that returns the titles to which a page links, after redirects."""
    if source.graph is not None:
        return source.graph.__getitem__
    return lambda title: tuple(dict.fromkeys(page.title for page in _pages(source, title) if page is not None))


def _pages(source: BaseWikiTrawler, title: str) -> list[WikiPage | None]:
    page = source.get_page(title)
    return [] if page is None else [source.get_page(link) for link in page.links]


def place_of(source: BaseWikiTrawler, title: str, following: str) -> int:
    """Return the index of the first link of a page that leads to another page."""
    pages = _pages(source, title)
    return next(i for i, page in enumerate(pages) if page is not None and page.title == following)
