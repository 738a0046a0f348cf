"""A catalogue on disk: products, goals and a search index, memory-mapped and shared by all environments and workers.

A folder holds products.jsonl and goals.jsonl with the offsets of their lines (.npy), goals.json (which goals there are)
and index/, a folder of gem.tools.search. It is written under another name and renamed when it is complete.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from gem.envs.web.webshop.products import Goal, Product
from gem.errors import BadValue

RESULTS = 50  # results of a search
GEM_CACHE = "GEM_CACHE"  # environment variable: folder of catalogues that are built on first use
VERSION = 1
T = TypeVar("T")


class Lines:
    """Records of a file of JSON lines, decoded when they are read."""

    def __init__(self, path: Path, type_: type[Any]) -> None:
        import numpy as np

        self._offsets = np.load(path.with_suffix(".npy"), mmap_mode="r")
        with path.open("rb") as file:
            self._data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self._decoder = msgspec.json.Decoder(type_)

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def __getitem__(self, number: int) -> Any:
        return self._decoder.decode(self._data[int(self._offsets[number]) : int(self._offsets[number + 1])])


class LineWriter:
    """Writes records as JSON lines, with the offsets that Lines reads."""

    def __init__(self, path: Path) -> None:
        from array import array

        self._path, self._file, self._offsets = path, path.open("wb"), array("q", [0])

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def add(self, record: Any) -> None:
        self._offsets.append(self._offsets[-1] + self._file.write(msgspec.json.encode(record) + b"\n"))

    def __enter__(self) -> LineWriter:
        return self

    def __exit__(self, *args: object) -> None:
        import numpy as np

        self._file.close()
        np.save(self._path.with_suffix(".npy"), np.frombuffer(self._offsets, dtype=np.int64))


class Catalogue:
    """Products, goals and search of one shop. Get one with open_catalogue(), which opens a folder once per process.

    Args:
        folder: written by write_catalogue().

    Attributes:
        product, goal: return the one with a number.
        groups: numbers (start, end) of the goals of each group, such as "test" or "train-2".
    """

    def __init__(self, folder: Path) -> None:
        from gem.tools.search.index import open_index

        self.folder = folder
        self.products, self._goals = Lines(folder / "products.jsonl", Product), Lines(folder / "goals.jsonl", Goal)
        self.groups = msgspec.json.decode((folder / "goals.json").read_bytes(), type=dict[str, tuple[int, int]])
        self._index = open_index(folder / "index")

        # Pages show the same few products and the same goal several times.
        self.product: Callable[[int], Product] = lru_cache(maxsize=512)(self.products.__getitem__)
        self.goal: Callable[[int], Goal] = lru_cache(maxsize=64)(self._goals.__getitem__)

    def search(self, query: str) -> tuple[int, ...]:
        """Return the numbers of at most 50 products, best first; none for a query without words."""
        [hits] = self._index.search([query], RESULTS)
        return tuple(int(hit.document["id"]) for hit in hits)

    def __reduce__(self) -> tuple[Any, ...]:
        return (open_catalogue, (self.folder,))


@lru_cache(maxsize=8)
def open_catalogue(folder: Path) -> Catalogue:
    """Open the catalogue in a folder, once per process."""
    return Catalogue(folder)


def cached_catalogue(name: str, build: Callable[[Path], None]) -> Catalogue:
    """Open the catalogue with a name in the cache, and build it first if it is missing.

    Args:
        name: identifies the contents; part of the name of the folder.
        build: writes a catalogue into an empty folder.

    Raises:
        BadValue: the cache cannot be written.
    """
    folder = cache_folder() / f"{name}-{VERSION}-{_engine()}"
    if not folder.is_dir():
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            with _locked(folder.with_suffix(".lock")):
                if not folder.is_dir():
                    _build(folder, build)
        except OSError as e:
            raise BadValue(f"{folder}: cannot build the catalogue ({e}); set {GEM_CACHE} to another folder") from e
    return open_catalogue(folder)


def cache_folder() -> Path:
    """Return $GEM_CACHE/webshop, by default under ~/.cache/gem."""
    root = os.environ.get(GEM_CACHE) or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gem"
    return Path(root) / "webshop"


def write_catalogue(
    folder: Path, products: Iterable[Product], groups: Callable[[], Mapping[str, Iterable[Goal]]]
) -> None:
    """Write products and goals, and index the products.

    Args:
        folder: an empty folder.
        products: numbered in this order.
        groups: called after the last product; returns the goals of each group, numbered in this order.
    """
    from gem.tools.search.index import build_index

    corpus = folder / "corpus.jsonl"
    with LineWriter(folder / "products.jsonl") as records, corpus.open("wb") as file:
        for number, product in enumerate(products):
            records.add(product)
            document = {"id": f"{number:08d}", "contents": product.searched_text()}
            file.write(msgspec.json.encode(document) + b"\n")
    spans = {}
    with LineWriter(folder / "goals.jsonl") as goals:
        for name, members in groups().items():
            start = len(goals)
            for goal in members:
                goals.add(goal)
            spans[name] = (start, len(goals))
    (folder / "goals.json").write_bytes(msgspec.json.encode(spans))
    build_index(corpus, folder / "index").close()
    corpus.unlink()


def _build(folder: Path, build: Callable[[Path], None]) -> None:
    part = Path(tempfile.mkdtemp(prefix=f"{folder.name}.part-", dir=folder.parent))
    try:
        build(part)
        part.chmod(0o755)
        part.rename(folder)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _engine() -> str:
    from gem._internal.imports import is_installed

    return "tantivy" if is_installed("tantivy") else "numpy"


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold a lock among processes, where fcntl is available."""
    with path.open("w") as file:
        with contextlib.suppress(ImportError):
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX)
        yield
