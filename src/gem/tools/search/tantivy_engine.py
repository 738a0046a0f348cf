"""BM25 ranking with tantivy, which also stores the documents. Needs the extra [search]."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from gem.errors import BadValue, ToolError, require
from gem.tools.search.corpus import Document, words
from gem.tools.search.numpy_engine import TIE
from gem.tools.search.ranking import BM25, DEFAULT

COMMIT_EVERY = 100_000  # documents; an interrupted build resumes after the last commit
HEAP_BYTES = 128_000_000  # memory in which the writer buffers documents


class TantivyEngine:
    """BM25 engine on an index written by build().

    Args:
        folder: folder of the index.
        size: expected number of documents.

    Raises:
        BadValue: tantivy cannot open the index, or the index does not have ``size`` documents.
    """

    name = "tantivy"

    def __init__(self, folder: Path, size: int) -> None:
        self._tantivy = require("tantivy", extra="search")
        try:
            index = self._tantivy.Index.open(str(folder))
            index.config_reader("manual")  # the default starts a thread that watches the folder
            index.reload()
            self._schema, self._searcher = index.schema, index.searcher()
        except Exception as e:  # tantivy raises several exception types
            raise BadValue(f"{folder}: tantivy cannot open it ({e}); delete the index and rebuild it") from e
        if self._searcher.num_docs != size:
            found = f"{self._searcher.num_docs} of {size} documents"
            raise BadValue(f"{folder}: has {found}; delete the index and rebuild it")
        self._folder = folder

    def __len__(self) -> int:
        return int(self._searcher.num_docs)

    def search(self, query: Sequence[str], topk: int) -> list[tuple[float, Document]]:
        """See LexicalEngine.search."""
        if not query:
            return []
        # The query is built from terms, not parsed from text, because a model may write "foo:bar" or "(((".
        should = self._tantivy.Occur.Should
        terms = [(should, self._term("words", word, "freq")) for word in query]
        boolean = terms[0][1] if len(terms) == 1 else self._tantivy.Query.boolean_query(terms)
        limit = topk + 8
        while True:
            hits = self._searcher.search(boolean, limit, count=False).hits
            if len(hits) < limit or hits[-1][0] < hits[topk - 1][0] - 2 * TIE:
                break
            limit *= 4  # more documents tie than the limit allows
        last = hits[min(topk, len(hits)) - 1][0] if hits else 0.0
        return [(score, self._stored(address)) for score, address in hits if score > last - 2 * TIE]

    def document(self, number: int) -> Document:
        hits = self._searcher.search(self._term("number", number), 1, count=False).hits
        if not hits:
            raise ToolError(f"{self._folder}: document {number} is missing; rebuild the index")
        return self._stored(hits[0][1])

    def contents_at(self, url: str) -> str | None:
        """Return the contents of the document with this URL, or None for an unknown URL."""
        hits = self._searcher.search(self._term("url", url), 1, count=False).hits
        return self._stored(hits[0][1])["contents"] if hits else None

    def close(self) -> None:
        """Do nothing: tantivy closes its files when the engine is garbage-collected."""

    def _term(self, field: str, value: Any, index_option: str = "basic") -> Any:
        return self._tantivy.Query.term_query(self._schema, field, value, index_option=index_option)

    def _stored(self, address: Any) -> Document:
        try:
            return msgspec.json.decode(self._searcher.doc(address)["document"][0], type=Document)
        except Exception as e:  # tantivy raises several exception types
            raise ToolError(f"{self._folder}: a document is damaged ({e}); rebuild the index") from e


def build(documents: Iterable[Document], folder: Path, ranking: BM25 = DEFAULT) -> int:
    """Write an index of documents into a folder, or resume after the last commit. Returns the number of documents."""
    check_ranking(ranking)
    tantivy = require("tantivy", extra="search")
    folder.mkdir(exist_ok=True)
    schema = (
        tantivy.SchemaBuilder()
        .add_text_field("words", tokenizer_name="whitespace", index_option="freq")
        .add_text_field("url", tokenizer_name="raw", index_option="basic")
        .add_unsigned_field("number", indexed=True)
        .add_bytes_field("document", stored=True)
        .build()
    )
    try:
        index = tantivy.Index(schema, str(folder), reuse=True)
    except ValueError as e:
        raise BadValue(f"{folder}: tantivy cannot resume the build ({e}); delete the index and rebuild it") from e
    count: int = index.searcher().num_docs
    # One thread, because with several threads the order of tied documents differs between builds.
    writer = index.writer(heap_size=HEAP_BYTES, num_threads=1)
    try:
        for document in islice(documents, count, None):
            entry = tantivy.Document()
            entry.add_text("words", " ".join(words(document["contents"])))
            if "url" in document:
                entry.add_text("url", document["url"])
            entry.add_unsigned("number", count)
            entry.add_bytes("document", msgspec.json.encode(document))
            writer.add_document(entry)
            count += 1
            if count % COMMIT_EVERY == 0:
                writer.commit()
    finally:  # keep the documents added before an interruption
        writer.commit()
        writer.wait_merging_threads()
    return count


def check_ranking(ranking: BM25) -> None:
    """Raise BadValue for settings other than the defaults, because tantivy has fixed constants."""
    if ranking != DEFAULT:
        raise BadValue(f"tantivy has fixed constants and supports {DEFAULT!r} only; use engine='numpy' for {ranking!r}")
