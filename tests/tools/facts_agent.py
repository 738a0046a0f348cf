"""An agent for qa:Facts that sees observations alone: it knows how the world's sentences are phrased, and no fact."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))
import facts_reader


class Wanted(Exception):
    """What to search for next."""


def researcher(observations: list[str]) -> str:
    """Searches where it is told that it may, as often as the question has hops, and guesses otherwise.

    It remembers nothing: each time it goes through its reasons anew, with what its searches found so far.
    """
    question = observations[0].partition("\n")[0]
    seen = iter(observations[1:]) if "<search>" in observations[0] else None

    def search(query: str) -> list[str]:
        if seen is None:
            return []
        found = next(seen, None)
        if found is None:
            raise Wanted(query)
        return list(passages_in(found))

    try:
        answer = facts_reader.answer(question, search)
    except Wanted as query:
        return f"<think>I look it up.</think><search>{query}</search>"
    return f"<answer>{answer or guess(question)}</answer>"


def passages_in(observation: str) -> Iterator[str]:
    """The passages that a search found, without their titles."""
    for match in re.finditer(r"^(?:.*: )?Doc \d+\(Title: .*?\) (.+)$", observation, re.MULTILINE):
        yield match[1]


def guess(question: str) -> str:
    """The closed book: what kind of thing is asked for, and the likeliest one of it."""
    for asked, likely in [("year", "800"), ("When", "800"), ("How many", "500"), ("animal", "a black otter")]:
        if asked in question:
            return likely
    return "the river Depune"
