"""BM25 by tantivy: the engine of choice where the extra [search] is installed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gem.errors import BadValue, require
from gem.tools.search_engine.documents import Documents, Progress
from gem.tools.search_engine.postings import CLOSE, Scored
from gem.tools.search_engine.words import words

BLOCK = 100_000  # documents between two commits; an interrupted build goes on after the last one
TOLD = 1000  # documents between two words of progress
HEAP = 128_000_000  # bytes of documents that the writer keeps in memory before it writes them out


class Tantivy:
    """The engine on what build() wrote. Raises BadValue for a folder that is no index of ours."""

    name = "tantivy"

    def __init__(self, folder: Path, size: int) -> None:
        self._tantivy = require("tantivy", extra="search")
        try:
            index = self._tantivy.Index.open(str(folder))
            index.config_reader("manual")  # the default starts a thread that watches the folder
            index.reload()
            self._schema, self._searcher = index.schema, index.searcher()
        except Exception as e:  # tantivy's errors are ValueError and others, some of them panics
            raise BadValue(f"{folder}: tantivy cannot open it ({e}); build the index anew") from e
        if self._searcher.num_docs != size:
            raise BadValue(f"{folder}: holds {self._searcher.num_docs} documents of {size}; build the index anew")

    def __len__(self) -> int:
        return int(self._searcher.num_docs)

    def search(self, query: Sequence[str], topk: int) -> list[Scored]:
        """The best topk documents, and all that the last of them hardly differs from; in no order."""
        if not query:
            return []
        asked, limit = self._query(query), topk + 8
        while True:
            hits = self._searcher.search(asked, limit, count=False).hits
            if len(hits) < limit or hits[-1][0] < hits[topk - 1][0] - 2 * CLOSE:
                break
            limit *= 4  # more of the same score than were asked for
        last = hits[min(topk, len(hits)) - 1][0] if hits else 0.0
        kept = [hit for hit in hits if hit[0] > last - 2 * CLOSE]
        numbers = self._searcher.fast_field_values("number", [address for _, address in kept])
        return [(score, number) for (score, _), number in zip(kept, numbers, strict=True)]

    def _query(self, query: Sequence[str]) -> Any:
        # Built from words, never parsed from text: what a model writes is no query language.
        term, should = self._tantivy.Query.term_query, self._tantivy.Occur.Should
        terms = [(should, term(self._schema, "contents", word, index_option="freq")) for word in query]
        return terms[0][1] if len(terms) == 1 else self._tantivy.Query.boolean_query(terms)


def build(documents: Documents, folder: Path, progress: Progress) -> None:
    """Write an index of documents into a folder, from the last commit of an interrupted call."""
    tantivy = require("tantivy", extra="search")
    folder.mkdir(exist_ok=True)
    schema = (
        tantivy.SchemaBuilder()
        .add_text_field("contents", tokenizer_name="whitespace", index_option="freq")
        .add_unsigned_field("number", fast=True)
        .build()
    )
    index = tantivy.Index(schema, str(folder), reuse=True)
    made = index.searcher().num_docs
    # One thread: with more, documents of equal scores change places from one build to the next.
    writer = index.writer(heap_size=HEAP, num_threads=1)
    try:
        for number in range(made, len(documents)):
            document = tantivy.Document()
            document.add_text("contents", " ".join(words(documents[number]["contents"])))
            document.add_unsigned("number", number)
            writer.add_document(document)
            if (number + 1) % BLOCK == 0:
                writer.commit()
            if (number + 1) % TOLD == 0 or number + 1 == len(documents):
                progress("indexing", number + 1, len(documents))
    finally:  # interrupted, too: what was added is whole, and stays
        writer.commit()
        writer.wait_merging_threads()
