"""What environments over a dataset have. Evaluations, trainers and checks ask for these protocols, not for classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from gem.datasets.rows import Rows
from gem.datasets.stream import Stream


@runtime_checkable
class HasRows(Protocol):
    """An environment whose episodes are rows. Its constructor takes ``dataset=``, rows that environments then share.

    Attributes:
        dataset: the rows.
    """

    dataset: Rows | Stream

    def ask_only(self, numbers: Sequence[int], *, shuffle: bool = True) -> None:
        """Ask only the rows with these numbers; with ``shuffle=False``, seed s asks row ``numbers[s]`` first."""


@runtime_checkable
class SharesOrder(Protocol):
    """An environment that can share its order of rows with others, so that the slots of a vector ask each row once."""

    @property
    def shared_order(self) -> tuple[int, int] | None:
        """The seed and the number of the order of rows that this environment shares with others, or None."""

    def share_order(self, seed: int, number: int = 0, group_size: int = 1) -> None:
        """Ask the rows in an order that several environments share; see DatasetEnv.share_order()."""


@runtime_checkable
class DatasetTask(HasRows, SharesOrder, Protocol):
    """An environment over a dataset whose rows ``gem check --rows`` can check. Its reset() takes ``idx``, a row."""

    @property
    def skipped_rows(self) -> int:
        """Number of malformed rows that are skipped."""

    def row_error(self) -> str | None:
        """Return an error of the open row that opening it does not find, or None."""

    def gold_action(self) -> str | None:
        """Return a right answer to the open task, for environments without an oracle, or None if there is none."""

    def corrupted(self, action: str) -> str | None:
        """Return a wrong answer derived from a right answer to the open task, or None if there is none."""


@runtime_checkable
class HasBaseline(Protocol):
    """An environment over a dataset that knows what an agent that does nothing scores."""

    def baseline_score(self, numbers: Sequence[int]) -> str:
        """Return what an agent that does nothing scores on the rows with these numbers, in words."""
