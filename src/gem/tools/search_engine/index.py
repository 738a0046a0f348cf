"""Indexes of a corpus: built once into a folder, opened by any number of processes, which share its mapped files.

    index = build_index("corpus.jsonl", "folder")     # goes on where an interrupted build left off
    index = open_index("folder")                      # checks what it opens
    [hits] = index.search(["who wrote Faust"], topk=3)

A folder holds the documents, the postings of one lexical engine, the vectors of an encoder where one was given, and at
last a manifest, without which it is not opened.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias

from gem.errors import BadValue, MissingDependency, require
from gem.tools.search_engine import postings, tantivy_engine
from gem.tools.search_engine.documents import (
    JOURNAL,
    Corpus,
    Document,
    Documents,
    Listed,
    Progress,
    Stored,
    listed,
    store,
    write_whole,
)
from gem.tools.search_engine.manifest import FORMAT, LOCK, MANIFEST, PLAN, VERSION, planned, seal, unsealed
from gem.tools.search_engine.words import query_words

Engine: TypeAlias = Literal["tantivy", "numpy"]


@dataclass(frozen=True)
class Hit:
    """A document that was found. score: higher is better; to be compared within one search alone."""

    document: Document
    score: float


class Retriever(Protocol):
    """Anything that finds documents. May be called from several threads at once.

    quick: whether a search takes so little that an event loop may wait for it.
    """

    quick: bool

    def search(self, queries: Sequence[str], topk: int) -> list[list[Hit]]:
        """For each query at most topk documents, best first; fewer, or none, where no more are found."""

    def close(self) -> None: ...


class Indexed:
    """What finds some documents, and knows them all."""

    quick = False
    engine = ""

    def __init__(self, documents: Documents, folder: Path | None) -> None:
        self.documents, self.folder = documents, folder
        self._pages: dict[str, int] | None = None

    def __len__(self) -> int:
        return len(self.documents)

    def search(self, queries: Sequence[str], topk: int = 3) -> list[list[Hit]]:
        """See Retriever. Raises BadValue for topk below 1."""
        raise NotImplementedError

    def access(self, urls: Sequence[str]) -> list[str | None]:
        """The contents of the documents at these URLs; None for one that no document has.

        The first call reads all documents and keeps their URLs in memory.
        """
        if self._pages is None:
            every = ((self.documents[number].get("url"), number) for number in range(len(self)))
            self._pages = {url: number for url, number in every if url}
        return [self.documents[self._pages[url]]["contents"] if url in self._pages else None for url in urls]

    def close(self) -> None:
        self.documents.close()


class LexicalIndex(Indexed):
    """Documents found by their words, with BM25. Equal scores are ordered by id, so that every build answers alike.

    Made by build_index(), open_index(), open_corpus() and LexicalIndex.of(). engine: "tantivy" or "numpy"; both rank
    alike.
    """

    quick = True

    def __init__(
        self,
        documents: Documents,
        engine: postings.Postings | tantivy_engine.Tantivy,
        folder: Path | None = None,
    ) -> None:
        super().__init__(documents, folder)
        self._engine, self.engine = engine, engine.name

    @classmethod
    def of(cls, rows: Iterable[Mapping[str, Any]]) -> LexicalIndex:
        """An index in memory, by numpy alone: for some thousands of documents.

        rows: as the lines of a corpus: ``id``, and ``contents`` or ``title`` and ``text``. Raises BadValue for others.
        """
        documents = listed(rows)
        return cls(documents, postings.of_documents(documents))

    def search(self, queries: Sequence[str], topk: int = 3) -> list[list[Hit]]:
        checked_topk(topk)
        scored = (self._engine.search(query_words(query), topk) for query in queries)
        return [ranked(self.documents, each, topk) for each in scored]

    def __reduce__(self) -> tuple[Any, ...]:
        if self.folder is None:
            return LexicalIndex, (self.documents, self._engine)
        return open_index, (self.folder,)  # in another process it is opened anew


def ranked(documents: Documents, scored: Iterable[tuple[float, int]], topk: int) -> list[Hit]:
    """The best topk by score, then by id: scores are rounded first, for sums of floats depend on their order."""
    hits = [Hit(documents[number], round(score, 4)) for score, number in scored]
    return sorted(hits, key=lambda hit: (-hit.score, hit.document["id"]))[:topk]


def checked_topk(topk: int) -> int:
    if isinstance(topk, bool) or not isinstance(topk, int) or topk < 1:
        raise BadValue(f"topk must be a whole number of documents, at least 1, got {topk!r}")
    return topk


def build_index(
    corpus: str | Path,
    folder: str | Path,
    *,
    engine: Literal["auto"] | Engine = "auto",
    skip_bad_lines: bool = False,
    progress: Progress | None = None,
) -> LexicalIndex:
    """Build the index of a corpus in a folder, or go on with an interrupted build, and open it.

    Args:
        corpus: a file of JSON lines; see gem.tools.search_engine.documents.
        folder: new, empty, or holding an index of the same corpus; one that is finished is opened as it is.
        engine: "auto" is tantivy where it is installed, numpy otherwise.
        skip_bad_lines: leave out lines that are no documents.
        progress: called with what is being done, how much of it is done, and of how much.

    Raises BadValue for a bad line, with file and number, for a folder of something else, and where another process is
    building there; MissingDependency for tantivy where it is not installed.
    """
    source, path = Corpus(Path(corpus), skip_bad_lines), Path(folder)
    plan = {"format": FORMAT, "version": VERSION, "corpus": source.identity(), "engine": _chosen(engine)}
    path.mkdir(parents=True, exist_ok=True)
    with _building(path):
        found = planned(path)
        if found is not None and (found["corpus"] != plan["corpus"] or engine not in ("auto", found["engine"])):
            what = "another corpus" if found["corpus"] != plan["corpus"] else f"the engine {found['engine']}"
            raise BadValue(f"{path}: holds an index of {what}; remove it, or choose another folder")
        if not (path / MANIFEST).exists():
            _build(source, path, found or plan, progress or (lambda *_: None))
    return open_index(path)


def _build(source: Corpus, path: Path, plan: dict[str, Any], progress: Progress) -> None:
    write_whole(path / PLAN, json.dumps(plan).encode())
    store(source, path, progress)
    documents = Stored(path)
    try:
        maker = tantivy_engine if plan["engine"] == "tantivy" else postings
        maker.build(documents, path / "words", progress)
        seal(path, plan, len(documents))
    finally:
        documents.close()
    for name in (PLAN, JOURNAL):
        (path / name).unlink()


def open_index(folder: str | Path, *, check: bool = False) -> LexicalIndex:
    """Open the index in a folder. check: compare files of any size with their checksums; small ones are anyway.

    Raises BadValue, saying what to do, for a folder that holds no index, one that is unfinished, damaged, or written by
    another version; MissingDependency where it was built by tantivy and that is not installed.
    """
    path = Path(folder)
    manifest = unsealed(path, check=check)
    documents = Stored(path)
    if len(documents) != manifest["documents"]:
        raise BadValue(f"{path}: holds {len(documents)} documents of {manifest['documents']}; build the index anew")
    opener = tantivy_engine.Tantivy if manifest["engine"] == "tantivy" else postings.read
    return LexicalIndex(documents, opener(path / "words", len(documents)), path)


def open_corpus(path: str | Path) -> LexicalIndex:
    """The index of a corpus of some thousands of documents, in memory. Raises BadValue for a bad line."""
    lines = Corpus(Path(path)).documents()
    documents = Listed(document for _, _, document in lines if document is not None)
    if not documents:
        raise BadValue(f"{path}: the corpus has no documents")
    return LexicalIndex(documents, postings.of_documents(documents))


def _chosen(engine: str) -> Engine:
    if engine not in ("auto", "tantivy", "numpy"):
        raise BadValue(f"engine must be 'auto', 'tantivy' or 'numpy', got {engine!r}")
    if engine != "numpy":
        try:
            require("tantivy", extra="search")
        except MissingDependency:
            if engine == "tantivy":
                raise
            return "numpy"
        return "tantivy"
    return "numpy"


@contextmanager
def _building(path: Path) -> Iterator[None]:
    """Hold a folder's lock. Raises BadValue where another process does."""
    try:
        import fcntl
    except ImportError:  # no such locks on this system
        yield
        return
    with (path / LOCK).open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise BadValue(f"{path}: another process is building an index here") from None
        try:
            yield
        finally:
            with contextlib.suppress(OSError):
                os.unlink(path / LOCK)
