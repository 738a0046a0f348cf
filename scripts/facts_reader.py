"""A reader who knows how the questions and the sentences of qa:Facts are phrased, and nothing about its world.

With a search, it answers from what it is given to read; without one, it cannot.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from facts_kinds import KINDS, Fact, Kind


class Plan(NamedTuple):
    """name: the entity that the question names. steps: what to look up of it, then of what was found."""

    name: str
    steps: tuple[tuple[Kind, Fact], ...]


def answer(question: str, search: Callable[[str], list[str]]) -> str | None:
    """The answer by reading what the search finds for a name; None where a step finds nothing.

    search: from a query to texts of passages.
    """
    found: str | None = None
    for plan in plans(question):
        found = plan.name
        for kind, fact in plan.steps:
            texts = search(found) if found else []
            found = next((value for text in texts if (value := read(text, kind, fact, found or ""))), None)
        if found:
            break
    return found


def plans(question: str) -> Iterator[Plan]:
    """The ways to understand a question: those of two hops first."""
    for kind, fact, name in understood(question):
        for before, link in every_fact():
            if link.noun and (match := fullmatch(link.noun, name)):
                yield Plan(match, ((before, link), (kind, fact)))
        yield Plan(name, ((kind, fact),))


def understood(question: str) -> Iterator[tuple[Kind, Fact, str]]:
    for kind, fact in every_fact():
        for ask in fact.asks:
            if name := fullmatch(ask, question):
                yield kind, fact, name


def read(text: str, kind: Kind, fact: Fact, name: str) -> str | None:
    """The value of a fact about the one that the name means, where the text states it."""
    if name.lower() not in text.lower():
        return None
    names = "|".join(map(re.escape, (name, kind.noun or name.split()[-1])))
    for tell in fact.tells:
        pattern = re.escape(tell).replace(r"\{x\}", f"(?:{names})").replace(r"\{v\}", "([^.]+)")
        pattern = re.sub(r"\\{\w+\\}", r"\\w+", pattern)  # what else stands in braces is a word
        if match := re.search(rf"(?:^|\. ){pattern}(?: |$)", text, re.IGNORECASE):
            return match[1]
    return None


def fullmatch(template: str, text: str) -> str | None:
    match = re.fullmatch(re.escape(template).replace(r"\{x\}", "(.+)"), text)
    return match[1] if match else None


def every_fact() -> Iterator[tuple[Kind, Fact]]:
    return ((kind, fact) for kind in KINDS.values() for fact in kind.facts)
