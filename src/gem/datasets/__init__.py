"""Rows of data sets, from files, folders, the hub, or wherever they are."""

from gem.datasets.files import read_file
from gem.datasets.load import load_rows
from gem.datasets.rows import ListRows, Mixed, Row, Rows, Selected, bad_rows, key_of

__all__ = ["ListRows", "Mixed", "Row", "Rows", "Selected", "bad_rows", "key_of", "load_rows", "read_file"]
