"""Indexes of corpora. An index is built once in a folder; processes that open the index share its memory-mapped files.

    index = build_index("corpus.jsonl", "folder")     # resumes an interrupted build
    index = open_index("folder")                      # verifies the files
    [hits] = index.search(["who wrote Faust"], topk=3)

An index folder contains the files of one engine, the manifest and optionally vectors (see
gem.tools.search.dense). The manifest is completed last, with the size and checksum of every file. open_index()
rejects a folder without a complete manifest.
"""

from __future__ import annotations

import contextlib
import os
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias

import msgspec

from gem._internal.counts import check_count
from gem.errors import BadValue, MissingDependency, require
from gem.tools.search import numpy_engine, tantivy_engine
from gem.tools.search.corpus import CorpusFile, Document, Hit, Progress, documents_of, query_words
from gem.tools.search.ranking import BM25, DEFAULT

__all__ = [
    "LexicalIndex",
    "build_index",
    "open_index",
]

EngineName: TypeAlias = Literal["tantivy", "numpy"]

VERSION = 3  # increment after any change of words() or of a file format, which invalidates older indexes
MANIFEST, LOCK, ENGINE_FOLDER = "manifest.json", "building.lock", "engine"
CHECKED_BYTES = 1 << 26  # files up to this size are compared with their checksums whenever an index is opened
_VERSION_1_PLAN = "building.json"  # file of unfinished indexes of format version 1


class Retriever(Protocol):
    """Finds documents for queries. search() may be called from several threads at once.

    quick: whether search() is fast enough (under a millisecond) to run on an event loop.
    """

    quick: bool

    def search(self, queries: Sequence[str], topk: int) -> list[list[Hit]]:
        """Return at most topk documents for each query, best first."""

    def close(self) -> None: ...


class LexicalEngine(Protocol):
    """Stores documents, numbered from 0, and ranks documents by the words of a query."""

    name: str

    def __len__(self) -> int: ...

    def search(self, query: Sequence[str], topk: int) -> list[tuple[float, Document]]:
        """Return (score, document) for the topk best documents and all that tie with the last of these, unordered."""

    def document(self, number: int) -> Document: ...

    def contents_at(self, url: str) -> str | None: ...

    def close(self) -> None: ...


class DocumentIndex(Retriever, Protocol):
    """A retriever that also returns documents by URL. search() raises BadValue for topk below 1."""

    engine: str

    def __len__(self) -> int: ...

    def access(self, urls: Sequence[str]) -> list[str | None]:
        """Return, for each URL, the contents of the document with this URL, or None for an unknown URL."""


class LexicalIndex(DocumentIndex):
    """Ranks documents by BM25. Documents with equal scores are ordered by id, so all builds return the same hits.

    Create one with build_index(), open_index(), open_corpus() or LexicalIndex.of(). ``engine`` is "tantivy" or
    "numpy"; both engines return the same ranking.
    """

    quick = True

    def __init__(self, engine: LexicalEngine, folder: Path | None = None) -> None:
        self._engine, self.engine, self.folder = engine, engine.name, folder

    @classmethod
    def of(cls, rows: Iterable[Mapping[str, Any]], *, ranking: BM25 = DEFAULT) -> LexicalIndex:
        """Index up to some thousands of documents in memory with numpy.

        Args:
            rows: mappings with the keys of a corpus line; see gem.tools.search.corpus.
            ranking: constants, stemmer and stop words.

        Raises:
            BadValue: a row is malformed, or there are no rows.
        """
        return cls(numpy_engine.NumpyEngine.of(documents_of(rows), ranking))

    def __len__(self) -> int:
        return len(self._engine)

    def search(self, queries: Sequence[str], topk: int = 3) -> list[list[Hit]]:
        check_topk(topk)
        return [best_hits(self._engine.search(query_words(query), topk), topk) for query in queries]

    def document(self, number: int) -> Document:
        """Return the document with a number, counted from 0. Raises ToolError if the index is damaged."""
        return self._engine.document(number)

    def access(self, urls: Sequence[str]) -> list[str | None]:
        return [self._engine.contents_at(url) for url in urls]

    def close(self) -> None:
        self._engine.close()

    def __reduce__(self) -> tuple[Any, ...]:
        return (LexicalIndex, (self._engine,)) if self.folder is None else (open_index, (self.folder,))


def best_hits(scored: Iterable[tuple[float, Document]], topk: int) -> list[Hit]:
    """Return the topk best hits, ordered by score, then by id.

    Scores are rounded to four digits, because a sum of floats depends on the order of its terms.
    """
    hits = [Hit(document, round(score, 4)) for score, document in scored]
    return sorted(hits, key=lambda hit: (-hit.score, hit.document["id"]))[:topk]


def check_topk(topk: int) -> None:
    check_count("topk", topk)


class Manifest(msgspec.Struct, kw_only=True):
    """Description of an index folder.

    documents: number of documents; None until the build is complete. files: maps a file name to (bytes, CRC-32).
    """

    format: Literal["gem-search-index"]
    version: int
    corpus: dict[str, Any]
    engine: EngineName
    documents: int | None = None
    files: dict[str, tuple[int, int]] = {}
    ranking: BM25 = DEFAULT


def build_index(
    corpus: str | Path,
    folder: str | Path,
    *,
    engine: Literal["auto"] | EngineName = "auto",
    ranking: BM25 = DEFAULT,
    skip_bad_lines: bool = False,
    progress: Progress | None = None,
) -> LexicalIndex:
    """Build the index of a corpus in a folder and open it. A finished index of the same corpus is only opened.

    An interrupted tantivy build resumes; an interrupted numpy build starts again.

    Args:
        corpus: file of JSON lines; see gem.tools.search.corpus.
        folder: a new or empty folder, or a folder with an index of the same corpus.
        engine: "auto" is tantivy if it is installed and the ranking is the default, else numpy.
        ranking: constants, stemmer and stop words. tantivy supports the default only.
        skip_bad_lines: log and skip malformed lines.
        progress: called with (name of the phase, amount done, total amount).

    Raises:
        BadValue: a malformed line, a folder with other contents, another process building in the folder, or a ranking
            that the engine does not support.
        MissingDependency: engine="tantivy", but tantivy is not installed.
    """
    source, path = CorpusFile(Path(corpus), skip_bad_lines), Path(folder)
    wanted = Manifest(
        format="gem-search-index",
        version=VERSION,
        corpus=source.fingerprint(),
        engine="numpy" if engine == "auto" and ranking != DEFAULT else _resolve_engine(engine),
        ranking=ranking,
    )
    if wanted.engine == "tantivy":
        tantivy_engine.check_ranking(ranking)
    if path.is_file():
        raise BadValue(f"{path}: is a file; an index is a folder  (indexes of faiss and Pyserini cannot be read)")
    path.mkdir(parents=True, exist_ok=True)
    with _build_lock(path):
        found = _manifest_to_resume(path)
        if found is not None and found.corpus != wanted.corpus:
            raise BadValue(f"{path}: holds an index of another corpus; delete it or choose another folder")
        if found is not None and engine not in ("auto", found.engine):
            raise BadValue(f"{path}: holds an index of engine {found.engine}; delete it or choose another folder")
        if found is not None and found.ranking != ranking:
            raise BadValue(f"{path}: holds an index with {found.ranking!r}; delete it or choose another folder")
        if found is None or found.documents is None:
            _build(source, path, found or wanted, progress)
    return open_index(path)


def _build(source: CorpusFile, path: Path, manifest: Manifest, progress: Progress | None) -> None:
    write_atomically(path / MANIFEST, msgspec.json.encode(manifest))
    module = tantivy_engine if manifest.engine == "tantivy" else numpy_engine
    manifest.documents = module.build(source.documents(progress), path / ENGINE_FOLDER, manifest.ranking)
    for file in sorted((path / ENGINE_FOLDER).iterdir()):
        if file.suffix != ".lock":
            manifest.files[f"{ENGINE_FOLDER}/{file.name}"] = (file.stat().st_size, _checksum(file))
    write_atomically(path / MANIFEST, msgspec.json.encode(manifest))


def open_index(folder: str | Path, *, check: bool = False) -> LexicalIndex:
    """Open the index in a folder.

    Args:
        folder: written by build_index().
        check: compare files of any size with their checksums. Files up to 64 MiB are always compared.

    Raises:
        BadValue: the folder has no index, or the index is unfinished, damaged or of another format version.
        MissingDependency: the index needs tantivy, which is not installed.
    """
    path = Path(folder)
    manifest = read_manifest(path)
    documents = manifest.documents
    if documents is None:
        raise BadValue(f"{path}: the index is unfinished; call build_index() with the same corpus to complete it")
    if not manifest.files:
        raise _damaged(path, MANIFEST)
    for name, (size, checksum) in manifest.files.items():
        file = path / name
        if not file.is_file():
            raise BadValue(f"{path}: {name} is missing; delete the index and rebuild it")
        if file.stat().st_size != size or ((check or size <= CHECKED_BYTES) and _checksum(file) != checksum):
            raise _damaged(path, name)
    engine: LexicalEngine
    if manifest.engine == "tantivy":
        engine = tantivy_engine.TantivyEngine(path / ENGINE_FOLDER, documents)
    else:
        engine = numpy_engine.NumpyEngine.open(path / ENGINE_FOLDER, manifest.ranking)
    if len(engine) != documents:
        raise _damaged(path, MANIFEST)
    return LexicalIndex(engine, path)


def open_corpus(path: str | Path) -> LexicalIndex:
    """Index a corpus file of up to some thousands of documents in memory. Raises BadValue for a malformed line."""
    return LexicalIndex(numpy_engine.NumpyEngine.of(list(CorpusFile(Path(path)).documents())))


def read_manifest(path: Path) -> Manifest:
    """Read the manifest of a finished or unfinished index.

    Raises:
        BadValue: the folder has no readable manifest of this format version. The message says how to repair the folder.
    """
    if not path.is_dir():
        raise BadValue(f"{path}: no such folder; build_index() creates an index of a corpus")
    if (path / _VERSION_1_PLAN).exists():
        raise _outdated(path, 1)
    try:
        manifest = msgspec.json.decode((path / MANIFEST).read_bytes(), type=Manifest)
    except FileNotFoundError:
        raise BadValue(f"{path}: holds no index ({MANIFEST} is missing); build_index() creates one") from None
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise _damaged(path, MANIFEST) from None
    if manifest.version != VERSION:
        raise _outdated(path, manifest.version)
    return manifest


def _manifest_to_resume(path: Path) -> Manifest | None:
    """Return the manifest in a folder, or None if the folder is empty. Raises BadValue for other contents."""
    files = {file.name for file in path.iterdir()} - {LOCK}
    if files and not files & {MANIFEST, _VERSION_1_PLAN}:
        raise BadValue(f"{path}: holds {min(files)} and no index; choose an empty or new folder")
    return read_manifest(path) if files else None


def _outdated(path: Path, version: int) -> BadValue:
    return BadValue(
        f"{path}: the index has format version {version}, and this release reads version {VERSION}; delete the folder "
        "and rebuild it with build_index() or retrieval_server --build_only"
    )


def _damaged(path: Path, name: str) -> BadValue:
    return BadValue(f"{path}: {name} is damaged; delete the folder and rebuild it with build_index()")


def _checksum(path: Path) -> int:
    value = 0
    with path.open("rb") as file:
        while data := file.read(1 << 20):
            value = zlib.crc32(data, value)
    return value


def write_atomically(path: Path, data: bytes) -> None:
    """Replace the contents of a file. After a crash, the file is either unchanged or complete."""
    part = path.with_name(path.name + ".part")
    with part.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)


def _resolve_engine(engine: str) -> EngineName:
    if engine not in ("auto", "tantivy", "numpy"):
        raise BadValue(f"engine must be 'auto', 'tantivy' or 'numpy', got {engine!r}")
    if engine == "numpy":
        return "numpy"
    try:
        require("tantivy", extra="search")
    except MissingDependency:
        if engine == "tantivy":
            raise
        return "numpy"
    return "tantivy"


@contextmanager
def _build_lock(path: Path) -> Iterator[None]:
    """Lock a folder for building, where fcntl is available. Raises BadValue if another process holds the lock."""
    try:
        import fcntl
    except ImportError:  # not available on this system
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
