"""Read corpora of JSON lines, and split documents and queries into words.

A line of a corpus is a JSON object with ``contents``, or with ``text`` and optionally ``title``. ``id``, or ``_id``
as in BEIR, is a string or an integer and defaults to the number of the line, counted from 1. ``url`` is optional. The
first line of ``contents`` is the title in quotes, as in the corpora published with Search-R1. A document without any
text is left out. Lone surrogates, which no encoding takes, become U+FFFD.

All engines index the output of words(), so they rank documents in the same order.

>>> words("Café don't-stop C++ 東京_2024")
['cafe', 'don', 't', 'stop', 'c', '東', '京', '2024']
"""

from __future__ import annotations

import hashlib
import logging
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, cast

from gem._internal.inbound import loads, without_surrogates
from gem._internal.text import counted, short_repr
from gem.errors import BadInput, BadValue

PROGRESS_STEP = 1000  # documents between two progress reports
QUERY_CHARACTERS = 20_000  # characters of a query that are used; the rest is ignored
QUERY_WORDS = 64  # distinct words of a query that are used; the rest are ignored

# Every character counts as a word in scripts written without spaces, and in Hangul, whose particles are part of words.
_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7a3"
# Runs of letters and digits, of bounded length because tantivy drops terms of thousands of bytes.
_WORD = re.compile(f"[{_CJK}]|[^\\W_{_CJK}]{{1,64}}")
_ASCII_WORD = re.compile("[a-z0-9]{1,64}")  # the same for ASCII text, three times as fast
_ACCENTS = re.compile("[\u0300-\u036f]")

logger = logging.getLogger(__name__)
Document: TypeAlias = dict[str, str]  # id, contents and, if known, url
Progress: TypeAlias = Callable[[str, float, float], None]  # (name of the phase, amount done, total amount)


@dataclass(frozen=True)
class Hit:
    """A document found by a search. Higher scores are better. Scores of different searches are not comparable."""

    document: Document
    score: float


@dataclass(frozen=True)
class CorpusFile:
    """A file of JSON lines.

    Args:
        path: an uncompressed file.
        skip_bad_lines: log and skip malformed lines instead of raising BadValue.

    Raises:
        BadValue: the path is not a file, or is a compressed or Parquet file.
    """

    path: Path
    skip_bad_lines: bool = False

    def __post_init__(self) -> None:
        if not self.path.is_file():
            raise BadValue(f"{self.path}: no such file; a corpus is a file of JSON lines")
        if self.path.suffix in (".gz", ".zip", ".xz", ".bz2", ".parquet"):
            raise BadValue(f"{self.path}: a corpus is a file of JSON lines; unpack it first")

    def fingerprint(self) -> dict[str, Any]:
        """Return data that identifies the corpus: name, size, checksum of the first and last 64 KiB, skip_bad_lines."""
        size = self.path.stat().st_size
        with self.path.open("rb") as file:
            first = file.read(1 << 16)
            file.seek(max(0, size - (1 << 16)))
            last = file.read()
        digest = hashlib.blake2b(first + last, digest_size=16).hexdigest()
        return {"name": self.path.name, "bytes": size, "ends": digest, "skip_bad_lines": self.skip_bad_lines}

    def documents(self, progress: Progress | None = None) -> Iterator[Document]:
        """Read the documents in order. Empty lines and documents without text are skipped; a warning counts the latter.

        Raises:
            BadValue: a line is malformed and skip_bad_lines is false (the message names file and line), or the corpus
                has no documents.
        """
        total, done, count, empty = self.path.stat().st_size, 0, 0, 0
        with self.path.open("rb") as file:
            for line, raw in enumerate(file, start=1):
                done += len(raw)
                if not raw.strip() or (document := self._document(raw, line)) is None:
                    continue
                if not document["contents"]:
                    empty += 1
                    continue
                count += 1
                yield document
                if progress is not None and count % PROGRESS_STEP == 0:
                    progress("indexing", done, total)
        if count == 0:
            raise BadValue(f"{self.path}: the corpus has no documents")
        if empty:
            logger.warning("%s: left out %s without text", self.path, counted(empty, "document"))
        if progress is not None:
            progress("indexing", total, total)

    def _document(self, raw: bytes, line: int) -> Document | None:
        try:
            return document_of(_parse(raw), line)
        except BadValue as e:
            if not self.skip_bad_lines:
                raise BadValue(f"{self.path}, line {line}: {e}") from None
            logger.warning("%s, line %d skipped: %s", self.path, line, e)
            return None


def documents_of(rows: Iterable[Mapping[str, Any]]) -> list[Document]:
    """Convert rows to documents, without those that have no text.

    Raises:
        BadValue: a row is malformed (the message has its number, counted from 1), or there are no rows.
    """
    documents = []
    for number, row in enumerate(rows, start=1):
        try:
            document = document_of(row, number)
        except BadValue as e:
            raise BadValue(f"row {number}: {e}") from None
        if document["contents"]:
            documents.append(document)
    if not documents:
        raise BadValue("the corpus has no documents")
    return documents


def document_of(row: Any, number: int) -> Document:
    """Convert one row of a corpus, whose contents may be empty. Raises BadValue for a malformed row.

    Args:
        number: the default id.
    """
    if not isinstance(row, Mapping):
        raise BadValue(f"expected a JSON object, got {type(row).__name__}")
    key = row.get("id", row.get("_id", number))
    if isinstance(key, bool) or not isinstance(key, str | int) or key == "":
        raise BadValue(f"'id' must be a string or an integer, got {short_repr(key, 60)}")
    document = {"id": str(key), "contents": _contents(row)}
    url = row.get("url")
    if isinstance(url, str) and url:
        document["url"] = url
    return cast(Document, without_surrogates(document)[0])


def _contents(row: Mapping[str, Any]) -> str:
    texts = {column: row.get(column) for column in ("contents", "text", "title")}
    for column, text in texts.items():
        if text is not None and not isinstance(text, str):
            raise BadValue(f"{column!r} must be a string, got {short_repr(text, 60)}")
    if "contents" not in row and "text" not in row:
        raise BadValue(f"needs 'contents', or 'text' with a 'title'; it has {', '.join(map(repr, row)) or 'no keys'}")
    contents, text, title = (each if each and each.strip() else "" for each in texts.values())
    if contents or not (text or title):
        return contents
    return f'"{" ".join(title.split())}"\n{text}'


def _parse(raw: bytes) -> Any:
    try:
        return loads(raw, "it", keep_surrogates=True)
    except BadInput as e:
        raise BadValue(f"invalid JSON: {e}") from None


def words(text: str) -> list[str]:
    """Split a text into lowercase words without accents, in order."""
    if text.isascii():
        return _ASCII_WORD.findall(text.lower())
    text = unicodedata.normalize("NFKC", _ACCENTS.sub("", unicodedata.normalize("NFKD", text)))
    return _WORD.findall(text.casefold())


def query_words(query: str) -> list[str]:
    """Return the first QUERY_WORDS distinct words of a query. Text after QUERY_CHARACTERS is ignored."""
    return list(dict.fromkeys(words(query[:QUERY_CHARACTERS])))[:QUERY_WORDS]
