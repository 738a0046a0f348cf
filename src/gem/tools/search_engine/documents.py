"""The documents of an index: read from a corpus of JSON lines, kept in one memory-mapped file.

A line of a corpus is an object with ``contents``, or with ``text`` and, at will, ``title``; ``id`` is text or a number,
and the number of the line, counted from 1, where it is missing. ``url`` is kept. In ``contents`` the title is the first
line, in quotes, as corpora made for Search-R1 have it.
"""

from __future__ import annotations

import json
import logging
import mmap
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from gem.errors import BadValue, ToolError

BLOCK = 10_000  # documents stored between two points from which an interrupted build goes on
TEXTS, STARTS, JOURNAL = "documents.jsonl", "documents.starts", "documents.journal"

logger = logging.getLogger(__name__)
Document: TypeAlias = dict[str, str]  # id, contents, and url where it has one
Progress: TypeAlias = Callable[[str, float, float], None]  # what is being done; how much of it is done, and of how much


class Documents(Protocol):
    """Documents by number, from 0."""

    def __len__(self) -> int: ...

    def __getitem__(self, number: int) -> Document: ...

    def close(self) -> None: ...


class Listed(list[Document]):
    """Documents in memory."""

    def close(self) -> None:
        pass


class Stored:
    """Documents in a file, mapped into memory and decoded when asked for. Raises BadValue for files that do not fit."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / TEXTS
        self._starts: npt.NDArray[np.uint64] = np.fromfile(folder / STARTS, dtype="<u8")
        size = self._path.stat().st_size
        if len(self._starts) < 2 or int(self._starts[-1]) != size or np.any(np.diff(self._starts.view("<i8")) <= 0):
            raise BadValue(f"{folder}: {STARTS} does not fit {TEXTS}; build the index anew")
        with self._path.open("rb") as file:
            self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)

    def __len__(self) -> int:
        return len(self._starts) - 1

    def __getitem__(self, number: int) -> Document:
        try:
            return _DECODER.decode(self._map[int(self._starts[number]) : int(self._starts[number + 1])])
        except (msgspec.MsgspecError, UnicodeDecodeError) as e:
            raise ToolError(f"{self._path}: document {number} is damaged ({e}); build the index anew") from e

    def close(self) -> None:
        self._map.close()


_DECODER = msgspec.json.Decoder(dict[str, str])
_ENCODER = msgspec.json.Encoder()


@dataclass(frozen=True)
class Corpus:
    """A file of JSON lines. skip_bad_lines: leave out lines that are no documents instead of raising BadValue."""

    path: Path
    skip_bad_lines: bool = False

    def __post_init__(self) -> None:
        if not self.path.is_file():
            raise BadValue(f"{self.path}: no such file; a corpus is a file of JSON lines")
        if self.path.suffix in (".gz", ".zip", ".xz", ".bz2", ".parquet"):
            raise BadValue(f"{self.path}: a corpus is a file of JSON lines; unpack it first")

    def identity(self) -> dict[str, Any]:
        """What tells this corpus from another: its name, size and checksums of its two ends."""
        import hashlib

        size = self.path.stat().st_size
        with self.path.open("rb") as file:
            head = file.read(1 << 16)
            file.seek(max(0, size - (1 << 16)))
            tail = file.read()
        digest = hashlib.blake2b(head + tail, digest_size=16).hexdigest()
        return {"name": self.path.name, "bytes": size, "ends": digest, "skip_bad_lines": self.skip_bad_lines}

    def documents(self, at: int = 0, line: int = 0) -> Iterator[tuple[int, int, Document | None]]:
        """From the byte ``at``, before which ``line`` lines stand: (byte after it, its number, document) of each line.

        The document is None for an empty line, and for a bad one that is skipped. Raises BadValue for the first bad
        line otherwise, with file and number.
        """
        with self.path.open("rb") as file:
            file.seek(at)
            for raw in file:
                at, line = at + len(raw), line + 1
                document = None
                if raw.strip():
                    try:
                        document = document_of(_row(raw), line)
                    except BadValue as e:
                        if not self.skip_bad_lines:
                            raise BadValue(f"{self.path}, line {line}: {e}") from None
                        logger.warning("%s, line %d is left out: %s", self.path, line, e)
                yield at, line, document


def listed(rows: Iterable[Mapping[str, Any]]) -> Listed:
    """Rows as documents in memory. Raises BadValue, with the number of the row from 1, for one that is none."""
    documents = Listed()
    for number, row in enumerate(rows, start=1):
        try:
            documents.append(document_of(row, number))
        except BadValue as e:
            raise BadValue(f"row {number}: {e}") from None
    if not documents:
        raise BadValue("the corpus has no documents")
    return documents


def document_of(row: Any, number: int) -> Document:
    """A row of a corpus as a document. Raises BadValue for what is none."""
    if not isinstance(row, Mapping):
        raise BadValue(f"should be a JSON object, got {type(row).__name__}")
    key = row.get("id", number)
    if isinstance(key, bool) or not isinstance(key, str | int) or key == "":
        raise BadValue(f"'id' should be text or a whole number, got {key!r:.60}")
    document = {"id": str(key), "contents": _contents(row)}
    url = row.get("url")
    if isinstance(url, str) and url:
        document["url"] = url
    return document


def _contents(row: Mapping[str, Any]) -> str:
    for column in ("contents", "text", "title"):
        if not isinstance(row.get(column, ""), str):
            raise BadValue(f"{column!r} should be text, got {row[column]!r:.60}")
    contents: str = row.get("contents", "")
    if not contents.strip() and row.get("text", "").strip():
        contents = '"' + " ".join(row.get("title", "").split()) + '"\n' + row["text"]
    if not contents.strip():
        raise BadValue(f"needs 'contents', or 'text' with a 'title'; it has {', '.join(map(repr, row)) or 'nothing'}")
    try:
        contents.encode()
    except UnicodeEncodeError:
        raise BadValue("holds half of a surrogate pair, which is no text") from None
    return contents


def _row(raw: bytes) -> Any:
    try:
        return json.loads(raw.decode("utf-8-sig"))
    except (ValueError, RecursionError) as e:
        raise BadValue(f"no JSON: {e}") from None


def store(corpus: Corpus, folder: Path, progress: Progress) -> None:
    """Write the documents of a corpus into a folder, from where an interrupted call left off.

    The journal holds what is safely on disk: bytes and lines read, bytes and documents written. Raises BadValue for a
    bad line and for a corpus without documents.
    """
    state = _journal(folder)
    total = corpus.path.stat().st_size
    with (folder / TEXTS).open("ab") as texts, (folder / STARTS).open("ab") as starts:
        texts.truncate(state["bytes"])
        if not state["documents"]:
            starts.truncate(0)
        starts.truncate(8 * (state["documents"] + 1))  # of an empty file: the zero where the first document starts
        for block in _blocks(corpus.documents(state["at"], state["line"])):
            encoded = [_ENCODER.encode(document) + b"\n" for _, _, document in block if document is not None]
            ends = np.cumsum([len(each) for each in encoded], dtype="<u8") + np.uint64(state["bytes"])
            for file, data in ((texts, b"".join(encoded)), (starts, ends.tobytes())):
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            state = {
                "at": block[-1][0],
                "line": block[-1][1],
                "bytes": int(ends[-1]) if encoded else state["bytes"],
                "documents": state["documents"] + len(encoded),
            }
            write_whole(folder / JOURNAL, json.dumps(state).encode())
            progress("reading", state["at"], total)
    if not state["documents"]:
        raise BadValue(f"{corpus.path}: the corpus has no documents")


def _journal(folder: Path) -> dict[str, int]:
    """What the journal says; that nothing is done yet where it is missing, damaged, or tells of more than there is."""
    empty = {"at": 0, "line": 0, "bytes": 0, "documents": 0}
    try:
        state = msgspec.json.decode((folder / JOURNAL).read_bytes(), type=dict[str, int])
        texts, starts = ((folder / name).stat().st_size for name in (TEXTS, STARTS))
    except (OSError, msgspec.MsgspecError):
        return empty
    whole = state.keys() == empty.keys() and texts >= state["bytes"] and starts >= 8 * (state["documents"] + 1)
    return state if whole else empty


def _blocks(lines: Iterator[Any]) -> Iterator[Sequence[Any]]:
    block = []
    for line in lines:
        block.append(line)
        if len(block) == BLOCK:
            yield block
            block = []
    if block:
        yield block


def write_whole(path: Path, data: bytes) -> None:
    """Write a file so that it holds all of it or is as before, whatever happens meanwhile."""
    beside = path.with_name(path.name + ".part")
    with beside.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)
