"""Datasets: rows from files, folders, the Hugging Face hub or objects, in memory, on disk or as streams.

What a row asks and how an answer is graded is in envs.questions; tensors to train on are in rl.estimate.
"""

from gem.datasets.load import MissingData, load_rows
from gem.datasets.rows import Row, Rows
from gem.datasets.stream import Stream
from gem.datasets.tasks import DatasetTask, HasBaseline, HasRows, SharesOrder

__all__ = [
    "DatasetTask",
    "HasBaseline",
    "HasRows",
    "MissingData",
    "Row",
    "Rows",
    "SharesOrder",
    "Stream",
    "load_rows",
]
