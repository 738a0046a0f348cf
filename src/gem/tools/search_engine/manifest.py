"""The manifest of an index, written when it is finished, with the sizes and checksums of its files.

While an index is being built, a plan stands in its place: what is built, and from which corpus.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from gem.errors import BadValue
from gem.tools.search_engine.documents import JOURNAL, write_whole

FORMAT = "gem-search-index"
VERSION = 1  # to be raised with any change of words() or of a file, for an index built before would answer wrongly
MANIFEST, PLAN, LOCK = "manifest.json", "building.json", "building.lock"
CHECKED_BYTES = 1 << 26  # files up to this size are read and compared with their checksums when an index is opened


def seal(path: Path, plan: dict[str, Any], documents: int) -> None:
    """Write the manifest of what was built in a folder as planned."""
    files = {name: [(path / name).stat().st_size, _checksum(path / name)] for name in sorted(_files(path))}
    manifest = {**plan, "documents": documents, "files": files}
    write_whole(path / MANIFEST, json.dumps(manifest, indent=1).encode())


def unsealed(path: Path, *, check: bool = False) -> dict[str, Any]:
    """The manifest of an index whose files are as it says.

    check: compare files of any size with their checksums; small ones are anyway. Raises BadValue, saying what to do.
    """
    if not path.is_dir():
        raise BadValue(f"{path}: no such folder; build_index() makes an index of a corpus")
    if not (path / MANIFEST).exists():
        unfinished = (path / PLAN).exists()
        raise BadValue(
            f"{path}: the index is unfinished; build_index() with the same corpus goes on with it"
            if unfinished
            else f"{path}: holds no index ({MANIFEST} is missing); build_index() makes one of a corpus"
        )
    manifest = read_plan(path / MANIFEST)
    try:
        files = msgspec.convert(manifest["files"], dict[str, tuple[int, int]])
        manifest["documents"] = msgspec.convert(manifest["documents"], int)
    except (LookupError, msgspec.ValidationError):
        raise _damaged(path / MANIFEST) from None
    for name, (size, checksum) in files.items():
        file = path / name
        if not file.is_file():
            raise BadValue(f"{path}: {name} is missing; build the index anew")
        if file.stat().st_size != size or ((check or size <= CHECKED_BYTES) and _checksum(file) != checksum):
            raise BadValue(f"{path}: {name} is damaged; build the index anew")
    return manifest


def planned(path: Path) -> dict[str, Any] | None:
    """What is being or was built in a folder; None in an empty one. Raises BadValue for a folder of something else."""
    for name in (MANIFEST, PLAN):
        if (path / name).exists():
            return read_plan(path / name)
    if other := sorted(file.name for file in path.iterdir() if file.name != LOCK):
        raise BadValue(f"{path}: holds {other[0]} and no index; choose an empty or new folder")
    return None


def read_plan(path: Path) -> dict[str, Any]:
    """What a manifest or plan says of an index. Raises BadValue for one that is none of ours."""
    try:
        found = json.loads(path.read_bytes())
        if found["format"] != FORMAT:
            raise ValueError
        if found["version"] != VERSION:
            raise BadValue(f"{path}: is of version {found['version']} and this reads {VERSION}; build the index anew")
        if found["engine"] not in ("tantivy", "numpy"):
            raise ValueError
        return {**found, "corpus": found["corpus"]}
    except BadValue:
        raise
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        raise _damaged(path) from None


def _damaged(path: Path) -> BadValue:
    return BadValue(f"{path}: is not the file of an index, or is damaged; remove the folder, build anew")


def _files(path: Path) -> Iterator[str]:
    for file in path.rglob("*"):
        name = str(file.relative_to(path))
        if file.is_file() and name not in (MANIFEST, PLAN, LOCK, JOURNAL) and not name.endswith(".lock"):
            yield name


def _checksum(path: Path) -> int:
    value = 0
    with path.open("rb") as file:
        while data := file.read(1 << 20):
            value = zlib.crc32(data, value)
    return value
