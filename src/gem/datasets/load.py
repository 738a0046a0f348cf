"""From what a user names to rows: a file, a folder, a data set on the hub or its local copy, or rows that are there."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gem._internal.imports import is_installed
from gem.datasets.files import SUFFIXES, read_file
from gem.datasets.rows import ListRows, Mixed, Rows
from gem.errors import BadValue

GEM_DATA = "GEM_DATA"  # environment variable: the folder of local copies
HUB_S = 10.0  # seconds for the hub to answer at all
_HUB_NAME = re.compile(r"[\w.-]+/[\w.-]+")


class MissingData(BadValue):
    """A data set of the hub that cannot be had here."""


def load_rows(source: Any, split: str | None = None, *, config: str | None = None) -> Rows:
    """The rows of one split of a data set, in the order of its file.

    Args:
        source: a .jsonl, .json or .parquet file; a folder in the hub's layout; the name of a data set on the hub
            (owner/name), whose copy under $GEM_DATA/owner/name is preferred; a ``datasets.Dataset`` or
            ``DatasetDict``; a sequence of mappings; or a mapping of splits to any of these.
        split: None where there is only one.
        config: the subset, for data sets that have several.

    Raises BadValue, saying what there is, where source or split is not there; for a data set on the hub that cannot be
    had it names the three ways to provide it.
    """
    if isinstance(source, Rows):
        return source
    if isinstance(source, (str, Path)):
        return _named(source, split, config)
    if isinstance(source, Mapping):
        return load_rows(source[_choose(split, list(source), "the data set")])
    if not hasattr(source, "__getitem__") or not hasattr(source, "__len__"):
        raise BadValue(f"a data set is a sequence of rows, a file, a folder or a name, got {type(source).__name__}")
    if len(source) == 0:
        raise BadValue("the data set has no rows")
    return ListRows(source)


def _named(source: str | Path, split: str | None, config: str | None) -> Rows:
    path = Path(source)
    if path.is_dir():
        return _folder(path, split, config)
    if path.suffix in SUFFIXES:
        return read_file(path)
    if not isinstance(source, str) or not _HUB_NAME.fullmatch(source):
        raise BadValue(f"{str(source)!r} is no file, folder or data set's name (owner/name)")
    if (copy := local_copy(source)) is not None:
        return _folder(copy, split, config)
    return ListRows(hub_rows(source, split, config), source)


def local_copy(name: str) -> Path | None:
    """The folder under $GEM_DATA of a data set of the hub; None where there is none."""
    root = os.environ.get(GEM_DATA)
    return Path(root) / name if root and (Path(root) / name).is_dir() else None


def _folder(path: Path, split: str | None, config: str | None) -> Rows:
    """A folder as the hub has them: [config/][data/]train-00000-of-00002.parquet, train.jsonl, and the like."""
    places = [path / config, path / "data" / config] if config else [path, path / "data", path / "default"]
    files = sorted(file for place in places if place.is_dir() for file in place.iterdir() if file.suffix in SUFFIXES)
    splits: dict[str, list[Path]] = {}
    for file in files:
        splits.setdefault(re.split(r"[-_.]\d|\.", file.name, maxsplit=1)[0], []).append(file)
    if not splits:
        raise BadValue(f"{path}: no {', '.join(SUFFIXES)} file in the folder" + (f" of {config!r}" if config else ""))
    parts = [read_file(file) for file in splits[_choose(split, list(splits), str(path))]]
    return parts[0] if len(parts) == 1 else Mixed(parts)


def _choose(split: str | None, splits: list[str], what: str) -> str:
    if split is None and len(splits) == 1:
        return splits[0]
    if split is None or split not in splits:
        raise BadValue(f"{what}: split should be one of {', '.join(map(repr, splits))}, got {split!r}")
    return split


def hub_rows(name: str, split: str | None, config: str | None, *, streaming: bool = False) -> Any:
    """A split of a data set of the hub, as ``datasets`` has it. Raises MissingData with the ways to provide it."""
    installed = is_installed("datasets")
    first = "give it a network" if installed else "pip install 'gem-llm[data]'"
    ways = f"{first} to load it from the hub, put a copy in $GEM_DATA/{name} (or --data), or give the rows as dataset="
    if not installed:
        raise MissingData(f"data set {name!r} is not here; {ways}")
    from huggingface_hub import HfApi, constants

    from datasets import load_dataset

    try:
        if not constants.HF_HUB_OFFLINE:  # load_dataset would retry for most of a minute
            HfApi().dataset_info(name, timeout=HUB_S)
        return load_dataset(name, config, split=split, streaming=streaming)
    except Exception as e:  # whatever the network, the hub or the library raise
        raise MissingData(f"data set {name!r} cannot be loaded ({type(e).__name__}); {ways}") from e
