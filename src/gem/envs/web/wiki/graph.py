"""Distances in clicks between pages, by breadth-first search.

>>> graph = {"a": ("b", "c"), "b": ("d",), "c": ("a",), "d": ()}
>>> distances("a", graph.__getitem__), click_path("a", "d", graph.__getitem__)
({'a': 0, 'b': 1, 'c': 1, 'd': 2}, ['a', 'b', 'd'])
"""

from __future__ import annotations

from collections.abc import Callable, Iterable


def distances(start: str, linked: Callable[[str], Iterable[str]]) -> dict[str, int]:
    """Return the number of clicks from a page to each page that can be reached, in the order of these numbers.

    Args:
        linked: returns the titles to which a page links. With those that link to it, the result is the number of clicks
            from each page to ``start``.
    """
    found, queue = {start: 0}, [start]
    for title in queue:
        for other in linked(title):
            if other not in found:
                found[other] = found[title] + 1
                queue.append(other)
    return found


def click_path(start: str, target: str, linked: Callable[[str], Iterable[str]]) -> list[str] | None:
    """Return the titles on a shortest path, both ends included, or None if the target cannot be reached."""
    before, queue = {start: start}, [start]
    for title in queue:
        if title == target:
            path = [title]
            while path[-1] != start:
                path.append(before[path[-1]])
            return path[::-1]
        for other in linked(title):
            if other not in before:
                before[other] = title
                queue.append(other)
    return None
