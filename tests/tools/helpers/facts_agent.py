"""An agent for qa:Facts that knows how sentences in the corpus are phrased, but no facts."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3] / "scripts"))
import facts_reader


class SearchNeeded(Exception):
    """Carries the next query."""


def researcher(observations: list[str]) -> str:
    """Return the next action: a search for each hop of the question, then the answer. Without a tool it guesses.

    Stateless: every call repeats the reasoning with the results of the searches so far.
    """
    question = observations[0].partition("\n")[0]
    seen = iter(observations[1:]) if "<search>" in observations[0] else None

    def search(query: str) -> list[str]:
        if seen is None:
            return []
        found = next(seen, None)
        if found is None:
            raise SearchNeeded(query)
        return list(passages_in(found))

    try:
        answer = facts_reader.answer(question, search)
    except SearchNeeded as query:
        return f"<think>Searching for it.</think><search>{query}</search>"
    return f"<answer>{answer or guess(question)}</answer>"


def passages_in(observation: str) -> Iterator[str]:
    """Yield the passages in a search result, without their titles."""
    for match in re.finditer(r"^(?:.*: )?Doc \d+\(Title: .*?\) (.+)$", observation, re.MULTILINE):
        yield match[1]


def guess(question: str) -> str:
    """Guess the most likely answer from the kind of question."""
    for asked, likely in [("year", "800"), ("When", "800"), ("How many", "500"), ("animal", "a black otter")]:
        if asked in question:
            return likely
    return "the river Depune"
