"""BM25 in numpy alone: for each word the documents that hold it and what it adds to their scores, memory-mapped.

The formula is the one of Lucene and tantivy: k1 = 1.2, b = 0.75, lengths of documents rounded to one byte, so that both
engines give the same scores. It is meant for up to some 300,000 documents; tantivy goes further.
"""

from __future__ import annotations

import json
import math
import mmap
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gem.errors import BadValue
from gem.tools.search_engine.documents import Documents, Progress, write_whole
from gem.tools.search_engine.words import words

K1, B = 1.2, 0.75
CLOSE = 1e-4  # scores that differ by less count as equal: sums of floats depend on their order
BLOCK = 20_000  # documents whose postings are made in memory at once, and stay made when a build is interrupted

Array = npt.NDArray[Any]
Scored = tuple[float, int]  # the score and the number of a document

# The lengths that one byte stands for, as in Lucene's SmallFloat: exact up to 40, then in steps of an eighth or less.
_LENGTHS = np.array(
    [*range(24), *(24 + (i if i < 8 else (i & 7 | 8) << ((i >> 3) - 1)) for i in range(256 - 24))], dtype=np.int64
)


class Block(NamedTuple):
    """Postings of some documents that follow each other.

    words: sorted. counts: for each of them, documents that hold it. numbers_P, times_P: of each posting, in the order
    of the words and then of the documents, which document and how often. lengths: of the documents, in words.
    """

    words: list[str]
    counts: Array
    numbers_P: Array
    times_P: Array
    lengths: Array


class Postings:
    """The engine. vocabulary: sorted words. starts: where the postings of each begin, and where the last ones end."""

    name = "numpy"

    def __init__(
        self, vocabulary: Sequence[bytes], starts: Array, numbers_P: Array, impacts_P: Array, size: int
    ) -> None:
        self._vocabulary, self._starts, self._size = vocabulary, starts, size
        self._numbers_P, self._impacts_P = numbers_P, impacts_P

    def __len__(self) -> int:
        return self._size

    def search(self, query: Sequence[str], topk: int) -> list[Scored]:
        """The best topk documents, and all that the last of them hardly differs from; in no order."""
        spans = [span for word in query if (span := self._span(word.encode()))]
        if not spans:
            return []
        found = np.concatenate([self._numbers_P[a:b] for a, b in spans])
        impacts = np.concatenate([self._impacts_P[a:b] for a, b in spans])
        if len(found) * 8 < self._size:
            numbers, where = np.unique(found, return_inverse=True)
            scores = np.bincount(where, weights=impacts)
        else:
            numbers, scores = None, np.bincount(found, weights=impacts)
        kept = np.flatnonzero(scores > max(0.0, kth_best(scores, topk) - 2 * CLOSE))
        best = kept if numbers is None else numbers[kept]
        return list(zip(scores[kept].tolist(), best.tolist(), strict=True))

    def _span(self, word: bytes) -> tuple[int, int] | None:
        at = bisect_left(self._vocabulary, word)
        if at == len(self._vocabulary) or self._vocabulary[at] != word:
            return None
        return int(self._starts[at]), int(self._starts[at + 1])


def kth_best(scores: Array, k: int) -> float:
    """The k-th largest of scores; minus infinity where there are fewer."""
    if len(scores) < k:
        return -math.inf
    greatest = np.maximum.reduceat(scores, np.arange(0, len(scores), 256))
    if len(greatest) > k:  # the k-th of the greatest in each part is no larger than the k-th of all: few are left
        scores = scores[scores >= np.partition(greatest, len(greatest) - k)[len(greatest) - k]]
    return float(np.partition(scores, len(scores) - k)[len(scores) - k])


class MappedWords(Sequence[bytes]):
    """A sorted list of words in two files."""

    def __init__(self, folder: Path) -> None:
        with (folder / "words").open("rb") as file:
            self._text = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self._ends = np.fromfile(folder / "words.ends", dtype="<u8")

    def __len__(self) -> int:
        return len(self._ends)

    def __getitem__(self, at: Any) -> Any:
        begin = int(self._ends[at - 1]) if at else 0
        return self._text[begin : int(self._ends[at])]


def of_documents(documents: Documents) -> Postings:
    """The postings of a few documents, in memory."""
    blocks = [make_block(contents) for _, contents in _cut(documents, 0)]
    vocabulary = _union(blocks)
    merged = _Merged(vocabulary, blocks)
    numbers_P, impacts_P = np.empty(merged.total, np.int32), np.empty(merged.total, np.float32)
    for number, block in enumerate(blocks):
        merged.fill(number, block, numbers_P, impacts_P)
    encoded = [word.encode() for word in vocabulary]
    return Postings(encoded, merged.starts, numbers_P, impacts_P, len(documents))


def build(documents: Documents, folder: Path, progress: Progress) -> None:
    """Write the postings of documents into a folder; blocks that an interrupted call made are used again."""
    folder.mkdir(exist_ok=True)
    firsts = range(0, len(documents), BLOCK)
    # Their names hold what is in them, so that blocks of another size are not taken for these.
    paths = [folder / f"block-{at}-{min(at + BLOCK, len(documents))}.npz" for at in firsts]
    made = next((i for i, path in enumerate(paths) if not path.exists()), len(paths))
    for at, contents in _cut(documents, made * BLOCK):
        _save(make_block(contents), paths[at // BLOCK])
        progress("indexing", min(at + BLOCK, len(documents)), len(documents))
    vocabulary = _union(map(_load, paths))
    merged = _Merged(vocabulary, map(_load, paths))
    if not merged.total:
        raise BadValue("no document of the corpus holds a word")
    numbers_P = np.memmap(folder / "numbers", np.int32, "w+", shape=merged.total)
    impacts_P = np.memmap(folder / "impacts", np.float32, "w+", shape=merged.total)
    for number, path in enumerate(paths):
        merged.fill(number, _load(path), numbers_P, impacts_P)
        progress("merging", number + 1, len(paths))
    numbers_P.flush()
    impacts_P.flush()
    encoded = [word.encode() for word in vocabulary]
    write_whole(folder / "words", b"".join(encoded))
    np.cumsum([len(word) for word in encoded], dtype="<u8").tofile(folder / "words.ends")
    merged.starts.astype("<i8").tofile(folder / "starts")
    for path in folder.glob("*.npz"):
        path.unlink()


def read(folder: Path, size: int) -> Postings:
    """Open what build() wrote. Raises BadValue where the files do not fit each other."""
    starts = np.fromfile(folder / "starts", dtype="<i8")
    # As plain arrays: slices of a memmap take as long to make as a short list takes to read.
    numbers_P = np.asarray(np.memmap(folder / "numbers", np.int32, "r"))
    impacts_P = np.asarray(np.memmap(folder / "impacts", np.float32, "r"))
    vocabulary = MappedWords(folder)
    if len(starts) != len(vocabulary) + 1 or not len(numbers_P) == len(impacts_P) == int(starts[-1]):
        raise BadValue(f"{folder}: its files do not fit each other; build the index anew")
    return Postings(vocabulary, starts, numbers_P, impacts_P, size)


class _Numbered(dict[str, int]):
    """Words by number, in the order in which they are first asked for."""

    def __missing__(self, word: str) -> int:
        self[word] = number = len(self)
        return number


def make_block(contents: Iterable[str]) -> Block:
    known, ids, lengths = _Numbered(), array("l"), array("l")
    for text in contents:
        found = words(text)
        lengths.append(len(found))
        ids.extend(map(known.__getitem__, found))
    lengths_D = np.array(lengths, dtype=np.int64)
    order = sorted(known)
    rank = np.empty(len(known), dtype=np.int64)
    rank[[known[word] for word in order]] = np.arange(len(order))
    keys = rank[np.array(ids, dtype=np.int64)] * len(lengths_D) + np.repeat(np.arange(len(lengths_D)), lengths_D)
    postings, times_P = np.unique(keys, return_counts=True)
    counts = np.bincount(postings // max(1, len(lengths_D)), minlength=len(order))
    numbers_P = (postings % max(1, len(lengths_D))).astype(np.int32)
    return Block(order, counts, numbers_P, times_P.astype(np.int32), lengths_D)


class _Merged:
    """Where each word's postings go, and what they weigh, once all blocks are known."""

    def __init__(self, vocabulary: list[str], blocks: Iterable[Block]) -> None:
        self._known = {word: number for number, word in enumerate(vocabulary)}
        counts = np.zeros(len(vocabulary), dtype=np.int64)
        self._firsts, documents, length = [], 0, 0
        for block in blocks:
            counts[self._numbers(block)] += block.counts
            self._firsts.append(documents)
            documents, length = documents + len(block.lengths), length + int(block.lengths.sum())
        self.starts = np.concatenate([[0], np.cumsum(counts)])
        self.total = int(self.starts[-1])
        self._next = self.starts[:-1].copy()
        self._weights = (K1 + 1) * np.log1p((documents - counts + 0.5) / (counts + 0.5))
        self._mean = length / documents

    def fill(self, number: int, block: Block, numbers_P: Array, impacts_P: Array) -> None:
        """Put a block's postings where they go; blocks come in order."""
        ids, counts = self._numbers(block), block.counts
        begins = np.cumsum(counts) - counts
        goes = np.repeat(self._next[ids] - begins, counts) + np.arange(len(block.numbers_P))
        self._next[ids] += counts
        norms = K1 * (1 - B + B * rounded(block.lengths) / max(self._mean, 1e-9))
        impacts = np.repeat(self._weights[ids], counts) * block.times_P / (block.times_P + norms[block.numbers_P])
        numbers_P[goes] = block.numbers_P + self._firsts[number]
        impacts_P[goes] = impacts

    def _numbers(self, block: Block) -> Array:
        return np.fromiter(map(self._known.__getitem__, block.words), dtype=np.int64, count=len(block.words))


def rounded(lengths: Array) -> Array:
    """Lengths of documents as one byte keeps them: the largest it can tell that is not longer."""
    return _LENGTHS[np.searchsorted(_LENGTHS, lengths, side="right") - 1]


def _union(blocks: Iterable[Block]) -> list[str]:
    return sorted(set(chain.from_iterable(block.words for block in blocks)))


def _cut(documents: Documents, at: int) -> Iterator[tuple[int, list[str]]]:
    """The contents of documents in blocks, each with the number of its first."""
    for first in range(at, len(documents), BLOCK):
        last = min(first + BLOCK, len(documents))
        yield first, [documents[number]["contents"] for number in range(first, last)]


def _save(block: Block, path: Path) -> None:
    beside = path.with_name("part.npz")
    text = np.frombuffer(json.dumps(block.words).encode(), dtype=np.uint8)
    np.savez(beside, text, block.counts, block.numbers_P, block.times_P, block.lengths)
    beside.replace(path)


def _load(path: Path) -> Block:
    with np.load(path) as file:
        text, *arrays = (file[name] for name in file.files)
    return Block(json.loads(text.tobytes()), *arrays)
