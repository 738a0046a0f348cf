"""Load datasets: JSON lines, JSON, CSV and Parquet files, folders, the Hugging Face hub and copies of it, or objects.

Only the start of each line of a JSON lines file is kept in memory. Parquet files are read one row group at a time. An
integer of more than 4,300 digits in JSON becomes a ``decimal.Decimal``, because Python converts no longer ones.
"""

from __future__ import annotations

import csv
import gzip
import io
import logging
import os
import re
import sys
import threading
import zlib
from array import array
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import IO, Any

from gem._internal.imports import is_installed
from gem._internal.inbound import FILE, check_size, grown, loads, read_bytes, read_lines, without_surrogates
from gem._internal.text import short_repr, unescaped
from gem.datasets.rows import ListRows, Mixed, Row, Rows
from gem.errors import BadInput, BadValue, install_command, require

GEM_DATA = "GEM_DATA"  # environment variable: folder of local copies of hub datasets
SUFFIXES = (".jsonl", ".jsonl.gz", ".json", ".csv", ".parquet")
FORMATS = ", ".join(SUFFIXES[:-1]) + f" and {SUFFIXES[-1]}"
INFO_FILES = ("dataset_info.json", "dataset_infos.json")  # describe a dataset and have no rows
SAVED_FILES = ("state.json", "dataset_dict.json")  # one of them is in a folder that save_to_disk wrote
LONGEST_CSV_FIELD = 1 << 30  # characters
_LIST = FILE._replace(bytes=4 << 30, items=1 << 30)  # a whole file, which is held in memory
HUB_TIMEOUT_S = 10.0  # for the first reply of the hub
_HUB_NAME = re.compile(r"[\w.-]+/[\w.-]+")
_NUMBERED = re.compile(r"\d+\.")
_log = logging.getLogger(__name__)


class MissingData(BadValue):
    """Raised when a dataset of the Hugging Face hub cannot be loaded."""


def load_rows(source: Any, split: str | None = None, *, config: str | None = None) -> Rows:
    """Load one split of a dataset, in file order.

    Args:
        source: a .jsonl, .jsonl.gz, .json, .csv or .parquet file; a folder in the layout of the hub, or written by
            ``save_to_disk`` of the datasets library; the name of a hub dataset (owner/name), whose copy in
            $GEM_DATA/owner/name takes precedence; a ``datasets.Dataset`` or ``DatasetDict``; a sequence of mappings;
            or a mapping of splits to any of these.
        split: None for the only one, or for the split "train" of several.
        config: configuration (subset), for datasets that have several.

    Raises:
        BadValue: unknown source or split, with the choices.
        MissingData: a hub dataset cannot be loaded; the message names the ways to provide it.
    """
    if isinstance(source, Rows):
        return source
    if isinstance(source, (str, Path)):
        return _load_named(source, split, config)
    if isinstance(source, Mapping):
        return load_rows(source[_choose_split(split, list(source), "the dataset")])
    if not hasattr(source, "__getitem__") or not hasattr(source, "__len__"):
        raise BadValue(f"a dataset is a sequence of rows, a file, a folder or a name, got {type(source).__name__}")
    if len(source) == 0:
        raise BadValue("the dataset has no rows")
    return ListRows(source)


def _load_named(source: str | Path, split: str | None, config: str | None) -> Rows:
    path = Path(source)
    if path.is_dir():
        return _load_folder(path, split, config)
    if path.is_file() or _suffix(path) is not None:
        return read_file(path)
    if not isinstance(source, str) or not _HUB_NAME.fullmatch(source):
        raise BadValue(
            f"{str(source)!r} is not a dataset file ({FORMATS}), a folder or the name of a hub dataset (owner/name)"
        )
    if (copy := local_copy(source)) is not None:
        return _load_folder(copy, split, config)
    rows = hub_rows(source, split, config)
    return load_rows(rows) if isinstance(rows, Mapping) else ListRows(rows, source)


def has_splits(source: str) -> bool:
    """Return whether the name of a dataset is that of a folder or of a hub dataset, which may have several splits."""
    return os.path.isdir(source) or (_HUB_NAME.fullmatch(source) is not None and _suffix(Path(source)) is None)


def content_hash(source: str) -> str | None:
    """Return a hash of a dataset file, or of the dataset files in a folder; None if there are none, as for the hub."""
    path, digest = Path(source), blake2b(digest_size=8)
    files = [path] if path.is_file() else sorted(path.rglob("*")) if path.is_dir() else []
    files = [file for file in files if file.is_file() and file.name.endswith((*SUFFIXES, ".arrow"))]
    for file in files:
        digest.update(file.relative_to(path).as_posix().encode())  # "." for the file itself
        with file.open("rb") as opened:
            while part := opened.read(1 << 20):
                digest.update(part)
    return digest.hexdigest() if files else None


def local_copy(name: str) -> Path | None:
    """Return the folder of a hub dataset under $GEM_DATA, or None if there is no such folder."""
    root = os.environ.get(GEM_DATA)
    return Path(root) / name if root and (Path(root) / name).is_dir() else None


def _load_folder(path: Path, split: str | None, config: str | None) -> Rows:
    """Load a folder in the layout of the hub: [config/][data/]train-00000-of-00002.parquet, train.jsonl, and so on."""
    if any((path / name).is_file() for name in SAVED_FILES):
        saved = require("datasets", extra="data").load_from_disk(str(path))
        return load_rows(saved, split) if isinstance(saved, Mapping) else ListRows(saved, path.name)
    folders = [path / config, path / "data" / config] if config else [path, path / "data", path / "default"]
    splits: dict[str, list[Path]] = {}
    for file in sorted({file for folder in folders for file in _data_files(folder)}):
        # The hub's own copies are named by number, in a folder per split: validation/0000.parquet.
        name = file.parent.name if _NUMBERED.match(file.name) else re.split(r"[-_.]\d|\.", file.name, maxsplit=1)[0]
        splits.setdefault(name, []).append(file)
    if not splits:
        if config is None and (configs := _configurations(path)):
            return _load_folder(path, split, _only_configuration(path, configs))
        raise BadValue(f"{path}: no {FORMATS} files in the folder" + (f" of {config!r}" if config else ""))
    parts = [read_file(file) for file in splits[_choose_split(split, list(splits), str(path))]]
    return parts[0] if len(parts) == 1 else Mixed(parts)


def _data_files(folder: Path) -> list[Path]:
    """Return the data files of a folder, including numbered files in a folder per split."""
    if not folder.is_dir():
        return []
    files = [file for file in folder.iterdir() if _suffix(file) is not None and file.name not in INFO_FILES]
    return files + [file for file in folder.glob("*/*") if _NUMBERED.match(file.name) and _suffix(file) is not None]


def _configurations(path: Path) -> list[str]:
    """Return the names of the subfolders with data, which are the configurations of a dataset."""
    folders = [folder for parent in (path, path / "data") if parent.is_dir() for folder in parent.iterdir()]
    return sorted({folder.name for folder in folders if folder.name[0] != "." and _data_files(folder)})


def _only_configuration(path: Path, configs: list[str]) -> str:
    if len(configs) > 1:
        raise BadValue(
            f"{path} has the configurations {', '.join(map(repr, configs))}: pass the folder of one of them, such as "
            f"{str(path / configs[0])!r}, or config= to load_rows"
        )
    return configs[0]


def _suffix(path: Path) -> str | None:
    """Return the suffix of a dataset file, or None for other files."""
    return next((suffix for suffix in SUFFIXES if path.name.endswith(suffix)), None)


def _choose_split(split: str | None, splits: list[str], what: str) -> str:
    if split is None and (len(splits) == 1 or "train" in splits):
        return splits[0] if len(splits) == 1 else "train"
    if split is None or split not in splits:
        raise BadValue(f"{what}: split must be one of {', '.join(map(repr, splits))}, got {split!r}")
    return split


def hub_rows(name: str, split: str | None, config: str | None, *, streaming: bool = False) -> Any:
    """Load a split of a hub dataset with the ``datasets`` library.

    Raises:
        MissingData: the dataset cannot be loaded; the message lists the ways to provide it.
    """
    installed = is_installed("datasets")
    first = "connect to the network" if installed else install_command("data")
    ways = f"{first} to load it from the hub, put a copy in $GEM_DATA/{name} (or --data), or pass the rows as dataset="
    if not installed:
        raise MissingData(f"dataset {name!r} is not available; {ways}")
    from huggingface_hub import HfApi, constants

    from datasets import load_dataset

    try:
        if not constants.HF_HUB_OFFLINE:  # load_dataset would retry for most of a minute
            HfApi().dataset_info(name, timeout=HUB_TIMEOUT_S)
        with redirect_stderr(unescaped(sys.stderr)):  # it draws progress bars
            return load_dataset(name, config, split=split, streaming=streaming)
    except Exception as e:  # the network, the hub and the library raise many types
        raise MissingData(f"dataset {name!r} cannot be loaded ({type(e).__name__}); {ways}") from e


# --- files -----------------------------------------------------------------------------------------------------------


def read_file(path: str | Path) -> Rows:
    """Open a .jsonl, .jsonl.gz, .json (a list of objects), .csv (with a header) or .parquet file.

    The environments of a process share one opened file.

    Raises:
        BadValue: unknown suffix, or a file that is missing, empty or malformed.
        MissingDependency: Parquet without the extra [data].
    """
    path = Path(path)
    if _suffix(path) is None:
        raise BadValue(f"{path}: this format is not read; the formats of dataset files are {FORMATS}")
    try:
        return _read_file(path, path.stat().st_mtime_ns)
    except OSError as e:
        raise BadValue(f"{path}: {e.strerror or e}") from e


@lru_cache(maxsize=32)
def _read_file(path: Path, mtime_ns: int) -> Rows:
    """Read a file. ``mtime_ns`` is part of the cache key, so that a modified file is read again."""
    readers = {
        ".jsonl": JsonLines,
        ".jsonl.gz": ZippedJsonLines,
        ".json": _read_json_list,
        ".csv": _read_csv,
        ".parquet": Parquet,
    }
    rows: Rows = readers[_suffix(path) or ""](path)
    if len(rows) == 0:
        raise BadValue(f"{path}: the file has no rows")
    return rows


class JsonLines(Rows):
    """A file of one JSON object per line. Keeps only the start of each line in memory: 8 bytes per row."""

    _has_warned = False

    def __init__(self, path: Path) -> None:
        with path.open("rb") as file:
            self._scan(path, file)

    def _scan(self, path: Path, file: IO[bytes]) -> None:
        self.name, self._path = path.name, path
        self._starts, at = array("Q"), 0
        self._blank = array("Q")  # number of rows before each blank line
        for line in read_lines(file, str(path)):
            if line.strip():
                self._starts.append(at)
            else:
                self._blank.append(len(self._starts))
            at += len(line)

    def row(self, index: int) -> Row:
        line = self._line(index).rstrip()
        may_replace = b"\\ud" in line.lower()  # as only an escape makes a lone surrogate
        try:
            row = loads(line, self.where(index), long_integers=True, keep_surrogates=may_replace)
        except BadInput as e:
            raise BadValue(f"{e}, got {_start_of(line)}") from e
        if may_replace:
            row, count = without_surrogates(row)
            if count and not self._has_warned:
                self._has_warned = True  # each epoch reads each row
                _log.warning("%s: lone surrogates are replaced by U+FFFD; the first: %s", self.name, self.where(index))
        if not isinstance(row, dict):
            raise BadValue(f"{self.where(index)} must be a JSON object, got {_start_of(line)}")
        return row

    def where(self, index: int) -> str:
        return f"{self.name}, line {index + 1 + bisect_right(self._blank, index)} (row {index})"

    def _line(self, index: int) -> bytes:
        with self._path.open("rb") as file:
            file.seek(self._starts[index])
            return file.readline(FILE.bytes + 1)

    def __reduce__(self) -> tuple[Any, ...]:
        return read_file, (self._path,)

    def __len__(self) -> int:
        return len(self._starts)


class ZippedJsonLines(JsonLines):
    """A gzip file of one JSON object per line. Keeps the decompressed file in memory."""

    def __init__(self, path: Path) -> None:
        limit, parts, size = grown(path.stat().st_size, _LIST.bytes), list[bytes](), 0
        try:
            with gzip.open(path) as file:
                while part := file.read(1 << 20):
                    parts.append(part)
                    size += len(part)
                    check_size(size, f"{path}, decompressed,", limit)
        except (EOFError, gzip.BadGzipFile, zlib.error) as e:
            raise BadValue(f"{path}: invalid gzip file: {e}") from e
        self._data = io.BytesIO(b"".join(parts))
        self._scan(path, self._data)

    def _line(self, index: int) -> bytes:
        data, start = self._data.getbuffer(), self._starts[index]
        end = self._starts[index + 1] if index + 1 < len(self) else len(data)  # with the blank lines between
        return bytes(data[start:end])


class Parquet(Rows):
    """A Parquet file. Keeps the row group that was read last in memory."""

    def __init__(self, path: Path) -> None:
        self.name, self._path = path.name, path
        self._pq = require("pyarrow.parquet", extra="data")
        try:
            with self._pq.ParquetFile(path) as file:
                meta = file.metadata
                self._counts = [meta.row_group(i).num_rows for i in range(meta.num_row_groups)]
        except OSError:
            raise
        except Exception as e:  # pyarrow raises subclasses of ValueError and others
            raise BadValue(f"{path}: invalid Parquet file ({type(e).__name__}: {e})") from e
        self._group: tuple[int, list[Row]] = (-1, [])
        self._lock = threading.Lock()

    def row(self, index: int) -> Row:
        group = 0
        while index >= self._counts[group]:
            index -= self._counts[group]
            group += 1
        return self._read_group(group)[index]

    def __reduce__(self) -> tuple[Any, ...]:
        return read_file, (self._path,)

    def __len__(self) -> int:
        return sum(self._counts)

    def _read_group(self, group: int) -> Sequence[Row]:
        with self._lock:
            if self._group[0] != group:
                with self._pq.ParquetFile(self._path) as file:
                    self._group = (group, file.read_row_group(group).to_pylist())
            return self._group[1]


def _start_of(line: bytes) -> str:
    return short_repr(line[:200].decode(errors="replace").strip(), 60)


def _read_json_list(path: Path) -> Rows:
    rows: Any = loads(read_bytes(path, _LIST), str(path), _LIST, long_integers=True)
    if not isinstance(rows, list):
        raise BadValue(f"{path}: must be a JSON list of objects, got {type(rows).__name__}")
    return ListRows(rows, path.name)


def _read_csv(path: Path) -> Rows:
    """Read a file of comma-separated values with a header. All values are text."""
    limit = csv.field_size_limit(LONGEST_CSV_FIELD)  # by default 131,072, less than some programs and passages
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, strict=True)
            header = next(reader, [])
            rows = [(reader.line_num, row) for row in reader if row]
    except (csv.Error, UnicodeDecodeError) as e:
        raise BadValue(f"{path}: invalid CSV: {e}") from e
    finally:
        csv.field_size_limit(limit)
    return CsvRows(path.name, header, rows)


class CsvRows(ListRows):
    """The rows of a CSV file, with the number of the last line of each; a row may have several lines."""

    def __init__(self, name: str, header: list[str], rows: list[tuple[int, list[str]]]) -> None:
        super().__init__([row for _, row in rows], name)
        self._header, self._ends = header, array("Q", [line for line, _ in rows])

    def row(self, index: int) -> Row:
        row = self._rows[index]
        if len(row) != len(self._header):
            raise BadValue(f"{self.where(index)} must have the columns of the header: {', '.join(self._header)}")
        return dict(zip(self._header, row, strict=True))

    def where(self, index: int) -> str:
        return f"{self.name}, line {self._ends[index]} (row {index})"
