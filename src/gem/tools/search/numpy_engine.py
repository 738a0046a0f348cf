"""BM25 ranking with numpy, in memory or on memory-mapped files. Needs no extra dependencies.

The formula is that of Lucene and tantivy, with document lengths rounded to one byte. With the default constants, both
engines therefore compute the same scores. Building keeps all words of the corpus in memory, so this engine is suitable
for up to about 300,000 documents; use tantivy for larger corpora.
"""

from __future__ import annotations

import json
import math
import mmap
from array import array
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from gem.errors import BadValue, ToolError
from gem.tools.search.corpus import Document, words
from gem.tools.search.ranking import BM25, DEFAULT

TIE = 1e-4  # scores that differ by less are tied: the sum of floats depends on the order of the terms
DOCUMENTS, WORDS = "documents.jsonl", "words.json"
_ARRAYS = ("ends_D", "starts_W", "numbers_P", "impacts_P")

Array = npt.NDArray[Any]

# Document lengths that Lucene's SmallFloat can encode in one byte: exact up to 40, then in steps of at most 1/8.
_LENGTHS = np.array(
    [*range(24), *(24 + (i if i < 8 else (i & 7 | 8) << ((i >> 3) - 1)) for i in range(256 - 24))], dtype=np.int64
)


class Postings(NamedTuple):
    """For each word, the documents that contain the word and its contribution to their BM25 scores.

    words: maps each word to its number w. starts_W: word w has the postings ``[starts_W[w], starts_W[w + 1])``;
    length W + 1. numbers_P: document number of each posting. impacts_P: BM25 score of the word in that document.
    """

    words: dict[str, int]
    starts_W: Array
    numbers_P: Array
    impacts_P: Array


class PostingsBuilder:
    """Collects the words of documents and computes their postings."""

    def __init__(self, ranking: BM25 = DEFAULT) -> None:
        self._ranking = ranking
        self._words: dict[str, int] = {}
        self._ids, self._lengths = array("i"), array("i")

    def add(self, contents: str) -> None:
        known = self._words
        ids = [known.setdefault(word, len(known)) for word in self._ranking.terms(words(contents))]
        self._ids.extend(ids)
        self._lengths.append(len(ids))

    def postings(self) -> Postings:
        """Compute the postings. Raises BadValue if no document contains a word."""
        k1, b = self._ranking.k1, self._ranking.b
        if not self._ids:
            raise BadValue("no document of the corpus contains a word")
        lengths_D = np.array(self._lengths, dtype=np.int64)
        size = len(lengths_D)
        keys = np.array(self._ids, dtype=np.int64) * size + np.repeat(np.arange(size), lengths_D)
        keys_P, times_P = np.unique(keys, return_counts=True)  # sorted by word, then by document
        words_P, numbers_P = np.divmod(keys_P, size)
        counts_W = np.bincount(words_P, minlength=len(self._words))
        weights_W = (k1 + 1) * np.log1p((size - counts_W + 0.5) / (counts_W + 0.5))
        norms_D = k1 * (1 - b + b * rounded_lengths(lengths_D) / lengths_D.mean())
        impacts_P = weights_W[words_P] * times_P / (times_P + norms_D[numbers_P])
        starts_W = np.concatenate([[0], np.cumsum(counts_W)])
        return Postings(self._words, starts_W, numbers_P.astype(np.int32), impacts_P.astype(np.float32))


class NumpyEngine:
    """BM25 engine in numpy. Create one with of() or open()."""

    name = "numpy"

    def __init__(self, documents: Sequence[Document], postings: Postings, ranking: BM25 = DEFAULT) -> None:
        self._documents, self._postings, self._ranking = documents, postings, ranking
        self._urls: dict[str, int] | None = None

    @classmethod
    def of(cls, documents: Sequence[Document], ranking: BM25 = DEFAULT) -> NumpyEngine:
        """Index documents in memory."""
        builder = PostingsBuilder(ranking)
        for document in documents:
            builder.add(document["contents"])
        return cls(documents, builder.postings(), ranking)

    @classmethod
    def open(cls, folder: Path, ranking: BM25 = DEFAULT) -> NumpyEngine:
        """Open an index written by build() with the same ranking, as memory-mapped files.

        Raises:
            BadValue: files are missing, damaged or inconsistent.
        """
        try:
            # Use plain arrays, because slicing a memmap takes as long as reading a short list of postings.
            ends_D, starts_W, numbers_P, impacts_P = (
                np.asarray(np.load(folder / f"{name}.npy", mmap_mode="r")) for name in _ARRAYS
            )
            known = {word: number for number, word in enumerate(json.loads((folder / WORDS).read_bytes()))}
            documents = StoredDocuments(folder / DOCUMENTS, ends_D)
        except (OSError, ValueError, TypeError) as e:
            raise BadValue(f"{folder}: cannot be opened ({e}); delete the index and rebuild it") from e
        if len(starts_W) != len(known) + 1 or not len(numbers_P) == len(impacts_P) == int(starts_W[-1]):
            raise BadValue(f"{folder}: its files do not match; delete the index and rebuild it")
        return cls(documents, Postings(known, starts_W, numbers_P, impacts_P), ranking)

    def __len__(self) -> int:
        return len(self._documents)

    def search(self, query: Sequence[str], topk: int) -> list[tuple[float, Document]]:
        """See LexicalEngine.search."""
        known, starts_W, numbers_P, impacts_P = self._postings
        terms = dict.fromkeys(self._ranking.terms(query))  # several words may have the same stem
        spans = [slice(starts_W[w], starts_W[w + 1]) for word in terms if (w := known.get(word)) is not None]
        if not spans:
            return []
        found = np.concatenate([numbers_P[span] for span in spans])
        impacts = np.concatenate([impacts_P[span] for span in spans])
        if len(found) * 8 < len(self):
            numbers, where = np.unique(found, return_inverse=True)
            scores = np.bincount(where, weights=impacts)
        else:
            numbers, scores = None, np.bincount(found, weights=impacts)
        kept = np.flatnonzero(scores > max(0.0, kth_best(scores, topk) - 2 * TIE))
        best = kept if numbers is None else numbers[kept]
        return [(score, self._documents[n]) for score, n in zip(scores[kept].tolist(), best.tolist(), strict=True)]

    def document(self, number: int) -> Document:
        return self._documents[number]

    def contents_at(self, url: str) -> str | None:
        """Return the contents of the document with this URL, or None. The first call reads all documents."""
        if self._urls is None:
            urls = ((self._documents[number].get("url"), number) for number in range(len(self)))
            self._urls = {url: number for url, number in urls if url}
        return self._documents[self._urls[url]]["contents"] if url in self._urls else None

    def close(self) -> None:
        if isinstance(self._documents, StoredDocuments):
            self._documents.close()


class StoredDocuments(Sequence[Document]):
    """Documents in a memory-mapped file of JSON lines, decoded on access.

    ends_D: byte offset of the end of each document.
    """

    def __init__(self, path: Path, ends_D: Array) -> None:
        self._path, self._ends_D = path, ends_D
        if not len(ends_D) or int(ends_D[-1]) != path.stat().st_size:
            raise ValueError(f"{path.name} has another size")
        with path.open("rb") as file:
            self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)

    def __len__(self) -> int:
        return len(self._ends_D)

    def __getitem__(self, number: Any) -> Any:
        start = int(self._ends_D[number - 1]) if number else 0
        try:
            return msgspec.json.decode(self._map[start : int(self._ends_D[number])], type=Document)
        except (msgspec.MsgspecError, UnicodeDecodeError) as e:
            raise ToolError(f"{self._path}: document {number} is damaged ({e}); rebuild the index") from e

    def close(self) -> None:
        self._map.close()


def build(documents: Iterable[Document], folder: Path, ranking: BM25 = DEFAULT) -> int:
    """Write an index of documents into a folder, overwriting a partial index. Returns the number of documents."""
    folder.mkdir(exist_ok=True)
    builder, ends_D, size = PostingsBuilder(ranking), array("q"), 0
    with (folder / DOCUMENTS).open("wb") as file:
        for document in documents:
            size += file.write(msgspec.json.encode(document) + b"\n")
            ends_D.append(size)
            builder.add(document["contents"])
    postings = builder.postings()
    arrays = (np.array(ends_D, dtype=np.int64), *postings[1:])
    for name, values in zip(_ARRAYS, arrays, strict=True):
        np.save(folder / f"{name}.npy", values)
    (folder / WORDS).write_text(json.dumps(list(postings.words)))
    return len(ends_D)


def kth_best(scores: Array, k: int) -> float:
    """Return the k-th largest score, or minus infinity if there are fewer than k scores."""
    if len(scores) < k:
        return -math.inf
    maxima = np.maximum.reduceat(scores, np.arange(0, len(scores), 256))
    if len(maxima) > k:  # the k-th largest block maximum is a lower bound of the k-th largest score
        scores = scores[scores >= np.partition(maxima, len(maxima) - k)[len(maxima) - k]]
    return float(np.partition(scores, len(scores) - k)[len(scores) - k])


def rounded_lengths(lengths: Array) -> Array:
    """Quantize document lengths to Lucene's one-byte encoding, rounding down."""
    return _LENGTHS[np.searchsorted(_LENGTHS, lengths, side="right") - 1]
