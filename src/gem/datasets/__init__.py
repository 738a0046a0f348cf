"""Rows of data sets, from files, folders, the hub, or wherever they are."""

from gem.datasets.files import read_file
from gem.datasets.load import GEM_DATA, MissingData, hub_rows, load_rows
from gem.datasets.rows import ListRows, Mixed, Row, Rows, Selected, key_of
from gem.datasets.skipping import BAD_ROWS, GEM_SKIP_BAD_ROWS, BadRows, bad_rows, skips_by_default, without_bad_rows
from gem.datasets.stream import Stream, is_iterable_dataset, stream_rows

__all__ = [
    "BAD_ROWS",
    "GEM_DATA",
    "GEM_SKIP_BAD_ROWS",
    "BadRows",
    "ListRows",
    "MissingData",
    "Mixed",
    "Row",
    "Rows",
    "Selected",
    "Stream",
    "bad_rows",
    "hub_rows",
    "is_iterable_dataset",
    "key_of",
    "load_rows",
    "read_file",
    "skips_by_default",
    "stream_rows",
    "without_bad_rows",
]
