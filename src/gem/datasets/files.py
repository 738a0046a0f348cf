"""Rows in files: JSON lines, indexed by where each line begins; and Parquet, one group of rows at a time."""

from __future__ import annotations

import json
import threading
from array import array
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from gem.datasets.rows import ListRows, Row, Rows
from gem.errors import BadValue, require

SUFFIXES = (".jsonl", ".json", ".parquet")


def read_file(path: str | Path) -> Rows:
    """The rows of a .jsonl, .json (a list of objects) or .parquet file.

    A file is opened and indexed once; every environment of the process shares it. Raises BadValue for another suffix, a
    file that is not there, has no rows or does not parse, and MissingDependency for Parquet without the extra [data].
    """
    path = Path(path)
    if path.suffix not in SUFFIXES:
        raise BadValue(f"{path}: a data set is a {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]} file")
    try:
        return _read(path, path.stat().st_mtime_ns)
    except OSError as e:
        raise BadValue(f"{path}: {e.strerror or e}") from e


@lru_cache(maxsize=32)
def _read(path: Path, changed: int) -> Rows:
    """changed: when the file was last written, so that another version of it is read anew."""
    rows = {".jsonl": JsonLines, ".json": _json_list, ".parquet": Parquet}[path.suffix](path)
    if len(rows) == 0:
        raise BadValue(f"{path}: the file has no rows")
    return rows


class JsonLines(Rows):
    """A file of one JSON object per line. Only where each line begins is kept: 8 bytes of memory per row."""

    def __init__(self, path: Path) -> None:
        self.name, self._path = path.name, path
        self._starts, at = array("Q"), 0
        with path.open("rb") as file:
            for line in file:
                if line.strip():
                    self._starts.append(at)
                at += len(line)

    def row(self, index: int) -> Row:
        with self._path.open("rb") as file:
            file.seek(self._starts[index])
            line = file.readline()
        try:
            row = json.loads(line)
        except ValueError as e:
            raise BadValue(f"{self.where(index)} is no JSON: {e}") from e
        if not isinstance(row, dict):
            raise BadValue(f"{self.where(index)} should be a JSON object, got {line[:60]!r}")
        return row

    def __reduce__(self) -> tuple[Any, ...]:
        return read_file, (self._path,)  # in another process it is opened anew

    def __len__(self) -> int:
        return len(self._starts)


class Parquet(Rows):
    """A Parquet file; the group of rows read last stays in memory."""

    def __init__(self, path: Path) -> None:
        self.name, self._path = path.name, path
        self._pq = require("pyarrow.parquet", extra="data")
        try:
            with self._pq.ParquetFile(path) as file:
                meta = file.metadata
                self._counts = [meta.row_group(i).num_rows for i in range(meta.num_row_groups)]
        except OSError:
            raise
        except Exception as e:  # pyarrow's errors derive from ValueError and others
            raise BadValue(f"{path}: no Parquet file ({type(e).__name__}: {e})") from e
        self._group: tuple[int, list[Row]] = (-1, [])
        self._lock = threading.Lock()

    def row(self, index: int) -> Row:
        group = 0
        while index >= self._counts[group]:
            index -= self._counts[group]
            group += 1
        return self._rows(group)[index]

    def __reduce__(self) -> tuple[Any, ...]:
        return read_file, (self._path,)  # in another process it is opened anew

    def __len__(self) -> int:
        return sum(self._counts)

    def _rows(self, group: int) -> Sequence[Row]:
        with self._lock:
            if self._group[0] != group:
                with self._pq.ParquetFile(self._path) as file:
                    self._group = (group, file.read_row_group(group).to_pylist())
            return self._group[1]


def _json_list(path: Path) -> Rows:
    try:
        rows: Any = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as e:
        raise BadValue(f"{path}: no JSON: {e}") from e
    if not isinstance(rows, list):
        raise BadValue(f"{path}: should be a JSON list of objects, got {type(rows).__name__}")
    return ListRows(rows, path.name)
