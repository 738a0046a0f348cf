"""Datasets: rows from files, folders, the Hugging Face hub or objects, in memory, on disk or as streams."""

from gem.datasets.load import GEM_DATA, MissingData, hub_rows, load_rows, read_file
from gem.datasets.rows import (
    BAD_ROWS,
    GEM_SKIP_BAD_ROWS,
    BadRows,
    ListRows,
    Mixed,
    Row,
    Rows,
    Selected,
    Without,
    bad_rows,
    hold_back,
    key_of,
    skips_by_default,
    without_bad_rows,
)
from gem.datasets.stream import Stream, is_iterable_dataset, stream_rows
from gem.datasets.tasks import DatasetTask, HasBaseline, HasRows

__all__ = [
    "BAD_ROWS",
    "GEM_DATA",
    "GEM_SKIP_BAD_ROWS",
    "BadRows",
    "DatasetTask",
    "HasBaseline",
    "HasRows",
    "ListRows",
    "MissingData",
    "Mixed",
    "Row",
    "Rows",
    "Selected",
    "Stream",
    "Without",
    "bad_rows",
    "hold_back",
    "hub_rows",
    "is_iterable_dataset",
    "key_of",
    "load_rows",
    "read_file",
    "skips_by_default",
    "stream_rows",
    "without_bad_rows",
]
