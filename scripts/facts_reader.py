"""Answer the questions of qa:Facts by search, from the templates of questions and sentences alone.

It shows that the questions can be answered from the corpus and only from it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from facts_kinds import KINDS, Fact, Kind


class Plan(NamedTuple):
    """name: the entity in the question. steps: facts to look up, each about the result of the step before."""

    name: str
    steps: tuple[tuple[Kind, Fact], ...]


def answer(question: str, search: Callable[[str], list[str]]) -> str | None:
    """Answer a question, or return None where a step finds nothing.

    search: maps a query to the texts of passages.
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
    """Yield the possible readings of a question, two-hop readings first."""
    for kind, fact, name in matches(question):
        for before, link in every_fact():
            if link.noun and (match := fullmatch(link.noun, name)):
                yield Plan(match, ((before, link), (kind, fact)))
        yield Plan(name, ((kind, fact),))


def matches(question: str) -> Iterator[tuple[Kind, Fact, str]]:
    for kind, fact in every_fact():
        for template in fact.questions:
            if name := fullmatch(template, question):
                yield kind, fact, name


def read(text: str, kind: Kind, fact: Fact, name: str) -> str | None:
    """Return the value of a fact about the named entity, or None where the text does not state it."""
    if name.lower() not in text.lower():
        return None
    names = "|".join(map(re.escape, (name, kind.noun or name.split()[-1])))
    for template in fact.statements:
        pattern = re.escape(template).replace(r"\{x\}", f"(?:{names})").replace(r"\{v\}", "([^.]+)")
        pattern = re.sub(r"\\{\w+\\}", r"\\w+", pattern)  # any other placeholder is one word
        if match := re.search(rf"(?:^|\. ){pattern}(?: |$)", text, re.IGNORECASE):
            return match[1]
    return None


def fullmatch(template: str, text: str) -> str | None:
    match = re.fullmatch(re.escape(template).replace(r"\{x\}", "(.+)"), text)
    return match[1] if match else None


def every_fact() -> Iterator[tuple[Kind, Fact]]:
    return ((kind, fact) for kind in KINDS.values() for fact in kind.facts)
