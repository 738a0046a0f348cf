"""The corpus and the questions of qa:Facts: prose about an invented world, known by reading alone.

scripts/make_facts.py wrote both files. No two questions have an answer in common.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from gem.datasets import Rows, read_file

if TYPE_CHECKING:
    from gem.tools.search_engine.index import LexicalIndex

FOLDER = Path(__file__).parent / "data" / "facts"


def passages() -> Rows:
    """The corpus, in no order: each row has ``id``, ``title`` and ``text``, 40 to 120 words about one thing."""
    return read_file(FOLDER / "passages.jsonl")


def questions() -> Rows:
    """Rows of ``id``, ``question``, ``answer`` (every right one; the first as it stands in the text), ``passages`` (the
    ids of those needed, in the order of reading) and ``hops``, their number: 1 or 2.
    """
    return read_file(FOLDER / "questions.jsonl")


def search_index() -> LexicalIndex:
    """The corpus, to be searched within the process: ``SearchTool(index=search_index())``."""
    from gem.tools.search_engine.index import LexicalIndex  # numpy: for those who search alone

    return LexicalIndex.of(passages())
