"""What tasks in the records of an invented company share: names of people, and where records differ from a goal."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

_FIRST = tuple("Ann Ben Cara Dev Eli Fay Gus Hana Ivan Jo Kim Leo Mia Nils Ora Paul Quin Rosa Sam Tara".split())  # noqa: SIM905
_LAST = tuple(
    "Adler Berg Costa Dunn Ekman Fox Grau Holm Ito Jansen Kerr Lund Moss Novak Okafor Petit Reyes Stone".split()  # noqa: SIM905
)


def people(rng: random.Random, count: int) -> list[str]:
    """Draw distinct names, some of which share a first or last name."""
    last = rng.sample(_LAST, max(count // 2, 1) + 1)
    names = [f"{first} {name}" for first in rng.sample(_FIRST, max(count // 2, 1) + 2) for name in last]
    return rng.sample(names, count)


def user_name(name: str) -> str:
    """Return an account's name, such as "alee" for Ann Lee."""
    first, _, last = name.lower().partition(" ")
    return first[0] + last


def first_difference(found: Any, goal: Any, path: str = "") -> str:
    """Return where data first differ from the goal, and how; "" if they are equal.

    >>> first_difference({"a": {"b": 1}, "c": []}, {"a": {"b": 2}, "c": []})
    'a/b is 1, not 2'
    """
    if isinstance(found, Mapping) and isinstance(goal, Mapping):
        for key in [*goal, *(key for key in found if key not in goal)]:
            place = f"{path}/{key}" if path else key
            if key not in found:
                return f"{place} is missing"
            if key not in goal:
                return f"{place} should not exist"
            if difference := first_difference(found[key], goal[key], place):
                return difference
        return ""
    if isinstance(found, list) and isinstance(goal, list):
        if len(found) != len(goal):
            return f"{path} has the length {len(found)}, not {len(goal)}"
        pairs = zip(found, goal, strict=True)
        return next((d for n, (a, b) in enumerate(pairs) if (d := first_difference(a, b, f"{path}/{n}"))), "")
    return "" if found == goal and type(found) is type(goal) else f"{path} is {found!r}, not {goal!r}"
