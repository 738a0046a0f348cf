# gem-terminal-canary-5b1f6c2e-7d3a-4c0e-9a57-1e2d8f4b6a90
"""Text tables."""

from tabular.cells import format_number, pad, wrap
from tabular.csvtext import read_csv, write_csv
from tabular.table import Column, Table

__all__ = ["Column", "Table", "format_number", "pad", "read_csv", "wrap", "write_csv"]
